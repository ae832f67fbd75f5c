#!/usr/bin/env python3
"""Runs motel and the reference collector with the same configuration file and the same traffic, and prints every difference of what they export.

side_by_side.py [--case PATTERN] [--list] [--keep DIR]

MOTEL names the program (default build/motel), REFERENCE_COLLECTOR the reference collector (otelcol-contrib 0.161.0). Exit status: 0 when everything
is equal apart from ACCEPTED, 1 when something differs, 2 when a case could not be run.

Equal means: the same spans, log records and data points, the same number of times, with the same resource, scope, metric and content. Their order, and
how they are divided into lines and requests, is not compared.
"""
import argparse
import collections
import fnmatch
import glob
import http.client
import json
import os
import re
import shutil
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
GOLDEN = os.path.join(TESTS, "golden")
sys.path.insert(0, os.path.join(TESTS, "e2e"))
from conftest import MOTEL, REFERENCE, SIGNALS, GrpcSink, HttpSink, Program, _request_types, decode, free_port, parse, post, run_python_client, wait_until  # noqa: E402

# What may differ, and why. Each is done in comparable() or summary().
ACCEPTED = {
    "times within the run": "both programs read the clock: scrape times, span_metrics times and observed times are one word when they are of this run",
    "scrape_duration_seconds": "its value is how long the request took",
    "number of scrapes and flushes": "the programs start and stop some milliseconds apart; a scrape or flush more or less that says the same is no difference. "
                                     "Of each series of span_metrics the last value, of its calls the first one too, and the exemplars of all flushes together are compared; "
                                     "motel also flushes at the stop",
    "secrets in files": "motel writes tokens from the environment as [REDACTED]; on the wire both send them",
    "text of a refusal": "motel names the place in the request; the status is compared",
    "keyStrindex, stringValueStrindex (transform)": "fields of the profiles signal alone; where transform writes attributes anew, motel writes those of the other signals",
    "collector.instance.id": "random in each process",
    "scope version of the prometheus receiver": "the version of the program",
    "sums of span_metrics": "compared to 12 digits: floating point numbers added in another order",
}

TOKENS = {"OTEL_TOKEN": "secret-token", "MY_INGEST_TOKEN": "other-token"}
KINDS = ("gauge", "sum", "histogram", "exponentialHistogram", "summary")
LEAVES = {"traces": ("resourceSpans", "scopeSpans", "spans"), "metrics": ("resourceMetrics", "scopeMetrics", "metrics"),
          "logs": ("resourceLogs", "scopeLogs", "logRecords")}


# ---- traffic ----

def read(*path):
    with open(os.path.join(GOLDEN, *path), "rb") as f:
        return f.read()


def recorded():
    """(protocol, signal, body) of the recorded requests, half of the protobuf ones over gRPC."""
    requests = []
    for folder in ("otlp", "otlp-file"):
        for name in sorted(os.listdir(os.path.join(GOLDEN, folder))):
            signal = next((s for s in SIGNALS if f"-{s}." in name), None)
            if signal and name.endswith(".json"):
                requests.append(("json", signal, read(folder, name)))
            elif signal and name.endswith(".pb"):
                requests.append(("grpc" if len(requests) % 2 or ".grpc." in name else "http", signal, read(folder, name)))
    return requests


def captured():
    """What the Python SDK sends, over gRPC and over HTTP with gzip, kept so that both programs get the same bytes."""
    requests = []
    sink = GrpcSink()
    try:
        run_python_client("grpc", "none", f"127.0.0.1:{sink.port}", 5)
        requests += [("grpc", signal, message.SerializeToString()) for signal, message in sink.messages()]
    finally:
        sink.close()
    sink = HttpSink()
    try:
        run_python_client("http", "gzip", sink.url, 5)
        requests += [("gzip", r["path"].rsplit("/", 1)[1], r["body"]) for r in sink.requests]
    finally:
        sink.close()
    return requests


def send(requests, grpc_port, http_port):
    """Sends all requests one after the other; what was answered to each."""
    import grpc
    answers = []
    with grpc.insecure_channel(f"127.0.0.1:{grpc_port}") as channel:
        for protocol, signal, body in requests:
            if protocol == "grpc":
                call = channel.unary_unary(_request_types()[signal][2], request_serializer=None, response_deserializer=None)
                try:
                    answers.append(("OK", call(body, timeout=60)))
                except grpc.RpcError as e:
                    answers.append((e.code().name, e.details()))
            else:
                kind = "application/json" if protocol == "json" else "application/x-protobuf"
                status, _, reply = post(http_port, signal, body, kind, {"Content-Encoding": "gzip"} if protocol == "gzip" else None, timeout=60)
                answers.append((status, reply))
    return answers


