"""Memory stays inside its limit: floods that the backend does not take, bombs, slow backends, a container's limit."""
import gzip
import json
import os
import re
import select
import socket
import subprocess
import sys
import threading
import time
import urllib.request

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


def at_once(work, calls):
    """Runs work(*args) for each of the calls, all at a time, until all have ended."""
    threads = [threading.Thread(target=work, args=args) for args in calls]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


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


def check_answers(statuses):
    """Taken, or to be sent again; now and then a slow machine resets a connection before the client has read the answer to what it still sends."""
    assert set(statuses) <= {"200", "503", "reset"} and statuses["200"] and statuses["503"], statuses
    assert statuses.get("reset", 0) <= 1 + statuses["503"] // 20, statuses


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
    check_answers(statuses)
    assert spans > 0
    if not sanitized():
        assert peak <= 96 * MIB
        assert peak >= 40 * MIB     # the limit is made use of
    sink = SpanCounter(backend)
    try:
        wait_until(lambda: sink.spans >= spans, 120, "all spans arrived")
        assert sink.spans == spans or "reset" in statuses
        status = post(http, "traces", span_request(1), timeout=30)[0]
        assert status == 200
        if not sanitized():
            wait_until(lambda: memory(program.pid)[0] <= idle + 10 * MIB, 60, "memory is given back")
            print(f"after: {memory(program.pid)[0] / MIB:.1f} MiB")
    finally:
        program.stop()
        sink.close()


# ---- answers before the body ----

def read_reply(s):
    got = b""
    while b"\r\n\r\n" not in got:
        piece = s.recv(65536)
        assert piece, got
        got += piece
    head, body = got.split(b"\r\n\r\n", 1)
    length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    while len(body) < length:
        body += s.recv(65536)
    return int(head.split()[1]), body


def test_announced_body(start):
    """A head alone brings the refusal, in the client's encoding; a small request beside it is taken."""
    http, grpc, backend = free_port(), free_port(), free_port()
    start(config(http, grpc, backend, limiter="{check_interval: 1s, limit_mib: 16}"), wait_ports=(http, grpc))
    for length, kind, status in ((15_000_000, "protobuf", 503), (8_000_000, "json", 503)):
        name = "application/json" if kind == "json" else "application/x-protobuf"
        with socket.create_connection(("127.0.0.1", http), 30) as s:
            s.settimeout(60)
            s.sendall(f"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: {name}\r\nContent-Length: {length}\r\n\r\n".encode())
            got, body = read_reply(s)
            assert got == status
            if kind == "json":
                assert json.loads(body) == {"code": 14, "message": "data refused due to high memory usage"}
    assert post(http, "traces", span_request(1))[0] == 200


