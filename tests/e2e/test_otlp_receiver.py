"""The OTLP receiver and the health check against clients that other people wrote: curl, grpcio, h2; and against many at a time."""
import gzip
import os
import signal
import socket
import subprocess
import threading
import time

import psutil
import pytest
from conftest import connects, free_port, parse, post, wait_until

SPAN = {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "name": "op"}]}]}]}
LOGS = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"


class Receiver:
    """The program with an otlp receiver and file exporters."""

    def __init__(self, start, grpc_keys="", http_keys="", extra="", extensions="", exporter="file: {path: out.jsonl, flush_interval: 20ms}"):
        self.grpc, self.http = free_port(), free_port()
        self.program = start(f"""
receivers:
  otlp:
    protocols:
      grpc: {{endpoint: "127.0.0.1:{self.grpc}"{grpc_keys}}}
      http: {{endpoint: "127.0.0.1:{self.http}"{http_keys}}}
exporters:
  {exporter}
{extra}
service:
  telemetry: {{metrics: {{level: none}}}}
  {extensions}
  pipelines:
    traces: {{receivers: [otlp], exporters: [{exporter.split(':')[0]}]}}
    metrics: {{receivers: [otlp], exporters: [{exporter.split(':')[0]}]}}
    logs: {{receivers: [otlp], exporters: [{exporter.split(':')[0]}]}}
""", wait_ports=(self.grpc, self.http))

    def lines(self):
        return self.program.json_lines("out.jsonl")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.program.pid}/fd"))

    def carries(self, s):
        """Whether the program holds the other end of the connected socket `s`."""
        port = s.getsockname()[1]
        return any(c.raddr and c.raddr.port == port for c in psutil.Process(self.program.pid).net_connections("tcp"))

    def cpu_seconds(self):
        with open(f"/proc/{self.program.pid}/stat", encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def curl(*args):
    """(exit status, status code, content type, body) of one curl; it has to end within 30 s."""
    p = subprocess.run(["curl", "-sS", "-m", "30", "-w", "\n%{http_code} %{content_type}", *args], capture_output=True, timeout=60)
    body, _, last = p.stdout.rpartition(b"\n")
    code, _, kind = last.decode().partition(" ")
    return p.returncode, int(code or 0), kind, body


JSON = ("-H", "Content-Type: application/json")


# ---------------------------------------------------------------- HTTP
def test_curl_speaks_every_version(start):
    """HTTP/1.1, an upgrade to h2c (ignored), HTTP/2 with prior knowledge: all served, on both ports; nothing is left open."""
    r = Receiver(start)
    before = r.descriptors()
    for port in (r.http, r.grpc):
        url = f"http://127.0.0.1:{port}/v1/traces"
        for version in ("--http1.0", "--http1.1", "--http2", "--http2-prior-knowledge"):
            assert curl(version, *JSON, "-d", "{}", url) == (0, 200, "application/json", b'{"partialSuccess":{}}'), (port, version)
    assert curl(f"https://127.0.0.1:{r.http}/v1/traces")[0] != 0        # a TLS ClientHello
    wait_until(lambda: r.descriptors() <= before + 8)                   # epoll descriptors of the carriers, once
    assert r.program.alive()


def test_answers_in_the_encoding_of_the_request(start):
    r = Receiver(start)
    url = f"http://127.0.0.1:{r.http}/v1/traces"
    for kind in ("application/json; charset=utf-8", "Application/JSON;v=1"):
        assert curl("-H", f"Content-Type: {kind}", "-d", str(SPAN).replace("'", '"'), url)[1:3] == (200, "application/json")
    wait_until(lambda: len(r.lines()) == 2)
    code, kind, body = curl("-H", "Content-Type: application/x-protobuf", "--data-binary", "\xff", url)[1:]
    assert (code, kind) == (400, "application/x-protobuf") and body.startswith(b"\x08\x03")
    assert curl(*JSON, "-d", "{", url)[1:3] == (400, "application/json")
    assert curl("-H", "Content-Type: text/plain", "-d", "{}", url)[1] == 415
    assert curl("-X", "GET", url)[1] == 405
    assert curl("-H", "Content-Type: application/x-protobuf", "-X", "POST", "-H", "Content-Length: 0", url)[1] == 200


def test_large_body_is_refused_readably(start):
    """curl sends 21 MiB and still reads the answer, with and without Expect, over both versions."""
    r = Receiver(start)
    path = r.program.path("large")
    with open(path, "wb") as f:
        f.truncate(21 << 20)
    for args in (("--http1.1",), ("--http1.1", "-H", "Expect:"), ("--http1.1", "-H", "Transfer-Encoding: chunked"), ("--http2-prior-knowledge",)):
        code, kind, body = curl(*args, "-H", "Content-Type: application/x-protobuf", "--data-binary", "@" + path, f"http://127.0.0.1:{r.http}/v1/traces")[1:]
        assert code == 400 and kind == "application/x-protobuf" and b"request body too large" in body, args


def test_framing_tricks_smuggle_nothing(start):
    """A marker that stands only inside of bodies never reaches the output."""
    r = Receiver(start)
    inner = b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"MARKER"}]}]}]}'
    smuggled = b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(inner), inner)
    heads = [b"Content-Length: 4\r\nTransfer-Encoding: chunked", b"Content-Length: 4\r\nContent-Length: 300", b"Content-Length: +4", b"Content-Length : 4",
             b"Transfer-Encoding: xchunked", b"Transfer-Encoding: chunked, identity", b"Content-Length: 0x4", b"X: a\0b\r\nContent-Length: 4"]
    for first in (b"", b"GET /nope HTTP/1.1\r\nHost: x\r\n\r\n"):
        for head in heads[:-1] if first else heads:      # a NUL is seen in the first request of a connection only
            s = socket.create_connection(("127.0.0.1", r.http), 30)
            s.sendall(first + b"POST /nope HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n\r\n0\r\n\r\n" + smuggled)
            s.settimeout(3)
            got = b""
            try:
                while chunk := s.recv(65536):
                    got += chunk
            except OSError:
                pass
            s.close()
            assert b" 200 " not in got, (first, head)
    assert post(r.http, "traces", SPAN)[0] == 200
    wait_until(lambda: len(r.lines()) == 1)
    assert "MARKER" not in str(r.lines())


