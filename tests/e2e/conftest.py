"""Fixtures of the end-to-end tests: the program under test, ports, and backends made of other people's servers.

MOTEL names the program (default build/motel); REFERENCE_COLLECTOR a reference collector, for the tests that compare with it.
"""
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SIGNALS = ("traces", "metrics", "logs")
MOTEL = os.environ.get("MOTEL", os.path.join(ROOT, "build", "motel"))
REFERENCE = os.environ.get("REFERENCE_COLLECTOR", "")
SANITIZER_WORDS = ("AddressSanitizer", "LeakSanitizer", "ThreadSanitizer", "runtime error:")

# Who starts the tests in the background may have these ignored, and what is ignored stays so in every program that is started.
for _signal in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_signal) == signal.SIG_IGN:
        signal.signal(_signal, signal.default_int_handler if _signal == signal.SIGINT else signal.SIG_DFL)

_ports_given = set()


def free_port():
    """A TCP port that nobody listens on, different at every call. Not one that the system gives to clients: a connection made between this
    call and the start of the program could have it."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        first, last = map(int, f.read().split())
    below, above = range(10000, first), range(last + 1, 65536)
    while True:
        port = random.choice(below if len(below) >= len(above) else above)
        if port in _ports_given:
            continue
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
        _ports_given.add(port)
        return port


def wait_until(condition, limit=60.0, what="the condition"):
    """Polls until condition() is true and returns its value; fails the test at the limit."""
    deadline = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what} not met within {limit} s"
        time.sleep(0.01)


def openssl(folder, *args):
    subprocess.run(["openssl", *args], check=True, cwd=folder, capture_output=True)


def self_signed(folder, name):
    """key.pem, and cert.pem for the host of that name."""
    openssl(folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}", "-keyout", "key.pem",
            "-out", "cert.pem")
    return folder


def signed_by_ca(folder, name):
    """server.key, and server.pem for the host of that name, signed by the authority ca.pem."""
    openssl(folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=ca", "-addext",
            "basicConstraints=critical,CA:TRUE")
    openssl(folder, "req", "-newkey", "rsa:2048", "-nodes", "-keyout", "server.key", "-out", "server.csr", "-subj", f"/CN={name}")
    with open(os.path.join(folder, "server.ext"), "w", encoding="ascii") as f:
        f.write(f"subjectAltName=DNS:{name}\n")
    openssl(folder, "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "server.ext", "-out", "server.pem")
    return folder


def connects(port, host="127.0.0.1"):
    try:
        socket.create_connection((host, port), 0.5).close()
        return True
    except OSError:
        return False


class Program:
    """A collector under test: `program --config FILE`, its output in files of its own folder."""

    def __init__(self, program, folder, config=None, args=None, env=None, wait_ports=(), start_limit=60):
        self.folder = str(folder)
        os.makedirs(self.folder, exist_ok=True)
        argv = [program]
        if config is not None:
            self.config_path = os.path.join(self.folder, "config.yaml")
            with open(self.config_path, "w", encoding="utf-8") as f:
                f.write(config)
            argv += ["--config", self.config_path]
        argv += args or []
        self.stdout_path, self.stderr_path = (os.path.join(self.folder, n) for n in ("stdout", "stderr"))
        with open(self.stdout_path, "ab") as out, open(self.stderr_path, "ab") as err:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=self.folder,
                                            env={**os.environ, **(env or {})})
        deadline = time.monotonic() + start_limit
        for port in wait_ports:
            while not connects(port):
                assert self.process.poll() is None, f"did not start (exit {self.process.returncode}):\n{self.stderr}"
                assert time.monotonic() < deadline, f"port {port} is not open after {start_limit} s:\n{self.stderr}"
                time.sleep(0.01)

    @property
    def pid(self):
        return self.process.pid

    @property
    def stdout(self):
        with open(self.stdout_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    @property
    def stderr(self):
        with open(self.stderr_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def path(self, name):
        return os.path.join(self.folder, name)

    def alive(self):
        return self.process.poll() is None

    def stop(self, sig=signal.SIGTERM, limit=40):
        """Sends the signal and returns the exit status."""
        if self.alive():
            self.process.send_signal(sig)
        try:
            return self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            pytest.fail(f"did not end within {limit} s of the signal:\n{self.stderr[-3000:]}")

    def kill(self):
        if self.alive():
            self.process.kill()
            self.process.wait()

    def json_lines(self, name):
        """The whole lines of a file in its folder, parsed."""
        path = self.path(name)
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as f:
            text = f.read()         # at once: a line that grows meanwhile must not come in two parts
        return [json.loads(line) for line in text.split("\n")[:-1]]


@pytest.fixture
def start(tmp_path):
    """start(config, …) runs the program under test; see Program. Stopped, and looked over for sanitizer reports, at the end."""
    running = []

    def run(config=None, program=MOTEL, **kw):
        p = Program(program, tmp_path / f"program{len(running)}", config, **kw)
        running.append(p)
        return p
    yield run
    for p in running:
        if p.alive():
            p.process.terminate()
            try:
                p.process.wait(40)
            except subprocess.TimeoutExpired:
                p.kill()
    for p in running:
        assert not any(w in p.stderr for w in SANITIZER_WORDS), p.stderr[-6000:]


@pytest.fixture
def reference(start):
    """Like start(), for the reference collector."""
    if not REFERENCE:
        pytest.skip("REFERENCE_COLLECTOR does not name a reference collector")
    return lambda config, **kw: start(config, program=REFERENCE, **kw)


class HttpSink:
    """An HTTP backend on Python's http.server. `answer(sink, n)` gives (status, headers, body) for the n-th request."""

    def __init__(self, answer=None, delay=0.0, port=0, host="127.0.0.1"):
        self.requests, self.lock = [], threading.Lock()
        sink = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self._body()
                with sink.lock:
                    n = len(sink.requests)
                    sink.requests.append({"time": time.monotonic(), "path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}, "body": body})
                if sink.delay:
                    time.sleep(sink.delay)
                kind = self.headers.get("Content-Type", "application/x-protobuf")
                status, headers, reply = sink.answer(sink, n) if sink.answer else (200, {"Content-Type": kind}, b"{}" if "json" in kind else b"")
                try:
                    self.send_response(status)
                    for k, v in headers.items():
                        self.send_header(k, v)
                    self.send_header("Content-Length", str(len(reply)))
                    self.end_headers()
                    self.wfile.write(reply)
                except OSError:
                    pass

            do_GET = do_POST

            def _body(self):
                if "chunked" in self.headers.get("Transfer-Encoding", ""):
                    parts = []
                    while True:
                        size = int(self.rfile.readline().split(b";")[0], 16)
                        parts.append(self.rfile.read(size))
                        self.rfile.readline()
                        if size == 0:
                            return b"".join(parts)
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))

            def log_message(self, *_):
                pass
        self.answer, self.delay = answer, delay
        self.server = ThreadingHTTPServer((host, port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def messages(self):
        """(signal, Export…ServiceRequest) of every request, content-coding undone."""
        return [(r["path"].rsplit("/", 1)[1], parse(r["path"].rsplit("/", 1)[1], decode(r["body"], r["headers"].get("content-encoding", "")))) for r in list(self.requests)]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def decode(body, encoding):
    import gzip
    import zlib
    if encoding in ("", "identity"):
        return body
    if encoding == "gzip":
        return gzip.decompress(body)
    if encoding in ("zlib", "deflate"):
        return zlib.decompress(body)
    if encoding == "zstd":
        import zstandard
        return zstandard.ZstdDecompressor().decompressobj().decompress(body)
    raise ValueError(encoding)


def _request_types():
    from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs
    from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace
    return {"traces": (trace.ExportTraceServiceRequest, trace.ExportTraceServiceResponse, "/opentelemetry.proto.collector.trace.v1.TraceService/Export"),
            "metrics": (metrics.ExportMetricsServiceRequest, metrics.ExportMetricsServiceResponse, "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"),
            "logs": (logs.ExportLogsServiceRequest, logs.ExportLogsServiceResponse, "/opentelemetry.proto.collector.logs.v1.LogsService/Export")}


def parse(signal_name, body):
    """Parses protobuf bytes strictly, as the official Python classes do."""
    return _request_types()[signal_name][0].FromString(body)


def records(signal_name, message):
    """(resource attributes, scope name, record) of every span, log record or metric of an Export…ServiceRequest."""
    outer, inner, leaf = {"traces": ("resource_spans", "scope_spans", "spans"), "metrics": ("resource_metrics", "scope_metrics", "metrics"),
                          "logs": ("resource_logs", "scope_logs", "log_records")}[signal_name]
    for r in getattr(message, outer):
        attributes = {a.key: value_of(a.value) for a in r.resource.attributes}
        for s in getattr(r, inner):
            for x in getattr(s, leaf):
                yield attributes, s.scope.name, x


def value_of(v):
    kind = v.WhichOneof("value")
    if kind == "array_value":
        return [value_of(x) for x in v.array_value.values]
    if kind == "kvlist_value":
        return {x.key: value_of(x.value) for x in v.kvlist_value.values}
    return getattr(v, kind) if kind else None


class GrpcSink:
    """A gRPC backend on grpcio. `answer(n, context)` may abort the n-th call or return a response message; default OK."""

    def __init__(self, answer=None, port=0, credentials=None):
        import grpc
        self.requests, self.lock, self.answer = [], threading.Lock(), answer
        sink = self

        def handler(signal_name, request_type, response_type):
            def call(request, context):
                with sink.lock:
                    n = len(sink.requests)
                    sink.requests.append({"time": time.monotonic(), "signal": signal_name, "message": request, "metadata": dict(context.invocation_metadata())})
                reply = sink.answer(n, context) if sink.answer else None
                return reply if reply is not None else response_type()
            return grpc.unary_unary_rpc_method_handler(call, request_deserializer=request_type.FromString, response_serializer=response_type.SerializeToString)
        self.server = grpc.server(futures.ThreadPoolExecutor(8))
        for name, (request_type, response_type, path) in _request_types().items():
            _, service, method = path.split("/")
            self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: handler(name, request_type, response_type)}),))
        address = f"127.0.0.1:{port}"
        self.port = self.server.add_secure_port(address, credentials) if credentials else self.server.add_insecure_port(address)
        self.server.start()

    def messages(self):
        return [(r["signal"], r["message"]) for r in list(self.requests)]

    def close(self):
        self.server.stop(None).wait()


