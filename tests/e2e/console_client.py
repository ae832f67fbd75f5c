"""Prints telemetry with the real Python SDK's console exporters.

    console_client.py line|indent FIRST COUNT [--otlp URL] [--pause SECONDS] [--out FILE]

COUNT spans with the attribute n counting from FIRST, a log record beside each, and one metrics export at the end, among ordinary lines.
--otlp sends the same records over OTLP/HTTP as well. --out appends to a file that is opened anew for each batch, as a program does that
is told to reopen its log.
"""
import argparse
import sys
import time

from opentelemetry import trace
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import ConsoleLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

p = argparse.ArgumentParser()
p.add_argument("format", choices=("line", "indent"))
p.add_argument("first", type=int)
p.add_argument("count", type=int)
p.add_argument("--otlp")
p.add_argument("--pause", type=float, default=0)
p.add_argument("--out")
a = p.parse_args()


class Reopened:
    """A file that is opened for each write, so that renaming it takes effect."""

    def write(self, text):
        with open(a.out, "a", encoding="utf-8") as f:
            f.write(text)

    def flush(self):
        pass


out = Reopened() if a.out else sys.stdout
form = {"out": out}
if a.format == "line":
    form["formatter"] = lambda r: r.to_json(indent=None) + "\n"
resource = Resource({"service.name": "console-client", "list": ["a", "b"], "n": 5, "f": 0.5, "unicode": "é☃"}, schema_url="https://schema/1")
spans, logs = TracerProvider(resource=resource), LoggerProvider(resource=resource)
spans.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(**form)))
logs.add_log_record_processor(SimpleLogRecordProcessor(ConsoleLogRecordExporter(**form)))
reader = InMemoryMetricReader()
meters = MeterProvider(resource=resource, metric_readers=[reader])
metric_exporters = [ConsoleMetricExporter(**form)]
if a.otlp:
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    spans.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(a.otlp + "/v1/traces")))
    logs.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter(a.otlp + "/v1/logs")))
    metric_exporters.append(OTLPMetricExporter(a.otlp + "/v1/metrics"))
tracer, logger, meter = spans.get_tracer("t"), logs.get_logger("l"), meters.get_meter("m", "1", attributes={"k": 1})
histogram, counter, gauge = meter.create_histogram("h", "s"), meter.create_counter("c"), meter.create_gauge("g")
far = SpanContext(0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331, True, TraceFlags(1), TraceState([("vendor", "x"), ("k2", "it's")]))
kinds, codes = list(SpanKind), [StatusCode.UNSET, StatusCode.OK, StatusCode.ERROR]
for n in range(a.first, a.first + a.count):
    with tracer.start_as_current_span(f"span {n}", kind=kinds[n % 5], links=[Link(far, {"i": n})],
                                      context=trace.set_span_in_context(trace.NonRecordingSpan(far)) if n % 2 else None) as s:
        s.set_attributes({"n": n, "text": "line\nbreak \"q\" é {", "list": [1, 2], "nan": float("nan"), "big": 2**62})
        s.add_event("event", {"k": True})
        s.set_status(Status(codes[n % 3], "why" if n % 3 == 2 else None))
        logger.emit(LogRecord(timestamp=1_795_000_000_000_000_000 + n * 1000, body={"n": n, "l": [1, None]} if n % 2 else f"log {n}",
                              severity_number=SeverityNumber.WARN, severity_text="WARN", attributes={"n": n}))
        histogram.record(n * 0.5, {"even": n % 2 == 0})
        counter.add(n)
        gauge.set(n / 3)
    out.write(f"INFO: plain line {n} {{\n" if n % 7 == 0 else f"plain {n}\n")
    out.flush()
    time.sleep(a.pause)
data = reader.get_metrics_data()
for e in metric_exporters:
    e.export(data)
for provider in (spans, logs, meters):
    provider.shutdown()
