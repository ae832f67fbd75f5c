"""Nothing that was acknowledged is lost at a stop, and one configuration serves motel and the reference collector alike."""
import json
import signal
import threading

import pytest

from conftest import count_spans, free_port, post, records, run_python_client, span_request, wait_until

HEADER = """
receivers:
  otlp:
    protocols:
      grpc: {{endpoint: "127.0.0.1:{grpc}"}}
      http: {{endpoint: "127.0.0.1:{http}"}}
"""


def ports():
    return {"grpc": free_port(), "http": free_port()}


def spans_in(sink):
    return sorted(x.attributes[0].value.int_value for s, m in sink.messages() if s == "traces" for _, _, x in records(s, m))


def test_term_with_ten_thousand_spans_in_the_batch_and_a_slow_backend(start, http_sink):
    sink = http_sink(delay=0.2)
    p = ports()
    program = start(HEADER.format(**p) + f"""
processors: {{batch: {{timeout: 60s, send_batch_size: 100000, send_batch_max_size: 100000}}}}
exporters: {{otlp_http: {{endpoint: "{sink.url}", sending_queue: {{num_consumers: 1}}}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], processors: [batch], exporters: [otlp_http]}}}}
""", wait_ports=p.values())
    for i in range(100):
        assert post(p["http"], "traces", span_request(100, start=100 * i))[0] == 200
    assert program.stop() == 0
    assert spans_in(sink) == list(range(10000))


def test_term_with_a_full_queue_and_a_slow_backend(start, http_sink):
    sink = http_sink(delay=0.05)
    p = ports()
    program = start(HEADER.format(**p) + f"""
exporters: {{otlp_http: {{endpoint: "{sink.url}", sending_queue: {{num_consumers: 1}}}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [otlp_http]}}}}
""", wait_ports=p.values())
    for i in range(100):
        assert post(p["http"], "traces", span_request(100, start=100 * i))[0] == 200
    assert program.stop() == 0
    assert spans_in(sink) == list(range(10000))


