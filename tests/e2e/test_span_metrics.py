"""The span_metrics connector in the real program: what it wrote for recorded requests, beside the reference collector, with a real SDK, at the stop."""
import glob
import json
import os
import signal
import subprocess

import pytest

from conftest import MOTEL, ROOT, free_port, post, records, run_python_client, value_of, wait_until

GOLDEN = os.path.join(ROOT, "tests", "golden", "spanmetrics")
CASES = sorted(os.path.basename(p)[:-5] for p in glob.glob(os.path.join(GOLDEN, "*.yaml")))
# In the order in which they were sent when the golden files were recorded.
REQUESTS = [("../otlp-file/go-http-none-002-traces.http.pb", "application/x-protobuf"), ("../otlp-file/gymlens-two-servers-001-traces.http.pb", "application/x-protobuf"),
            ("../otlp-file/gymlens-two-servers-005-traces.http.pb", "application/x-protobuf"), ("node-http-json-none-002-traces.http.json", "application/json"),
            ("../otlp-file/py-http-none-004-traces.http.pb", "application/x-protobuf")]
NOW = 1790000000000000000
MS = 1000000


def config(connector, port, exporter=None, name="span_metrics"):
    """A whole configuration; `connector` are the keys of the connector, as text or as a dict (JSON is YAML)."""
    section = connector if isinstance(connector, str) else "connectors: " + json.dumps({name: connector})
    return f"""
receivers:
  otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}
{section}
exporters:
  {exporter or 'file: {path: metrics.jsonl, flush_interval: 20ms}'}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    traces: {{receivers: [otlp], exporters: [{name}]}}
    metrics: {{receivers: [{name}], exporters: [{(exporter or 'file').split(':')[0]}]}}
"""


def value(v):
    return {"value": v} if v is None else v


def attributes(items):
    return json.dumps({a["key"]: a.get("value") for a in items if a["key"] != "collector.instance.id"}, sort_keys=True)


def points(line):
    """((resource, metric, unit, attributes), data of the metric, point) of every point of one line of the file exporter."""
    for r in line.get("resourceMetrics", ()):
        resource = attributes(r["resource"].get("attributes", ()))
        for s in r["scopeMetrics"]:
            assert s["scope"] == {"name": "spanmetricsconnector"}
            for m in s["metrics"]:
                kind, = set(m) & {"sum", "histogram", "exponentialHistogram"}
                for p in m[kind].get("dataPoints", ()):
                    yield (resource, m["name"], m.get("unit"), kind, attributes(p.get("attributes", ()))), m[kind], p


def rounded(x):
    return float(f"{x:.12g}")


def comparable(data, p):
    out = {k: v for k, v in p.items() if k not in ("attributes", "startTimeUnixNano", "timeUnixNano", "exemplars")}
    for k in ("sum", "min", "max"):
        if k in out:
            out[k] = rounded(out[k])
    out.update(temporality=data["aggregationTemporality"], monotonic=data.get("isMonotonic"))
    assert int(p["startTimeUnixNano"]) <= int(p["timeUnixNano"])
    return out


def added(a, b):
    """Two delta points together."""
    out = dict(b)
    for k in ("asInt", "count"):
        if k in b:
            out[k] = str(int(a[k]) + int(b[k]))
    if "sum" in b:
        out["sum"] = rounded(a["sum"] + b["sum"])
    if "bucketCounts" in b:
        out["bucketCounts"] = [str(int(x) + int(y)) for x, y in zip(a["bucketCounts"], b["bucketCounts"])]
    return out


def summary(lines):
    """({series: value in the end}, {series: its first count}, {series: exemplars}) of what was exported."""
    last, first, exemplars = {}, {}, {}
    for line in lines:
        for key, data, p in points(line):
            v = comparable(data, p)
            first.setdefault(key, v.get("asInt"))
            last[key] = added(last[key], v) if data["aggregationTemporality"] == 1 and key in last else v
            for e in p.get("exemplars", ()):
                exemplars.setdefault(key, set()).add((e["traceId"], e["spanId"], e["asDouble"]))
    return last, first, exemplars


def counts(lines):
    """{span name: calls} in the end."""
    return {json.loads(key[4]).get("span.name", {}).get("stringValue"): int(v["asInt"]) for key, v in summary(lines)[0].items() if key[1].endswith("calls")}