def count_spans_of(requests, named_only):
    """Spans of the requests, as the official Python classes read them; all, or only those of a resource with a service.name."""
    from google.protobuf import json_format
    n = 0
    for protocol, signal, body in requests:
        if signal == "traces":
            message = json.loads(body) if protocol == "json" else json_format.MessageToDict(parse(signal, decode(body, "gzip" if protocol == "gzip" else "")))
            for r in message.get("resourceSpans", ()):
                if not named_only or any(a["key"] == "service.name" for a in r.get("resource", {}).get("attributes", ())):
                    n += sum(len(s.get("spans", ())) for s in r.get("scopeSpans", ()))
    return n


class Pages(ThreadingHTTPServer):
    """One scraped server for both programs: /NAME is the page NAME. A page is (type, body), or the port of a server whose answer is asked for once
    and kept for each Accept and Accept-Encoding."""
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, pages):
        self.pages, self.kept, self.lock = pages, {}, threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                kind, encoding, body = server.page(self.path.strip("/"), self.headers)
                self.send_response(200)
                self.send_header("Content-Type", kind)
                if encoding:
                    self.send_header("Content-Encoding", encoding)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass
        super().__init__(("127.0.0.1", 0), Handler)
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def page(self, name, headers):
        page = self.pages[name]
        if isinstance(page, tuple):
            return page[0], "", page[1]
        asked = {k: headers.get(k, "") for k in ("Accept", "Accept-Encoding")}
        key = (name, *asked.values())
        with self.lock:
            if key not in self.kept:
                c = http.client.HTTPConnection("127.0.0.1", page, timeout=30)
                c.request("GET", "/metrics", headers=asked)
                r = c.getresponse()
                self.kept[key] = r.headers["Content-Type"], r.headers.get("Content-Encoding", ""), r.read()
                c.close()
            return self.kept[key]

    def close(self):
        self.shutdown()
        self.server_close()


def library_page(closers):
    """A server of the real prometheus_client; its port."""
    import prometheus_client as p
    registry = p.CollectorRegistry()
    counter = p.Counter("requests", "Requests by path", ["path"], registry=registry)
    counter.labels("/v1/chat \"quoted\"\\\n").inc(3, exemplar={"trace_id": "0af7651916cd43dd8448eb211c80319c", "span_id": "b7ad6b7169203331", "extra": "x"})
    counter.labels("/größe").inc()
    p.Gauge("queue_depth", "Waiting", registry=registry).set(-2.5)
    p.Gauge("odd", "Odd values", ["v"], registry=registry).labels("nan").set(float("nan"))
    histogram = p.Histogram("latency_seconds", "Latency", ["m"], buckets=(0.1, 1, 10), registry=registry)
    for v in (0.05, 0.5, 0.7, 20):
        histogram.labels("a").observe(v, exemplar={"trace_id": "0af7651916cd43dd8448eb211c80319c"})
    p.Summary("size_bytes", "Sizes", registry=registry).observe(512)
    p.Info("build", "Build", registry=registry).info({"version": "1.2"})
    p.Enum("state", "State", states=["on", "off"], registry=registry).state("off")
    p.ProcessCollector(registry=registry)
    p.PlatformCollector(registry=registry)
    server, _ = p.start_http_server(0, "127.0.0.1", registry)
    closers += [server.shutdown, server.server_close]
    return server.server_address[1]


def node_exporter_page(closers, folder):
    """A server of the real node exporter; its port, or None when it is not installed (Debian: prometheus-node-exporter)."""
    program = os.environ.get("NODE_EXPORTER") or shutil.which("prometheus-node-exporter") or shutil.which("node_exporter")
    if not program:
        return None
    port = free_port()
    p = Program(program, os.path.join(folder, "node_exporter"), args=[f"--web.listen-address=127.0.0.1:{port}"], wait_ports=[port])
    closers.append(p.kill)
    return port


OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
TEXT = "text/plain; version=0.0.4; charset=utf-8"


def golden_pages():
    return {os.path.basename(p)[:-4].replace(".", "_"): (OPENMETRICS if ".om." in p else TEXT, read("prometheus", os.path.basename(p)))
            for p in sorted(glob.glob(os.path.join(GOLDEN, "prometheus", "*.txt")))}


