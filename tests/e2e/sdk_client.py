"""Sends traces, metrics and logs with the OpenTelemetry Python SDK: sdk_client.py grpc|http none|gzip ENDPOINT [SPANS]"""
import sys

from opentelemetry import trace
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


def exporters(protocol, compression, endpoint):
    if protocol == "grpc":
        import grpc
        from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
        kind = grpc.Compression.Gzip if compression == "gzip" else grpc.Compression.NoCompression
        return [e(endpoint=endpoint, insecure=not endpoint.startswith("https:"), compression=kind) for e in (OTLPSpanExporter, OTLPMetricExporter, OTLPLogExporter)]
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    kind = Compression.Gzip if compression == "gzip" else Compression.NoCompression
    return [e(endpoint=f"{endpoint}/v1/{s}", compression=kind)
            for e, s in ((OTLPSpanExporter, "traces"), (OTLPMetricExporter, "metrics"), (OTLPLogExporter, "logs"))]


def main():
    protocol, compression, endpoint = sys.argv[1:4]
    spans = int(sys.argv[4]) if len(sys.argv) > 4 else 3
    span_exporter, metric_exporter, log_exporter = exporters(protocol, compression, endpoint)
    resource = Resource({"service.name": "py-client/agent", "answer": 42, "ratio": 0.25, "on": True, "list": ("a", "b")})

    tracers = TracerProvider(resource=resource)
    tracers.add_span_processor(BatchSpanProcessor(span_exporter, max_queue_size=max(2048, spans + 16)))
    tracer = tracers.get_tracer("py.scope", "1.0", "https://opentelemetry.io/schemas/1.20.0", {"scope.attribute": "yes"})
    for i in range(spans):
        with tracer.start_as_current_span(f"py-span-{i}", kind=trace.SpanKind.SERVER, attributes={"i": i, "größe": "ü"}) as span:
            span.add_event("event", {"x": 1.5})
            if i == 0:
                span.set_status(trace.Status(trace.StatusCode.ERROR, "no vacancy"))

    views = [View(instrument_name="py.exponential", aggregation=ExponentialBucketHistogramAggregation(max_size=20))]
    meters = MeterProvider(resource=resource, metric_readers=[PeriodicExportingMetricReader(metric_exporter, export_interval_millis=3600000)], views=views)
    meter = meters.get_meter("py.meter", "2.0")
    meter.create_counter("py.count", "{guest}", "guests").add(2 ** 62, {"room": "101"})
    meter.create_gauge("py.gauge").set(1e-7)
    for name in ("py.histogram", "py.exponential"):
        histogram = meter.create_histogram(name, "s")
        for value in (0, 0.5, 3, 100):
            histogram.record(value)

    loggers = LoggerProvider(resource=resource)
    loggers.add_log_record_processor(BatchLogRecordProcessor(log_exporter))
    logger = loggers.get_logger("py.logger", "1")
    logger.emit(LogRecord(timestamp=1_795_000_000_000_000_123, body="plain ✓", severity_number=SeverityNumber.INFO, severity_text="INFO", attributes={"a": 1}))
    logger.emit(LogRecord(timestamp=1_795_000_000_000_000_124, body={"list": [1, "two", 3.5, True], "bytes": b"\x00\xff"}, severity_number=SeverityNumber.ERROR))

    for provider in (tracers, meters, loggers):
        provider.shutdown()


if __name__ == "__main__":
    main()
