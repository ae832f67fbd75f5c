"""The transform processor in the program: what a real SDK sends, and the same requests through a reference collector."""
import json
import os
import subprocess
import sys

import pytest

from conftest import HERE, free_port, post, records, value_of, wait_until


def config(port, transform, exporters, exporter, level="info"):
    pipelines = ", ".join(f"{s}: {{receivers: [otlp], processors: [transform], exporters: [{exporter}]}}" for s in ("traces", "metrics", "logs"))
    return f"""
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
processors:
  transform: {json.dumps(transform)}
exporters: {exporters}
service:
  telemetry: {{metrics: {{level: none}}, logs: {{level: {level}}}}}
  pipelines: {{{pipelines}}}
"""


IDENTITY = ('set(resource.attributes["service.name.override"], resource.attributes["service.name"]) where '
            'resource.attributes["service.name.override"] == nil and resource.attributes["service.name"] != nil')


def test_what_an_sdk_sends(start, http_sink):
    sink, port = http_sink(), free_port()
    transform = {
        "trace_statements": [
            {"context": "resource", "statements": [IDENTITY]},
            {"context": "span", "conditions": ['status.code == STATUS_CODE_ERROR'], "statements": [
                'set(name, Concat([kind.string, name], ":"))', 'set(attributes["from"], resource.attributes["list"][1])', 'delete_key(attributes, "größe")']},
            {"context": "spanevent", "statements": ['set(attributes["span"], span.name)']}],
        "metric_statements": [{"context": "metric", "statements": ['replace_pattern(name, "^py\\\\.(.+)$$", "py_$${1}")']},
                              {"context": "datapoint", "statements": ['set(attributes["metric"], metric.name)']}],
        "log_statements": ['set(log.attributes["service"], resource.attributes["service.name"])', 'set(log.severity_text, "LOUD")'],
    }
    program = start(config(port, transform, f'{{otlp_http: {{endpoint: "{sink.url}", compression: none}}}}', "otlp_http"), wait_ports=[port])
    subprocess.run([sys.executable, os.path.join(HERE, "sdk_client.py"), "http", "none", f"http://127.0.0.1:{port}"], check=True, timeout=120)
    wait_until(lambda: {s for s, _ in sink.messages()} == {"traces", "metrics", "logs"}, limit=60, what="all three signals at the backend")
    program.stop()
    got = {"traces": [], "metrics": [], "logs": []}
    for s, m in sink.messages():
        got[s] += list(records(s, m))
    assert {r["service.name.override"] for r, _, _ in got["traces"]} == {"py-client/agent"}
    spans = {x.name: {a.key: value_of(a.value) for a in x.attributes} for _, _, x in got["traces"]}
    assert spans == {"Server:py-span-0": {"i": 0, "from": "b"}, "py-span-1": {"i": 1, "größe": "ü"}, "py-span-2": {"i": 2, "größe": "ü"}}
    for _, _, x in got["traces"]:
        assert [{a.key: value_of(a.value) for a in e.attributes} for e in x.events] == [{"x": 1.5, "span": x.name}]
    assert {x.name for _, _, x in got["metrics"]} == {"py_count", "py_gauge", "py_histogram", "py_exponential"}
    for _, _, x in got["metrics"]:
        points = getattr(x, x.WhichOneof("data")).data_points
        assert points and all({a.key: value_of(a.value) for a in p.attributes}["metric"] == x.name for p in points)
    assert got["logs"] and all(x.severity_text == "LOUD" for _, _, x in got["logs"])
    assert all({a.key: value_of(a.value) for a in x.attributes}["service"] == "py-client/agent" for _, _, x in got["logs"])