# ---- configurations ----

HEAD = """receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:GRPC"}, http: {endpoint: "127.0.0.1:HTTP"}}}
"""
FILES = """exporters:
  file/traces: {path: traces.jsonl, flush_interval: 20ms}
  file/metrics: {path: metrics.jsonl, flush_interval: 20ms}
  file/logs: {path: logs.jsonl, flush_interval: 20ms}
"""


def pipelines(**processors):
    return "service:\n  telemetry: {metrics: {level: none}}\n  pipelines:\n" + "".join(
        f"    {s}: {{receivers: [otlp], processors: [{processors[s]}], exporters: [file/{s}]}}\n" for s in SIGNALS)


def plain():
    return HEAD + FILES + pipelines(traces="", metrics="", logs="")


def to_backend():
    """Over the wire to a backend: batch, otlp_grpc with gzip, otlp_http with zstd, headers."""
    return HEAD + """processors:
  batch: {send_batch_size: 50, send_batch_max_size: 60, timeout: 100ms}
exporters:
  otlp_grpc: {endpoint: "127.0.0.1:SINKGRPC", tls: {insecure: true}, compression: gzip, headers: {x-tenant: a}}
  otlp_http: {endpoint: "SINKHTTP/prefix", compression: zstd, headers: {x-tenant: b}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
""" + "".join(f"    {s}: {{receivers: [otlp], processors: [batch], exporters: [otlp_grpc, otlp_http]}}\n" for s in SIGNALS)


def filters():
    return HEAD + FILES + r"""processors:
  filter/conditions:
    error_mode: ignore
    traces:
      span: ['attributes["http.request.method"] == "GET"', 'IsMatch(name, "^py-span-[12]$$")', 'kind == SPAN_KIND_INTERNAL and status.code == STATUS_CODE_ERROR', 'resource.attributes["absent"] != nil']
      spanevent: ['name == "exception"', 'attributes["x"] == 1.5']
    metrics:
      metric: ['type == METRIC_DATA_TYPE_EXPONENTIAL_HISTOGRAM', 'IsMatch(name, "duration")', 'HasAttrOnDatapoint("room", "101")']
      datapoint: ['metric.type == METRIC_DATA_TYPE_SUM and value_int > 100', 'attributes["key"] == "value"']
    logs:
      log_record: ['severity_number < SEVERITY_NUMBER_INFO', 'IsMap(body)', 'attributes["a"] == 1']
  filter/resources:
    logs: {include: {match_type: regexp, resource_attributes: [{key: service.name, value: "."}]}}
    metrics: {exclude: {match_type: regexp, metric_names: ["^py\\.g", "^node"]}}
    spans: {exclude: {match_type: strict, span_names: [py-span-0, GET]}}
""" + pipelines(traces="filter/conditions, filter/resources", metrics="filter/conditions, filter/resources", logs="filter/conditions, filter/resources")


def filters_by_context():
    """The newer keys, whose paths name their context."""
    return HEAD + FILES + r"""processors:
  filter:
    trace_conditions: ['span.name == "py-span-1"', 'spanevent.name == "event" and span.attributes["i"] == 2', 'span.kind == SPAN_KIND_CLIENT']
    metric_conditions: ['IsMatch(metric.name, "gauge")', 'datapoint.attributes["room"] == "101"']
    log_conditions: ['log.severity_number < SEVERITY_NUMBER_INFO']
  filter/resources:
    trace_conditions: ['resource.attributes["service.name"] == "node-client"']
    metric_conditions: ['resource.attributes["telemetry.sdk.language"] == "go"']
    log_conditions: [{context: resource, conditions: ['attributes["service.name"] == "node-client"']}]
""" + pipelines(traces="filter, filter/resources", metrics="filter", logs="filter/resources")


def filters_by_resource():
    """Conditions on resources and scopes alone."""
    return HEAD + FILES + r"""processors:
  filter:
    trace_conditions: ['resource.attributes["service.name"] == "node-client"']
    metric_conditions: ['resource.attributes["telemetry.sdk.language"] == "go"', 'scope.name == "py.meter"']
    logs: {resource: ['attributes["service.name"] == "node-client"']}
""" + pipelines(traces="filter", metrics="filter", logs="filter")


