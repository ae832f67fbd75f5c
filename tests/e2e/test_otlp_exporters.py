"""The otlp_http and otlp_grpc exporters against other people's servers: what is tried again, delays, odd answers, secrets, TLS."""
import email.utils
import ssl
import subprocess
import time

import pytest

from conftest import GrpcSink, HttpSink, decode, free_port, parse, post, records, span_request, wait_until

RETRY = "retry_on_failure: {initial_interval: 100ms, max_interval: 100ms, max_elapsed_time: 1s}"
HEADER = """
receivers:
  otlp:
    protocols:
      http: {{endpoint: "127.0.0.1:{port}"}}
"""


def config(port, exporters, level="info"):
    """A collector with one traces pipeline into all of `exporters` (id: keys on one line)."""
    lines = "".join(f"  {name}: {{{keys}}}\n" for name, keys in exporters.items())
    return HEADER.format(port=port) + f"exporters:\n{lines}" + f"""
service:
  telemetry: {{metrics: {{level: none}}, logs: {{level: {level}, sampling: {{enabled: false}}}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [{", ".join(exporters)}]}}}}
"""


@pytest.fixture
def send(start):
    """send(exporters, …) starts a program, offers it one span and returns the program."""
    def run(exporters, level="info", body=None, **kw):
        port = free_port()
        program = start(config(port, exporters, level), wait_ports=[port], **kw)
        program.port = port
        assert post(port, "traces", body or span_request(1))[0] == 200
        return program
    return run


def settled(program, sinks):
    """The number of requests of each sink when all exporters have delivered or given up."""
    wait_until(lambda: program.stderr.count("Dropping data") + program.stderr.count("Rejecting data") == len(sinks), what="the end of the retries")
    return {k: len(s.requests) for k, s in sinks.items()}


# ---------------------------------------------------------------- what is tried again
def test_http_statuses_that_are_tried_again(send, http_sink):
    statuses = [400, 401, 404, 408, 413, 429, 500, 501, 502, 503, 504, 530]
    sinks = {n: http_sink(lambda sink, i, n=n: (n, {}, b"")) for n in statuses}
    program = send({f"otlp_http/{n}": f"endpoint: '{s.url}', {RETRY}" for n, s in sinks.items()})
    seen = settled(program, sinks)
    for n in statuses:
        if n in (429, 502, 503, 504):
            assert seen[n] > 1, (n, seen)
        else:
            assert seen[n] == 1, (n, seen)
    assert program.stderr.count("Dropping data") + program.stderr.count("Rejecting data") == len(statuses)


def test_transport_failures_are_tried_again(send, http_sink):
    port = free_port()
    program = send({"otlp_http": f"endpoint: 'http://127.0.0.1:{port}', {RETRY.replace('1s', '20s')}"})
    wait_until(lambda: "Will retry" in program.stderr)
    sink = HttpSink(port=port)
    wait_until(lambda: len(sink.requests) == 1)
    sink.close()


def test_grpc_codes_that_are_tried_again(send, grpc_sink):
    import grpc
    codes = [c for c in grpc.StatusCode if c is not grpc.StatusCode.OK]
    sinks = {c: grpc_sink(lambda n, context, c=c: context.abort(c, f"why {c.name}")) for c in codes}
    program = send({f"otlp_grpc/{c.name}": f"endpoint: '127.0.0.1:{s.port}', tls: {{insecure: true}}, {RETRY}" for c, s in sinks.items()})
    seen = settled(program, sinks)
    again = {"CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS"}
    for c in codes:
        assert (seen[c] > 1) if c.name in again else (seen[c] == 1), (c, seen)