TRACES = {"resourceSpans": [{
    "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "x"}}]},
    "scopeSpans": [{"scope": {"name": "lib"}, "spans": [
        {"name": "op", "kind": 3, "traceId": "0102030405060708090a0b0c0d0e0f10", "spanId": "0102030405060708", "traceState": "a=1,b=2", "startTimeUnixNano": "1000", "endTimeUnixNano": "3000",
         "attributes": [{"key": "k", "value": {"kvlistValue": {"values": [{"key": "l", "value": {"arrayValue": {"values": [{"intValue": "1"}, {"stringValue": "zwölf"}]}}}]}}},
                        {"key": "n", "value": {"intValue": "7"}}], "events": [{"name": "e0"}, {"name": "e1", "attributes": [{"key": "a", "value": {"doubleValue": 0.5}}]}]},
        {"name": "op2", "traceId": "0102030405060708090a0b0c0d0e0f10", "spanId": "0102030405060709", "status": {"code": 2, "message": "bad"}}]}]}]}

METRICS = {"resourceMetrics": [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "x"}}]}, "scopeMetrics": [{"scope": {"name": "lib"}, "metrics": [
    {"name": "vllm:a", "unit": "1", "gauge": {"dataPoints": [{"timeUnixNano": "2", "asDouble": 1.5, "attributes": [{"key": "k", "value": {"stringValue": "v"}}]}, {"timeUnixNano": "3", "asInt": "4"}]}},
    {"name": "s", "sum": {"dataPoints": [{"timeUnixNano": "2", "asInt": "7", "exemplars": [
        {"timeUnixNano": "5", "asDouble": 2.5, "traceId": "0102030405060708090a0b0c0d0e0f10", "spanId": "0102030405060708"}, {"timeUnixNano": "6", "asInt": "1"}]}],
        "aggregationTemporality": 2, "isMonotonic": True}},
    {"name": "h", "histogram": {"dataPoints": [{"timeUnixNano": "2", "count": "3", "sum": 4.5, "bucketCounts": ["1", "2"], "explicitBounds": [0.5]}], "aggregationTemporality": 1}},
    {"name": "e", "exponentialHistogram": {"dataPoints": [{"timeUnixNano": "2", "count": "6", "sum": 2.5, "scale": -3, "zeroCount": "1", "positive": {"offset": -2, "bucketCounts": ["1", "2"]},
                                                           "negative": {"offset": 4, "bucketCounts": ["2"]}, "flags": 1}], "aggregationTemporality": 2}},
    {"name": "q", "summary": {"dataPoints": [{"timeUnixNano": "2", "count": "2", "sum": 8, "quantileValues": [{"quantile": 0.5, "value": 4}]}]}},
    {"name": "none"}]}]}]}

LOGS = {"resourceLogs": [{"resource": {}, "scopeLogs": [{"scope": {}, "logRecords": [
    {"timeUnixNano": "11", "severityNumber": 9, "body": {"stringValue": "hi"}, "attributes": [{"key": "a", "value": {"stringValue": "x"}}, {"key": "b", "value": {"intValue": "1"}}]},
    {"body": {"kvlistValue": {"values": [{"key": "a", "value": {"intValue": "1"}}, {"key": "l", "value": {"arrayValue": {"values": [{"intValue": "1"}]}}}]}}},
    {"body": {"arrayValue": {"values": [{"intValue": "1"}]}}}, {"severityText": "WARN"}]}]}]}