def test_body_of_unknown_size(start):
    """It is read as far as there is room."""
    http, grpc, backend = free_port(), free_port(), free_port()
    program = start(config(http, grpc, backend, motel="motel: {memory_limit: 12}"), wait_ports=(http, grpc))
    watch = Watch(program.pid)
    with socket.create_connection(("127.0.0.1", http), 30) as s:
        s.settimeout(60)
        s.sendall(b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nTransfer-Encoding: chunked\r\n\r\n")
        chunk = b"10000\r\n" + b"\x0a" * 65536 + b"\r\n"
        sent = 0
        while not select.select([s], [], [], 0)[0] and sent < 19_000_000:
            try:
                s.sendall(chunk)
            except OSError:
                break       # answered and closed meanwhile; the answer can still be read
            sent += 65536
        assert read_reply(s)[0] == 503
    if not sanitized():
        assert watch.stop() <= 20 * MIB
    assert post(http, "traces", span_request(1))[0] == 200


def test_announced_grpc_message(start):
    """The length in front of a message is enough; the connection goes on."""
    h2 = pytest.importorskip("h2.connection")
    import h2.events
    http, grpc, backend = free_port(), free_port(), free_port()
    text = config(http, grpc, backend, limiter="{check_interval: 1s, limit_mib: 16}").replace(f'"127.0.0.1:{grpc}"', f'"127.0.0.1:{grpc}", max_recv_msg_size_mib: 64')
    start(text, wait_ports=(http, grpc))
    c = h2.connection.H2Connection()
    c.initiate_connection()
    with socket.create_connection(("127.0.0.1", grpc), 30) as s:
        s.settimeout(60)
        for stream in (1, 3):
            c.send_headers(stream, [(":method", "POST"), (":scheme", "http"), (":authority", "x"),
                                    (":path", "/opentelemetry.proto.collector.trace.v1.TraceService/Export"),
                                    ("content-type", "application/grpc"), ("te", "trailers")])
            c.send_data(stream, b"\0" + (15_000_000).to_bytes(4, "big"))
            s.sendall(c.data_to_send())
            answer = None
            while not answer:
                for event in c.receive_data(s.recv(65536)):
                    if isinstance(event, h2.events.ResponseReceived):
                        answer = {k.decode() if isinstance(k, bytes) else k: v.decode() if isinstance(v, bytes) else v for k, v in event.headers}
            assert answer["grpc-status"] == "14" and answer["grpc-message"] == "data refused due to high memory usage"


# ---- floods of other kinds ----

def test_grpc_flood(start):
    grpc_lib = pytest.importorskip("grpc")
    from flood_client import make
    http, grpc, backend = free_port(), free_port(), free_port()
    program = start(config(http, grpc, backend, limiter="{check_interval: 100ms, limit_mib: 64}"), wait_ports=(http, grpc))
    watch, lock, codes, acknowledged = Watch(program.pid), threading.Lock(), {}, [0]
    spans, body = make("protobuf", 1_000_000)

    def client():
        with grpc_lib.insecure_channel(f"127.0.0.1:{grpc}") as channel:
            call = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
            for _ in range(FLOOD_MB // 4):
                try:
                    call(body, timeout=120)
                    code = "OK"
                except grpc_lib.RpcError as e:
                    code = e.code().name
                with lock:
                    codes[code] = codes.get(code, 0) + 1
                    acknowledged[0] += spans if code == "OK" else 0
    at_once(client, [()] * 4)
    peak = watch.stop()
    print(f"grpc: {codes}, peak {peak / MIB:.1f} MiB")
    assert set(codes) == {"OK", "UNAVAILABLE"}, codes
    if not sanitized():
        assert peak <= 96 * MIB
    sink = SpanCounter(backend)
    try:
        wait_until(lambda: sink.spans >= acknowledged[0], 120, "all spans arrived")
        assert sink.spans == acknowledged[0]
        program.stop()
    finally:
        sink.close()


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_bombs(start, kind):
    """Small bodies that become large ones, many at a time."""
    text = b'{"resourceSpans":[' + b" " * 15_000_000 + b"]}"
    if kind == "zstd":
        zstandard = pytest.importorskip("zstandard")
        small = zstandard.ZstdCompressor(level=3).compress(text)
    else:
        small = gzip.compress(text, 9)
    http, grpc, backend = free_port(), free_port(), free_port()
    program = start(config(http, grpc, backend, motel="motel: {memory_limit: 64}"), wait_ports=(http, grpc))
    watch, got = Watch(program.pid), []

    def client():
        for _ in range(10):
            got.append(post(http, "traces", small, headers={"Content-Encoding": kind}, timeout=120)[0])
    at_once(client, [()] * 16)
    peak = watch.stop()
    print(f"{kind}: {len(small)} bytes to {len(text)}: {sorted(set(got))}, peak {peak / MIB:.1f} MiB")
    assert len(got) == 160 and set(got) <= {200, 400, 503}
    if not sanitized():
        assert peak <= 96 * MIB
    assert post(http, "traces", span_request(1))[0] == 200


def test_large_json(start):
    """10 MB each: deep in a field that is skipped, deep in a value, and with very many attributes."""
    attributes = ",".join(['{"key":"k","value":{"intValue":"1"}}'] * 270_000)
    span = '{"traceId":"%s","spanId":"%s","name":"n","attributes":[%s]}' % ("11" * 16, "22" * 8, "%s")
    request = '{"resourceSpans":[{"scopeSpans":[{"spans":[%s]}]}]}'
    bodies = {"skipped": '{"unknown":' + "[" * 10_000_000 + "}", "deep": request % (span % ('{"key":"k","value":' + '{"arrayValue":{"values":[' * 400_000)),
              "wide": request % (span % attributes)}
    http, grpc, backend = free_port(), free_port(), free_port()
    program = start(config(http, grpc, backend, motel="motel: {memory_limit: 64}"), wait_ports=(http, grpc))
    watch, got, lock = Watch(program.pid), {}, threading.Lock()

    def client(name):
        for _ in range(4):
            status = post(http, "traces", bodies[name], timeout=120)[0]
            with lock:
                got.setdefault(name, set()).add(status)
    at_once(client, [(name,) for name in bodies for _ in range(2)])
    peak = watch.stop()
    print(f"large JSON: {got}, peak {peak / MIB:.1f} MiB")
    assert got["skipped"] <= {400, 503} and got["deep"] <= {400, 503} and got["wide"] <= {200, 400, 503}
    if not sanitized():
        assert peak <= 96 * MIB
    assert program.alive()


# ---- what happens to memory over time ----

def test_slow_backend_then_permanent_errors_then_health(start):
    """Refusals while the backend fails slowly; data that it refuses for good is freed at once; then all is as before."""
    http, grpc, backend = free_port(), free_port(), free_port()
    mode = {"status": 503}

    def answer(sink, n):
        with sink.lock:
            sink.requests[n]["body"] = b""
        return mode["status"], {"Content-Type": "application/x-protobuf"}, b""
    sink = HttpSink(answer=answer, delay=1.0, port=backend)
    program = start(config(http, grpc, backend, limiter="{check_interval: 100ms, limit_mib: 64, spike_limit_mib: 12}"), wait_ports=(http, grpc))
    idle, watch = memory(program.pid)[0], Watch(program.pid)
    try:
        statuses, _ = flood(http, "protobuf", FLOOD_MB, clients=8, sizes="1000")
        check_answers(statuses)
        assert post(http, "traces", span_request(1), timeout=60)[0] in (200, 503)
        sink.delay, mode["status"] = 0, 400
        wait_until(lambda: post(http, "traces", span_request(1), timeout=60)[0] == 200, 60, "data is taken again")
        if not sanitized():
            assert watch.stop() <= 96 * MIB
            wait_until(lambda: memory(program.pid)[0] <= idle + 10 * MIB, 60, "memory is given back")
        mode["status"] = 200
        before = len(sink.requests)
        assert post(http, "traces", span_request(1), timeout=60)[0] == 200
        wait_until(lambda: len(sink.requests) > before, 60, "delivery")
        assert "Memory is short. New data is refused until there is room." in program.stderr
    finally:
        program.stop()
        sink.close()


def test_statements_that_make_much(start):
    """Three replacements, each a hundredfold, fail by themselves; the span goes on."""
    http, grpc, backend = free_port(), free_port(), free_port()
    replace = 'replace_pattern(span.attributes["big"], "a", "%s")' % ("a" * 100)
    statements = "\n".join(f"          - '{s}'" for s in [replace] * 3 + ['set(span.attributes["after"], true)'])
    text = config(http, grpc, backend, limiter="{check_interval: 100ms, limit_mib: 64}")
    text = text.replace("processors:\n", f"processors:\n  transform:\n    error_mode: ignore\n    trace_statements:\n      - context: span\n        statements:\n{statements}\n", 1)
    text = text.replace("processors: [memory_limiter]", "processors: [memory_limiter, transform]")
    sink = HttpSink(port=backend)
    program = start(text, wait_ports=(http, grpc))
    watch, request = Watch(program.pid), span_request(1)
    request["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"].append({"key": "big", "value": {"stringValue": "a" * 2000}})
    try:
        assert post(http, "traces", request)[0] == 200
        wait_until(lambda: sink.requests, 60, "the span")
        if not sanitized():
            assert watch.stop() <= 96 * MIB
        (_, message), = sink.messages()
        (_, _, span), = records("traces", message)
        assert {a.key for a in span.attributes} == {"n", "big", "after"}
        assert "more memory than is allowed" in program.stderr
    finally:
        program.stop()
        sink.close()


def test_console_file(start, tmp_path):
    """A file far larger than the limit, the backend down: reading waits; then everything comes once."""
    http, grpc, backend = free_port(), free_port(), free_port()
    lines = max(FLOOD_MB // 5, 20) * 1000   # of about 1 kB
    line = json.dumps({"name": "op", "context": {"trace_id": "0x" + "11" * 16, "span_id": "0x" + "22" * 8, "trace_state": "[]"}, "kind": "SpanKind.INTERNAL",
                       "parent_id": None, "start_time": "2026-01-01T00:00:00.000000Z", "end_time": "2026-01-01T00:00:01.000000Z", "status": {"status_code": "UNSET"},
                       "attributes": {"text": "x" * 700}, "events": [], "links": [], "resource": {"attributes": {"service.name": "s"}, "schema_url": ""}}) + "\n"
    with open(tmp_path / "in.log", "w", encoding="ascii") as f:
        for _ in range(lines // 1000):
            f.write(line * 1000)
    text = config(http, grpc, backend, motel="motel: {memory_limit: 16}").replace("receivers:\n", f"receivers:\n  console: {{include: [\"{tmp_path}/in.log\"], start_at: beginning}}\n", 1)
    text = text.replace("receivers: [otlp]", "receivers: [otlp, console]")
    program = start(text, wait_ports=(http, grpc))
    watch = Watch(program.pid)
    wait_until(lambda: post(http, "traces", span_request(1), timeout=60)[0] == 503, 120, "memory is short")
    sink = SpanCounter(backend)
    try:
        wait_until(lambda: sink.spans >= lines, 180, "all lines arrived")
        peak = watch.stop()
        print(f"console: {lines} lines, peak {peak / MIB:.1f} MiB")
        if not sanitized():
            assert peak <= 28 * MIB
    finally:
        program.stop()
        sink.close()


def test_scrapes_are_left_out(start):
    """Below the limit of what the program itself needs nothing is scraped, and that is told."""
    if sanitized():
        pytest.skip("resident memory does not count under a sanitizer")
    http, grpc, page, target = free_port(), free_port(), free_port(), HttpSink()
    text = config(http, grpc, free_port(), limiter="{check_interval: 1s, limit_mib: 1}", metrics=f"readers: [{{pull: {{exporter: {{prometheus: {{host: 127.0.0.1, port: {page}}}}}}}}}]")
    text = text.replace("receivers:\n", f"receivers:\n  prometheus: {{config: {{scrape_configs: [{{job_name: j, scrape_interval: 100ms, scrape_timeout: 100ms, "
                        f"static_configs: [{{targets: ['127.0.0.1:{target.port}']}}]}}]}}}}\n", 1)
    text += "    metrics: {receivers: [prometheus], processors: [memory_limiter], exporters: [otlp_http]}\n"
    program = start(text, wait_ports=(http, grpc, page))
    with open(f"/proc/{program.pid}/status", encoding="ascii") as f:
        if int(re.search(r"RssAnon:\s+(\d+)", f.read())[1]) < 1024:
            pytest.skip("this build needs less than the smallest limit")

    def left_out():
        lines = urllib.request.urlopen(f"http://127.0.0.1:{page}/metrics", timeout=30).read().decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("motel_receiver_memory_refused_requests{") and "prometheus" in line)
    wait_until(lambda: left_out() >= 3, 60, "scrapes are left out")
    assert not target.requests
    target.close()