def attributes():
    # No key that the recorded requests have twice on one record: motel's delete removes both (docs/processors/resource.md).
    # Nor resources in the include of metrics, which motel heeds and the reference does not (docs/processors/attributes.md).
    actions = r"""[{key: seen, action: insert, value: true}, {key: i, action: update, value: 7}, {key: copied, from_attribute: größe, action: upsert}, {key: größe, action: hash},
      {key: http.url, pattern: "^(?P<scheme>[a-z]+)://(?P<host>[^/]+)", action: extract}, {key: a, action: convert, converted_type: string}, {key: n, action: convert, converted_type: double},
      {pattern: "^net\\.", action: delete}, {key: http.request.method, action: delete}, {pattern: "^s[a-z]+$$", action: hash}]"""
    return HEAD + FILES + f"""processors:
  attributes: {{actions: {actions}}}
  attributes/some: {{include: {{match_type: regexp, resources: [{{key: service.name, value: "^py|gym"}}]}}, exclude: {{match_type: strict, resources: [{{key: service.name, value: gym}}]}}, actions: [{{key: some, action: upsert, value: 1.5}}]}}
  attributes/metrics: {{include: {{match_type: regexp, metric_names: ["^py", "_total$$"]}}, exclude: {{match_type: strict, metric_names: [py.gauge]}}, actions: [{{key: some, action: upsert, value: 1.5}}]}}
  resource: {{attributes: [{{key: service.name, action: upsert, value: s}}, {{key: answer, action: convert, converted_type: string}}, {{key: on, action: hash}}, {{key: list, action: delete}},
    {{key: id, action: insert, from_attribute: service.instance.id}}, {{pattern: "^process\\\\.", action: delete}}]}}
""" + pipelines(traces="attributes, attributes/some, resource", metrics="attributes, attributes/metrics, resource", logs="attributes, attributes/some, resource")


def transform():
    return HEAD + FILES + r"""processors:
  transform:
    error_mode: ignore
    trace_statements:
      - {context: resource, statements: ['set(attributes["r"], Concat([attributes["service.name"], "x"], "-"))', 'keep_matching_keys(attributes, "^(service|r|telemetry)")', 'limit(attributes, 4, ["service.name"])']}
      - {context: scope, statements: ['set(attributes["v"], version)', 'set(name, ToUpperCase(name))', 'set(schema_url, "u")']}
      - {context: span, conditions: ['kind != SPAN_KIND_UNSPECIFIED'], statements: ['set(attributes["d"], end_time_unix_nano - start_time_unix_nano)', 'set(attributes["id"], trace_id.string)',
          'set(attributes["h"], SHA256(name))', 'truncate_all(attributes, 12)', 'replace_all_patterns(attributes, "value", "([aeiou])", "<$$1>")', 'replace_pattern(name, "\\d+", "N")',
          'merge_maps(attributes, ParseJSON("{\"j\": [1, 2.5, null, {\"k\": true}]}"), "insert")', 'delete_matching_keys(attributes, "^net")', 'set(status.message, "m") where status.code == STATUS_CODE_ERROR']}
      - {context: spanevent, statements: ['set(attributes["span"], span.name)', 'set(name, Substring(name, 0, 3)) where IsMatch(name, "^[a-z]{4}")']}
    metric_statements:
      - {context: resource, statements: ['set(attributes["n"], Len(attributes["service.name"]))', 'flatten(attributes)']}
      - {context: scope, statements: ['set(attributes["a"], Split(name, "."))']}
      - {context: metric, statements: ['set(description, Concat([name, unit], "/"))', 'replace_pattern(name, "^([^.]+)[.:](.+)$$", "$${1}_$${2}")', 'extract_sum_metric(true) where type == METRIC_DATA_TYPE_HISTOGRAM',
          'extract_count_metric(true) where type == METRIC_DATA_TYPE_HISTOGRAM', 'copy_metric(name="copy") where type == METRIC_DATA_TYPE_GAUGE and name != "copy"', 'convert_gauge_to_sum("cumulative", true) where name == "copy"',
          'scale_metric(2.5, "x") where type == METRIC_DATA_TYPE_SUM', 'set(unit, "none") where unit == ""']}
      - {context: datapoint, statements: ['set(attributes["m"], metric.name)', 'set(attributes["v"], value_double) where value_double != 0.0', 'set(flags, 1) where metric.type == METRIC_DATA_TYPE_SUMMARY',
          'set(attributes["b"], explicit_bounds)', 'set(attributes["t"], UnixNano(Time("2026-01-02", "%Y-%m-%d")))']}
    log_statements:
      - {context: resource, statements: ['set(attributes["md5"], MD5(attributes["service.name"]))']}
      - {context: scope, statements: ['set(version, "9")']}
      - {context: log, statements: ['set(attributes["len"], Len(body))', 'set(attributes["text"], String(body))', 'set(severity_text, ToLowerCase(severity_text))', 'set(attributes["w"], ExtractPatterns(body, "^(?P<first>\\w+)"))',
          'set(body, Concat(["<", body, ">"], "")) where IsString(body)', 'set(attributes["fnv"], FNV(body))', 'set(severity_number, SEVERITY_NUMBER_WARN) where severity_number == 0']}
""" + pipelines(**{s: "transform" for s in SIGNALS})