SIDE_BY_SIDE = {
    "spans": ("traces", TRACES, {"trace_statements": [
        {"context": "span", "conditions": ['name == "op"', 'attributes["nothing"]["here"] == 1'], "statements": [
            'set(resource.attributes["from"], name)', 'set(attributes["x"]["y"], 1)', 'set(attributes["x"]["z"], [1, "a"])', 'set(cache["a"], 5)', 'set(attributes["c"], cache["a"])',
            'set(status.code, STATUS_CODE_ERROR)', 'set(name, 7)', 'set(kind.string, "Server")', 'set(scope.schema_url, "u")', 'set(flags, 4294967296)', 'set(trace_state["b"], "9")',
            'set(attributes["ts"], trace_state["a"])', 'set(attributes["id"], trace_id.string)', 'set(span_id.string, "ffffffffffffffff")', 'set(attributes["k"]["l"][0], attributes["k"]["l"][1])',
            'set(attributes["k"]["l"][5], 1)', 'set(dropped_links_count, 3)', 'set(start_time_unix_nano, end_time_unix_nano - 1)', 'set(end_time, start_time)']},
        {"context": "spanevent", "statements": ['set(span.attributes["last"], name)', 'set(attributes["i"], 1) where span.name == "op"', 'set(scope.name, "ev")', 'set(time_unix_nano, 5)']},
        {"context": "resource", "statements": ['set(attributes["r"], nil)', 'set(dropped_attributes_count, 3)', 'set(schema_url, "su")']}]}),
    "inferred": ("traces", TRACES, {"trace_statements": [
        'set(span.attributes["s"], resource.attributes["service.name"])', 'set(resource.attributes["all"], true)', 'set(scope.version, span.status.message) where span.status.message != ""']}),
    "metrics": ("metrics", METRICS, {"metric_statements": [
        {"context": "metric", "statements": [
            'replace_pattern(metric.name, "^([^:]+):(.+)$$", "$${1}_$${2}")', 'set(metric.unit, "s") where type == METRIC_DATA_TYPE_SUM', 'set(is_monotonic, false)',
            'set(aggregation_temporality, AGGREGATION_TEMPORALITY_CUMULATIVE)', 'set(type, 3)', 'set(metadata["m"], name)', 'set(name, aggregation_temporality) where name == "none"',
            'set(description, "d") where is_monotonic == nil']},
        {"context": "datapoint", "statements": [
            'set(value_double, 9.5) where value_int == 4', 'set(attributes["n"], metric.name)', 'set(count, 99)', 'set(sum, 1.25) where sum != nil', 'set(bucket_counts, [5, 6])',
            'set(explicit_bounds, [1.5])', 'set(scale, 2)', 'set(zero_count, 3)', 'set(positive.offset, 8)', 'set(positive.bucket_counts, [9, 10])', 'set(negative, positive)',
            'set(quantile_values, nil)', 'set(flags, 1)', 'set(start_time_unix_nano, time_unix_nano - 1)', 'set(metric.description, "by point")', 'set(attributes["eb"], explicit_bounds)',
            'set(attributes["eq"], true) where flags == FLAG_NO_RECORDED_VALUE']},
        {"context": "exemplar", "statements": [
            'set(filtered_attributes["x"], double_value)', 'set(int_value, 3) where int_value == 1', 'set(datapoint.attributes["ex"], true)',
            'set(trace_id.string, "ffffffffffffffffffffffffffffffff")', 'set(metric.unit, "ex")', 'set(exemplar.time_unix_nano, 77)']}]}),
    "metrics that are added": ("metrics", METRICS, {"metric_statements": [
        {"context": "metric", "statements": ['copy_metric(name="copy") where name == "s"', 'convert_sum_to_gauge() where name == "copy"', 'set(description, "seen")']}]}),
    "logs": ("logs", LOGS, {"log_statements": [
        {"context": "log", "statements": [
            'set(body["a"], "z")', 'set(body[0], 2)', 'set(body["l"][1], 2)', 'set(body["n"]["o"][2], true)', 'set(attributes["body"], body)', 'set(body.string, "s") where severity_number == 9',
            'set(time_unix_nano, 99) where body == nil', 'set(attributes["nil"], nil)', 'set(severity_text, nil)', 'delete_key(attributes, "a")', 'set(event_name, "ev")', 'set(flags, 4294967297)',
            'set(observed_time, time)', 'set(severity_number, SEVERITY_NUMBER_ERROR2)', 'set(dropped_attributes_count, -1)', 'set(attributes, {"x": 1}) where body == nil',
            'merge_maps(attributes, {"y": {"z": [1, 2.5]}}, "upsert")', 'set(log.cache["a"], attributes)', 'set(attributes["copy"], log.cache["a"]["y"])']},
        {"context": "scope", "statements": ['set(name, "n")', 'set(schema_url, "su")', 'set(resource.schema_url, "ru")', 'set(attributes["a"]["b"], 1)']}]}),
    "nil": ("traces", TRACES, {"error_mode": "propagate", "trace_statements": [
        'set(span.attributes["a"], "nil")', 'set(span.attributes["b"], nil)', 'set(span.attributes["c"], span.attributes["missing"])',
        'set(span.attributes["d"], "y") where IsMatch(span.attributes["missing"], ".*")', 'set(span.attributes["d1"], 1) where span.attributes["missing"] == nil',
        'set(span.attributes["d2"], 1) where span.attributes["missing"] != "x"', 'set(span.attributes["d3"], 1) where span.attributes["missing"] > 1',
        'set(span.attributes["e"], Concat(["x", span.attributes["missing"], "y"], "-"))', 'delete_key(span.attributes, "missing")']}),
    "error that ends the request": ("logs", LOGS, {"error_mode": "propagate", "log_statements": [
        {"context": "log", "statements": ['set(log.attributes["before"], 1)', 'set(log.severity_text, 5)']}]}),
    "shared cache": ("logs", LOGS, {"log_statements": [
        {"context": "log", "shared_cache": True, "statements": ['set(log.attributes["was"], log.cache["last"]) where log.cache["last"] != nil', 'set(log.cache["last"], log.body)']}]}),
}