def send(port, spans, resource=None, scope=None):
    body = {"resourceSpans": [{"resource": {"attributes": [{"key": k, "value": v} for k, v in (resource or {"service.name": {"stringValue": "s"}}).items()]},
                               "scopeSpans": [{"scope": scope or {}, "spans": spans}]}]}
    status, _, reply = post(port, "traces", body)
    assert status == 200, reply


def span(name, start=NOW, duration=MS, n=1, **more):
    attributes_ = [{"key": k, "value": v if isinstance(v, dict) else {"stringValue": v}} for k, v in more.pop("attributes", {}).items()]
    return {"traceId": f"{n:032x}", "spanId": f"{n:016x}", "name": name, "startTimeUnixNano": str(start), "endTimeUnixNano": str(start + duration),
            "attributes": attributes_, **more}


# ---- recorded and beside the reference collector ----

@pytest.mark.parametrize("case", CASES)
def test_golden(start, case):
    with open(os.path.join(GOLDEN, case + ".yaml"), encoding="utf-8") as f:
        section = f.read()
    with open(os.path.join(GOLDEN, case + ".metrics.jsonl"), encoding="utf-8") as f:
        want = summary([json.loads(line) for line in f])
    port = free_port()
    motel = start(config(section, port), wait_ports=[port])
    for name, kind in REQUESTS:
        with open(os.path.join(GOLDEN, name), "rb") as f:
            assert post(port, "traces", f.read(), kind)[0] == 200
    assert motel.stop() == 0
    got = summary(motel.json_lines("metrics.jsonl"))
    assert got[0] == want[0]
    assert got[1].keys() == want[1].keys()
    if case != "delta":
        assert {v for v in got[1].values() if v is not None} == {"0"}


DURATIONS = [-1, 0, 2 * MS, 250 * MS, 250 * MS + 1, 10000 * MS]
SPANS = ([span("durations", duration=d, n=i + 1, kind=2) for i, d in enumerate(DURATIONS)] + [span("durations", start=0, duration=NOW, n=20, kind=2)] +
         [span("kinds", kind=k, status={"code": c}, n=30 + 10 * k + c) for k in range(6) for c in range(3)] +
         [span("attributes", attributes=a, n=100 + i) for i, a in enumerate((
             {"http.method": "GET", "http.route": "/a", "db.system": "x"}, {"http.method": "GET"}, {"n": {"intValue": "7"}}, {"n": "7"}, {"n": {"doubleValue": 1.5}},
             {"n": {"boolValue": True}}, {"n": {}}, {"n": {"arrayValue": {"values": [{"intValue": "1"}, {"stringValue": "b"}]}}}, {"shared": "span"},
             {"http.request.method": "PUT"}, {"n": {"kvlistValue": {"values": [{"key": "k", "value": {"stringValue": "v"}}]}}}, {"n": {"bytesValue": "AQI="}}))] +
         [span("sampled", traceState=t, n=200 + i) for i, t in enumerate(("ot=th:8", "a=b,ot=th:c", "ot=th:g", "rojo=1", "ot=rv:01234567890abc;th:0"))] +
         [span("events", attributes={"shared": "span"}, n=300, events=[{"name": "e", "attributes": [{"key": "kind", "value": {"stringValue": "a"}}]},
                                                                      {"name": "e", "attributes": [{"key": "kind", "value": {"stringValue": "a"}}]},
                                                                      {"name": "e", "attributes": [{"key": "shared", "value": {"stringValue": "event"}}]}, {"name": "e"}])] +
         [span("", n=400), span("späne ✓", n=401)] + [span("values", duration=d * 1000003, n=500 + d) for d in range(0, 3000, 37)])
