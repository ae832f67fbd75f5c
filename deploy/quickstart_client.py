"""Sends one span, one metric and one log record over OTLP/HTTP with the OpenTelemetry SDK; with --ready, asks for motel's health."""
import sys

if sys.argv[1:] == ["--ready"]:
    import urllib.request

    try:
        urllib.request.urlopen("http://127.0.0.1:13133/", timeout=1)
    except OSError:
        sys.exit(1)
    sys.exit(0)

from opentelemetry import metrics, trace
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

resource = Resource({"service.name": "quickstart"})

tracers = TracerProvider(resource=resource)
tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
meters = MeterProvider(resource=resource, metric_readers=[PeriodicExportingMetricReader(OTLPMetricExporter())])
loggers = LoggerProvider(resource=resource)
loggers.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))

with tracers.get_tracer("quickstart").start_as_current_span("check-in", attributes={"room": 101}) as span:
    meters.get_meter("quickstart").create_counter("guests", unit="{guest}").add(1)
    context = span.get_span_context()
    loggers.get_logger("quickstart").emit(
        LogRecord(body="Welcome to motel", severity_number=SeverityNumber.INFO, severity_text="INFO",
                  trace_id=context.trace_id, span_id=context.span_id, trace_flags=context.trace_flags))

for provider in (tracers, meters, loggers):
    provider.shutdown()
print("sent: span check-in, metric guests, log record \"Welcome to motel\"")
