"""The batch processor in the program: cuts, and batches that downstream refuses for a while."""
import json

import pytest

from conftest import free_port, post, records, span_request, wait_until


def config(port, batch, exporters, pipelines):
    return f"""
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
processors: {{batch: {batch}}}
exporters: {exporters}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {pipelines}
"""


def span_numbers(sink):
    return [[x.attributes[0].value.int_value for _, _, x in records(s, m)] for s, m in sink.messages()]


def metric_request(points):
    return {"resourceMetrics": [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "svc"}}]}, "schemaUrl": "https://r",
                                 "scopeMetrics": [{"scope": {"name": "lib"}, "schemaUrl": "https://s", "metrics": [{"name": "m", "unit": "By", "description": "d", "sum": {
                                     "aggregationTemporality": 1, "isMonotonic": True,
                                     "dataPoints": [{"asInt": str(i), "timeUnixNano": "1700000000000000000"} for i in range(points)]}}]}]}]}


@pytest.fixture
def batched(start, http_sink):
    """batched(batch, answer) starts a pipeline with one batch processor and an HTTP backend; (program, port, sink)."""
    def run(batch, exporter="", answer=None):
        sink, port = http_sink(answer=answer), free_port()
        exporters = f'{{otlp_http: {{endpoint: "{sink.url}", compression: none{exporter}}}}}'
        pipelines = "{traces: {receivers: [otlp], processors: [batch], exporters: [otlp_http]}, metrics: {receivers: [otlp], processors: [batch], exporters: [otlp_http]}}"
        return start(config(port, batch, exporters, pipelines), wait_ports=[port]), port, sink
    return run


def test_25_spans_over_3_resources_are_sent_as_10_10_5(batched):
    program, port, sink = batched("{timeout: 300ms, send_batch_size: 10, send_batch_max_size: 10}", ", sending_queue: {num_consumers: 1}")
    parts = [span_request(n, service=f"r{i}", start=10 * i) for i, n in enumerate((8, 8, 9))]
    assert post(port, "traces", {"resourceSpans": [r for p in parts for r in p["resourceSpans"]]})[0] == 200
    wait_until(lambda: len(sink.requests) == 3, what="three requests")
    assert [len(n) for n in span_numbers(sink)] == [10, 10, 5]
    assert sum(span_numbers(sink), []) == [*range(8), *range(10, 18), *range(20, 29)]
    assert [sorted({a["service.name"] for a, _, _ in records(s, m)}) for s, m in sink.messages()] == [["r0", "r1"], ["r1", "r2"], ["r2"]]


def test_a_metric_is_cut_by_points_and_keeps_what_it_is(batched):
    program, port, sink = batched("{timeout: 0s, send_batch_size: 10, send_batch_max_size: 10}", ", sending_queue: {num_consumers: 1}")
    assert post(port, "metrics", metric_request(25))[0] == 200
    wait_until(lambda: len(sink.requests) == 3, what="three requests")
    got = []
    for _, message in sink.messages():
        (entry,) = message.resource_metrics
        (scope,) = entry.scope_metrics
        (metric,) = scope.metrics
        assert (entry.schema_url, scope.schema_url, scope.scope.name) == ("https://r", "https://s", "lib")
        assert (metric.name, metric.unit, metric.description, metric.sum.aggregation_temporality, metric.sum.is_monotonic) == ("m", "By", "d", 1, True)
        got.append([p.as_int for p in metric.sum.data_points])
    assert [len(g) for g in got] == [10, 10, 5] and sum(got, []) == list(range(25))


def test_full_queue_makes_the_batch_wait_and_nothing_is_lost(start, http_sink):
    """A backend that is away for a while, a queue of one: the batches wait; the file beside it gets everything at once, and once."""
    away = [True]
    sink, port = http_sink(answer=lambda s, n: (503, {}, b"") if away[0] else (200, {"Content-Type": "application/x-protobuf"}, b"")), free_port()
    exporters = (f'{{otlp_http: {{endpoint: "{sink.url}", compression: none, sending_queue: {{queue_size: 1, num_consumers: 1}}, '
                 'retry_on_failure: {initial_interval: 100ms, max_interval: 100ms}}, file: {path: out.jsonl, flush_interval: 10ms}}')
    program = start(config(port, "{timeout: 0s}", exporters, "{traces: {receivers: [otlp], processors: [batch], exporters: [otlp_http, file]}}"), wait_ports=[port])
    for i in range(50):
        assert post(port, "traces", span_request(1, start=i))[0] == 200
    wait_until(lambda: len(program.json_lines("out.jsonl")) == 50, what="50 lines in the file")
    away[0] = False
    delivered = lambda: {n for r, (s, m) in zip(sink.requests, sink.messages()) for _, _, x in records(s, m) for n in [x.attributes[0].value.int_value]}
    wait_until(lambda: delivered() == set(range(50)), limit=90, what="all spans at the backend")
    assert program.stop() == 0
    assert len(program.json_lines("out.jsonl")) == 50
    assert "dropped_items" not in program.stderr.lower()