def span_metrics():
    return HEAD + FILES + """connectors:
  span_metrics:
    metrics_flush_interval: 500ms
    dimensions: [{name: i}, {name: http.method, default: none}, {name: telemetry.sdk.language}]
    exemplars: {enabled: true, max_per_data_point: 1000}
    histogram: {unit: s, exponential: {max_size: 40}}
    events: {enabled: true, dimensions: [{name: x}, {name: exception.type}]}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [span_metrics, file/traces]}
    metrics: {receivers: [span_metrics], exporters: [file/metrics]}
"""


def scrapes(pages):
    jobs = [f"{{job_name: {name}, scrape_interval: 3s, metrics_path: /{name}, static_configs: [{{targets: ['127.0.0.1:PAGES'], labels: {{site: here}}}}]}}" for name in pages]
    jobs += [f"{{job_name: text/{name}, scrape_interval: 3s, metrics_path: /{name}, scrape_protocols: [PrometheusText0.0.4], static_configs: [{{targets: ['127.0.0.1:PAGES']}}], "
             "metric_relabel_configs: [{source_labels: [__name__], regex: '.*_created|go_.*', action: drop}, {regex: m, action: labeldrop}]}" for name in ("library", "node_exporter") if name in pages]
    return "receivers:\n  prometheus:\n    config:\n      scrape_configs:\n" + "".join(f"      - {j}\n" for j in jobs) + """exporters:
  file/metrics: {path: metrics.jsonl, flush_interval: 20ms}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    metrics: {receivers: [prometheus], exporters: [file/metrics]}
"""


def gym(name):
    """A configuration as Gym writes it, with its ports, paths and intervals replaced."""
    text = read("gym-config", name + ".collector.yaml").decode()
    text = re.sub(r"0\.0\.0\.0:(\d+)", lambda m: "127.0.0.1:" + {"13133": "HEALTH", "4317": "GRPC", "4318": "HTTP"}[m[1]], text)
    text = re.sub(r"localhost:(\d+)", lambda m: f"127.0.0.1:TARGET{m[1]}", text)
    text = re.sub(r"path: /.*/otel/", "path: ", text)
    text = re.sub(r"https://otlp\.example\.com(:8443)?", "SINKHTTP", text)
    text = re.sub(r"(scrape_interval|metrics_flush_interval): \d+s", r"\1: 3s", text)
    return text.replace("  telemetry:\n", "  telemetry:\n    metrics:\n      level: none\n")    # both would have port 8888


# What a case is made of: its configuration from the names of the pages; whether it scrapes; whether span_metrics counts spans, and if so those of "named"
# resources only or all, because the configuration names them; whether it takes the OTLP requests; fields that are not compared.
Case = collections.namedtuple("Case", "config scraped span_metrics otlp ignored", defaults=[()])
CASES = {
    "plain": Case(lambda _: plain(), False, "", True),
    "to-backend": Case(lambda _: to_backend(), False, "", True),
    "filter": Case(lambda _: filters(), False, "", True),
    "filter-by-context": Case(lambda _: filters_by_context(), False, "", True),
    "filter-by-resource": Case(lambda _: filters_by_resource(), False, "", True),
    "attributes": Case(lambda _: attributes(), False, "", True),
    "transform": Case(lambda _: transform(), False, "", True, ("keyStrindex", "stringValueStrindex")),
    "span-metrics": Case(lambda _: span_metrics(), False, "named", True),
    "scrapes": Case(scrapes, True, "", False),
    "gym-default": Case(lambda _: gym("a-default.aime25"), True, "all", True),
    "gym-no-scrape": Case(lambda _: gym("b-no-scrape.gsm8k"), False, "all", True),
    "gym-two-services": Case(lambda _: gym("c-two-services.gpqa-x"), True, "all", True),
}