RESOURCE = {"service.name": {"stringValue": "s"}, "shared": {"stringValue": "resource"}, "http.host": {"stringValue": "h"}, "number": {"intValue": "3"}}
BESIDE = {
    "defaults": {},
    "seconds": {"histogram": {"unit": "s", "explicit": {"buckets": ["2ms", "250ms", "1s"]}}},
    "milliseconds": {"histogram": {"explicit": {"buckets": ["2ms", "250ms", "1s"]}}},
    "no buckets": {"histogram": {"explicit": {}}},
    "exponential": {"histogram": {"exponential": {}}},
    "exponential small": {"histogram": {"exponential": {"max_size": 5}, "unit": "s"}, "dimensions": [{"name": "n"}]},
    "dimensions": {"dimensions": [{"name": "http.method", "default": "none"}, {"name": "n"}, {"name": "shared"}, {"name": "number"}, {"name": "absent"}],
                   "calls_dimensions": [{"name": "http.route"}], "histogram": {"dimensions": [{"name": "db.system", "default": ""}]}},
    "globs": {"dimensions": [{"glob": "http.*"}, {"name": "n"}], "calls_dimensions": [{"glob": "{db,sha}**"}]},
    "exclude": {"exclude_dimensions": ["service.name", "span.name", "collector.instance.id"], "namespace": "n"},
    "exemplars": {"exemplars": {"enabled": True, "max_per_data_point": 3}},
    "events": {"events": {"enabled": True, "dimensions": [{"name": "kind"}, {"name": "shared"}]}, "dimensions": [{"name": "http.host"}], "exemplars": {"enabled": True}},
    "scope": {"include_instrumentation_scope": ["lib"]},
    "sampling": {"enable_metrics_sampling_method": True},
    "limit": {"aggregation_cardinality_limit": 4, "exemplars": {"enabled": True}},
    "delta": {"aggregation_temporality": "AGGREGATION_TEMPORALITY_DELTA", "histogram": {"unit": "s"}, "exemplars": {"enabled": True}},
}


def run_beside(run, connector):
    """All spans in one request; what was exported after an interval that had them all."""
    port = free_port()
    p = run(config({**connector, "metrics_flush_interval": "300ms"}, port), wait_ports=[port])
    send(port, SPANS, RESOURCE, {"name": "lib", "version": "1.2"})
    with_data = 1 if "aggregation_temporality" in connector else 2
    wait_until(lambda: sum("resourceMetrics" in x for x in p.json_lines("metrics.jsonl")) >= with_data, 30, "two exports")
    p.stop()
    return summary(p.json_lines("metrics.jsonl"))


@pytest.mark.parametrize("name", BESIDE)
def test_beside_the_reference(start, reference, name):
    got, want = (run_beside(run, BESIDE[name]) for run in (start, reference))
    assert got[0] == want[0]
    assert got[1] == want[1]
    assert got[2] == want[2]


# ---- a real SDK, the stop, a reload ----

def test_sdk_and_backend(start, http_sink):
    """A run that is shorter than the interval: the backend sees a zero and the count of every series."""
    sink, port = http_sink(), free_port()
    motel = start(config({"dimensions": [{"name": "i"}]}, port, f"otlp_http: {{endpoint: '{sink.url}', compression: none}}"), wait_ports=[port])
    run_python_client("http", "gzip", f"http://127.0.0.1:{port}")
    assert motel.stop() == 0
    series = {}
    for kind, message in sink.messages():
        for resource, scope, m in records(kind, message):
            assert (kind, scope, resource["service.name"], resource["answer"]) == ("metrics", "spanmetricsconnector", "py-client/agent", 42)
            for p in m.sum.data_points if m.name.endswith("calls") else m.histogram.data_points:
                a = {x.key: value_of(x.value) for x in p.attributes}
                series.setdefault((m.name, a["span.name"], a["status.code"], a["i"]), []).append((p.time_unix_nano, p.as_int if m.name.endswith("calls") else p.count))
    codes = ["ERROR", "UNSET", "UNSET"]
    assert series.keys() == {(f"traces.span.metrics.{m}", f"py-span-{i}", f"STATUS_CODE_{c}", i) for m in ("calls", "duration") for i, c in enumerate(codes)}
    for (name, *_), values in series.items():
        assert [v for _, v in sorted(values)] == ([0, 1] if name.endswith("calls") else [1])
    assert "Shutdown complete" in motel.stderr


def test_nothing_at_the_stop_without_spans(start):
    port = free_port()
    motel = start(config({}, port), wait_ports=[port])
    assert motel.stop() == 0
    assert motel.json_lines("metrics.jsonl") == []


def test_reload(start):
    port = free_port()
    motel = start(config({"metrics_flush_interval": "1h"}, port), wait_ports=[port])
    send(port, [span("before")])
    motel.process.send_signal(signal.SIGHUP)
    wait_until(lambda: counts(motel.json_lines("metrics.jsonl")) == {"before": 1}, 30, "the export of the old graph")
    send(port, [span("after")])
    assert motel.stop() == 0
    assert counts(motel.json_lines("metrics.jsonl")) == {"before": 1, "after": 1}


