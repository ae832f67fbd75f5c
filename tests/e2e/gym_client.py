"""A program of a NeMo Gym run with the plain OpenTelemetry SDK, which finds its endpoint in OTEL_*: gym_client.py ATTRIBUTE=VALUE..."""
import os
import sys

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

if os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL") == "http/protobuf":
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
else:
    from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

resource = Resource.create(dict(a.split("=", 1) for a in sys.argv[1:]))
tracers = TracerProvider(resource=resource)
tracers.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
with tracers.get_tracer("gym").start_as_current_span("gym.rollout"):
    pass
meters = MeterProvider(resource=resource, metric_readers=[PeriodicExportingMetricReader(OTLPMetricExporter(), export_interval_millis=3600000)])
meters.get_meter("gym").create_counter("gym.servers.started").add(1)
loggers = LoggerProvider(resource=resource)
loggers.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter()))
loggers.get_logger("gym").emit(LogRecord(body="checked in", severity_number=SeverityNumber.INFO))
for provider in (tracers, meters, loggers):
    provider.shutdown()