def through(run, signal_name, body, transform):
    """(answers to two requests, the lines of the file) of one program."""
    port = free_port()
    program = run(config(port, transform, "{file: {path: out.jsonl, flush_interval: 10ms}}", "file"), wait_ports=[port])
    answers = [post(port, signal_name, body) for _ in range(2)]
    assert program.stop() == 0
    return [(status, json.loads(reply)) for status, _, reply in answers], program.json_lines("out.jsonl")


def recorded():
    """What the reference collector answered and wrote, case by case."""
    with open(os.path.join(os.path.dirname(HERE), "golden", "transform", "recorded.json"), encoding="utf-8") as f:
        return json.load(f)


def as_json(result):
    """Without the difference between tuples and lists."""
    return json.loads(json.dumps(result))


@pytest.mark.parametrize("case", SIDE_BY_SIDE)
def test_as_recorded(case, start):
    assert as_json(through(start, *SIDE_BY_SIDE[case])) == recorded()[case]


@pytest.mark.parametrize("case", SIDE_BY_SIDE)
def test_side_by_side(case, start, reference):
    """The reference collector still does what was recorded."""
    assert as_json(through(reference, *SIDE_BY_SIDE[case])) == recorded()[case]


def test_a_mistake_names_its_place(start):
    port = free_port()
    text = config(port, {}, "{nop: }", "nop").replace("transform: {}", """transform:
    log_statements:
      - context: log
        statements:
          - set(body, 1)
          - set(severty_text, "x")""")
    program = start(text)
    wait_until(lambda: not program.alive(), limit=60, what="the end of the program")
    assert program.stop() == 1
    assert 'config.yaml:9:13: processors::transform::log_statements[0]::statements[1]: unable to parse OTTL statement "set(severty_text, \\"x\\")"' in program.stderr
    assert 'did you mean "severity_text"? (column 5)' in program.stderr


def test_the_log_tells_what_failed_but_no_values(start):
    """At log level debug, with a statement that fails on a record with a secret in it."""
    port = free_port()
    transform = {"log_statements": [{"context": "log", "statements": ['set(attributes["a"], Int(attributes["token"]))', 'set(severity_text, attributes["token"][0])']}]}
    program = start(config(port, transform, "{file: {path: out.jsonl, flush_interval: 10ms}}", "file", level="debug"), wait_ports=[port])
    body = {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"attributes": [{"key": "token", "value": {"stringValue": "hush-4711"}}]}]}]}]}
    assert post(port, "logs", body)[0] == 200
    assert program.stop() == 0
    assert "failed to execute statement" in program.stderr
    assert "hush-4711" not in program.stderr