def test_grpc_resource_exhausted_with_retry_info(send, grpc_sink):
    import grpc

    def answer(n, context):
        if n == 0:
            # google.rpc.Status {code 8, details [RetryInfo {retry_delay {nanos 700000000}}]}
            info = b"\n(type.googleapis.com/google.rpc.RetryInfo\x12\x08\n\x06\x10\x80\xa6\xe4\xcd\x02"
            context.set_trailing_metadata((("grpc-status-details-bin", b"\x08\x08\x12\x04slow\x1a" + bytes([len(info)]) + info),))
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "slow")
    sink = grpc_sink(answer)
    send({"otlp_grpc": f"endpoint: '127.0.0.1:{sink.port}', tls: {{insecure: true}}, {RETRY.replace('1s', '20s')}"})
    wait_until(lambda: len(sink.requests) == 2)
    assert 0.65 <= sink.requests[1]["time"] - sink.requests[0]["time"] < 3


# ---------------------------------------------------------------- Retry-After
@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_is_kept(send, http_sink, status, form):
    def answer(sink, n):
        value = "2" if form == "seconds" else email.utils.formatdate(time.time() + 3, usegmt=True)     # whole seconds: 2 to 3 from now
        return (status, {"Retry-After": value}, b"") if n == 0 else (200, {}, b"")
    sink = http_sink(answer)
    send({"otlp_http": f"endpoint: '{sink.url}', {RETRY.replace('1s', '20s')}"})
    wait_until(lambda: len(sink.requests) == 2)
    assert 1.9 <= sink.requests[1]["time"] - sink.requests[0]["time"] < 15


def test_retry_after_that_is_no_use(send, http_sink):
    values = ["0", "-5", "abc", "99999999999999999999", "Sun, 01 Jan 2006 00:00:00 GMT"]
    sinks = {v: http_sink(lambda sink, n, v=v: (503, {"Retry-After": v}, b"")) for v in values}
    program = send({f"otlp_http/{i}": f"endpoint: '{s.url}', {RETRY}" for i, s in enumerate(sinks.values())})
    for value, n in settled(program, sinks).items():
        assert 1 < n <= 20, value


def test_retry_after_beyond_the_limit_drops_at_once(send, http_sink):
    sink = http_sink(lambda s, n: (503, {"Retry-After": "30"}, b""))
    program = send({"otlp_http": f"endpoint: '{sink.url}', {RETRY}"})
    wait_until(lambda: "Dropping data" in program.stderr)
    assert len(sink.requests) == 1


# ---------------------------------------------------------------- answers to delivered data
ODD = [(200, "application/json", b"{}", ""), (200, "text/html", b"<p>", ""), (200, "application/json", b"", None), (202, None, b"", ""),
       (200, "application/x-protobuf", b"\x0a" * 70000, "error parsing protobuf"), (200, "application/x-protobuf", b"\xff", "error parsing protobuf"),
       (200, "application/json", b"<", "error parsing json"), (204, None, b"", "")]


def test_a_2xx_is_never_sent_again(send, http_sink):
    sinks = {i: http_sink(lambda s, n, a=a: (a[0], {"Content-Type": a[1]} if a[1] else {}, a[2])) for i, a in enumerate(ODD)}
    program = send({f"otlp_http/{i}": f"endpoint: '{s.url}', {RETRY}" for i, s in sinks.items()})
    wait_until(lambda: all(s.requests for s in sinks.values()), what="a request to each")
    assert program.stop() == 0                                          # what was to be sent again would be now
    assert {len(s.requests) for s in sinks.values()} == {1}
    for i, (_, _, _, word) in enumerate(ODD):
        lines = [line for line in program.stderr.splitlines() if f'"otlp_http/{i}"' in line and "error" in line.split("\t")[1]]
        if word is not None:
            assert bool(lines) == bool(word) and all(word in line for line in lines), (i, lines)


def test_partial_success_is_told(send, http_sink, grpc_sink):
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
    reply = ExportTraceServiceResponse()
    reply.partial_success.rejected_spans, reply.partial_success.error_message = 3, "too old"
    h = http_sink(lambda s, n: (200, {"Content-Type": "application/x-protobuf"}, reply.SerializeToString()))
    g = grpc_sink(lambda n, context: reply)
    program = send({"otlp_http": f"endpoint: '{h.url}', {RETRY}", "otlp_grpc": f"endpoint: '127.0.0.1:{g.port}', tls: {{insecure: true}}, {RETRY}"})
    wait_until(lambda: h.requests and g.requests, what="a request to each")
    assert program.stop() == 0
    assert len(h.requests) == len(g.requests) == 1
    lines = [line for line in program.stderr.splitlines() if "Partial success response" in line]
    assert len(lines) == 2 and all('"dropped_spans": 3' in line and "too old" in line for line in lines)


