"""A batch processor in front of queues on disk: what was answered with 200 is on disk, and the queues batch."""
import http.client
import threading

import pytest

from conftest import free_port, post, records, span_request, wait_until

CONFIG = """
extensions: {{file_storage: {{directory: {folder}, create_directory: true}}}}
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
processors:
  batch: {batch}
  resource: {{attributes: [{{key: stamped, value: yes, action: upsert}}]}}
exporters:
  otlp_http:
    endpoint: "{url}"
    compression: none
    sending_queue: {{storage: file_storage, num_consumers: 1}}
    retry_on_failure: {{initial_interval: 100ms, max_interval: 100ms, max_elapsed_time: 0}}
service:
  extensions: [file_storage]
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], processors: [batch, resource], exporters: [otlp_http]}}}}
"""


class Backend:
    """What an HttpSink took: it refuses for a while as long as `away` is true."""

    def __init__(self, http_sink):
        self.away, self.taken = False, []
        self.sink = http_sink(answer=self.answer)

    def answer(self, sink, n):
        if self.away:
            return 503, {}, b""
        signal_name, message = sink.messages()[n]
        self.taken.append([x.attributes[0].value.int_value for _, _, x in records(signal_name, message)])
        return 200, {"Content-Type": "application/x-protobuf"}, b""

    def numbers(self):
        return {n for request in list(self.taken) for n in request}


def keep_posting(port, numbers, accepted, stop):
    """Single spans until the program is gone."""
    while not stop.is_set():
        n = next(numbers)
        try:
            if post(port, "traces", span_request(1, start=n))[0] == 200:
                accepted.append(n)
        except (OSError, http.client.HTTPException):
            pass


@pytest.mark.parametrize("batch", ["{timeout: 200ms}", "{timeout: 60s, send_batch_size: 20, send_batch_max_size: 30}"])
def test_kill_9_loses_nothing_that_was_acknowledged(start, http_sink, tmp_path, batch):
    backend, accepted, counter = Backend(http_sink), [], iter(range(10 ** 9))
    for round_ in range(4):
        backend.away, port, stop, before = round_ % 2 == 0, free_port(), threading.Event(), len(accepted)
        program = start(CONFIG.format(folder=tmp_path / "queue", port=port, url=backend.sink.url, batch=batch), wait_ports=[port])
        clients = [threading.Thread(target=keep_posting, args=(port, counter, accepted, stop)) for _ in range(3)]
        for c in clients:
            c.start()
        wait_until(lambda: len(accepted) >= before + 70, what="70 accepted spans")
        program.kill()
        stop.set()
        for c in clients:
            c.join()
    backend.away, port = False, free_port()
    program = start(CONFIG.format(folder=tmp_path / "queue", port=port, url=backend.sink.url, batch="{timeout: 10ms}"), wait_ports=[port])
    wait_until(lambda: set(accepted) <= backend.numbers(), what="all acknowledged spans at the backend")
    assert program.stop() == 0


def test_the_queue_batches_by_the_limits_of_the_processor(start, http_sink, tmp_path):
    backend, port = Backend(http_sink), free_port()
    program = start(CONFIG.format(folder=tmp_path / "queue", port=port, url=backend.sink.url, batch="{timeout: 600s, send_batch_size: 20, send_batch_max_size: 30}"),
                    wait_ports=[port])
    for i in range(60):
        assert post(port, "traces", span_request(1, start=i))[0] == 200
    wait_until(lambda: len(backend.numbers()) == 60, what="60 spans at the backend")
    assert all(20 <= len(request) <= 30 for request in backend.taken), backend.taken
    assert post(port, "traces", span_request(75, start=100))[0] == 200
    wait_until(lambda: len(backend.numbers()) >= 60 + 60, what="two batches of the large request")
    assert post(port, "traces", span_request(2, start=200))[0] == 200
    assert program.stop() == 0                                      # what is too small for a batch goes at the stop
    assert backend.numbers() == set(range(60)) | set(range(100, 175)) | {200, 201}
    assert max(map(len, backend.taken)) <= 30
    assert len([n for request in backend.taken for n in request]) == 60 + 75 + 2


@pytest.mark.parametrize("exporters", ["[otlp_http]", "[otlp_http, nop]"])
def test_one_exporter_without_storage_is_told(start, tmp_path, exporters):
    port = free_port()
    text = CONFIG.format(folder=tmp_path / "queue", port=port, url="http://127.0.0.1:1", batch="{timeout: 200ms}")
    text = text.replace("exporters: [otlp_http]", "exporters: " + exporters).replace("exporters:\n", "exporters:\n  nop: {}\n", 1)
    p = start(text, wait_ports=[port])
    assert p.stop() == 0
    assert p.stderr.count("Data is acknowledged before it is on disk") == ("nop" in exporters)
