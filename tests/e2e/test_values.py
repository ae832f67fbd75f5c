"""Values that broke other collectors, from the wire to the file and to a strict backend: integers, ids, empty values, nesting, enums, UTF-8."""
import json
import subprocess

import pytest

from conftest import free_port, post, records, wait_until

CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {{endpoint: "127.0.0.1:{grpc}"}}
      http: {{endpoint: "127.0.0.1:{http}"}}
exporters:
  file: {{path: out.jsonl, flush_interval: 20ms}}
  otlp_http: {{endpoint: "{backend}"}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    traces: {{receivers: [otlp], exporters: [file, otlp_http]}}
    metrics: {{receivers: [otlp], exporters: [file, otlp_http]}}
    logs: {{receivers: [otlp], exporters: [file, otlp_http]}}
"""


class Agent:
    """motel with a file and a strict backend (Python's protobuf classes)."""

    def __init__(self, start, sink):
        self.ports, self.sink = {"grpc": free_port(), "http": free_port()}, sink
        self.program = start(CONFIG.format(backend=sink.url, **self.ports), wait_ports=self.ports.values())
        self.lines_seen = 0

    def refused(self, signal_name, body, content_type="application/json"):
        status, _, _ = post(self.ports["http"], signal_name, body, content_type)
        assert status == 400, body[:200]
        assert self.program.alive()

    def line(self, signal_name, body, content_type="application/json", strict=True):
        """The line of the file that a request became; the backend got a good message, too (not looked at unless `strict`)."""
        status, _, reply = post(self.ports["http"], signal_name, body, content_type)
        assert status == 200, reply
        self.lines_seen += 1
        wait_until(lambda: len(self.program.json_lines("out.jsonl")) == self.lines_seen, what="the line")
        wait_until(lambda: len(self.sink.requests) == self.lines_seen, what="the export")
        if strict:
            self.sink.messages()        # parses as the official classes do, text included
        subprocess.run(["iconv", "-f", "utf-8", "-t", "utf-8", self.program.path("out.jsonl")], check=True, stdout=subprocess.DEVNULL)
        return self.program.json_lines("out.jsonl")[-1]

    def raw_grpc(self, data):
        import grpc
        with grpc.insecure_channel(f"127.0.0.1:{self.ports['grpc']}") as channel:
            call = channel.unary_unary("/opentelemetry.proto.collector.logs.v1.LogsService/Export", request_serializer=bytes, response_deserializer=bytes)
            return call(data, timeout=10)


@pytest.fixture
def agent(start, http_sink):
    return Agent(start, http_sink())


def span(**fields):
    base = {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "name": "op", "kind": 2, **fields}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [base]}]}]}


def spans_of(line):
    return line["resourceSpans"][0]["scopeSpans"][0]["spans"]


def log(**fields):
    return {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"timeUnixNano": "1700000000000000000", **fields}]}]}]}