# ---------------------------------------------------------------- the wire
@pytest.mark.parametrize("compression", ["gzip", "zstd", "deflate", "zlib", "none", ""])
@pytest.mark.parametrize("encoding", ["proto", "json"])
def test_http_body(send, http_sink, compression, encoding):
    sink = http_sink()
    send({"otlp_http": f"endpoint: '{sink.url}/', encoding: {encoding}, compression: '{compression}', headers: [{{name: X-A, value: '7'}}]"},
         body=span_request(300))
    wait_until(lambda: sink.requests)
    q = sink.requests[0]
    assert q["path"] == "/v1/traces" and q["headers"]["x-a"] == "7" and q["headers"]["user-agent"].startswith("motel/")
    assert q["headers"].get("content-encoding", "") == ("" if compression in ("", "none") else compression)
    body = decode(q["body"], q["headers"].get("content-encoding", ""))
    if encoding == "json":
        import json
        assert len(json.loads(body)["resourceSpans"][0]["scopeSpans"][0]["spans"]) == 300
    else:
        assert len(list(records("traces", parse("traces", body)))) == 300


@pytest.mark.parametrize("compression", ["gzip", "none"])
def test_grpc_message(send, grpc_sink, compression):
    sink = grpc_sink()
    send({"otlp_grpc": f"endpoint: '127.0.0.1:{sink.port}', tls: {{insecure: true}}, compression: {compression}, headers: {{X-A: '7', y-bin: ab}}"},
         body=span_request(5000))
    wait_until(lambda: sink.requests)
    metadata = sink.requests[0]["metadata"]
    assert metadata["x-a"] == "7" and metadata["y-bin"] == b"ab" and metadata["user-agent"].startswith("motel/")
    assert len(list(records(*sink.messages()[0]))) == 5000


def test_redirects(send, http_sink):
    target = http_sink()
    sinks = {n: http_sink(lambda s, i, n=n: (n, {"Location": f"{target.url}/moved/{n}"}, b"")) for n in (302, 307, 308)}
    send({f"otlp_http/{n}": f"endpoint: '{s.url}', {RETRY}" for n, s in sinks.items()})
    wait_until(lambda: len(target.requests) == 3)
    bodies = {q["path"]: len(q["body"]) > 0 for q in target.requests}
    assert bodies == {"/moved/302": False, "/moved/307": True, "/moved/308": True}


def test_aliases_and_old_keys_warn(send, http_sink, grpc_sink):
    h, g = http_sink(), grpc_sink()
    program = send({"otlphttp/x": f"endpoint: '{h.url}', idle_conn_timeout: 10s", "otlp/y": f"endpoint: 'http://127.0.0.1:{g.port}'"})
    wait_until(lambda: h.requests and g.requests)
    for word in ('\\"otlphttp\\" alias is deprecated', '\\"otlp\\" alias is deprecated', "use the keepalive block instead"):
        assert word in program.stderr or word.replace("\\", "") in program.stderr, word


def test_grpc_backend_that_restarts(send, grpc_sink):
    port = free_port()
    first = GrpcSink(port=port)
    program = send({"otlp_grpc": f"endpoint: '127.0.0.1:{port}', tls: {{insecure: true}}, {RETRY.replace('1s', '30s')}"})
    wait_until(lambda: first.requests)
    first.close()
    assert post(program.port, "traces", span_request(1, start=1))[0] == 200
    wait_until(lambda: "Will retry" in program.stderr)
    second = grpc_sink(port=port)
    wait_until(lambda: second.requests)
    assert len(list(records(*second.messages()[0]))) == 1


