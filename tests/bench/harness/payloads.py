"""Writes the payloads, the same bytes every time (fixed seeds), and what is in them.

They imitate what a NeMo Gym job emits: a resource with 8 attributes; spans of rollouts, model calls, verifications and sandbox
commands with 12 attributes, 3 of them integers, and 2 events on every tenth span (576 bytes a span); metrics with sums, gauges and
histograms of 12 buckets; log records with trace context; Prometheus pages as an inference server and a node exporter serve them.
Each OTLP body NAME.pb is there as NAME.grpc (a gRPC message: 5 bytes in front) and NAME.pb.gz (gzip -6), too.
"""
import gzip
import json
import os
import random
import struct

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from harness.plan import ATTRIBUTES_PER_SPAN, SPANS_PER_REQUEST

VERSION = 1  # another one: the payloads are written anew
EPOCH_NS = 1_790_000_000_000_000_000
RUN = "gym-job-20261129T132212Z-07665f"
SERVERS = ["policy_model", "math_with_judge", "simple_agent", "aviary_agent", "judge_model"]
SCOPES = [("nemo.gym", "0.7.0"), ("opentelemetry.instrumentation.fastapi", "0.66b2")]
OPERATIONS = [  # name, kind, scope, weight
    ("gym.rollout", Span.SPAN_KIND_INTERNAL, 0, 4), ("gym.agent.responses", Span.SPAN_KIND_INTERNAL, 0, 6),
    ("gym.model.chat_completions", Span.SPAN_KIND_INTERNAL, 0, 14), ("gym.model.responses", Span.SPAN_KIND_INTERNAL, 0, 10),
    ("gym.verify", Span.SPAN_KIND_INTERNAL, 0, 6), ("gym.sandbox.start", Span.SPAN_KIND_INTERNAL, 0, 3),
    ("gym.sandbox.exec", Span.SPAN_KIND_INTERNAL, 0, 12), ("gym.sandbox.stop", Span.SPAN_KIND_INTERNAL, 0, 3),
    ("HTTP POST", Span.SPAN_KIND_CLIENT, 0, 16), ("POST /v1/responses", Span.SPAN_KIND_SERVER, 1, 12),
    ("POST /verify", Span.SPAN_KIND_SERVER, 1, 6), ("POST /run", Span.SPAN_KIND_SERVER, 1, 8),
]
BOUNDS = [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000]
BUCKETS = ["0.001", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0", "10.0", "20.0", "40.0", "+Inf"]
SCRAPE_POINTS = 5  # up, scrape_duration_seconds and three more that a scrape adds


def attribute(key, v):
    if isinstance(v, int):
        return KeyValue(key=key, value=AnyValue(int_value=v))
    return KeyValue(key=key, value=AnyValue(string_value=v))


def put_attributes(message, pairs):
    message.attributes.extend(attribute(k, v) for k, v in pairs)


def put_resource(r, resource):
    rank = r.randrange(8)
    put_attributes(resource, [
        ("service.name", "nemo-gym-" + r.choice(SERVERS)), ("service.version", "0.1.0"), ("service.instance.id", f"{RUN}-rank{rank}"),
        ("dl.rank", rank), ("dl.world_size", 8), ("nemo.run.id", RUN), ("host.name", f"node-{r.randrange(1000):04d}.cluster.local"),
        ("telemetry.sdk.language", "python")])


def span_attributes(r, n):
    """The 12 attributes of a span, or the first n of them, or more."""
    address = f"10.0.{r.randrange(8)}.{r.randrange(250)}"
    pairs = [
        ("nemo.gym.server.name", r.choice(SERVERS)), ("nemo.gym.server.type", r.choice(["responses_api_models", "resources_servers"])),
        ("nemo.gym.rollout.id", f"{r.getrandbits(64):016x}-{r.randrange(512)}"), ("nemo.gym.task.index", r.randrange(5000)),
        ("http.request.method", "POST"), ("http.route", "/v1/responses"),
        ("url.full", f"http://{address}:{8000 + r.randrange(64)}/v1/responses"),
        ("http.response.status_code", r.choice([200] * 20 + [429, 500])), ("server.address", address),
        ("gen_ai.request.model", "Qwen/Qwen3-8B"), ("gen_ai.usage.output_tokens", r.randrange(1, 16384)),
        ("nemo.gym.sandbox.provider", r.choice(["docker", "apptainer", "modal"]))]
    return pairs[:n] + [(f"nemo.gym.extra.{i}", f"value-{r.randrange(10**9)}") for i in range(12, n)]


def put_failure(r, span):
    for name in ("retry", "exception"):
        e = span.events.add()
        e.name, e.time_unix_nano = name, span.start_time_unix_nano + 1000
        put_attributes(e, [("exception.type", "aiohttp.ClientError"), ("attempt", r.randrange(5)),
                           ("exception.message", "Server disconnected while reading \"choices\"\nretrying")])
    span.status.code, span.status.message = Status.STATUS_CODE_ERROR, "Server disconnected"


def traces(n, seed, attributes=12):
    r, request = random.Random(seed), ExportTraceServiceRequest()
    entry = request.resource_spans.add()
    put_resource(r, entry.resource)
    scopes = [entry.scope_spans.add() for _ in SCOPES]
    for scope, (name, version) in zip(scopes, SCOPES):
        scope.scope.name, scope.scope.version = name, version
    weighted = [o for o in OPERATIONS for _ in range(o[3])]
    trace_id = parent = b""
    for i in range(n):
        name, kind, which, _ = r.choice(weighted)
        if i % 12 == 0:
            trace_id, parent = r.randbytes(16), b""
        span = scopes[which].spans.add()
        span.trace_id, span.span_id, span.parent_span_id = trace_id, r.randbytes(8), parent
        parent = span.span_id if i % 3 == 0 else parent
        span.name, span.kind, span.flags = name, kind, 0x101
        span.start_time_unix_nano = EPOCH_NS + i * 1_000_003 + r.randrange(1000)
        span.end_time_unix_nano = span.start_time_unix_nano + int(r.lognormvariate(19.5, 2.0))
        put_attributes(span, span_attributes(r, attributes))
        if i % 10 == 0:
            put_failure(r, span)
    return request


def put_point(r, metric, kind):
    """A point of a sum, a histogram or a gauge; returns it."""
    if kind == 0:
        point = metric.sum.data_points.add()
        metric.sum.aggregation_temporality, metric.sum.is_monotonic = 2, True
        point.as_int = r.randrange(10**9)
    elif kind == 1:
        point = metric.histogram.data_points.add()
        metric.histogram.aggregation_temporality = 2
        counts = [r.randrange(1000) for _ in range(len(BOUNDS) + 1)]
        point.explicit_bounds.extend(BOUNDS)
        point.bucket_counts.extend(counts)
        point.count, point.sum, point.min, point.max = sum(counts), r.random() * 1e6, r.random(), 1e4 * r.random()
    else:
        point = metric.gauge.data_points.add()
        point.as_double = r.random() * 1e10
    return point


def metrics(n, seed, points=20):
    r, request = random.Random(seed), ExportMetricsServiceRequest()
    entry = request.resource_metrics.add()
    put_resource(r, entry.resource)
    scope = entry.scope_metrics.add()
    scope.scope.name = "nemo.gym"
    for i in range(n // points):
        metric = scope.metrics.add()
        metric.name = f"gym.metric.{['requests', 'queue_duration_ms', 'memory'][i % 3]}.{i}"
        metric.unit, metric.description = "ms", "One of the job's metrics"
        for p in range(points):
            point = put_point(r, metric, i % 3)
            point.start_time_unix_nano, point.time_unix_nano = EPOCH_NS, EPOCH_NS + 15_000_000_000
            put_attributes(point, [("nemo.gym.server.name", r.choice(SERVERS)), ("http.route", f"/v1/route{p}"),
                                   ("http.response.status_code", 200), ("queue_outcome", "acquired")])
    return request


def logs(n, seed):
    r, request = random.Random(seed), ExportLogsServiceRequest()
    entry = request.resource_logs.add()
    put_resource(r, entry.resource)
    scope = entry.scope_logs.add()
    scope.scope.name = "nemo_gym.server_utils"
    for i in range(n):
        record = scope.log_records.add()
        record.time_unix_nano = EPOCH_NS + i * 1_000_000
        record.observed_time_unix_nano = record.time_unix_nano + 500
        record.severity_number, record.severity_text = 9, "INFO"
        record.body.string_value = (f"rollout {r.randrange(10**6)} of task {r.randrange(5000)}: model answered in {r.random() * 30:.3f} s, "
                                    f"{r.randrange(16384)} tokens, reward {r.random():.2f}")
        record.trace_id, record.span_id, record.flags = r.randbytes(16), r.randbytes(8), 1
        put_attributes(record, [("code.file.path", "/opt/gym/nemo_gym/rollout_collection.py"), ("code.function.name", "_run_from_config"),
                                ("code.line.number", r.randrange(3000)), ("nemo.gym.server.name", r.choice(SERVERS)),
                                ("thread.name", "MainThread"), ("process.pid", r.randrange(60000))])
    return request


class Page:
    """A page in Prometheus text format; counts its series and the OTLP data points that a scrape makes of them."""

    def __init__(self, seed):
        self.random, self.lines, self.series, self.points = random.Random(seed), [], 0, SCRAPE_POINTS

    def head(self, name, kind, text):
        self.lines.append(f"# HELP {name} {text}\n# TYPE {name} {kind}")

    def histogram(self, number):
        name = f"vllm:request_{['latency', 'queue_time', 'prefill_time', 'decode_time'][number % 4]}_{number // 4}_seconds"
        self.head(name, "histogram", "Histogram of a request's time in seconds.")
        for engine in range(8):
            total, labels = 0, f'engine="{engine}",model_name="Qwen/Qwen3-8B"'
            for le in BUCKETS:
                total += self.random.randrange(500)
                self.lines.append(f'{name}_bucket{{{labels},le="{le}"}} {float(total)}')
            self.lines.append(f"{name}_count{{{labels}}} {float(total)}\n{name}_sum{{{labels}}} {total * self.random.random()!r}")
            self.series += len(BUCKETS) + 2
            self.points += 1

    def gauge(self, number):
        name = f"vllm:gauge_{number}"
        self.head(name, "gauge", "A gauge of the engine.")
        for engine in range(8):
            self.lines.append(f'{name}{{engine="{engine}",model_name="Qwen/Qwen3-8B"}} {self.random.random()!r}')
        self.series, self.points = self.series + 8, self.points + 8

    def counter(self, number):
        name = f"node_cpu_{number}_seconds_total"
        self.head(name, "counter", "Seconds the CPUs spent in each mode.")
        for cpu in range(16):
            for mode in ("idle", "iowait", "system", "user"):
                self.lines.append(f'{name}{{cpu="{cpu}",mode="{mode}"}} {self.random.random() * 1e6:.2f}')
        self.series, self.points = self.series + 64, self.points + 64


def page(series, seed):
    """A page of at least `series` series: half of them of histograms, a quarter each gauges and counters."""
    p = Page(seed)
    for add, share in ((p.histogram, 0.5), (p.gauge, 0.75), (p.counter, 1)):
        number = 0
        while p.series < series * share:
            add(number)
            number += 1
    return p


def bodies():
    """name -> (function that makes the request, records)."""
    made = {f"traces_{n}": (lambda n=n: traces(n, 1000 + n), n) for n in SPANS_PER_REQUEST}
    made |= {f"attributes_{n}": (lambda n=n: traces(100, 2000 + n, n), 100) for n in ATTRIBUTES_PER_SPAN}
    made["metrics_500"] = (lambda: metrics(500, 2), 500)
    made["logs_500"] = (lambda: logs(500, 3), 500)
    return made


class Payloads:
    """The folder of payloads; each is written when it is asked for first."""

    def __init__(self, folder):
        self.folder, self.bodies = os.path.join(folder, f"v{VERSION}"), bodies()
        os.makedirs(self.folder, exist_ok=True)

    def path(self, name):
        """Of NAME.pb, NAME.grpc, NAME.pb.gz, or NAME.txt of a page."""
        path = os.path.join(self.folder, name)
        if not os.path.exists(path):
            self._make(name.split(".")[0])
        return path

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def records(self, body):
        return self.bodies[body][1]

    def page(self, name):
        """(series, data points that a scrape makes of them)"""
        series, points = json.loads(self.read(name + ".json"))
        return series, points

    def _write(self, name, data):
        path = os.path.join(self.folder, name)
        with open(path + ".new", "wb") as f:
            f.write(data)
        os.replace(path + ".new", path)

    def _make(self, name):
        if name.startswith("page_"):
            p = page(int(name[5:]), 4)
            self._write(name + ".txt", ("\n".join(p.lines) + "\n").encode())
            self._write(name + ".json", json.dumps([p.series, p.points]).encode())
            return
        body = self.bodies[name][0]().SerializeToString()
        self._write(name + ".pb", body)
        self._write(name + ".grpc", b"\0" + struct.pack(">I", len(body)) + body)
        self._write(name + ".pb.gz", gzip.compress(body, 6, mtime=0))
