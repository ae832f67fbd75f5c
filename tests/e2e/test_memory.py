"""Memory stays inside its limit: floods that the backend does not take, bombs, slow backends, a container's limit."""
import gzip
import json
import os
import subprocess
import sys
import threading
import time

import pytest

from conftest import HERE, HttpSink, free_port, parse, post, records, span_request, wait_until

FLOOD_MB = int(os.environ.get("FLOOD_MB", "200"))   # of each flood
MIB = 1 << 20


def sanitized():
    """Under a sanitizer resident memory says nothing."""
    from conftest import MOTEL
    with open(MOTEL, "rb") as f:
        text = f.read()
    return b"__asan_init" in text or b"__tsan_init" in text


def memory(pid):
    """Anonymous resident memory and its peak together with files', in bytes."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        lines = dict(line.split(":", 1) for line in f)
    return int(lines["RssAnon"].split()[0]) * 1024, int(lines["VmHWM"].split()[0]) * 1024


class Watch:
    """Samples the memory of a process; `peak` is the highest anonymous figure."""

    def __init__(self, pid):
        self.pid, self.peak, self.ended = pid, 0, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.ended.wait(0.005):
            try:
                self.peak = max(self.peak, memory(self.pid)[0])
            except (OSError, KeyError):
                return

    def stop(self):
        self.ended.set()
        self.thread.join()
        return self.peak


def config(http, grpc, backend, limiter="", motel="", exporter="", metrics="level: none"):
    processors = f"processors:\n  memory_limiter: {limiter}\n" if limiter else ""
    names = "memory_limiter" if limiter else ""
    return f"""
receivers:
  otlp:
    protocols:
      http: {{endpoint: "127.0.0.1:{http}"}}
      grpc: {{endpoint: "127.0.0.1:{grpc}"}}
{processors}
exporters:
  otlp_http:
    endpoint: http://127.0.0.1:{backend}
    compression: none
    retry_on_failure: {{initial_interval: 100ms, max_interval: 500ms, max_elapsed_time: 0s}}
    sending_queue: {{queue_size: 100000, num_consumers: 4}}
    {exporter}
service:
  telemetry: {{metrics: {{{metrics}}}}}
  pipelines:
    traces: {{receivers: [otlp], processors: [{names}], exporters: [otlp_http]}}
{motel}
"""


def flood(port, kind, megabytes, clients=4, sizes="30,300,2000"):
    """What became of it, all clients together."""
    running = [subprocess.Popen([sys.executable, os.path.join(HERE, "flood_client.py"), str(port), kind, str(megabytes // clients), sizes],
                                stdout=subprocess.PIPE) for _ in range(clients)]
    statuses, spans = {}, 0
    for p in running:
        out, _ = p.communicate(timeout=900)
        assert p.returncode == 0
        got = json.loads(out)
        spans += got["spans"]
        for k, n in got["statuses"].items():
            statuses[k] = statuses.get(k, 0) + n
    return statuses, spans


class SpanCounter(HttpSink):
    def __init__(self, port):
        self.spans = 0
        super().__init__(answer=self.take, port=port)

    @staticmethod
    def take(sink, n):
        with sink.lock:
            body, sink.requests[n]["body"] = sink.requests[n]["body"], b""
        count = sum(1 for _ in records("traces", parse("traces", body)))
        with sink.lock:
            sink.spans += count
        return 200, {"Content-Type": "application/x-protobuf"}, b""


LIMITS = {"memory_limiter": {"limiter": "{check_interval: 100ms, limit_mib: 64}"}, "motel": {"motel": "motel: {memory_limit: 64}"}}


@pytest.mark.parametrize("by", LIMITS)
@pytest.mark.parametrize("kind", ["protobuf", "json"])
def test_flood(start, kind, by):
    """Far more than fits, with the backend down: refusals to be tried again, a bounded process, nothing lost, and memory given back."""
    http, grpc, backend = free_port(), free_port(), free_port()
    program = start(config(http, grpc, backend, **LIMITS[by]), wait_ports=(http, grpc))
    idle = memory(program.pid)[0]
    watch = Watch(program.pid)
    statuses, spans = flood(http, kind, FLOOD_MB)
    peak = watch.stop()
    print(f"{kind} by {by}: {statuses}, {spans} spans, idle {idle / MIB:.1f}, peak {peak / MIB:.1f}, VmHWM {memory(program.pid)[1] / MIB:.1f} MiB")
    assert set(statuses) == {"200", "503"}, statuses
    assert spans > 0
    if not sanitized():
        assert peak <= 96 * MIB
        assert peak >= 40 * MIB     # the limit is made use of
    sink = SpanCounter(backend)
    try:
        wait_until(lambda: sink.spans >= spans, 120, "all spans arrived")
        assert sink.spans == spans
        status = post(http, "traces", span_request(1), timeout=30)[0]
        assert status == 200
        if not sanitized():
            wait_until(lambda: memory(program.pid)[0] <= idle + 10 * MIB, 60, "memory is given back")
            print(f"after: {memory(program.pid)[0] / MIB:.1f} MiB")
    finally:
        program.stop()
        sink.close()