def test_stop_does_not_wait_for_a_hanging_backend(start, http_sink, grpc_sink):
    h, g = http_sink(delay=60), grpc_sink(lambda n, context: time.sleep(60))
    port = free_port()
    program = start(config(port, {"otlp_http": f"endpoint: '{h.url}'", "otlp_grpc": f"endpoint: '127.0.0.1:{g.port}', tls: {{insecure: true}}, timeout: 60s"})
                    + "motel: {shutdown_timeout: 1s}\n", wait_ports=[port])
    assert post(port, "traces", span_request(1))[0] == 200
    wait_until(lambda: h.requests and g.requests)
    started = time.monotonic()
    program.stop()
    assert time.monotonic() - started < 30


# ---------------------------------------------------------------- secrets
def test_no_secret_in_any_text(start, http_sink, grpc_sink):
    import grpc
    quote = b"\x08\x10\x12\x20token SEKRET1 SEKRET3 is not good"
    h = http_sink(lambda s, n: (401 if n else 503, {}, quote))
    g = grpc_sink(lambda n, context: context.abort(grpc.StatusCode.UNAUTHENTICATED, "token SEKRET1 and SEKRET3 are not good"))
    port = free_port()
    headers = "headers: {authorization: 'Bearer SEKRET1', x-k: '${env:SEKRET_VAR}'}"
    program = start(config(port, {
        "otlp_http/a": f"endpoint: 'http://user:SEKRET2@127.0.0.1:{h.port}', {headers}, {RETRY}",
        "otlp_http/b": f"endpoint: 'http://user:SEKRET2@127.0.0.1:{free_port()}', {headers}, {RETRY}",
        "otlp_grpc": f"endpoint: '127.0.0.1:{g.port}', tls: {{insecure: true}}, {headers}, {RETRY}"}, level="debug"),
        wait_ports=[port], env={"SEKRET_VAR": "SEKRET3"})
    assert post(port, "traces", span_request(1), headers={"Authorization": "Bearer SEKRET4"})[0] == 200
    wait_until(lambda: len(h.requests) == 2 and g.requests)
    wait_until(lambda: program.stderr.count("Dropping data") >= 3)
    program.stop()
    assert "SEKRET" not in program.stderr + program.stdout
    assert h.requests[0]["headers"]["authorization"] == "Bearer SEKRET1" and h.requests[0]["headers"]["x-k"] == "SEKRET3"
    assert g.requests[0]["metadata"]["authorization"] == "Bearer SEKRET1"


@pytest.mark.parametrize("value", ['"a\\r\\nx: SEKRET"', '"a\\nb"', '"a\\0b"'])
@pytest.mark.parametrize("exporter", ["otlp_http: {endpoint: 'http://h', HEADERS}", "otlp_grpc: {endpoint: 'h:1', HEADERS}"])
def test_header_injection_is_refused_at_start(start, exporter, value):
    keys = exporter.replace("HEADERS", f"headers: {{x: {value}}}")
    name, _, rest = keys.partition(": ")
    program = start(config(free_port(), {name: rest[1:-1]}))
    assert program.process.wait(20) == 1
    assert "headers" in program.stderr and "SEKRET" not in program.stderr