@pytest.fixture
def http_sink():
    """http_sink(…) makes an HttpSink that is closed at the end."""
    yield from _closing(HttpSink)


@pytest.fixture
def grpc_sink():
    """grpc_sink(…) makes a GrpcSink that is closed at the end."""
    pytest.importorskip("grpc")
    yield from _closing(GrpcSink)


def _closing(kind):
    made = []

    def make(*args, **kw):
        made.append(kind(*args, **kw))
        return made[-1]
    yield make
    for m in made:
        m.close()


def post(port, signal_name, body, content_type="application/json", headers=None, path=None, method="POST", timeout=30):
    """One HTTP request; (status, headers, body)."""
    data = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    q = urllib.request.Request(f"http://127.0.0.1:{port}{path or '/v1/' + signal_name}", data=data if method == "POST" else None, method=method,
                               headers={"Content-Type": content_type, **(headers or {})})
    try:
        with urllib.request.urlopen(q, timeout=timeout) as r:
            return r.status, dict(r.headers), r.read()
    except urllib.error.HTTPError as e:
        return e.code, dict(e.headers), e.read()


def span_request(n=1, service="svc", name="op", start=0):
    """OTLP/JSON of n spans whose ids count up from `start`."""
    spans = [{"traceId": f"{start + i + 1:032x}", "spanId": f"{start + i + 1:016x}", "name": name, "kind": 2, "startTimeUnixNano": "1700000000000000000",
              "endTimeUnixNano": "1700000000250000000", "attributes": [{"key": "n", "value": {"intValue": str(start + i)}}], "status": {}} for i in range(n)]
    return {"resourceSpans": [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]},
                               "scopeSpans": [{"scope": {"name": "s"}, "spans": spans}]}]}


def count_spans(lines):
    return sum(len(s.get("spans", ())) for line in lines for r in line.get("resourceSpans", ()) for s in r.get("scopeSpans", ()))


def run_python_client(*args, timeout=180):
    subprocess.run([sys.executable, os.path.join(HERE, "sdk_client.py"), *map(str, args)], check=True, timeout=timeout)


def node_program():
    """The Node.js of the venv's wheel, or of the machine; None when there is none."""
    import shutil
    beside = os.path.join(os.path.dirname(sys.executable), "node")
    return beside if os.path.exists(beside) else shutil.which("node")


def run_node_client(*args, timeout=180):
    node = node_program()
    folder = os.path.join(HERE, "node")
    if not node or not os.path.isdir(os.path.join(folder, "node_modules")):
        pytest.fail("the Node.js client is not installed; tests/run installs it")
    subprocess.run([node, os.path.join(folder, "client.js"), *map(str, args)], check=True, timeout=timeout, cwd=folder)
