"""TLS on the OTLP receiver and the health check, with the clients of other people: curl, openssl, the SDKs, the reference collector; with good and
bad certificates, certificates that are replaced, and clients that mean no good."""
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

import pytest

from conftest import (HERE, REFERENCE, count_spans, free_port, node_program, span_request, wait_until)

H2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class Certificates:
    """Two authorities, and what they signed for localhost: NAME.pem, NAME.key."""

    def __init__(self, folder):
        self.folder = folder
        for ca in ("ca", "other"):
            self.openssl("req", "-x509", *self.new_key(ca), "-out", f"{ca}.pem", "-days", "2", "-subj", f"/CN={ca}", "-addext", "basicConstraints=critical,CA:TRUE")
        self.make("server", "ca", "serverAuth")
        self.make("expired", "ca", "serverAuth", days=-1)
        self.make("client", "ca", "clientAuth")
        self.make("expired-client", "ca", "clientAuth", days=-1)
        self.make("stranger", "other", "clientAuth")
        self.make("no-client", "ca", "serverAuth")

    def openssl(self, *args, **kw):
        return subprocess.run(["openssl", *args], check=True, cwd=self.folder, capture_output=True, **kw).stdout

    @staticmethod
    def new_key(name):
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key"]

    def make(self, name, ca, usage, days=2):
        self.openssl("req", *self.new_key(name), "-out", f"{name}.csr", "-subj", f"/CN={name}")
        (self.folder / f"{name}.ext").write_text(f"subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage={usage}\n")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.pem", "-CAkey", f"{ca}.key", "-CAcreateserial", "-days", str(days),
                     "-extfile", f"{name}.ext", "-out", f"{name}.pem")

    def path(self, name):
        return str(self.folder / name)

    def read(self, name):
        return (self.folder / name).read_text()