def test_a_rejected_batch_is_logged_and_dropped(batched):
    program, port, sink = batched("{timeout: 0s}", ", sending_queue: {enabled: false}", answer=lambda s, n: (400, {}, b""))
    assert post(port, "traces", span_request(3))[0] == 200
    wait_until(lambda: "Sender failed" in program.stderr, what="the log line")
    assert '"dropped_items": 3' in program.stderr and len(sink.requests) == 1


def test_held_batches_are_delivered_when_the_backend_returns_during_the_stop(start, http_sink):
    """More than the queue holds, and a stop has begun: what is acknowledged is offered for as long as there is time."""
    away = [True]
    sink, port = http_sink(answer=lambda s, n: (503, {}, b"") if away[0] else (200, {"Content-Type": "application/x-protobuf"}, b"")), free_port()
    exporters = (f'{{otlp_http: {{endpoint: "{sink.url}", compression: none, sending_queue: {{queue_size: 1, num_consumers: 1}}, '
                 'retry_on_failure: {initial_interval: 100ms, max_interval: 100ms}}}')
    program = start(config(port, "{timeout: 0s}", exporters, "{traces: {receivers: [otlp], processors: [batch], exporters: [otlp_http]}}"), wait_ports=[port])
    for i in range(30):
        assert post(port, "traces", span_request(1, start=i))[0] == 200
    wait_until(lambda: sink.requests, what="the first attempt")
    program.process.terminate()
    wait_until(lambda: "Starting shutdown" in program.stderr, what="the beginning of the stop")
    seen = len(sink.requests)
    wait_until(lambda: len(sink.requests) > seen + 1, what="attempts during the stop")
    away[0] = False
    assert program.process.wait(60) == 0
    assert {n for numbers in span_numbers(sink) for n in numbers} == set(range(30))
    assert "dropped_items" not in program.stderr


def test_what_a_processor_behind_the_batch_refuses_is_dropped_and_counted(start, http_sink):
    """error_mode propagate refuses a whole request; another try would end the same way. One of two pipelines does so: the other has everything."""
    sink, port = http_sink(), free_port()
    program = start(f"""
motel: {{summary: summary.json}}
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
processors:
  batch: {{timeout: 0s}}
  transform: {{error_mode: propagate, trace_statements: ['set(span.name, ParseJSON("{{")["a"])']}}
exporters: {{otlp_http: {{endpoint: "{sink.url}", compression: none}}, nop: }}
connectors: {{forward: }}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    traces: {{receivers: [otlp], processors: [batch], exporters: [forward, otlp_http]}}
    traces/2: {{receivers: [forward], processors: [transform], exporters: [nop]}}
""", wait_ports=[port])
    assert post(port, "traces", span_request(3))[0] == 200
    wait_until(lambda: "Sender failed" in program.stderr, what="the log line")
    assert program.stop() == 0
    assert span_numbers(sink) == [[0, 1, 2]]
    with open(program.path("summary.json"), encoding="utf-8") as f:
        summary = json.load(f)
    assert summary["processors"] == [{"processor": "batch", "signal": "traces", "dropped": 3}] and summary["run"]["lost"] == 3


def test_a_rejection_of_an_exporter_counts_once(start, http_sink):
    """Without a queue the exporter's rejection comes back to the batch: one loss, not two."""
    sink, port = http_sink(answer=lambda s, n: (400, {}, b"")), free_port()
    exporters = f'{{otlp_http: {{endpoint: "{sink.url}", compression: none, sending_queue: {{enabled: false}}}}}}'
    program = start("motel: {summary: summary.json}" + config(port, "{timeout: 0s}", exporters, "{traces: {receivers: [otlp], processors: [batch], exporters: [otlp_http]}}"), wait_ports=[port])
    assert post(port, "traces", span_request(3))[0] == 200
    wait_until(lambda: "Sender failed" in program.stderr, what="the log line")
    assert program.stop() == 0
    with open(program.path("summary.json"), encoding="utf-8") as f:
        assert json.load(f)["run"]["lost"] == 3
