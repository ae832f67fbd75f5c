"""The filter and attributes processors between the Python SDK and a backend on grpcio; and beside the reference collector."""
from conftest import free_port, post, records, run_python_client, span_request, value_of, wait_until

CONFIG = """
receivers:
  otlp: {{protocols: {{grpc: {{endpoint: "127.0.0.1:{grpc}"}}, http: {{endpoint: "127.0.0.1:{http}"}}}}}}
processors:
  filter:
    trace_conditions: ['span.name == "py-span-1"', 'spanevent.name == "event" and span.attributes["i"] == 2']
    metric_conditions: ['metric.name == "py.gauge"', 'datapoint.attributes["room"] == "101"']
    log_conditions: ['log.severity_number < SEVERITY_NUMBER_INFO']
  attributes:
    include: {{match_type: regexp, services: ["^py-client/"], span_names: ["[02]$$"]}}
    actions: [{{key: größe, action: hash}}, {{key: i, action: convert, converted_type: string}}, {{key: seen, action: insert, value: true}}]
  attributes/metrics:
    include: {{match_type: strict, metric_names: [py.histogram]}}
    actions: [{{key: seen, action: insert, value: true}}]
exporters:
  {exporter}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    traces: {{receivers: [otlp], processors: [filter, attributes], exporters: [{id}]}}
    metrics: {{receivers: [otlp], processors: [filter, attributes/metrics], exporters: [{id}]}}
    logs: {{receivers: [otlp], processors: [filter], exporters: [{id}]}}
"""


def test_sdk_through_filter_and_attributes(start, grpc_sink):
    sink, grpc, http = grpc_sink(), free_port(), free_port()
    exporter = f'otlp_grpc: {{endpoint: "127.0.0.1:{sink.port}", tls: {{insecure: true}}}}'
    program = start(CONFIG.format(grpc=grpc, http=http, exporter=exporter, id="otlp_grpc"), wait_ports=[grpc])
    run_python_client("grpc", "none", f"127.0.0.1:{grpc}", 3)
    wait_until(lambda: {s for s, _ in sink.messages()} == {"traces", "metrics", "logs"}, what="all three signals")
    assert program.stop() == 0
    seen = {s: [x for name, m in sink.messages() if name == s for _, _, x in records(s, m)] for s in ("traces", "metrics")}
    spans = {x.name: {a.key: value_of(a.value) for a in x.attributes} for x in seen["traces"]}
    assert set(spans) == {"py-span-0", "py-span-2"}
    assert {n: len(x.events) for x in seen["traces"] for n in [x.name]} == {"py-span-0": 1, "py-span-2": 0}
    for n, attributes in spans.items():
        assert attributes["i"] == n[-1] and attributes["seen"] is True and len(attributes["größe"]) == 64
    metrics = {m.name: m for m in seen["metrics"]}
    assert set(metrics) == {"py.histogram", "py.exponential"}
    assert [a.key for a in metrics["py.histogram"].histogram.data_points[0].attributes] == ["seen"]
    assert not metrics["py.exponential"].exponential_histogram.data_points[0].attributes


def test_same_as_the_reference(start, reference):
    """One request by both: the files are equal."""
    got = []
    for run in (start, reference):
        grpc, http = free_port(), free_port()
        program = run(CONFIG.format(grpc=grpc, http=http, exporter="file: {path: out.jsonl, flush_interval: 10ms}", id="file"), wait_ports=[http])
        request = span_request(3)
        request["resourceSpans"][0]["resource"] = {"attributes": [{"key": "service.name", "value": {"stringValue": "py-client/x"}}]}
        for span, name in zip(request["resourceSpans"][0]["scopeSpans"][0]["spans"], ("py-span-0", "py-span-1", "py-span-2")):
            span["name"] = name
            span["attributes"] = [{"key": "i", "value": {"intValue": name[-1]}}, {"key": "größe", "value": {"stringValue": "ü"}}]
            span["events"] = [{"name": "event"}, {"name": "other"}]
        assert post(http, "traces", request)[0] == 200
        assert program.stop() == 0
        got.append(program.json_lines("out.jsonl"))
    assert got[0] and got[0] == got[1]
