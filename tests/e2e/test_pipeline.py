"""Queue, retry, fan-out and stop as clients and backends see them."""
import os
import re
import threading
import time
import urllib.request

import pytest

from conftest import free_port, post, span_request, wait_until

BASE = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{http}"}}}}}}}}
processors: {{{processors}}}
exporters: {{{exporters}}}
service:
  telemetry: {{metrics: {{readers: [{{pull: {{exporter: {{prometheus: {{host: 127.0.0.1, port: {page}}}}}}}}}]}}}}
  pipelines: {{traces: {{receivers: [otlp], processors: [{chain}], exporters: [{names}]}}}}
"""


class Running:
    def __init__(self, start, exporters, names="otlp_http", processors="", chain=""):
        self.port, self.page_port = free_port(), free_port()
        config = BASE.format(http=self.port, page=self.page_port, exporters=exporters, names=names, processors=processors, chain=chain)
        self.program = start(config, wait_ports=[self.port, self.page_port])

    def post(self, n=1, start=0, **kw):
        status, _, body = post(self.port, "traces", span_request(n, start=start), **kw)
        return status, body.decode()

    def page(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.page_port}/metrics", timeout=30) as r:
            return r.read().decode()

    def metric(self, name, labels):
        """The value of the series that has all the labels; None when there is none."""
        for line in self.page().splitlines():
            m = re.fullmatch(name + r"\{(.*)\} (\S+)", line)
            if m and all(label in m.group(1).split(",") for label in labels):
                return float(m.group(2))
        return None


def answers(*statuses):
    """The n-th request gets the n-th status, later ones the last."""
    def answer(sink, n):
        status = statuses[min(n, len(statuses) - 1)]
        return status, {"Content-Type": "application/x-protobuf"}, b""
    return answer


def test_full_queue_refuses_and_recovers(start, http_sink):
    good = threading.Event()
    sink = http_sink(answer=lambda s, n: (200 if good.is_set() else 503, {"Content-Type": "application/x-protobuf"}, b""))
    r = Running(start, f"""otlp_http: {{endpoint: "{sink.url}", sending_queue: {{queue_size: 2, num_consumers: 1}},
                           retry_on_failure: {{initial_interval: 100ms, max_interval: 100ms}}}}""")
    assert [r.post(3)[0] for _ in range(2)] == [200, 200]
    wait_until(lambda: sink.requests, what="the first attempt")
    status, body = r.post(7)
    assert status == 503 and "sending queue is full" in body
    labels = ['exporter="otlp_http"']
    assert r.metric("otelcol_exporter_enqueue_failed_spans", labels) == 7
    assert r.metric("otelcol_exporter_queue_capacity", labels + ['data_type="traces"']) == 2
    assert r.metric("otelcol_exporter_queue_size", labels + ['data_type="traces"']) == 2
    good.set()
    wait_until(lambda: r.metric("otelcol_exporter_sent_spans", labels) == 6, what="the queue empty")
    assert r.post(1)[0] == 200
    assert r.metric("otelcol_receiver_refused_spans", ['receiver="otlp"', 'transport="http"']) == 7


@pytest.mark.parametrize("backend,client", [(200, 200), (400, 400), (401, 401), (403, 403), (404, 404), (408, 500), (429, 429), (500, 500), (501, 500), (502, 503),
                                            (503, 503), (504, 503)])
def test_without_a_queue_the_backend_answers_the_client(start, http_sink, backend, client):
    sink = http_sink(answer=answers(backend))
    r = Running(start, f'otlp_http: {{endpoint: "{sink.url}", sending_queue: {{enabled: false}}, retry_on_failure: {{enabled: false}}}}')
    assert r.post()[0] == client
    assert len(sink.requests) == 1


def test_without_a_queue_requests_do_not_wait_for_each_other(start, http_sink):
    sink = http_sink(delay=1.0)
    r = Running(start, f'otlp_http: {{endpoint: "{sink.url}", sending_queue: {{enabled: false}}}}')
    begin = time.monotonic()
    assert _at_once(r, 12) == [200] * 12
    assert time.monotonic() - begin < 10
    assert len(sink.requests) == 12


def _at_once(r, n, **kw):
    got = []
    threads = [threading.Thread(target=lambda i=i: got.append(r.post(1, start=i, **kw)[0])) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return got


def test_wait_for_result(start, http_sink):
    sink = http_sink(answer=answers(200, 400), delay=0.3)
    r = Running(start, f'otlp_http: {{endpoint: "{sink.url}", sending_queue: {{wait_for_result: true}}}}')
    begin = time.monotonic()
    assert r.post()[0] == 200
    assert time.monotonic() - begin >= 0.3
    assert r.post()[0] == 400


def test_block_on_overflow(start, http_sink):
    sink = http_sink(delay=0.1)
    r = Running(start, f'otlp_http: {{endpoint: "{sink.url}", sending_queue: {{queue_size: 1, num_consumers: 1, block_on_overflow: true}}}}')
    assert _at_once(r, 8) == [200] * 8
    wait_until(lambda: len(sink.requests) == 8, what="8 requests at the backend")
    assert r.metric("otelcol_exporter_enqueue_failed_spans", []) in (None, 0)


def test_permanent_failure_is_not_tried_again(start, http_sink):
    sink = http_sink(answer=answers(400))
    r = Running(start, f'otlp_http: {{endpoint: "{sink.url}", retry_on_failure: {{initial_interval: 50ms, max_interval: 50ms}}}}')
    assert r.post(4)[0] == 200
    wait_until(lambda: r.metric("otelcol_exporter_send_failed_spans", []) == 4, what="4 spans counted as lost")
    assert r.post(1)[0] == 200
    wait_until(lambda: len(sink.requests) == 2, what="the next request")
    assert any("Dropping data" in line and '"dropped_items": 4' in line for line in r.program.stderr.splitlines())


def test_one_branch_refuses(start, http_sink):
    """Data that one of two exporters refuses for a while reaches each of them once, over the batch processor."""
    good, busy = http_sink(), http_sink(answer=answers(503, 503, 503, 200))
    r = Running(start, f"""otlp_http/good: {{endpoint: "{good.url}", sending_queue: {{enabled: false}}, retry_on_failure: {{enabled: false}}}},
                           otlp_http/busy: {{endpoint: "{busy.url}", sending_queue: {{enabled: false}}, retry_on_failure: {{enabled: false}}}}""",
                names="otlp_http/good, otlp_http/busy", processors="batch: {timeout: 50ms}", chain="batch")
    assert r.post(5)[0] == 200
    wait_until(lambda: len(busy.requests) == 4, what="the fourth attempt")
    assert r.program.stop() == 0
    assert len(good.requests) == 1 and len(busy.requests) == 4


@pytest.mark.plain_only
@pytest.mark.parametrize("chain", ["", "batch"])
def test_stop_with_a_dead_backend_ends_in_time_by_default(start, chain):
    r = Running(start, f'otlp_http: {{endpoint: "http://127.0.0.1:{free_port()}", retry_on_failure: {{max_elapsed_time: 0}}}}',
                processors="batch: {timeout: 60s}", chain=chain)
    for i in range(30):
        assert r.post(2, start=2 * i)[0] == 200
    begin = time.monotonic()
    assert r.program.stop() == 0
    assert time.monotonic() - begin < 20
    lost = re.findall(r'"dropped_items": (\d+)', r.program.stderr)
    assert sum(map(int, lost)) == 60, r.program.stderr[-2000:]


@pytest.mark.plain_only
def test_workers_end_when_idle(start, http_sink):
    sink = http_sink()
    r = Running(start, f'otlp_http: {{endpoint: "{sink.url}"}}')
    threads = lambda: len(os.listdir(f"/proc/{r.program.pid}/task"))
    before = threads()
    assert _at_once(r, 30) == [200] * 30
    wait_until(lambda: len(sink.requests) == 30, what="30 requests at the backend")
    assert threads() > before
    wait_until(lambda: threads() <= before, limit=60, what="the workers gone")