# ---------------------------------------------------------------- gRPC
def log_request(size):
    """Encoded bytes of exactly `size`."""
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    q = ExportLogsServiceRequest()
    body = q.resource_logs.add().scope_logs.add().log_records.add().body
    body.string_value = "x" * size
    body.string_value = "x" * (2 * size - q.ByteSize())
    while q.ByteSize() > size:
        body.string_value = body.string_value[:-1]
    assert q.ByteSize() == size
    return q.SerializeToString()


def unary(channel, path=LOGS):
    return channel.unary_unary(path, request_serializer=bytes, response_deserializer=bytes)


def test_grpcio(start):
    grpc = pytest.importorskip("grpc")
    r = Receiver(start)
    for port in (r.grpc, r.http):       # some SDKs choose gRPC whatever the port is for
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            call = unary(channel)
            for compression in (grpc.Compression.NoCompression, grpc.Compression.Gzip):
                assert call(log_request(1000), timeout=30, compression=compression) == b"\n\0"
            with pytest.raises(grpc.RpcError) as e:
                call(log_request(1000), timeout=30, compression=grpc.Compression.Deflate)
            assert e.value.code() is grpc.StatusCode.UNIMPLEMENTED
            assert call(b"", timeout=30) in (b"", b"\n\0")
            with pytest.raises(grpc.RpcError) as e:
                unary(channel, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")(b"", timeout=30)
            assert e.value.code() is grpc.StatusCode.UNIMPLEMENTED
    wait_until(lambda: len(r.lines()) == 4)


@pytest.mark.parametrize("compressed", (False, True))
def test_grpc_message_limit(start, compressed):
    grpc = pytest.importorskip("grpc")
    r = Receiver(start)
    compression = grpc.Compression.Gzip if compressed else grpc.Compression.NoCompression
    with grpc.insecure_channel(f"127.0.0.1:{r.grpc}") as channel:
        call = unary(channel)
        assert call(log_request(4194304), timeout=20, compression=compression) == b"\n\0"
        for _ in range(5):
            with pytest.raises(grpc.RpcError) as e:
                call(log_request(4194305), timeout=20, compression=compression)
            assert e.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert call(log_request(100), timeout=30) == b"\n\0"
        with pytest.raises(grpc.RpcError) as e:                         # while far more than that is on its way
            call(log_request(40 << 20), timeout=20)
        assert e.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert call(log_request(100), timeout=30) == b"\n\0"
    r2 = Receiver(start, grpc_keys=", max_recv_msg_size_mib: 16")
    with grpc.insecure_channel(f"127.0.0.1:{r2.grpc}") as channel:
        assert unary(channel)(log_request(8 << 20), timeout=20, compression=compression) == b"\n\0"


def test_answers_of_the_backend_come_back(start, http_sink):
    """Without a queue the client sees what the backend said."""
    grpc = pytest.importorskip("grpc")
    sink = http_sink(answer=lambda s, n: (429, {"Retry-After": "7"}, b""))
    r = Receiver(start, exporter=f"otlp_http: {{endpoint: '{sink.url}', sending_queue: {{enabled: false}}, retry_on_failure: {{enabled: false}}}}")
    status, headers, _ = post(r.http, "traces", SPAN)
    assert status == 429
    with grpc.insecure_channel(f"127.0.0.1:{r.grpc}") as channel, pytest.raises(grpc.RpcError) as e:
        unary(channel)(log_request(100), timeout=30)
    assert e.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


# ---------------------------------------------------------------- many and slow
def test_slow_clients_do_not_harm_the_others(start):
    """2000 connections that dribble or stay silent: a good client is served at once, and they are gone after their time."""
    import resource
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    n = 2000 if min(hard, 8192) > 4500 else 300
    try:
        r = Receiver(start, http_keys=", read_header_timeout: 8s")
        before = r.descriptors()
        slow = [socket.create_connection(("127.0.0.1", r.http), 30) for _ in range(n // 2)]
        slow += [socket.create_connection(("127.0.0.1", r.http), 30) for _ in range(n // 2)]
        for s in slow[::2]:
            s.sendall(b"POST /v1/tr")
        started = time.monotonic()
        assert post(r.http, "traces", SPAN)[0] == 200
        assert time.monotonic() - started < 6
        cpu = r.cpu_seconds()
        time.sleep(1)
        assert r.cpu_seconds() - cpu < 0.1
        wait_until(lambda: r.descriptors() < before + 20)
        for s in slow:
            s.settimeout(1)
            assert s.recv(1) == b""
            s.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("rest", [b"0;" + b"a" * 100000, b"0" * 100000], ids=["extension", "zeros"])
def test_endless_chunk_line_costs_no_processor(start, rest):
    """A line of a chunk's size longer than any buffer: the connection ends at its deadline and burns nothing until then."""
    r = Receiver(start, http_keys=", read_timeout: 4s")
    with socket.create_connection(("127.0.0.1", r.http), 30) as s:
        s.setblocking(False)
        s.send(b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + rest)
        wait_until(lambda: r.carries(s), what="the connection")
        cpu = r.cpu_seconds()
        time.sleep(1)
        assert r.cpu_seconds() - cpu < 0.2
        assert post(r.http, "traces", SPAN)[0] == 200
        s.settimeout(10)
        try:
            assert s.recv(1) == b""
        except ConnectionResetError:
            pass  # it left input unread


def test_few_descriptors(start, tmp_path):
    """With 64 descriptors and 200 connections: no spin, the file is written, and it recovers."""
    r = Receiver(lambda config, **kw: _limited(start, config, tmp_path, **kw))
    clients = [socket.socket() for _ in range(200)]
    for s in clients:
        s.setblocking(False)
        s.connect_ex(("127.0.0.1", r.http))
    time.sleep(0.5)
    cpu = r.cpu_seconds()
    time.sleep(1)
    assert r.cpu_seconds() - cpu < 0.1
    assert r.program.alive()
    for s in clients:
        s.close()
    wait_until(lambda: post(r.http, "traces", SPAN, timeout=30)[0] == 200)
    wait_until(lambda: len(r.lines()) == 1)


def _limited(start, config, tmp_path, **kw):
    """The program under `ulimit -n 64`."""
    from conftest import MOTEL
    wrapper = tmp_path / "limited"
    wrapper.write_text(f'#!/bin/sh\nulimit -n 64\nexec "{MOTEL}" "$@"\n')
    wrapper.chmod(0o755)
    return start(config, program=str(wrapper), **kw)


def test_many_clients_at_once(start):
    """50 clients, each with its own connection and 40 requests: every span arrives exactly once."""
    r = Receiver(start)
    bad = []

    def client(i):
        import http.client
        c = http.client.HTTPConnection("127.0.0.1", r.http if i % 2 else r.grpc, timeout=20)
        for k in range(40):
            body = '{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"c%d-%d"}]}]}]}' % (i, k)
            c.request("POST", "/v1/traces", body, {"Content-Type": "application/json"})
            a = c.getresponse()
            if a.status != 200 or a.read() != b'{"partialSuccess":{}}':
                bad.append((i, k, a.status))
        c.close()
    threads = [threading.Thread(target=client, args=(i,)) for i in range(50)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not bad
    wait_until(lambda: len(r.lines()) == 2000)
    names = [l["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["name"] for l in r.lines()]
    assert len(set(names)) == 2000


# ---------------------------------------------------------------- addresses
def test_default_host_is_the_loopback_and_each_port_is_opened_once(start):
    """Two receivers with one protocol each do not collide."""
    a, b = free_port(), free_port()
    p = start(f"""
receivers:
  otlp/http: {{protocols: {{http: {{endpoint: "localhost:{a}"}}}}}}
  otlp/grpc: {{protocols: {{grpc: {{endpoint: ":{b}"}}}}}}
exporters: {{nop: }}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    traces: {{receivers: [otlp/http, otlp/grpc], exporters: [nop]}}
    logs: {{receivers: [otlp/http, otlp/grpc], exporters: [nop]}}
""", wait_ports=(a, b))
    assert post(a, "traces", SPAN)[0] == 200 and post(b, "traces", SPAN)[0] == 200
    assert p.stop() == 0


def test_unix_socket(start, tmp_path):
    path = str(tmp_path / "s.sock")
    r = start(f"""
receivers: {{otlp: {{protocols: {{http: {{endpoint: "{path}", transport: unix}}}}}}}}
exporters: {{nop: }}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [nop]}}}}
""")
    wait_until(lambda: os.path.exists(path))
    assert curl("--unix-socket", path, *JSON, "-d", "{}", "http://x/v1/traces")[1] == 200
    assert r.stop() == 0
    assert not os.path.exists(path)


def test_reload_refuses_no_connection(start):
    """While the configuration is read again and again, every request is served."""
    r = Receiver(start)
    stop, bad, served = threading.Event(), [], [0]

    def client():
        while not stop.is_set():
            try:
                status = post(r.http, "traces", SPAN)[0]
            except OSError as e:
                status = repr(e)
            served[0] += 1
            if status != 200:
                bad.append(status)
    t = threading.Thread(target=client)
    t.start()
    for _ in range(5):
        time.sleep(0.2)
        r.program.process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    stop.set()
    t.join()
    assert not bad and served[0] > 3
    assert r.program.stop() == 0
    assert len(r.lines()) == served[0]


# ---------------------------------------------------------------- health
def test_health_follows_the_life_of_the_program(start, http_sink):
    """Never 200 before the receiver listens; 503 from SIGTERM on; other paths 404."""
    health = free_port()
    seen, done = [], threading.Event()

    def probe():
        while not done.is_set():
            try:
                with socket.create_connection(("127.0.0.1", health), 1) as s:
                    s.settimeout(1)
                    s.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                    state = s.recv(1000)[9:12].decode()
            except OSError:
                state = "refused"
            listens = connects(ports[0]) if state == "200" and ports else True
            seen.append((state, listens))
            time.sleep(0.005)
    ports = []
    thread = threading.Thread(target=probe)
    thread.start()
    release = threading.Event()
    sink = http_sink(answer=lambda *_: (200 if release.wait(30) else 500, {}, b""))
    r = Receiver(start, extra=f"extensions: {{health_check: {{endpoint: '127.0.0.1:{health}', path: /healthz}}}}", extensions="extensions: [health_check]",
                 exporter=f"otlp_http: {{endpoint: '{sink.url}'}}")
    ports.append(r.http)
    wait_until(lambda: ("200", True) in seen)
    assert curl(f"http://127.0.0.1:{health}/nope")[1] == 404
    assert post(r.http, "traces", SPAN)[0] == 200                       # the stop waits for its export
    mark = len(seen)
    r.program.process.send_signal(signal.SIGTERM)
    wait_until(lambda: "503" in [s for s, _ in seen[mark:]], what="503")
    count = len(seen)
    wait_until(lambda: len(seen) > count + 3, what="more answers")
    release.set()
    assert r.program.process.wait(60) == 0      # another signal would end it before the export
    done.set()
    thread.join()
    states = [s for s, _ in seen]
    assert all(listens for _, listens in seen)
    assert states[0] == "refused" and "200" in states[:mark]
    assert "200" not in states[states.index("503", mark):]
    assert len(sink.requests) == 1


def test_port_clash_names_the_address(start):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        p = start(f"""
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{nop: }}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [nop]}}}}
""")
        assert p.process.wait(20) == 1
        assert f'cannot start pipelines: failed to start "otlp" receiver: listen tcp 127.0.0.1:{port}: bind: address already in use' in p.stderr


def test_gzip_body_of_curl(start):
    r = Receiver(start)
    path = r.program.path("body.gz")
    with open(path, "wb") as f:
        f.write(gzip.compress(str(SPAN).replace("'", '"').encode()))
    assert curl(*JSON, "-H", "Content-Encoding: gzip", "--data-binary", "@" + path, f"http://127.0.0.1:{r.http}/v1/traces")[1] == 200
    wait_until(lambda: len(r.lines()) == 1)
    assert parse("traces", b"") is not None