# ---- what is compared ----

def points(signal, message):
    """(resource, scope, metric or None, record) of everything in a message, and of what has nothing in it."""
    outer, inner, leaf = LEAVES[signal]
    for r in message.get(outer, ()):
        resource = {k: v for k, v in r.items() if k != inner}
        for s in r.get(inner) or [{}]:
            scope = {k: v for k, v in s.items() if k != leaf}
            for x in s.get(leaf) or [None]:
                if signal != "metrics" or x is None:
                    yield resource, scope, None, x
                    continue
                kind = next((k for k in KINDS if k in x), None)
                metric = {**{k: v for k, v in x.items() if k != kind}, "kind": kind, **{k: v for k, v in x.get(kind, {}).items() if k != "dataPoints"}}
                for p in x.get(kind, {}).get("dataPoints") or [None]:
                    yield resource, scope, metric, p


def without(value, ignored, first_ns, last_ns):
    """The value without the times of the run and the fields ignored: see ACCEPTED."""
    if isinstance(value, dict):
        return {k: "now" if k.endswith("UnixNano") and first_ns <= int(v) <= last_ns else without(v, ignored, first_ns, last_ns) for k, v in value.items() if k not in ignored}
    if isinstance(value, list):
        return [without(v, ignored, first_ns, last_ns) for v in value]
    return value


def rounded(point):
    return {k: float(f"{v:.12g}") if k in ("sum", "min", "max") and isinstance(v, (int, float)) else v for k, v in point.items()}


def sorted_attributes(value):
    """Attributes sorted by key."""
    if isinstance(value, dict):
        return {k: sorted((sorted_attributes(a) for a in v), key=lambda a: json.dumps(a, sort_keys=True)) if k in ("attributes", "filteredAttributes") else sorted_attributes(v)
                for k, v in value.items()}
    if isinstance(value, list):
        return [sorted_attributes(v) for v in value]
    return value


def comparable(resource, scope, metric, point):
    """The record and all around it as (is it repeated?, series, value) with the ACCEPTED differences taken out."""
    name = scope.get("scope", {}).get("name", "")
    if name.endswith("receiver/prometheusreceiver"):
        scope = {**scope, "scope": {k: v for k, v in scope["scope"].items() if k != "version"}}
    if metric and metric["name"] == "scrape_duration_seconds":
        point = {k: v for k, v in point.items() if k != "asDouble"}
    if name == "spanmetricsconnector":
        if point:
            point = rounded({k: sorted(v, key=str) if k == "exemplars" else v for k, v in point.items()})
        resource, point = (json.loads(re.sub(r'("collector.instance.id", "value": {"stringValue": )"[0-9a-f-]{36}"', r'\1"ID"', json.dumps(x))) for x in (resource, point))
    resource, scope, metric, point = map(sorted_attributes, (resource, scope, metric, point))
    series = json.dumps([resource, scope, metric, (point or {}).get("attributes")], sort_keys=True)
    return name == "spanmetricsconnector", series, json.dumps(point, sort_keys=True)


def summary(messages, case, first_ns, last_ns):
    """{what: number of times} of all messages, (signal, dict) each."""
    found, first, last = collections.Counter(), {}, {}
    for signal, message in messages:
        for parts in points(signal, message):
            flushed, series, value = comparable(*(without(x, case.ignored, first_ns, last_ns) for x in parts))
            if flushed:
                point = json.loads(value) or {}
                found.update({f"exemplar {series} {json.dumps(e, sort_keys=True)}" for e in point.pop("exemplars", ())} - found.keys())
                last[series] = json.dumps(point, sort_keys=True)
                first.setdefault(series, last[series])
            else:
                found[f"{signal} {series} {value}"] += 1
    if case.scraped:            # how often the pages were scraped is no difference
        found = collections.Counter({k: 1 if k.startswith("metrics") else n for k, n in found.items()})
    for when, values in (("first", first), ("last", last)):
        found.update(f"{when} {series} {value}" for series, value in values.items() if when == "last" or '.calls"' in series)
    return found


# ---- a run ----