# ---------------------------------------------------------------- TLS
@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A CA, a server certificate for localhost and 127.0.0.1, a client certificate, and another CA."""
    folder = tmp_path_factory.mktemp("certificates")

    def run(*args):
        subprocess.run(["openssl", *args], check=True, cwd=folder, capture_output=True)
    for ca in ("ca", "other"):
        run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{ca}.key", "-out", f"{ca}.pem", "-days", "2", "-subj", f"/CN={ca}",
            "-addext", "basicConstraints=critical,CA:TRUE")
    for name, san in (("server", "DNS:localhost,DNS:backend.example,IP:127.0.0.1"), ("client", "DNS:client")):
        run("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        (folder / f"{name}.ext").write_text(f"subjectAltName={san}\n")
        run("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext",
            "-out", f"{name}.pem")
    return folder


def https_sink(certificates, client_auth=False):
    sink = HttpSink()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    if client_auth:
        context.load_verify_locations(certificates / "ca.pem")
        context.verify_mode = ssl.CERT_REQUIRED
    sink.server.handle_error = lambda *_: None
    sink.server.socket = context.wrap_socket(sink.server.socket, server_side=True, do_handshake_on_connect=False)
    return sink


def tls_grpc_sink(certificates, client_auth=False):
    import grpc
    read = lambda name: (certificates / name).read_bytes()
    return GrpcSink(credentials=grpc.ssl_server_credentials([(read("server.key"), read("server.pem"))], read("ca.pem") if client_auth else None, client_auth))


def pem(certificates, name):
    return (certificates / name).read_text().replace("\n", "\\n")


GOOD, BAD = True, False
TLS_CASES = {
    "ca_file": ("ca_file: '{d}/ca.pem'", False, "localhost", GOOD),
    "ca_file and address": ("ca_file: '{d}/ca.pem'", False, "127.0.0.1", GOOD),
    "ca_pem": ('ca_pem: "{ca}"', False, "localhost", GOOD),
    "system authorities too": ("ca_file: '{d}/ca.pem', include_system_ca_certs_pool: true", False, "localhost", GOOD),
    "no ca": ("insecure_skip_verify: false", False, "localhost", BAD),
    "other ca": ("ca_file: '{d}/other.pem'", False, "localhost", BAD),
    "other ca, not verified": ("ca_file: '{d}/other.pem', insecure_skip_verify: true", False, "localhost", GOOD),
    "override": ("ca_file: '{d}/ca.pem', server_name_override: backend.example", False, "127.0.0.1", GOOD),
    "wrong override": ("ca_file: '{d}/ca.pem', server_name_override: elsewhere.example", False, "127.0.0.1", BAD),
    "client certificate": ("ca_file: '{d}/ca.pem', cert_file: '{d}/client.pem', key_file: '{d}/client.key'", True, "localhost", GOOD),
    "client certificate as text": ("ca_file: '{d}/ca.pem', cert_pem: \"{cert}\", key_pem: \"{key}\"", True, "localhost", GOOD),
    "no client certificate": ("ca_file: '{d}/ca.pem'", True, "localhost", BAD),
    "tls 1.2": ("ca_file: '{d}/ca.pem', max_version: '1.2'", False, "localhost", GOOD),
    "tls 1.3": ("ca_file: '{d}/ca.pem', min_version: '1.3'", False, "localhost", GOOD),
}


@pytest.mark.parametrize("case", TLS_CASES)
@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_tls(send, certificates, kind, case):
    keys, client_auth, host, good = TLS_CASES[case]
    keys = keys.format(d=certificates, ca=pem(certificates, "ca.pem"), cert=pem(certificates, "client.pem"), key=pem(certificates, "client.key"))
    sink = (https_sink if kind == "http" else tls_grpc_sink)(certificates, client_auth)
    try:
        endpoint = f"https://{host}:{sink.port}" if kind == "http" else f"{host}:{sink.port}"
        program = send({f"otlp_{kind}": f"endpoint: '{endpoint}', tls: {{{keys}}}, {RETRY}"})
        if good:
            wait_until(lambda: sink.requests, what=f"a request; {program.stderr[-1500:]}")
        else:
            wait_until(lambda: "Dropping data" in program.stderr)
            assert not sink.requests
            assert "certificate" in program.stderr or client_auth     # a server that wants one may just close the connection
    finally:
        sink.close()


@pytest.mark.parametrize("exporter", ["otlp_http: endpoint: 'https://h'", "otlp_grpc: endpoint: 'h:1'"])
def test_missing_certificate_ends_the_start(start, exporter):
    name, _, keys = exporter.partition(": ")
    program = start(config(free_port(), {name: f"{keys}, tls: {{ca_file: /nowhere/ca.pem}}"}))
    assert program.process.wait(20) == 1
    assert "/nowhere/ca.pem" in program.stderr