def log_of(line):
    return line["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]


def test_integers_keep_every_digit(agent):
    for start_time in (1700000000123456789, "1700000000123456789"):
        s = spans_of(agent.line("traces", span(startTimeUnixNano=start_time, flags="1", droppedAttributesCount="2", attributes=[
            {"key": "a", "value": {"intValue": 9007199254740993}}, {"key": "b", "value": {"intValue": "-9223372036854775808"}}])))[0]
        assert s["startTimeUnixNano"] == "1700000000123456789" and s["flags"] == 1 and s["droppedAttributesCount"] == 2
        assert [a["value"]["intValue"] for a in s["attributes"]] == ["9007199254740993", "-9223372036854775808"]
    histogram = {"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "h", "histogram": {"aggregationTemporality": 2, "dataPoints": [
        {"count": "3", "sum": 5, "bucketCounts": ["1", 2], "explicitBounds": [0.5]}]}}]}]}]}
    p = agent.line("metrics", histogram)["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]["histogram"]["dataPoints"][0]
    assert p["count"] == "3" and p["bucketCounts"] == ["1", "2"] and p["explicitBounds"] == [0.5] and p["sum"] == 5
    for bad in ("9223372036854775808", "12x", 9223372036854775808):
        agent.refused("traces", span(attributes=[{"key": "a", "value": {"intValue": bad}}]))


def test_ids(agent):
    line = agent.line("logs", log(traceId="000102030405060708090A0B0C0D0E0F", spanId="0F0e0d0c0b0a0908"))
    assert log_of(line)["traceId"] == "000102030405060708090a0b0c0d0e0f" and log_of(line)["spanId"] == "0f0e0d0c0b0a0908"
    record = next(records("logs", agent.sink.messages()[-1][1]))[2]
    assert record.trace_id == bytes(range(16)) and record.span_id == bytes(range(15, 7, -1))
    for empty in (log(traceId="", spanId=""), log(traceId="0" * 32, spanId="0" * 16)):
        got = log_of(agent.line("logs", empty))
        assert "traceId" not in got and "spanId" not in got
    assert "parentSpanId" not in spans_of(agent.line("traces", span(parentSpanId="")))[0]
    for bad in ("abcd", "zz" * 16, "W47/95gDgQPSabYzgT/GDA=="):
        agent.refused("logs", log(traceId=bad))
    # Encoded: ids of 15 bytes.
    agent.refused("logs", b"\x0a\x15\x12\x13\x12\x11\x4a\x0f" + b"\x01" * 15, "application/x-protobuf")


@pytest.mark.parametrize("data", ["0a1a121812160900002a36fe9c97172a0b32090a070a056b65795f31", "0a0412021200", "0a0b1209120732050a01611200"])
def test_absent_values_over_grpc(agent, data):
    assert agent.raw_grpc(bytes.fromhex(data)) in (b"", b"\n\x00")
    lines = wait_until(lambda: agent.program.json_lines("out.jsonl"))
    assert len(log_of(lines[0])) and len(lines[0]["resourceLogs"][0]["scopeLogs"][0]["logRecords"]) == 1


def test_absent_and_empty_values_differ(agent):
    assert log_of(agent.line("logs", log(attributes=[{"key": "a"}, {"key": "b", "value": {}}, {"key": "c", "value": {"stringValue": ""}}])))["attributes"] == [
        {"key": "a", "value": {}}, {"key": "b", "value": {}}, {"key": "c", "value": {"stringValue": ""}}]
    for body, want in (({"stringValue": ""}, {"stringValue": ""}), ({"kvlistValue": {}}, {"kvlistValue": {}}), ({"arrayValue": {}}, {"arrayValue": {}}),
                       ({"arrayValue": {"values": [{}]}}, {"arrayValue": {"values": [{}]}}), ({}, {})):
        assert log_of(agent.line("logs", log(body=body)))["body"] == want
    assert log_of(agent.line("logs", log()))["body"] == {}
    assert len(spans_of(agent.line("traces", {"resourceSpans": [{"scopeSpans": [{"spans": [{}]}]}]}))) == 1


def test_nested_body(agent):
    body = {"kvlistValue": {"values": [{"key": "k", "value": {"arrayValue": {"values": [{"kvlistValue": {"values": [{"key": "z", "value": {"intValue": "1"}}]}},
                                                                                      {"boolValue": False}, {"bytesValue": "AP8="}, {"doubleValue": 1.5}]}}}]}}
    assert log_of(agent.line("logs", log(body=body)))["body"] == body


def test_enums_unknown_fields_and_spelling(agent):
    for kind, want in ((2, 2), ("SPAN_KIND_SERVER", 2), (99, 99)):
        assert spans_of(agent.line("traces", span(kind=kind)))[0]["kind"] == want
    agent.refused("traces", span(kind="SPAN_KIND_NOBODY"))
    assert spans_of(agent.line("traces", span(status={"code": "STATUS_CODE_ERROR"})))[0]["status"] == {"code": 2}
    future = {"future": {"a": [1, {"b": None}], "s": "\\ \" é", "deep": [[[[{}]]]]}}
    request = span(**future)
    request.update(future)
    request["resourceSpans"][0].update(future)
    assert spans_of(agent.line("traces", request))[0]["name"] == "op"
    snake = '{"resource_spans":[{"scope_spans":[{"spans":[{"trace_id":"5b8efff798038103d269b633813fc60c","start_time_unix_nano":"7","name":"a","name":"b"}]}]}]}'
    s = spans_of(agent.line("traces", snake))[0]
    assert s["traceId"] == "5b8efff798038103d269b633813fc60c" and s["startTimeUnixNano"] == "7" and s["name"] == "b"


def test_text_that_is_not_utf8_is_repaired_and_costs_nobody_else(agent):
    """Two records: one with a body of 61 ff 62 and a key of ff, and a good neighbour."""
    def field(number, data):
        return bytes([number << 3 | 2, len(data)]) + data
    bad = field(5, field(1, b"a\xffb")) + field(6, field(1, b"\xff") + field(2, field(1, b"v")))
    good = field(5, field(1, b"good"))
    line = agent.line("logs", field(1, field(2, field(2, bad) + field(2, good))), "application/x-protobuf")
    got = line["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    assert got[0]["body"] == {"stringValue": "a\ufffdb"} and got[0]["attributes"][0]["key"] == "\ufffd" and got[1]["body"] == {"stringValue": "good"}
    assert log_of(agent.line("logs", json.dumps(log(body={"stringValue": "MARK"})).encode().replace(b"MARK", b"x\xffy")))["body"] == {"stringValue": "x\ufffdy"}
    assert log_of(agent.line("logs", json.dumps(log(body={"stringValue": "MARK"})).replace("MARK", "\\ud800")))["body"] == {"stringValue": "\ufffd"}
    assert log_of(agent.line("logs", json.dumps(log(body={"stringValue": "MARK"})).replace("MARK", "a\\u0000b")))["body"] == {"stringValue": "a\0b"}


def nested(depth, array):
    """A log request whose body is nested so deep, by lists or by maps."""
    def field(number, data):
        n, prefix = len(data), bytearray([number << 3 | 2])
        while n >= 0x80:
            prefix.append(n & 0x7f | 0x80)
            n >>= 7
        return bytes(prefix) + bytes([n]) + data
    value = b"\x10\x01"
    for _ in range(depth):
        value = field(5, field(1, value)) if array else field(6, field(1, field(2, value)))
    return field(1, field(2, field(2, field(5, value))))


@pytest.mark.parametrize("array", [True, False])
def test_nesting(agent, array):
    body = log_of(agent.line("logs", nested(64, array), "application/x-protobuf", strict=False))["body"]    # Python's classes stop at 100 messages
    assert json.dumps(body).count("arrayValue" if array else "kvlistValue") == 64
    for depth in (200, 10000):
        agent.refused("logs", nested(depth, array), "application/x-protobuf")
    agent.refused("logs", b"\x0b" * 1_000_000, "application/x-protobuf")
    agent.refused("logs", '{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":' + '{"arrayValue":{"values":[' * 10000 + "]}}" * 10000 + "}]}]}]}")
    agent.refused("logs", '{"x":' + "[" * 1_000_000)
    assert agent.raw_grpc(b"") in (b"", b"\n\x00")


def test_many_and_repeated_attributes(agent):
    keys = [("a", "1"), ("a", "1"), ("b", "x"), ("a", "2"), ("", "empty key")]
    attributes = [{"key": k, "value": {"stringValue": v}} for k, v in keys]
    del attributes[4]["key"]            # an empty key is left out of JSON, like every empty string
    assert spans_of(agent.line("traces", span(attributes=attributes)))[0]["attributes"] == attributes
    attributes = [{"key": f"key-{i}", "value": {"intValue": str(i)}} for i in range(10000)] + [{"key": "k" * 1_000_000, "value": {"stringValue": "v" * 3_000_000}}]
    assert spans_of(agent.line("traces", span(attributes=attributes)))[0]["attributes"] == attributes
