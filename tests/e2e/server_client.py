"""A server that prints its telemetry: the OpenTelemetry Python SDK's console exporters among lines as uvicorn writes them.

    server_client.py line|indent [SPANS] [EXIT_CODE] [wait]
"""
import json
import logging
import signal
import sys
import time

from opentelemetry import trace
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import ConsoleLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor


def one_line(text):
    """What to_json(indent=None) prints."""
    return json.dumps(json.loads(text)) + "\n"


def main():
    form, spans, code, wait = sys.argv[1], int((sys.argv[2:3] or ["3"])[0]), int((sys.argv[3:4] or ["0"])[0]), "wait" in sys.argv
    formatter = {"formatter": (lambda record: one_line(record.to_json()))} if form == "line" else {}
    resource = Resource({"service.name": "nemo-gym/agent"})
    tracers, loggers = TracerProvider(resource=resource), LoggerProvider(resource=resource)
    tracers.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(**formatter)))
    loggers.add_log_record_processor(SimpleLogRecordProcessor(ConsoleLogRecordExporter(**formatter)))
    reader = PeriodicExportingMetricReader(ConsoleMetricExporter(**formatter), export_interval_millis=3600000)
    meters = MeterProvider(resource=resource, metric_readers=[reader])
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s:     %(message)s")
    logging.info("Started server process [%d]", 575)

    tracer, counter, logger = tracers.get_tracer("client"), meters.get_meter("client").create_counter("requests"), loggers.get_logger("client")
    for i in range(spans):
        with tracer.start_as_current_span(f"POST /run/{i}", kind=trace.SpanKind.SERVER, attributes={"n": i, "text": "naïve ☃ {\"not\": json}"}):
            with tracer.start_as_current_span("inner"):
                counter.add(1, {"code": 200})
        logger.emit(LogRecord(timestamp=1_795_000_000_000_000_000 + i, body=f"request {i}", severity_number=SeverityNumber.INFO))
        print(f'INFO:     127.0.0.1:51234 - "POST /run/{i} HTTP/1.1" 200 OK', flush=True)
    print("{ this is no telemetry }\n{\"nor\": \"is this\"}\nno line end", end="", flush=True)

    ended = []
    if wait:
        for s in (signal.SIGTERM, signal.SIGINT):
            signal.signal(s, lambda *_: ended.append(1))
        print("\nwaiting", flush=True)
        while not ended:
            time.sleep(0.02)
        print("got the signal", flush=True)
    for provider in (tracers, meters, loggers):
        provider.shutdown()
    logging.info("Finished server process [%d]", 575)
    sys.exit(code)


if __name__ == "__main__":
    main()