class Run:
    """One program with one case: its ports, its backends, what it exported."""

    def __init__(self, program, folder, case, text, targets, pages):
        self.case, self.grpc_port, self.http_port = case, free_port(), free_port()
        self.http_sink, self.grpc_sink = HttpSink(), GrpcSink()
        self.first_ns = time.time_ns()
        ports = {"GRPC": self.grpc_port, "HTTP": self.http_port, "HEALTH": free_port(), "PAGES": pages.port,
                 "SINKGRPC": self.grpc_sink.port, "SINKHTTP": self.http_sink.url, **targets}
        text = re.sub(r"\b(" + "|".join(sorted(ports, key=len, reverse=True)) + r")\b", lambda m: str(ports[m[1]]), text)
        self.targets = text.count("job_name:")
        self.program = Program(program, folder, text, env={**TOKENS, "SLURM_JOB_ID": "0042"},
                               wait_ports=[self.grpc_port, self.http_port] if case.otlp else [])
        self.answers, self.why = [], None

    def calls(self):
        """The calls that span_metrics has exported: the last value of every series."""
        last = {}
        for line in self.program.json_lines("metrics.jsonl"):
            for resource, _, metric, p in points("metrics", line):
                if p and metric["name"] == "traces.span.metrics.calls":
                    last[json.dumps([resource, p["attributes"]])] = int(p["asInt"])
        return sum(last.values())

    def scraped_twice(self):
        """Whether the scrapes of every target have been exported twice."""
        times = collections.Counter()
        for line in self.program.json_lines("metrics.jsonl"):
            for resource, _, metric, p in points("metrics", line):
                if p and metric["name"] == "up":
                    times[json.dumps([resource, p.get("attributes")])] += 1
        return len(times) >= self.targets and min(times.values()) >= 2

    def deliver(self, requests, spans):
        """Sends the requests and waits until all that they lead to has been exported."""
        if self.case.otlp:
            self.answers = send(requests, self.grpc_port, self.http_port)
        if self.case.scraped:
            wait_until(self.scraped_twice, 120, "two scrapes of every target")
        if self.case.span_metrics:
            wait_until(lambda: self.calls() >= spans, 60, "the span metrics")

    def deliver_or_why(self, requests, spans):
        try:
            self.deliver(requests, spans)
        except (Exception, pytest.fail.Exception) as e:  # pylint: disable=broad-except
            self.why = f"{type(e).__name__}: {e}"

    def messages(self):
        """(where to, [(signal, message)]) of all that was exported, after the stop."""
        from google.protobuf import json_format
        for s in SIGNALS:
            yield f"{s}.jsonl", [(s, json.loads(re.sub(f'"({"|".join(TOKENS.values())})"', '"[REDACTED]"', json.dumps(line)))) for line in self.program.json_lines(f"{s}.jsonl")]
        for name, sink in (("otlp_http", self.http_sink), ("otlp_grpc", self.grpc_sink)):
            yield name, [(s, json_format.MessageToDict(m, use_integers_for_enums=True)) for s, m in sink.messages()]

    def heads(self):
        """What all requests to a backend have in common, as a set of (what, value)."""
        wanted = ("authorization", "x-tenant", "content-type", "content-encoding")
        found = {f"otlp_http {r['path']} {json.dumps({k: r['headers'].get(k) for k in wanted})}" for r in self.http_sink.requests}
        return found | {f"otlp_grpc {r['signal']} {r['metadata'].get('x-tenant')}" for r in self.grpc_sink.requests}

    def close(self):
        self.program.kill()
        self.http_sink.close()
        self.grpc_sink.close()


def common(a, b):
    """Length of the beginning and of the end that two texts share."""
    n = len(os.path.commonprefix([a, b]))
    rest = min(len(a), len(b)) - n
    m = len(os.path.commonprefix([a[::-1][:rest], b[::-1][:rest]]))
    return n, m


def in_pairs(missing, extra):
    """A text for each: the missing one, under it the extra one that is most like it, and of both where they differ."""
    missing, extra = sorted(missing.elements()), sorted(extra.elements())
    while missing and extra:
        a = missing.pop(0)
        b = max(extra, key=lambda x: sum(common(a, x)))
        extra.remove(b)
        n, m = common(a, b)
        start, end_a, end_b = max(0, n - 120), len(a) - max(0, m - 40), len(b) - max(0, m - 40)
        yield f"  = {a[:300]}\n  - …{a[start:end_a]}\n  + …{b[start:end_b]}"
    yield from (f"  - {a}" for a in missing)
    yield from (f"  + {b}" for b in extra)