def test_term_while_a_client_is_still_sending(start):
    """Every request that was answered with 200 is in the file; what came after the stop was refused, not half taken."""
    p = ports()
    program = start(HEADER.format(**p) + """
processors: {batch: {timeout: 60s, send_batch_size: 100000}}
exporters: {file: {path: out.jsonl}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], processors: [batch], exporters: [file]}}
""", wait_ports=p.values())
    accepted, stop = [], threading.Event()

    def client(offset):
        n = offset
        while not stop.is_set():
            try:
                if post(p["http"], "traces", span_request(1, start=n))[0] == 200:
                    accepted.append(n)
            except OSError:
                pass
            n += 4
    threads = [threading.Thread(target=client, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    wait_until(lambda: len(accepted) > 400, limit=60, what="400 accepted requests")
    assert program.stop() == 0
    stop.set()
    for t in threads:
        t.join()
    lines = program.json_lines("out.jsonl")
    got = sorted(int(s["attributes"][0]["value"]["intValue"]) for line in lines for r in line["resourceSpans"] for sc in r["scopeSpans"] for s in sc["spans"])
    assert set(accepted) <= set(got) and len(got) == len(set(got))
    assert len(got) - len(accepted) <= 4        # answers that the stop cut off on the way to a client


@pytest.mark.plain_only
def test_term_with_a_dead_backend_ends_within_the_shutdown_timeout(start):
    p = ports()
    program = start(HEADER.format(**p) + f"""
motel: {{shutdown_timeout: 3s}}
exporters: {{otlp_http: {{endpoint: "http://127.0.0.1:{free_port()}", retry_on_failure: {{max_elapsed_time: 0}}}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [otlp_http]}}}}
""", wait_ports=p.values())
    assert post(p["http"], "traces", span_request(7))[0] == 200
    assert program.stop(limit=20) == 0
    dropped = [line for line in program.stderr.splitlines() if "dropped" in line.lower() and "7" in line]
    assert dropped, program.stderr


def test_backend_that_comes_back_during_the_stop_gets_everything(start, http_sink):
    """The stop uses its time: what a backend refuses at first is offered again until the deadline."""
    sink = http_sink(answer=lambda s, n: (503, {}, b"") if n < 4 else (200, {"Content-Type": "application/x-protobuf"}, b""))
    p = ports()
    program = start(HEADER.format(**p) + f"""
exporters: {{otlp_http: {{endpoint: "{sink.url}", compression: none, retry_on_failure: {{initial_interval: 60s, max_interval: 60s, max_elapsed_time: 0}}}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [otlp_http]}}}}
""", wait_ports=p.values())
    assert post(p["http"], "traces", span_request(5))[0] == 200
    wait_until(lambda: sink.requests, what="the first attempt")
    assert program.stop() == 0
    assert set(spans_in(sink)) == set(range(5)) and len(sink.requests) == 5


def test_second_signal_ends_the_wait(start):
    p = ports()
    program = start(HEADER.format(**p) + f"""
exporters: {{otlp_http: {{endpoint: "http://127.0.0.1:{free_port()}", retry_on_failure: {{max_elapsed_time: 0}}}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [otlp_http]}}}}
""", wait_ports=p.values())
    assert post(p["http"], "traces", span_request(1))[0] == 200
    program.process.send_signal(signal.SIGTERM)
    wait_until(lambda: "shutdown" in program.stderr.lower(), what="the word that the stop has begun")
    assert program.stop(signal.SIGINT, limit=20) == 0


SAME = HEADER + """
processors:
  resource:
    attributes:
      - {{key: a.string, value: text, action: upsert}}
      - {{key: a.number, value: "${{env:JOB_NUMBER}}", action: upsert}}
      - {{key: a.default, value: "${{env:NOT_SET_ANYWHERE:-fallback}}", action: upsert}}
      - {{key: a.bool, value: true, action: upsert}}
      - {{key: a.double, value: 2.50, action: upsert}}
      - {{key: a.copy, from_attribute: service.name, action: upsert}}
      - {{key: service.name, value: renamed, action: upsert}}
      - {{key: a.number, action: convert, converted_type: string}}
  batch: {{timeout: 100ms}}
exporters:
  otlp_http: {{endpoint: "{backend}"}}
  file: {{path: out.jsonl, flush_interval: 50ms}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    traces: {{receivers: [otlp], processors: [resource, batch], exporters: [otlp_http, file]}}
    metrics: {{receivers: [otlp], processors: [resource, batch], exporters: [otlp_http, file]}}
    logs: {{receivers: [otlp], processors: [resource, batch], exporters: [otlp_http, file]}}
"""


def run_same(run, sink, bodies):
    p = ports()
    program = run(SAME.format(backend=sink.url, **p), env={"JOB_NUMBER": "0042"}, wait_ports=p.values())
    for signal_name, body in bodies:
        assert post(p["http"], signal_name, body, "application/x-protobuf")[0] == 200
        wait_until(lambda: len(sink.requests) == 1 + bodies.index((signal_name, body)), what="the export")
    assert program.stop() == 0
    with open(program.path("out.jsonl"), encoding="utf-8") as f:
        lines = f.read().splitlines()
    return lines, sorted((s, m.SerializeToString(deterministic=True)) for s, m in sink.messages())


def captured_requests(http_sink):
    """What the Python SDK sends for each signal, as bytes."""
    sink = http_sink()
    run_python_client("http", "none", sink.url)
    return [(r["path"].rsplit("/", 1)[1], r["body"]) for r in sink.requests]


def test_stamped_file_and_backend_agree(start, http_sink):
    lines, sent = run_same(start, http_sink(), captured_requests(http_sink))
    assert len(lines) == len(sent) == 3
    for line in lines:
        entry = next(iter(json.loads(line).values()))[0]
        attributes = {a["key"]: a["value"] for a in entry["resource"]["attributes"]}
        assert attributes["a.number"] == {"stringValue": "34"}       # 0042 is octal for YAML
        assert attributes["a.copy"] == {"stringValue": "py-client/agent"} and attributes["service.name"] == {"stringValue": "renamed"}
        assert attributes["a.default"] == {"stringValue": "fallback"} and attributes["a.double"] == {"doubleValue": 2.5} and attributes["a.bool"] == {"boolValue": True}


@pytest.mark.reference
def test_same_file_same_output_as_the_reference(start, reference, http_sink):
    bodies = captured_requests(http_sink)
    mine = run_same(start, http_sink(), bodies)
    theirs = run_same(reference, http_sink(), bodies)
    assert mine[0] == theirs[0]
    assert mine[1] == theirs[1]


def test_counts_in_the_file(start):
    p = ports()
    program = start(HEADER.format(**p) + """
exporters: {file: {path: out.jsonl, flush_interval: 50ms}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], exporters: [file]}}
""", wait_ports=p.values())
    assert post(p["http"], "traces", span_request(3))[0] == 200
    wait_until(lambda: count_spans(program.json_lines("out.jsonl")) == 3, what="three spans in the file")
    assert program.stop() == 0