@pytest.fixture(scope="module")
def certs(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


def tls_keys(certs, name="server", more=""):
    return f"cert_file: '{certs.path(name + '.pem')}', key_file: '{certs.path(name + '.key')}'{', ' + more if more else ''}"


class Server:
    """motel with TLS on both ports, spans into a file."""

    def __init__(self, start, keys, http_more="", telemetry_port=None, extra=""):
        self.grpc_port, self.http_port, self.metrics_port = free_port(), free_port(), telemetry_port or free_port()
        self.program = start(f"""
receivers:
  otlp:
    protocols:
      grpc: {{endpoint: '127.0.0.1:{self.grpc_port}', max_recv_msg_size_mib: 64, tls: {{{keys}}}}}
      http: {{endpoint: '127.0.0.1:{self.http_port}', tls: {{{keys}}}{', ' + http_more if http_more else ''}}}
exporters: {{file: {{path: out.jsonl, flush_interval: 20ms}}}}
service:
  telemetry: {{metrics: {{readers: [{{pull: {{exporter: {{prometheus: {{host: 127.0.0.1, port: {self.metrics_port}}}}}}}}}]}}}}
  pipelines:
    traces: {{receivers: [otlp], exporters: [file]}}
    metrics: {{receivers: [otlp], exporters: [file]}}
    logs: {{receivers: [otlp], exporters: [file]}}
{extra}""", wait_ports=[self.grpc_port, self.http_port, self.metrics_port])

    @property
    def ports(self):
        return (self.grpc_port, self.http_port)

    def spans(self):
        return count_spans(self.program.json_lines("out.jsonl"))

    def failures(self):
        """How many handshakes failed, on both ports."""
        c = http.client.HTTPConnection("127.0.0.1", self.metrics_port, timeout=30)
        c.request("GET", "/metrics")
        text = c.getresponse().read().decode()
        c.close()
        return sum(int(line.split()[-1]) for line in text.splitlines() if line.startswith("motel_server_tls_handshake_failures{"))


@pytest.fixture
def server(start, certs):
    return lambda keys=None, **kw: Server(start, keys or tls_keys(certs), **kw)


def context(certs, alpn=("http/1.1",), ca="ca", client=None, version=None):
    c = ssl.create_default_context(cafile=certs.path(f"{ca}.pem"))
    if alpn:
        c.set_alpn_protocols(list(alpn))
    if client:
        c.load_cert_chain(certs.path(f"{client}.pem"), certs.path(f"{client}.key"))
    if version:
        c.minimum_version = c.maximum_version = version
    return c


def connect(port, ctx, session=None, receive_buffer=None):
    s = socket.socket()
    if receive_buffer:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    s.settimeout(60)
    s.connect(("127.0.0.1", port))
    return ctx.wrap_socket(s, server_hostname="localhost", session=session)


def request(body, close=False):
    return (b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + (b"Connection: close\r\n" if close else b"") +
            f"Content-Length: {len(body)}\r\n\r\n".encode() + body)


def spans(n=1, name="op"):
    return json.dumps(span_request(n, name=name)).encode()


def read_answer(stream):
    """The status of one HTTP/1.1 answer; None when the connection ended before it."""
    line = stream.readline()
    if not line:
        return None
    length = 0
    while (field := stream.readline().strip().lower()):
        if field.startswith(b"content-length:"):
            length = int(field.split(b":")[1])
    stream.read(length)
    return int(line.split()[1])


def ask(stream, body=None):
    stream.sendall(request(body or spans()))
    with stream.makefile("rb") as f:
        return read_answer(f)


class Http2:
    """One HTTP/2 connection over TLS, by the h2 library."""

    def __init__(self, port, ctx):
        import h2.connection
        self.socket = connect(port, ctx)
        assert self.socket.selected_alpn_protocol() == "h2"
        self.h2 = h2.connection.H2Connection()
        self.h2.initiate_connection()
        self.flush()

    def flush(self):
        self.socket.sendall(self.h2.data_to_send())

    def start(self, content_type="application/json", length=None):
        stream = self.h2.get_next_available_stream_id()
        self.h2.send_headers(stream, [(":method", "POST"), (":path", "/v1/traces"), (":scheme", "https"), (":authority", "localhost"), ("content-type", content_type),
                                      *([("content-length", str(length))] if length is not None else [])])
        return stream

    def ask(self, body=None):
        import h2.events
        body = body or spans()
        stream, status, ended = self.start(length=len(body)), None, False
        self.h2.send_data(stream, body, end_stream=True)
        self.flush()
        while not ended:
            data = self.socket.recv(65536)
            if not data:
                return None
            for event in self.h2.receive_data(data):
                if isinstance(event, h2.events.ResponseReceived):
                    status = int(dict(event.headers)[b":status"])
                ended |= isinstance(event, h2.events.StreamEnded)
            self.flush()
        return status


def curl(certs, port, *args, body=None, ca="ca", path="/v1/traces", check=True):
    """(HTTP version, status) of a request by curl; its exit code when that is not 0."""
    done = subprocess.run(["curl", "-s", "-S", "-o", os.devnull, "-w", "%{http_version} %{http_code}", "--max-time", "60", "--cacert", certs.path(f"{ca}.pem"),
                           "-H", "content-type: application/json", *(["--data-binary", "@-"] if body is not None else []), *args, f"https://localhost:{port}{path}"],
                          input=body, capture_output=True, check=False, timeout=90)
    if done.returncode:
        assert not check, done.stderr
        return done.returncode
    version, status = done.stdout.decode().split()
    return version, int(status)


# ---- clients

def python_client(protocol, certs, port, env=None, compression="gzip", **kw):
    ca = certs.path("ca.pem")
    env = {**os.environ, "OTEL_EXPORTER_OTLP_CERTIFICATE": ca, "REQUESTS_CA_BUNDLE": ca, **(env or {})}   # the second one wins in requests
    return subprocess.run([sys.executable, os.path.join(HERE, "sdk_client.py"), protocol, compression, f"https://localhost:{port}"], env=env, timeout=180,
                          capture_output=True, **kw)


def node_client(protocol, certs, port):
    env = {**os.environ, "OTEL_EXPORTER_OTLP_CERTIFICATE": certs.path("ca.pem"), "NODE_EXTRA_CA_CERTS": certs.path("ca.pem")}
    folder = os.path.join(HERE, "node")
    if not node_program() or not os.path.isdir(os.path.join(folder, "node_modules")):
        pytest.fail("the Node.js client is not installed; tests/run installs it")
    subprocess.run([node_program(), os.path.join(folder, "client.js"), protocol, "gzip", f"https://localhost:{port}"], env=env, check=True, timeout=180, cwd=folder)


@pytest.mark.parametrize("port", ["grpc_port", "http_port"])
@pytest.mark.parametrize("client", ["python grpc", "python http", "node grpc", "node proto", "node json"])
def test_sdks(server, certs, client, port):
    """Each SDK over TLS, on both ports."""
    s = server()
    language, protocol = client.split()
    if language == "python":
        python_client(protocol, certs, getattr(s, port), check=True)
    else:
        node_client(protocol, certs, getattr(s, port))
    lines = lambda: s.program.json_lines("out.jsonl")
    wait_until(lambda: all(any(kind in x for x in lines()) for kind in ("resourceSpans", "resourceMetrics", "resourceLogs")), what="all three signals")
    assert s.failures() == 0


COLLECTORS = ["motel", *(["reference"] if REFERENCE else [])]


@pytest.mark.parametrize("exporter", ["otlp_grpc", "otlp_http"])
@pytest.mark.parametrize("who", COLLECTORS)
def test_collectors(server, start, certs, who, exporter):
    """motel and the reference collector as clients, with a client certificate."""
    s = server(tls_keys(certs, more=f"client_ca_file: '{certs.path('ca.pem')}'"))
    port = free_port()
    keys = f"tls: {{ca_file: '{certs.path('ca.pem')}', cert_file: '{certs.path('client.pem')}', key_file: '{certs.path('client.key')}'}}"
    endpoint = f"https://localhost:{s.http_port}" if exporter == "otlp_http" else f"localhost:{s.grpc_port}"
    name = exporter if who == "motel" else exporter.replace("otlp_http", "otlphttp").replace("otlp_grpc", "otlp")
    start(f"""
receivers: {{otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{port}'}}}}}}}}
exporters: {{{name}: {{endpoint: '{endpoint}', {keys}}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [{name}]}}}}
""", wait_ports=[port], **({"program": REFERENCE} if who == "reference" else {}))
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for _ in range(20):
        c.request("POST", "/v1/traces", spans(5), {"Content-Type": "application/json"})
        answer = c.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()
    wait_until(lambda: s.spans() == 100, what="100 spans")


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_curl(server, certs, version):
    """Both protocols on both ports, several requests on a connection, HTTP/1.0 and no ALPN."""
    s = server()
    expected = {"--http1.1": "1.1", "--http2": "2"}[version]
    for port in s.ports:
        assert curl(certs, port, version, body=spans()) == (expected, 200)
        assert curl(certs, port, version, "--no-alpn", "--http1.1", body=spans()) == ("1.1", 200)
        assert curl(certs, port, version, path="/nothing", body=b"{}") == (expected, 404)
    assert curl(certs, s.http_port, "--http1.0", body=spans())[1] == 200
    wait_until(lambda: s.spans() == 5)


def test_health_check(start, certs):
    port = free_port()
    start(f"""
receivers: {{otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{free_port()}'}}}}}}}}
exporters: {{nop: }}
extensions: {{health_check: {{endpoint: '127.0.0.1:{port}', tls: {{{tls_keys(certs)}}}}}}}
service:
  extensions: [health_check]
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [nop]}}}}
""", wait_ports=[port])
    wait_until(lambda: curl(certs, port, "--http1.1", path="/")[1] == 200)
    assert curl(certs, port, "--http2", path="/") == ("2", 200)


def test_unix_socket(start, certs, tmp_path):
    path = tmp_path / "otlp.sock"
    start(f"""
receivers: {{otlp: {{protocols: {{http: {{transport: unix, endpoint: '{path}', tls: {{{tls_keys(certs)}}}}}}}}}}}
exporters: {{nop: }}
service: {{telemetry: {{metrics: {{level: none}}}}, pipelines: {{traces: {{receivers: [otlp], exporters: [nop]}}}}}}
""")
    wait_until(path.exists)
    for version in ("--http1.1", "--http2"):
        assert curl(certs, 1, "--unix-socket", str(path), version, body=spans())[1] == 200


# ---- certificates

def test_server_certificates_that_clients_refuse(server, certs):
    """An expired one, and one of an authority that the client does not know: the client goes, and one line in ten seconds says why."""
    s = server(tls_keys(certs, "expired"))
    assert curl(certs, s.http_port, body=spans(), check=False) == 60
    assert python_client("grpc", certs, s.grpc_port, env={"OTEL_EXPORTER_OTLP_TIMEOUT": "1"}).returncode == 0   # an SDK does not fail its program
    good = server()
    for ctx in (context(certs, ca="other"), context(certs, ca="other", version=ssl.TLSVersion.TLSv1_2)):
        with pytest.raises(ssl.SSLCertVerificationError):
            connect(good.http_port, ctx)
    for x, n in ((s, 2), (good, 2)):
        wait_until(lambda x=x, n=n: x.failures() >= n, what="the count of failed handshakes")
        wait_until(lambda x=x: "A TLS handshake failed" in x.program.stderr, what="the line about it")
        # a client that closes with our bytes unread resets the connection, and its alert may be lost with it
        assert "alert" in x.program.stderr or "the client closed the connection" in x.program.stderr
        assert x.spans() == 0


CLIENTS = {"client": True, None: False, "stranger": False, "expired-client": False, "no-client": False}


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("name", CLIENTS)
def test_client_certificates(server, certs, name, version):
    """Only a certificate of the right authority, in its time, and made for clients."""
    s = server(tls_keys(certs, more=f"client_ca_file: '{certs.path('ca.pem')}'"))
    for port in s.ports:
        for alpn in ("http/1.1", "h2"):
            ctx = context(certs, (alpn,), client=name, version=version)
            if CLIENTS[name]:
                assert (Http2(port, ctx).ask() if alpn == "h2" else ask(connect(port, ctx))) == 200
                continue
            with pytest.raises((ssl.SSLError, ConnectionError)):    # with TLS 1.3 a client hears of it when it reads
                c = connect(port, ctx)
                c.sendall(request(spans()) if alpn == "http/1.1" else H2_PREFACE)
                while c.recv(4096):
                    pass
                raise ConnectionError("closed")
    if CLIENTS[name]:
        wait_until(lambda: s.spans() == 4)
    else:
        wait_until(lambda: s.failures() == 4)
        assert s.spans() == 0
        assert "sent no certificate" in s.program.stderr if name is None else "certificate" in s.program.stderr


def test_sdk_without_a_client_certificate(server, certs):
    s = server(tls_keys(certs, more=f"client_ca_file: '{certs.path('ca.pem')}'"))
    for protocol, port in (("grpc", s.grpc_port), ("http", s.http_port)):
        python_client(protocol, certs, port, env={"OTEL_EXPORTER_OTLP_TIMEOUT": "1"})
    wait_until(lambda: s.failures() >= 2)
    assert s.spans() == 0
    client = {"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": certs.path("client.pem"), "OTEL_EXPORTER_OTLP_CLIENT_KEY": certs.path("client.key")}
    for protocol, port in (("grpc", s.grpc_port), ("http", s.http_port)):
        python_client(protocol, certs, port, env=client, check=True)
    wait_until(lambda: s.spans() == 6)


def test_tickets_do_not_open_another_port(start, certs):
    """A session of the port that asks for no certificate is worth nothing on the one that does; on its own port it is resumed."""
    free, strict = free_port(), free_port()
    start(f"""
receivers:
  otlp:
    protocols:
      grpc: {{endpoint: '127.0.0.1:{free}', tls: {{{tls_keys(certs)}}}}}
      http: {{endpoint: '127.0.0.1:{strict}', tls: {{{tls_keys(certs)}, client_ca_file: '{certs.path("ca.pem")}'}}}}
exporters: {{nop: }}
service: {{telemetry: {{metrics: {{level: none}}}}, pipelines: {{traces: {{receivers: [otlp], exporters: [nop]}}}}}}
""", wait_ports=[free, strict])
    ctx = context(certs, version=ssl.TLSVersion.TLSv1_2)
    first = connect(free, ctx)
    assert ask(first) == 200
    again = connect(free, ctx, first.session)
    assert again.session_reused and ask(again) == 200
    with pytest.raises((ssl.SSLError, ConnectionError)):
        connect(strict, ctx, first.session)


# ---- reading certificates again

def serial(port, certs):
    c = connect(port, context(certs))
    text = ssl.DER_cert_to_PEM_cert(c.getpeercert(True))
    c.close()
    return text


def replace(folder, certs, name):
    """The pair in the folder becomes that of `name`."""
    for end in ("pem", "key"):
        (folder / f"new.{end}").write_text(certs.read(f"{name}.{end}"))
    os.rename(folder / "new.key", folder / "now.key")
    os.rename(folder / "new.pem", folder / "now.pem")


@pytest.mark.parametrize("how", ["interval", "signal"])
def test_new_certificates(server, certs, tmp_path, how):
    """Connections go on with the certificates that they began with; new ones see the new ones. Broken files change nothing."""
    certs.make("second", "ca", "serverAuth")
    replace(tmp_path, certs, "server")
    s = server(f"cert_file: '{tmp_path}/now.pem', key_file: '{tmp_path}/now.key'" + (", reload_interval: 20ms" if how == "interval" else ""))
    before = serial(s.http_port, certs)
    kept, kept2 = connect(s.http_port, context(certs)), Http2(s.grpc_port, context(certs, ("h2",)))
    assert ask(kept) == 200 and kept2.ask() == 200

    def read_again():
        if how == "signal":
            s.program.process.send_signal(signal.SIGHUP)
    replace(tmp_path, certs, "second")
    read_again()
    wait_until(lambda: serial(s.http_port, certs) != before and serial(s.grpc_port, certs) != before, what="the new certificate")
    after = serial(s.http_port, certs)
    assert ask(kept) == 200 and kept2.ask() == 200

    (tmp_path / "now.key").write_text("no key")
    read_again()
    wait_until(lambda: (serial(s.http_port, certs), serial(s.grpc_port, certs)) == (after, after) and "now.key" in s.program.stderr, what="the error")
    for _ in range(20):
        assert serial(s.http_port, certs) == after
    if how == "interval":
        assert 1 <= s.program.stderr.count("Cannot read TLS certificates again") <= 2       # each port has its own
    assert ask(kept) == 200 and kept2.ask() == 200
    replace(tmp_path, certs, "server")
    read_again()
    wait_until(lambda: serial(s.http_port, certs) == before, what="the certificate of before")


def test_new_client_authorities(server, certs, tmp_path):
    ca = tmp_path / "clients.pem"
    ca.write_text(certs.read("ca.pem"))
    s = server(tls_keys(certs, more=f"client_ca_file: '{ca}', client_ca_file_reload: true"))

    def served(client):
        try:
            return ask(connect(s.http_port, context(certs, client=client))) == 200
        except (ssl.SSLError, ConnectionError):
            return False
    kept = connect(s.http_port, context(certs, client="client"))
    assert ask(kept) == 200 and not served("stranger")
    ca.write_text(certs.read("other.pem"))
    wait_until(lambda: served("stranger"), what="the new authority")
    assert not served("client")
    assert ask(kept) == 200


BAD_STARTS = {
    "no certificate file": ("cert_file: /nowhere/x.pem, key_file: '{d}/server.key'", "failed to load TLS config: failed to load TLS cert and key: open /nowhere/x.pem: no such file or directory"),
    "no key file": ("cert_file: '{d}/server.pem', key_file: /nowhere/x.key", "failed to load TLS config: failed to load TLS cert and key: open /nowhere/x.key: no such file or directory"),
    "another key": ("cert_file: '{d}/server.pem', key_file: '{d}/client.key'", "failed to load TLS config: failed to load TLS cert and key"),
    "no client authority": ("cert_file: '{d}/server.pem', key_file: '{d}/server.key', client_ca_file: /nowhere/ca.pem", "failed to load client CA CertPool: failed to load CA /nowhere/ca.pem: open /nowhere/ca.pem: no such file or directory"),
    "no authority in it": ("cert_file: '{d}/server.pem', key_file: '{d}/server.key', client_ca_file: '{d}/server.key'", "failed to parse CA"),
    "half a pair": ("cert_file: '{d}/server.pem'", "TLS configuration must include both certificate and key (CertFile/CertPem and KeyFile/KeyPem)"),
    "nothing": ("", "TLS configuration must include both certificate and key for server connections"),
}


@pytest.mark.parametrize("case", BAD_STARTS)
@pytest.mark.parametrize("who", COLLECTORS)
def test_what_cannot_start(start, certs, case, who):
    """motel and the reference collector say the same."""
    keys, text = BAD_STARTS[case]
    program = start(f"""
receivers: {{otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{free_port()}', tls: {{{keys.format(d=certs.folder)}}}}}}}}}}}
exporters: {{nop: }}
service: {{telemetry: {{metrics: {{level: none}}}}, pipelines: {{traces: {{receivers: [otlp], exporters: [nop]}}}}}}
""", **({"program": REFERENCE} if who == "reference" else {}))
    assert program.process.wait(60) == 1
    assert text in program.stderr
    assert "PRIVATE KEY" not in program.stderr


# ---- what is offered

def offers(certs, port, *args):
    done = subprocess.run(["openssl", "s_client", "-connect", f"localhost:{port}", "-CAfile", certs.path("ca.pem"), "-verify_return_error", *args], input=b"",
                          capture_output=True, timeout=60, check=False)
    return done.returncode == 0


VERSIONS = ("-tls1", "-tls1_1", "-tls1_2", "-tls1_3")
WEAK = ("aNULL", "eNULL", "RC4", "3DES", "EXPORT", "MD5", "kRSA", "CAMELLIA", "ARIA", "PSK", "SRP", "DSS", "DHE-RSA-AES256-GCM-SHA384", "AES128-SHA", "ECDHE-RSA-AES128-SHA",
        "ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES128-SHA256", "ECDHE-ECDSA-AES128-CCM8")


@pytest.mark.parametrize("more,expected", [("", ("-tls1_2", "-tls1_3")), ("min_version: '1.3'", ("-tls1_3",)), ("max_version: '1.2'", ("-tls1_2",)),
                                           ("min_version: '1.0'", VERSIONS)])
def test_versions(server, certs, more, expected):
    s = server(tls_keys(certs, more=more))
    for port in s.ports:
        assert tuple(v for v in VERSIONS if offers(certs, port, v, "-cipher", "ALL:@SECLEVEL=0")) == expected


def test_cipher_suites(server, certs):
    s = server()
    assert [c for c in WEAK if offers(certs, s.http_port, "-tls1_2", "-cipher", f"{c}:@SECLEVEL=0")] == []
    for good in ("ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305"):
        assert offers(certs, s.http_port, "-tls1_2", "-cipher", good)
    s = server(tls_keys(certs, more="cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384], curve_preferences: [P384]"))
    assert [c for c in ("128-GCM-SHA256", "256-GCM-SHA384") if offers(certs, s.http_port, "-tls1_2", "-cipher", f"ECDHE-ECDSA-AES{c}")] == ["256-GCM-SHA384"]
    assert [c for c in ("X25519", "P-256", "P-384", "P-521") if offers(certs, s.http_port, "-curves", c)] == ["P-384"]


def test_no_renegotiation_and_no_compression(server, certs):
    s = server()
    done = subprocess.run(["openssl", "s_client", "-connect", f"localhost:{s.http_port}", "-CAfile", certs.path("ca.pem"), "-tls1_2"], input=b"R\n", capture_output=True,
                          timeout=60, check=False)
    assert b"Compression: NONE" in done.stdout
    assert b"RENEGOTIATING" in done.stderr + done.stdout and done.returncode != 0
    assert curl(certs, s.http_port, body=spans())[1] == 200


def test_application_protocols(server, certs):
    """HTTP/2 is chosen where it is offered, and only spoken when it was; none of ours is an error."""
    s = server()
    for port in s.ports:
        assert connect(port, context(certs, ("http/1.1", "h2"))).selected_alpn_protocol() == "h2"
        assert connect(port, context(certs, ("http/1.1",))).selected_alpn_protocol() == "http/1.1"
        with pytest.raises((ssl.SSLError, ConnectionError)):
            connect(port, context(certs, ("spdy/3",)))
        for alpn in (None, ("http/1.1",)):
            c = connect(port, context(certs, alpn))
            c.sendall(H2_PREFACE + bytes.fromhex("000000040000000000"))
            assert c.recv(100) == b""
    assert s.program.stderr.count("HTTP/2 over TLS without ALPN") == 2      # once a port


# ---- clients that mean no good

def closed_within(s, limit=60):
    """Reads until the peer ends it."""
    s.settimeout(limit)
    try:
        while s.recv(65536):
            pass
    except ConnectionError:
        pass
    return True


def client_hello(certs):
    """The first bytes of a good client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    o = context(certs).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        o.do_handshake()
    return outgoing.read()


def test_slow_handshakes(server, certs):
    """Who takes too long for the handshake is cut off, also when it sends a byte now and then, and also in the middle of it."""
    s = server(http_more="read_header_timeout: 1s")
    hello = client_hello(certs)
    silent, half, whole, slow = (socket.create_connection(("127.0.0.1", s.http_port)) for _ in range(4))
    half.sendall(hello[:len(hello) // 2])
    whole.sendall(hello)
    ended = threading.Event()

    def drip():
        try:
            for b in hello * 100:
                slow.sendall(bytes([b]))
                time.sleep(0.02)
        except OSError:
            ended.set()
    threading.Thread(target=drip, daemon=True).start()
    for c in (silent, half, whole):
        assert closed_within(c)
    assert ended.wait(60)
    shaken = connect(s.http_port, context(certs))    # with TLS, but without a request
    assert closed_within(shaken)
    wait_until(lambda: s.failures() >= 3)
    assert curl(certs, s.http_port, body=spans())[1] == 200


def test_what_is_no_tls(server):
    """Plain HTTP is told so; anything else is closed."""
    s = server()
    for port in s.ports:
        c = socket.create_connection(("127.0.0.1", port))
        c.sendall(request(spans()))
        text = b""
        while (data := c.recv(4096)):
            text += data
        assert text.startswith(b"HTTP/1.0 400") and b"HTTP request to an HTTPS server" in text
        for data in (H2_PREFACE, b"\0" * 100, b"\x15\x03\x01\0\x02\x02\x28", bytes(range(256))):
            c = socket.create_connection(("127.0.0.1", port))
            c.sendall(data)
            assert closed_within(c)
    assert s.failures() == 10
    assert "plain text" in s.program.stderr and s.spans() == 0


@pytest.mark.parametrize("alpn", ["http/1.1", "h2"])
def test_garbage_records(server, certs, alpn):
    """Broken handshakes, and broken records on a connection that was good: it ends, the others go on."""
    s = server(http_more="read_header_timeout: 1s")     # what claims to be longer than it is is waited for
    hello = client_hello(certs)
    for data in (hello[:60] + os.urandom(400), b"\x16\x03\x01\x40\x00" + os.urandom(16384), b"\x16\x03\x01\xff\xff" + os.urandom(1000), b"\x16\x03\x01\0\0" * 200,
                 hello + b"\x17\x03\x03\0\x20" + os.urandom(32)):
        c = socket.create_connection(("127.0.0.1", s.http_port))
        c.sendall(data)
        assert closed_within(c)
    for data in (os.urandom(500), b"\x17\x03\x03\0\x40" + os.urandom(64), b"\x17\x03\x03\xff\xff" + os.urandom(66000), b"\x15\x03\x03\0\x02\x01\x00"):
        c = connect(s.http_port, context(certs, (alpn,)))
        c.sendall(request(spans()) if alpn == "http/1.1" else H2_PREFACE)
        raw = socket.socket(fileno=os.dup(c.fileno()))
        raw.sendall(data)
        assert closed_within(raw)
    assert ask(connect(s.http_port, context(certs))) == 200
    assert s.failures() == 5


def test_half_handshakes(server, certs):
    """200 of them at a time, then gone without a word: the others are served all the while."""
    s = server()
    hello = client_hello(certs)
    held = []
    for i in range(200):
        c = socket.create_connection(("127.0.0.1", s.ports[i % 2]))
        c.sendall(hello[:1 + i % len(hello)] if i % 3 else hello)
        held.append(c)
    assert curl(certs, s.http_port, "--http1.1", body=spans())[1] == 200
    assert curl(certs, s.grpc_port, "--http2", body=spans())[1] == 200
    for c in held:
        c.close()
    wait_until(lambda: s.failures() == 200, what="the count of handshakes")
    assert s.program.stderr.count("A TLS handshake failed") < 100
    wait_until(lambda: s.spans() == 2)


# ---- data

@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_large_bodies(server, certs, version):
    """Many records of TLS in one request, plain, chunked and with Expect; and one too large, which is answered."""
    s = server()
    body = spans(30000)
    assert len(body) > 6 << 20
    for more in ((), ("-H", "transfer-encoding: chunked") if version == "--http1.1" else (), ("-H", "expect: 100-continue")):
        assert curl(certs, s.http_port, version, *more, body=body)[1] == 200
    assert curl(certs, s.http_port, version, "-H", "expect: 100-continue", body=b" " * (21 << 20))[1] == 400
    wait_until(lambda: s.spans() == 90000, limit=180)


def test_large_grpc_messages(server, certs):
    import grpc
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as service
    s = server()
    message = trace.ExportTraceServiceRequest()
    scope = message.resource_spans.add().scope_spans.add()
    for i in range(2000):
        scope.spans.add(trace_id=(i + 1).to_bytes(16, "big"), span_id=(i + 1).to_bytes(8, "big"), name="x" * 4000)
    with open(certs.path("ca.pem"), "rb") as f:
        credentials = grpc.ssl_channel_credentials(f.read())
    with grpc.secure_channel(f"localhost:{s.grpc_port}", credentials, [("grpc.max_send_message_length", -1)]) as channel:
        for _ in range(3):
            service.TraceServiceStub(channel).Export(message, timeout=120)
    wait_until(lambda: s.spans() == 6000, limit=180)


def test_answers_that_wait(server, certs):
    """A client that sends 3,000 requests before it reads an answer gets all answers, in order, and holds nobody up."""
    s = server()
    c = connect(s.http_port, context(certs), receive_buffer=4096)
    body, n = b'{"resourceSpans":[]}', 3000
    sender = threading.Thread(target=lambda: c.sendall(request(body) * (n - 1) + request(body, close=True)), daemon=True)
    other = connect(s.http_port, context(certs))
    sender.start()
    assert ask(other) == 200
    with c.makefile("rb") as f:
        assert [read_answer(f) for _ in range(n)] == [200] * n
        assert f.read() == b""
    sender.join(60)


@pytest.mark.parametrize("orderly", [True, False])
def test_truncated_requests(server, certs, orderly):
    """A request whose end did not come is none, whether the client said goodbye or not."""
    s = server()
    body = spans(3)
    chunked = (b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" +
               f"{len(body):x}\r\n".encode() + body + b"\r\n")
    for port in s.ports:
        for data in (request(body)[:-10], chunked, request(body)[:50]):
            c = connect(port, context(certs))
            c.sendall(data)
            end(c, orderly)
        for length, data in ((len(body), body[:-10]), (None, body)):
            h = Http2(port, context(certs, ("h2",)))
            h.h2.send_data(h.start(length=length), data)
            h.flush()
            end(h.socket, orderly)
    assert ask(connect(s.http_port, context(certs))) == 200
    wait_until(lambda: s.spans() >= 1)
    assert s.program.stop() == 0
    assert s.spans() == 1


def end(c, orderly):
    """Ends a TLS connection with close_notify, or without."""
    if not orderly:
        socket.socket(fileno=c.detach()).close()
        return
    try:
        c.unwrap()
    except (ssl.SSLError, OSError):
        pass
    c.close()


def finish_sending(c):
    """FIN behind what was sent, without close_notify."""
    raw = socket.socket(fileno=os.dup(c.fileno()))
    raw.shutdown(socket.SHUT_WR)
    raw.close()


@pytest.mark.plain_only
def test_waiting_costs_nothing(server, certs):
    """Connections that wait for something, or are half closed, keep no processor busy."""
    s = server()

    def cpu_seconds():
        tasks = f"/proc/{s.program.pid}/task"
        return sum(int(open(f"{tasks}/{t}/schedstat", encoding="ascii").read().split()[0]) for t in os.listdir(tasks)) / 1e9
    idle, idle2, half, ended, ended2, ended3, full = (connect(s.http_port, context(certs), receive_buffer=4096) if i != 1 else Http2(s.http_port, context(certs, ("h2",)))
                                                      for i in range(7))
    assert ask(idle) == 200 and idle2.ask() == 200 and ask(ended) == 200
    half.sendall(request(spans(100))[:-100])
    ended2.sendall(request(spans(100))[:-100])
    for c in (ended, ended2, ended3):
        finish_sending(c)
    hello = socket.create_connection(("127.0.0.1", s.http_port))
    hello.sendall(client_hello(certs)[:50])
    threading.Thread(target=full.sendall, args=(request(b"{}") * 30000,), daemon=True).start()

    def rests():
        before = cpu_seconds()
        time.sleep(1)
        return cpu_seconds() - before < 0.2
    wait_until(rests, limit=30, what="a second with less than 0.2 s of processor time")


def test_descriptors_come_back(server, certs):
    """Connections leave nothing behind, however they end."""
    s = server()
    count = lambda: len(os.listdir(f"/proc/{s.program.pid}/fd"))
    assert ask(connect(s.http_port, context(certs))) == 200
    connect(s.http_port, context(certs)).close()
    wait_until(lambda: s.spans() == 1)
    before, hello = count(), client_hello(certs)
    for i in range(60):
        c = connect(s.http_port, context(certs))
        c.sendall(request(spans(), close=i % 5 == 4)[:-(i % 3) or None])
        if i % 3 == 0:
            with c.makefile("rb") as f:
                assert read_answer(f) == 200
        end(c, i % 2)
        h = Http2(s.grpc_port, context(certs, ("h2",)))
        assert h.ask() == 200
        end(h.socket, i % 2)
        raw = socket.create_connection(("127.0.0.1", s.http_port))
        raw.sendall(hello[:20 * i])
        raw.close()
    wait_until(lambda: count() <= before + 4, what=f"about {before} descriptors")      # each I/O thread has some of its own, made when needed


def test_many_clients(server, certs):
    """Connections of both kinds from several threads, new and kept ones; then a stop: all that was answered is there."""
    s = server()
    contexts = {a: context(certs, (a,)) for a in ("http/1.1", "h2")}
    answered, lock = [], threading.Lock()

    def work(k):
        port, alpn = s.ports[k % 2], ("http/1.1", "h2")[k // 2 % 2]
        for _ in range(10):
            if alpn == "h2":
                h = Http2(port, contexts[alpn])
                good = [h.ask() for _ in range(5)].count(200)
                end(h.socket, k % 3)
            else:
                c = connect(port, contexts[alpn])
                good = [ask(c) for _ in range(5)].count(200)
                end(c, k % 3)
            with lock:
                answered.append(good)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(300)
    assert sum(answered) == 400
    assert s.program.stop() == 0
    assert s.spans() == 400