def differences(reference, motel, case):
    """Texts, one for each thing that only one of the two stopped runs has: - the reference, + motel."""
    found = []
    for i, (a, b) in enumerate(zip(reference.answers, motel.answers)):
        if a[0] != b[0] or (a != b and a[0] in ("OK", 200)):
            found.append(f"answer to request {i}\n  - {a}\n  + {b}")
    last_ns = time.time_ns()
    for (where, want), (_, got) in zip(reference.messages(), motel.messages()):
        want, got = (summary(m, case, r.first_ns, last_ns) for m, r in ((want, reference), (got, motel)))
        found += [f"{where}\n{text}" for text in in_pairs(want - got, got - want)]
    found += [f"request to a backend\n  - {x}" for x in sorted(reference.heads() - motel.heads())]
    found += [f"request to a backend\n  + {x}" for x in sorted(motel.heads() - reference.heads())]
    return found


def compare(name, folder, requests, pages, targets):
    """Runs one case with both programs; (what differs, records compared)."""
    case = CASES[name]
    text = case.config(pages.pages)
    shutil.rmtree(folder, ignore_errors=True)
    runs = []
    try:
        for program in (REFERENCE, MOTEL):
            runs.append(Run(program, os.path.join(folder, "motel" if program is MOTEL else "reference"), case, text, targets, pages))
        spans = count_spans_of(requests, case.span_metrics == "named")
        workers = [threading.Thread(target=r.deliver_or_why, args=(requests, spans)) for r in runs]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        for r in runs:
            if r.why:
                raise AssertionError(f"{r.program.folder}: {r.why}; exit status {r.program.process.poll()}")
            status = r.program.stop()
            if status:
                raise AssertionError(f"{r.program.folder}: exit status {status}:\n{r.program.stderr[-2000:]}")
        compared = sum(len(m) for _, m in runs[0].messages())
        if not compared:
            raise AssertionError("the reference exported nothing")
        return differences(*runs, case), compared
    finally:
        for r in runs:
            r.close()


class Backends:
    """The scraped servers of all cases: /PAGE of `pages`, and /metrics at each port that a Gym configuration names; 9101 is not there."""

    def __init__(self, folder):
        self.closers = []
        pages = {**golden_pages(), "library": library_page(self.closers)}
        port = node_exporter_page(self.closers, folder)
        if port:
            pages["node_exporter"] = port
        self.pages = self.serve(pages)
        self.targets = {f"TARGET{n}": self.serve({"metrics": page}).port for n, page in
                        {8000: pages["vllm"], 8001: pages["library"], 9400: pages["node"], 9100: pages.get("node_exporter", pages["node"])}.items()}
        self.targets["TARGET9101"] = free_port()

    def serve(self, pages):
        server = Pages(pages)
        self.closers.append(server.close)
        return server

    def close(self):
        for c in reversed(self.closers):
            c()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", default="*", help="a case, or a shell pattern of cases")
    parser.add_argument("--list", action="store_true", help="names the cases and the accepted differences")
    parser.add_argument("--keep", metavar="DIR", help="a folder for configurations, outputs and logs of both programs")
    parser.add_argument("--width", type=int, default=4000, help="of a difference, in characters")
    args = parser.parse_args()
    if args.list:
        print("\n".join(CASES), "", *(f"{k}: {v}" for k, v in ACCEPTED.items()), sep="\n")
        return 0
    if not REFERENCE:
        parser.error("REFERENCE_COLLECTOR does not name a reference collector")
    names = [n for n in CASES if fnmatch.fnmatchcase(n, args.case)]
    if not names:
        parser.error(f"no case {args.case}")
    folder = os.path.abspath(args.keep) if args.keep else tempfile.mkdtemp(prefix="side_by_side.")
    backends = Backends(folder)
    status = 0
    try:
        requests = recorded() + captured()
        for name in names:
            try:
                found, compared = compare(name, os.path.join(folder, name), requests, backends.pages, backends.targets)
            except (Exception, pytest.fail.Exception) as e:  # pylint: disable=broad-except
                print(f"{name}: could not be run: {type(e).__name__}: {e}")
                status = 2
                continue
            print(f"{name}: {len(found) or 'no'} difference{'' if len(found) == 1 else 's'} in {compared} messages", flush=True)
            for text in found:
                print(" ", "\n".join(line if len(line) <= args.width else line[:args.width] + "…" for line in text.split("\n")))
            if found:
                status = status or 1
    finally:
        backends.close()
        if not args.keep:
            shutil.rmtree(folder, ignore_errors=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
