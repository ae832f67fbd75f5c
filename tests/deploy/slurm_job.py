"""What runs in a Slurm job: slurm_job.py FOLDER now|signal. Makes 10 spans with the OpenTelemetry SDK, which keeps them, writes
FOLDER/ready-<task>, waits for SIGTERM (signal) or not (now), makes a last span, and sends all of it at its end. Its exit code is 7."""
import os
import signal
import sys

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})     # in all threads: it is waited for
task = os.environ.get("SLURM_PROCID", "0")
provider = TracerProvider(resource=Resource({"service.name": "slurm-job", "task": task}))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=60), schedule_delay_millis=3600000))
tracer = provider.get_tracer("job")
for i in range(10):
    tracer.start_span(f"step {i}").end()
with open(os.path.join(sys.argv[1], f"ready-{task}"), "w", encoding="ascii"):
    pass
if sys.argv[2] == "signal":
    signal.sigwait({signal.SIGTERM})
tracer.start_span("last").end()
provider.shutdown()
sys.exit(7)
