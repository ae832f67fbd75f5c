"""What runs in place of `gym eval run` in a job: a server and an orchestrator with the OpenTelemetry SDK, set up by the variables that the job script gives,
which wait until their scraped metrics are in the job's file when there are any (JOB_SCRAPES), and end with JOB_EXIT."""
import http.server
import json
import os
import sys
import threading
import time

PATIENCE = 120    # seconds for an export: a machine under load is no failure
PAGE = b"# TYPE vllm:requests_total counter\nvllm:requests_total{model=\"m\"} 7\n# TYPE node_load1 gauge\nnode_load1 0.5\n"


class Metrics(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_):
        pass


def serve(port):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Metrics)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def metric_values(name):
    """How many points of a metric are in the job's file, and the last value."""
    found = []
    with open("otel/metrics.jsonl", encoding="utf-8") as f:
        text = f.read()
    for line in text.split("\n")[:-1]:
        for r in json.loads(line)["resourceMetrics"]:
            for s in r["scopeMetrics"]:
                found += [p for m in s["metrics"] if m["name"] == name for p in m.get("gauge", {}).get("dataPoints", [])]
    return found


def wait_for_scrapes():
    deadline = time.monotonic() + 90
    while True:
        states = [p.get("asDouble", 0) for p in metric_values("up")]
        if 1 in states and 0 in states:     # of a target that is there and of one that is not
            return
        if time.monotonic() > deadline:
            sys.exit(f"no scrapes within 90 s, up: {states}")
        time.sleep(0.1)


def main():
    from opentelemetry import metrics, trace
    from opentelemetry._logs import LogRecord, SeverityNumber
    from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    http_endpoint = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318")
    logs_endpoint = os.environ.get("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://localhost:4317")
    for port in json.loads(os.environ["JOB_SCRAPES"]):
        serve(port)
    for server in ("agent", "policy_model"):
        resource = Resource({"service.name": f"nemo-gym/{server}", "nemo.gym.server.name": server})
        tracers = TracerProvider(resource=resource)
        tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=http_endpoint + "/v1/traces", timeout=PATIENCE)))
        tracer = tracers.get_tracer("gym")
        for i in range(int(os.environ["JOB_SPANS"])):
            with tracer.start_as_current_span("gym.rollout", attributes={"i": i}):
                pass
        meters = MeterProvider(resource=resource, metric_readers=[PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=http_endpoint + "/v1/metrics", timeout=PATIENCE), export_interval_millis=3600000)])
        meters.get_meter("gym").create_histogram("gym.rollout.duration_ms", "ms").record(5)
        loggers = LoggerProvider(resource=resource)
        loggers.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(endpoint=logs_endpoint, insecure=True, timeout=PATIENCE)))
        loggers.get_logger("gym").emit(LogRecord(timestamp=time.time_ns(), body="hello from " + server, severity_number=SeverityNumber.INFO))
        for provider in (tracers, meters, loggers):
            provider.force_flush(PATIENCE * 1000)
            provider.shutdown()
    if json.loads(os.environ["JOB_SCRAPES"]):
        wait_for_scrapes()
    sys.exit(int(os.environ["JOB_EXIT"]))


main()