def test_refused_by_the_backend(start, http_sink):
    """Without a queue the connector itself keeps what the backend refuses."""
    sink, port = http_sink(answer=lambda s, n: (503, {}, b"") if n < 4 else (200, {"Content-Type": "application/x-protobuf"}, b"")), free_port()
    exporter = f"otlp_http: {{endpoint: '{sink.url}', compression: none, sending_queue: {{enabled: false}}, retry_on_failure: {{enabled: false}}}}"
    motel = start(config({"metrics_flush_interval": "100ms", "aggregation_temporality": "AGGREGATION_TEMPORALITY_DELTA"}, port, exporter), wait_ports=[port])
    for i in range(5):
        send(port, [span("x")])
        wait_until(lambda: len(sink.requests) > i, 30, "the next request")
    wait_until(lambda: len(sink.requests) > 4, 30, "a request that is taken")
    assert motel.stop() == 0
    taken = sink.messages()[4:]
    assert sum(p.as_int for kind, message in taken for _, _, m in records(kind, message) if m.name.endswith("calls") for p in m.sum.data_points) == 5


# ---- forgetting ----

def test_series_expire(start):
    port = free_port()
    motel = start(config({"metrics_flush_interval": "50ms", "series_expiration": "100ms"}, port), wait_ports=[port])
    send(port, [span("x")])
    lines = lambda: motel.json_lines("metrics.jsonl")
    wait_until(lambda: counts(lines()) == {"x": 1}, 30, "the count")
    wait_until(lambda: "resourceMetrics" in lines()[-1] and not list(points(lines()[-1])), 30, "a resource without series")
    send(port, [span("x"), span("x")])
    wait_until(lambda: counts(lines()) == {"x": 2}, 30, "the count of the new series")
    assert motel.stop() == 0


def test_resources_expire(start):
    port = free_port()
    motel = start(config({"metrics_flush_interval": "50ms", "metrics_expiration": "100ms"}, port), wait_ports=[port])
    send(port, [span("x")])
    lines = lambda: motel.json_lines("metrics.jsonl")
    wait_until(lambda: counts(lines()) == {"x": 1}, 30, "the count")
    wait_until(lambda: lines()[-1] == {}, 30, "an empty export")
    assert motel.stop() == 0


def test_least_recently_used_resource_goes(start):
    port = free_port()
    motel = start(config({"metrics_flush_interval": "100ms", "resource_metrics_cache_size": 2}, port), wait_ports=[port])
    for name in ("a", "b", "a", "c"):
        send(port, [span(name)], {"service.name": {"stringValue": name}})
    lines = lambda: motel.json_lines("metrics.jsonl")
    wait_until(lambda: lines() and {json.loads(k[4])["span.name"]["stringValue"] for k, _, _ in points(lines()[-1])} == {"a", "c"}, 30, "the export without b")
    assert motel.stop() == 0
    assert counts(lines()) == {"a": 2, "b": 1, "c": 1}


def test_cardinality(start):
    port = free_port()
    motel = start(config({"aggregation_cardinality_limit": 3}, port), wait_ports=[port])
    send(port, [span(f"x{i % 50}", n=i + 1) for i in range(100)])
    assert motel.stop() == 0
    assert counts(motel.json_lines("metrics.jsonl")) == {"x0": 2, "x1": 2, "x2": 2, None: 94}


# ---- configuration ----

def test_alias(start):
    port = free_port()
    motel = start(config({}, port, name="spanmetrics"), wait_ports=[port])
    send(port, [span("x")])
    assert motel.stop() == 0
    assert '"spanmetrics" alias is deprecated; use "span_metrics" instead' in motel.stderr
    assert counts(motel.json_lines("metrics.jsonl")) == {"x": 1}


def test_validate(tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text(config({"dimensions": [{"name": "span.kind"}]}, 4318))
    p = subprocess.run([MOTEL, "validate", "--config", str(path)], capture_output=True, text=True, timeout=60)
    assert p.returncode == 1
    assert 'failed validating dimensions: duplicate dimension name "span.kind"' in p.stderr
