"""motel doctor: good and bad set-ups, what it says about them, and its exit codes."""
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
from concurrent import futures

import grpc
import pytest

from conftest import MOTEL, SANITIZER_WORDS, GrpcSink, HttpSink, free_port, wait_until

SECRET = "tok-SEKRET-1234567"


def doctor(*args, env=None, cwd=None, program=MOTEL, expect=None, prefix=()):
    """Runs it: (exit code, findings, text of both outputs). The findings are (grade, component, check, subject, detail, advice)."""
    done = subprocess.run([*prefix, program, "doctor", *map(str, args)], capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL, cwd=cwd,
                          env={**os.environ, **(env or {})}, check=False)
    text = done.stdout + done.stderr
    assert not any(w in text for w in SANITIZER_WORDS), text[-6000:]
    assert expect is None or done.returncode == expect, text
    return done.returncode, findings(done.stdout), text


def findings(stdout):
    """The lines of the text form, taken apart."""
    found = []
    for line in stdout.splitlines():
        if line.startswith("      -> "):
            found[-1] = (*found[-1][:-1], line[9:])
        elif line[:4].strip() in ("ok", "warn", "fail"):
            grade, component, rest = line[:4].strip(), *line[6:].split("  ", 1)
            what, _, detail = rest.partition(": ")
            check, _, subject = what.partition(" ")
            found.append((grade, component, check, subject, detail, ""))
    return found


def one(found, component, check, grade=None):
    """The only finding of a component and a check."""
    hits = [f for f in found if f[1] == component and f[2] == check and grade in (None, f[0])]
    assert len(hits) == 1, found
    return hits[0]


@pytest.fixture
def write(tmp_path):
    """write(text) makes a config file; its path."""
    made = []

    def run(text):
        path = tmp_path / f"config{len(made)}.yaml"
        path.write_text(text)
        made.append(path)
        return path
    return run


def config(exporters, port=None, extensions="{}", names="[]", receivers=None, signals=("traces",), more=""):
    receivers = receivers or f'{{otlp: {{protocols: {{grpc: {{endpoint: "127.0.0.1:{port or free_port()}"}}}}}}}}'
    ids = "[" + ", ".join(exporters) + "]"
    body = "\n".join(f"  {name}: {{{keys}}}" for name, keys in exporters.items())
    pipelines = "\n".join(f"    {s}: {{receivers: [{receivers[1:].split(':')[0]}], exporters: {ids}}}" for s in signals)
    return f"""
receivers: {receivers}
exporters:
{body}
extensions: {extensions}
service:
  extensions: {names}
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
{pipelines}
{more}
"""


# ---------------------------------------------------------------- good set-ups
def test_all_is_well(write, http_sink, grpc_sink, tmp_path):
    http, grpc = http_sink(), grpc_sink()
    path = write(config({"otlp_http": f'endpoint: "{http.url}", headers: {{Authorization: "Bearer {SECRET}"}}',
                         "otlp_grpc": f'endpoint: "http://127.0.0.1:{grpc.port}", compression: gzip',
                         "file": f"path: {tmp_path}/out.jsonl"}, signals=("traces", "metrics", "logs")))
    before = sorted(os.listdir(tmp_path))
    _, found, text = doctor("--config", path, expect=0)
    assert "0 warnings, 0 failed: ready to start" in text
    assert SECRET not in text
    assert [f[3] for f in found if f[1] == "exporters::otlp_http" and f[2] == "export"] == [f"{http.url}/v1/{s}" for s in ("traces", "metrics", "logs")]
    assert [f[3] for f in found if f[1] == "exporters::otlp_grpc" and f[2] == "export"] == ["traces", "metrics", "logs"]
    assert one(found, "exporters::otlp_http", "connect")[0] == "ok" == one(found, "exporters::file", "file")[0]
    assert sorted(os.listdir(tmp_path)) == before, "something was left behind"
    assert [m.resource_spans for s, m in http.messages() if s == "traces"] == [[]]
    assert {r["headers"]["authorization"] for r in http.requests} == {f"Bearer {SECRET}"}
    assert {r["headers"]["content-encoding"] for r in http.requests} == {"gzip"}
    assert len(grpc.requests) == 3


def test_json_encoding_and_no_compression(write, http_sink):
    sink = http_sink()
    _, found, _ = doctor("--config", write(config({"otlp_http": f'endpoint: "{sink.url}", encoding: json, compression: none'})), expect=0)
    assert one(found, "exporters::otlp_http", "export")[0] == "ok"
    assert json.loads(sink.requests[0]["body"]) in ({}, {"resourceSpans": []})


def test_machine_form(write):
    path = write(config({"otlp_http": f'endpoint: "http://127.0.0.1:{free_port()}"'}))
    done = subprocess.run([MOTEL, "doctor", "--config", path, "--format=json"], capture_output=True, text=True, timeout=120, check=False)
    report = json.loads(done.stdout)
    assert done.returncode == 2 and report["fail"] == 1 == sum(c["grade"] == "fail" for c in report["checks"])
    assert report["ok"] + report["warn"] + report["fail"] == len(report["checks"])
    refused = next(c for c in report["checks"] if c["check"] == "connect")
    assert refused["grade"] == "fail" and "refused" in refused["detail"] and "4318" in refused["advice"] and refused["component"] == "exporters::otlp_http"


def test_the_built_in_configuration():
    code, found, text = doctor()
    assert code in (0, 2) and "127.0.0.1:4318" in text        # somebody may have the ports
    assert {"receivers::otlp", "extensions::health_check", "process"} <= {f[1] for f in found}


@pytest.mark.parametrize("args, text", [
    (["--config", "/nowhere.yaml"], "/nowhere.yaml"), (["--timeout", "soon", "--config", "x"], "--timeout"), (["--format", "xml"], "--format"), (["extra"], "extra"),
    (["--config", "yaml:receivers: {nosuch: {}}"], "nosuch")])
def test_mistakes(args, text):
    _, _, said = doctor(*args, expect=1)
    assert text in said and "Error" in said


def test_gym(tmp_path):
    """A NeMo Gym block, on and off."""
    on, off = tmp_path / "on.yaml", tmp_path / "off.yaml"
    on.write_text("telemetry: {enabled: true, service_name: gym}\n")
    off.write_text("telemetry: {enabled: false}\n")
    port = free_port()
    _, found, text = doctor("--gym-config", on, env={"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}"}, expect=2)
    assert f"127.0.0.1:{port}" in text and any(f[0] == "fail" and f[2] == "connect" for f in found)
    _, _, text = doctor("--gym-config", off, expect=0)
    assert "Nothing to do" in text


# ---------------------------------------------------------------- addresses
def test_a_port_that_is_taken(write):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        path = write(config({"nop": ""}, port=s.getsockname()[1]))
        _, found, _ = doctor("--config", path, expect=2)
    taken = one(found, "receivers::otlp", "address")
    assert taken[0] == "fail" and f"process {os.getpid()}" in taken[4] and "another port" in taken[5]
    _, found, _ = doctor("--config", path, expect=0)
    assert one(found, "receivers::otlp", "address")[4] == "free"


def test_a_port_that_the_configuration_names_twice(write):
    port = free_port()
    path = write(config({"nop": ""}, port=port, extensions=f'{{health_check: {{endpoint: "127.0.0.1:{port}"}}}}', names="[health_check]"))
    _, found, _ = doctor("--config", path, expect=2)
    assert "names it twice" in [f for f in found if f[0] == "fail"][0][4]


def test_a_motel_that_runs(start, write):
    port = free_port()
    text = config({"nop": ""}, port=port)
    program = start(text, wait_ports=(port,))
    _, found, _ = doctor("--config", program.config_path, expect=0)
    same = one(found, "receivers::otlp", "address")
    assert same[0] == "ok" and f"process {program.pid}, a motel that runs with this configuration" in same[4]
    _, found, _ = doctor("--config", write(text), expect=2)
    other = one(found, "receivers::otlp", "address")
    assert other[0] == "fail" and f"process {program.pid}, a motel that runs with another configuration" in other[4]


@pytest.mark.parametrize("endpoint, detail", [("192.0.2.1:4317", "cannot assign requested address"), ("nosuch.invalid:4317", "lookup nosuch.invalid")])
def test_addresses_that_are_not_ours(write, endpoint, detail):
    path = write(config({"nop": ""}, receivers=f'{{otlp: {{protocols: {{http: {{endpoint: "{endpoint}"}}}}}}}}'))
    _, found, _ = doctor("--config", path, expect=2)
    assert detail in one(found, "receivers::otlp", "address", "fail")[4]


def test_an_open_door(write):
    path = write(config({"nop": ""}, receivers=f'{{otlp: {{protocols: {{http: {{endpoint: "0.0.0.0:{free_port()}"}}}}}}}}'))
    _, found, _ = doctor("--config", path, expect=0)
    assert "other hosts" in one(found, "receivers::otlp", "address", "warn")[4]


def test_unix_sockets(write, tmp_path):
    path = write(config({"nop": ""}, receivers=f'{{otlp: {{protocols: {{http: {{endpoint: {tmp_path}/s, transport: unix}}}}}}}}'))
    _, found, _ = doctor("--config", path, expect=0)
    assert not (tmp_path / "s").exists()
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(tmp_path / "s"))
        s.listen()
        _, found, _ = doctor("--config", path, expect=2)
        assert f"process {os.getpid()}" in one(found, "receivers::otlp", "address")[4]
    _, found, _ = doctor("--config", path, expect=0)
    assert "replaced" in one(found, "receivers::otlp", "address")[4]
    assert (tmp_path / "s").exists()


def test_unix_sockets_of_a_motel_that_runs(start, write, tmp_path):
    """Also where the path has spaces in it."""
    folder = tmp_path / "with a space, \u00fc"
    folder.mkdir()
    program = start(config({"nop": ""}, receivers='{otlp: {protocols: {http: {endpoint: "%s/s o.sock", transport: unix}}}}' % folder))
    wait_until((folder / "s o.sock").exists, what="the socket")
    _, found, _ = doctor("--config", program.config_path, expect=0)
    assert f"process {program.pid}, a motel that runs with this configuration" in one(found, "receivers::otlp", "address")[4]


def test_pipes_in_place_of_certificates(write, tmp_path, http_sink):
    """A pipe that nobody writes to ends the wait, for what the configuration names and for what the environment does."""
    pipe, sink = tmp_path / "pipe", http_sink()
    os.mkfifo(pipe)
    for kind in ("http", "grpc"):
        path = write(config({f"otlp_{kind}": f'endpoint: "https://127.0.0.1:{sink.port}", tls: {{ca_file: {pipe}}}'}))
        _, found, _ = doctor("--config", path, "--timeout", "1s", expect=2)
        assert "nobody writes to it" in one(found, f"exporters::otlp_{kind}", "certificate", "fail")[4]
        path = write(config({f"otlp_{kind}": f'endpoint: "https://127.0.0.1:{sink.port}"'}))
        _, found, _ = doctor("--config", path, "--timeout", "1s", expect=2, env={"SSL_CERT_FILE": str(pipe), "SSL_CERT_DIR": ""})
        assert one(found, "process", "certificate", "warn")[3:5] == ("SSL_CERT_FILE", f"{pipe}: not an ordinary file")
    for name, said in ((tmp_path / "missing.pem", "No such file"), (path, "not a certificate")):
        _, found, _ = doctor("--config", write(config({"nop": ""})), expect=0, env={"SSL_CERT_FILE": str(name)})
        assert said in one(found, "process", "certificate", "warn")[4]


def test_two_programs_at_two_addresses_of_one_port(start, write):
    """It is told who has the address that is wanted, not who has the same port elsewhere."""
    port = free_port()
    with socket.create_server(("127.0.0.2", port)):
        program = start(config({"nop": ""}, port=port), wait_ports=(port,))
        receivers = '{otlp: {protocols: {grpc: {endpoint: "127.0.0.%d:%d"}}}}'
        _, found, _ = doctor("--config", write(config({"nop": ""}, receivers=receivers % (2, port))), expect=2)
        assert f"process {os.getpid()} (" in one(found, "receivers::otlp", "address")[4]
        _, found, _ = doctor("--config", program.config_path, expect=0)
        assert f"process {program.pid}, a motel" in one(found, "receivers::otlp", "address")[4]


HOSTILE = "\x1b[2J\x9b31m\u202e\n ok    exporters::fake  export: all good"


def test_a_text_of_others_stays_in_its_line(write, tmp_path):
    """What a backend or a certificate says can neither command a terminal nor pass for a finding."""
    def refuse(_, context):
        context.abort(grpc.StatusCode.UNAUTHENTICATED, HOSTILE)

    server = grpc.server(futures.ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("opentelemetry.proto.collector.trace.v1.TraceService",
                                                                          {"Export": grpc.unary_unary_rpc_method_handler(refuse)}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        path = write(config({"otlp_grpc": f'endpoint: "http://127.0.0.1:{port}"'}))
        _, found, text = doctor("--config", path, expect=2)
        said = one(found, "exporters::otlp_grpc", "export", "fail")[4]
        assert "all good" in said and all(c.isprintable() for c in said), repr(said)
        assert not [f for f in found if f[1] == "exporters::fake"], text
        done = subprocess.run([MOTEL, "doctor", "--config", path, "--format=json"], capture_output=True, timeout=120, check=False)
        assert HOSTILE in [c["detail"] for c in json.loads(done.stdout)["checks"] if c["check"] == "export"][0]
    finally:
        server.stop(None)


NAMED = """
import ctypes, socket, time
ctypes.CDLL(None).prctl(15, b"\\xff\\x1b[1\\n ok  x", 0, 0, 0)
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
time.sleep(60)
"""


def test_a_process_whose_name_is_no_text(write):
    with subprocess.Popen([sys.executable, "-c", NAMED], stdout=subprocess.PIPE, text=True) as holder:
        try:
            path = write(config({"nop": ""}, port=int(holder.stdout.readline())))
            _, found, text = doctor("--config", path, expect=2)
            assert f"process {holder.pid} (" in one(found, "receivers::otlp", "address")[4] and "\x1b" not in text
            done = subprocess.run([MOTEL, "doctor", "--config", path, "--format=json"], capture_output=True, timeout=120, check=False)
            assert "\ufffd\x1b[1" in json.loads(done.stdout.decode("utf-8"))["checks"][0]["detail"]
        finally:
            holder.kill()


# ---------------------------------------------------------------- the way to a backend
def failure(write, exporters, *args, env=None, expect=2):
    _, found, text = doctor("--config", write(config(exporters)), *args, env=env, expect=expect)
    assert SECRET not in text
    failed = [f for f in found if f[0] == "fail"]
    assert len(failed) == (expect == 2), found
    return failed[0] if failed else found


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_a_name_that_does_not_resolve(write, kind):
    f = failure(write, {f"otlp_{kind}": 'endpoint: "http://nosuch.invalid:4317"'})
    assert f[2:4] == ("resolve", "nosuch.invalid")


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_a_port_where_nobody_listens(write, kind):
    f = failure(write, {f"otlp_{kind}": f'endpoint: "http://127.0.0.1:{free_port()}"'})
    assert f[2] == "connect" and "Connection refused" in f[4] and "4318" in f[5]


@pytest.fixture
def black_hole():
    """A port whose queue of connections is full: a new one gets no answer."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen(0)
        port, held = s.getsockname()[1], []
        for _ in range(16):
            c = socket.socket()
            c.setblocking(False)
            try:
                c.connect(("127.0.0.1", port))
            except BlockingIOError:
                pass
            held.append(c)
        yield port
        for c in held:
            c.close()


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_a_black_hole(write, kind, black_hole):
    f = failure(write, {f"otlp_{kind}": f'endpoint: "http://127.0.0.1:{black_hole}"'}, "--timeout", "300ms")
    assert f[2] == "connect" and "no answer within 300ms" in f[4] and "firewall" in f[5]


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_a_server_that_says_nothing(write, kind):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        f = failure(write, {f"otlp_{kind}": f'endpoint: "http://127.0.0.1:{s.getsockname()[1]}"'}, "--timeout", "300ms")
    assert f[2] == "export" and "deadline" in f[4]


# ---------------------------------------------------------------- TLS
@pytest.fixture(scope="module")
def certs(tmp_path_factory):
    """Two authorities; of the first a certificate for localhost, an expired one, one for another name, and one of a client; one that signs itself."""
    folder = tmp_path_factory.mktemp("certificates")

    def openssl(*args):
        subprocess.run(["openssl", *args], check=True, cwd=folder, capture_output=True)

    def key(name):
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key"]
    for ca in ("ca", "other"):
        openssl("req", "-x509", *key(ca), "-out", f"{ca}.pem", "-days", "100", "-subj", f"/CN=authority {ca}", "-addext", "basicConstraints=critical,CA:TRUE")
    openssl("req", "-x509", *key("self"), "-out", "self.pem", "-days", "100", "-subj", "/CN=self", "-addext", "subjectAltName=DNS:localhost")
    for name, san, days in (("server", "DNS:localhost", 90), ("soon", "DNS:localhost", 2), ("expired", "DNS:localhost", -1), ("elsewhere", "DNS:backend.example", 90),
                            ("client", "DNS:client", 90)):
        openssl("req", *key(name), "-out", f"{name}.csr", "-subj", f"/CN={name}")
        (folder / f"{name}.ext").write_text(f"subjectAltName={san}\n")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", str(days), "-extfile", f"{name}.ext",
                "-out", f"{name}.pem")
    return folder


@pytest.fixture
def tls_sink(certs):
    made = []

    def make(kind, name="server", client_auth=False):
        if kind == "grpc":
            import grpc
            read = lambda n: (certs / n).read_bytes()
            sink = GrpcSink(credentials=grpc.ssl_server_credentials([(read(f"{name}.key"), read(f"{name}.pem"))], read("ca.pem") if client_auth else None, client_auth))
        else:
            sink = HttpSink()
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certs / f"{name}.pem", certs / f"{name}.key")
            if client_auth:
                context.load_verify_locations(certs / "ca.pem")
                context.verify_mode = ssl.CERT_REQUIRED
            sink.server.handle_error = lambda *_: None
            sink.server.socket = context.wrap_socket(sink.server.socket, server_side=True, do_handshake_on_connect=False)
        made.append(sink)
        return sink
    yield make
    for sink in made:
        sink.close()


# server certificate, whether it wants one of the client, keys of tls, words of the detail (None = good), words of the advice
TLS = {
    "good": ("server", False, "ca_file: {d}/ca.pem", None, ""),
    "client certificate": ("server", True, "ca_file: {d}/ca.pem, cert_file: {d}/client.pem, key_file: {d}/client.key", None, ""),
    "unknown authority": ("server", False, "min_version: '1.2'", "unknown authority", "set tls::ca_file"),
    "other authority": ("server", False, "ca_file: {d}/other.pem", "unknown authority", "another authority"),
    "self-signed": ("self", False, "min_version: '1.2'", "self-signed", "tls::ca_file"),
    "wrong name": ("elsewhere", False, "ca_file: {d}/ca.pem", "the certificate is for backend.example, not for localhost", "server_name_override"),
    "expired": ("expired", False, "ca_file: {d}/ca.pem", "expired on", "new certificate"),
    "no client certificate": ("server", True, "ca_file: {d}/ca.pem", "requires a client certificate", "tls::cert_file"),
    "client certificate of another authority": ("server", True, "ca_file: {d}/ca.pem, cert_file: {d}/self.pem, key_file: {d}/self.key", "refused our", "authority"),
}


@pytest.mark.parametrize("case", TLS)
@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_tls(write, certs, tls_sink, kind, case):
    name, client_auth, keys, detail, advice = TLS[case]
    sink = tls_sink(kind, name, client_auth)
    _, found, text = doctor("--config", write(config({f"otlp_{kind}": f'endpoint: "https://localhost:{sink.port}", tls: {{{keys.format(d=certs)}}}'})))
    failed = [f for f in found if f[0] == "fail"]
    if detail is None:
        assert not failed and "CN=server, by CN=authority ca, is valid until" in one(found, f"exporters::otlp_{kind}", "tls")[4], text
        assert len(sink.requests) == 1
    else:
        assert len(failed) == 1 and detail in failed[0][4] and advice in failed[0][5], text
        assert not sink.requests


def test_a_certificate_that_ends_soon(write, certs, tls_sink):
    sink = tls_sink("http", "soon")
    _, found, _ = doctor("--config", write(config({"otlp_http": f'endpoint: "https://localhost:{sink.port}", tls: {{ca_file: {certs}/ca.pem}}'})), expect=0)
    assert "expires on" in one(found, "exporters::otlp_http", "tls", "warn")[4]


def test_a_certificate_that_is_not_verified(write, certs, tls_sink):
    sink = tls_sink("grpc", "self")
    _, found, _ = doctor("--config", write(config({"otlp_grpc": f'endpoint: "localhost:{sink.port}", tls: {{insecure_skip_verify: true}}'})), expect=0)
    assert "not verified" in one(found, "exporters::otlp_grpc", "tls", "warn")[4]


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_tls_to_a_port_without(write, http_sink, grpc_sink, kind):
    sink = http_sink() if kind == "http" else grpc_sink()
    f = failure(write, {f"otlp_{kind}": f'endpoint: "https://localhost:{sink.port}"'})
    assert f[2] == "tls" and "no TLS" in f[4] and "http://" in f[5]


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_no_tls_to_a_port_with(write, tls_sink, kind):
    sink = tls_sink(kind)
    f = failure(write, {f"otlp_{kind}": f'endpoint: "http://localhost:{sink.port}"'}, "--timeout", "20s")
    assert f[2] == "export" and "speaks TLS" in f[4] and "https://" in f[5]


def test_our_own_certificates(write, certs):
    def keys(cert, key):
        return (f'{{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{free_port()}", tls: {{cert_file: {certs}/{cert}.pem, key_file: {certs}/{key}.key}}}}}}}}}}')
    _, found, _ = doctor("--config", write(config({"nop": ""}, receivers=keys("server", "server"))), expect=0)
    assert one(found, "receivers::otlp", "certificate")[0] == "ok"
    _, found, _ = doctor("--config", write(config({"nop": ""}, receivers=keys("server", "self"))), expect=2)
    assert "belong together" in one(found, "receivers::otlp", "certificate", "fail")[5]
    _, found, _ = doctor("--config", write(config({"nop": ""}, receivers=keys("expired", "expired"))), expect=2)
    assert "expired on" in one(found, "receivers::otlp", "certificate", "fail")[4]


def test_client_files(write, certs):
    f = failure(write, {"otlp_http": f'endpoint: "https://localhost:{free_port()}", tls: {{ca_file: {certs}/nothing.pem}}'})
    assert f[2] == "certificate" and "nothing.pem" in f[4]


# ---------------------------------------------------------------- answers
HTTP_ANSWERS = {
    401: ("fail", "refused the credentials", "Bearer"), 403: ("fail", "refused the credentials", "may not write"), 404: ("fail", "knows no such path", "/otlp"),
    405: ("fail", "POST", "web page"), 415: ("fail", "encoding", "encoding: json"), 400: ("warn", "empty request", ""), 429: ("warn", "too much to do", ""),
    500: ("fail", "status 500", "log of the backend"), 503: ("fail", "status 503", "proxy or gateway"),
}


@pytest.mark.parametrize("status", HTTP_ANSWERS)
def test_http_answers(write, http_sink, status):
    grade, detail, advice = HTTP_ANSWERS[status]
    sink = http_sink(lambda s, n: (status, {"Content-Type": "application/json"}, json.dumps({"code": 1, "message": f"no {SECRET}"}).encode()))
    _, found, text = doctor("--config", write(config({"otlp_http": f'endpoint: "{sink.url}", headers: {{Authorization: "Bearer {SECRET}"}}'})),
                            expect=2 if grade == "fail" else 0)
    f = one(found, "exporters::otlp_http", "export")
    assert f[0] == grade and detail in f[4] and advice in f[5] and SECRET not in text


def test_credentials_that_are_missing(write, http_sink):
    sink = http_sink(lambda s, n: (401, {}, b""))
    f = failure(write, {"otlp_http": f'endpoint: "{sink.url}"'})
    assert "none are configured" in f[4] and "headers::Authorization" in f[5]


def test_a_doubled_path(write, http_sink):
    sink = http_sink(lambda s, n: (404, {}, b"") if s.requests[n]["path"].count("/v1/") > 1 else (200, {}, b""))
    f = failure(write, {"otlp_http": f'endpoint: "{sink.url}/v1/traces"'})
    assert f[3].endswith("/v1/traces/v1/traces") and "take it off" in f[5] and "traces_endpoint" in f[5]
    failure(write, {"otlp_http": f'traces_endpoint: "{sink.url}/v1/traces"'}, expect=0)


def test_redirects(write, http_sink):
    sink = http_sink(lambda s, n: (302 if n == 0 else 308, {"Location": f"https://login.example/?token={SECRET}"}, b""))
    f = failure(write, {"otlp_http": f'endpoint: "{sink.url}"'})
    assert "status 302" in f[4] and "login.example" in f[4]
    good = http_sink()
    sink = http_sink(lambda s, n: (308, {"Location": f"{good.url}/v1/traces?token={SECRET}"}, b""))
    found = failure(write, {"otlp_http": f'endpoint: "{sink.url}"'}, expect=0)
    assert "status 308" in one(found, "exporters::otlp_http", "export", "warn")[4]
    assert one(found, "exporters::otlp_http", "export", "ok") and len(good.requests) == 1


@pytest.mark.parametrize("end", ["https://nosuch.invalid/", "/v1/traces", "/v1/logs"])
def test_redirects_that_lead_nowhere(write, http_sink, end):
    """To a name that is none, to itself, or by way of another path to that one."""
    sink = http_sink(lambda s, n: (307, {"Location": end}, b""))
    f = failure(write, {"otlp_http": f'endpoint: "{sink.url}"'}, "--timeout", "3s")
    assert f[2] == "export" and "at the end of the redirects" in f[4]


def test_a_web_page(write, http_sink):
    sink = http_sink(lambda s, n: (200, {"Content-Type": "text/html; charset=utf-8"}, b"<html></html>"))
    f = failure(write, {"otlp_http": f'endpoint: "{sink.url}"'})
    assert "a web page answers" in f[4]


def test_a_user_in_the_url_is_not_shown(write, http_sink):
    sink = http_sink()
    _, _, text = doctor("--config", write(config({"otlp_http": f'endpoint: "http://user:{SECRET}@127.0.0.1:{sink.port}"'})), expect=0)
    assert SECRET not in text and "***@127.0.0.1" in text


GRPC_ANSWERS = {"UNAUTHENTICATED": ("fail", "refused the credentials", "Bearer"), "PERMISSION_DENIED": ("fail", "refused the credentials", "may not write"),
                "UNIMPLEMENTED": ("fail", "does not take OTLP", "signal"), "INVALID_ARGUMENT": ("warn", "empty request", ""),
                "RESOURCE_EXHAUSTED": ("warn", "too much to do", ""), "INTERNAL": ("fail", "Internal", "log of the backend")}


@pytest.mark.parametrize("code", GRPC_ANSWERS)
def test_grpc_answers(write, grpc_sink, code):
    import grpc
    grade, detail, advice = GRPC_ANSWERS[code]
    sink = grpc_sink(lambda n, context: context.abort(getattr(grpc.StatusCode, code), f"no {SECRET}"))
    _, found, text = doctor("--config", write(config({"otlp_grpc": f'endpoint: "http://127.0.0.1:{sink.port}", headers: {{authorization: "Bearer {SECRET}"}}'})),
                            expect=2 if grade == "fail" else 0)
    f = one(found, "exporters::otlp_grpc", "export")
    assert f[0] == grade and detail in f[4] and advice in f[5] and SECRET not in text
    assert sink.requests[0]["metadata"]["authorization"] == f"Bearer {SECRET}"


def test_grpc_to_an_http1_server(write, http_sink):
    f = failure(write, {"otlp_grpc": f'endpoint: "http://127.0.0.1:{http_sink().port}"'})
    assert f[2] == "export" and "HTTP/1 only" in f[4] and "otlp_http" in f[5]


def test_http_to_a_grpc_server(write, grpc_sink):
    f = failure(write, {"otlp_http": f'endpoint: "http://127.0.0.1:{grpc_sink().port}"'})
    assert f[2] == "export" and "gRPC (HTTP/2) only" in f[4] and "otlp_grpc" in f[5]


def test_grpc_over_tls_to_an_http1_server(write, certs, tls_sink):
    f = failure(write, {"otlp_grpc": f'endpoint: "localhost:{tls_sink("http").port}", tls: {{ca_file: {certs}/ca.pem}}'})
    assert f[2] == "tls" and "HTTP/2" in f[4] and "otlp_http" in f[5]


def test_a_proxy(write, http_sink):
    """The request goes through it; one that is not there fails."""
    proxy, port = http_sink(), free_port()
    path = write(config({"otlp_http": 'endpoint: "http://backend.example:4318"'}))
    _, found, _ = doctor("--config", path, env={"HTTP_PROXY": proxy.url}, expect=0)
    assert one(found, "exporters::otlp_http", "proxy")[3] == f"127.0.0.1:{proxy.port}"
    assert proxy.requests[0]["path"] == "http://backend.example:4318/v1/traces"
    _, found, _ = doctor("--config", path, env={"HTTP_PROXY": f"http://127.0.0.1:{port}"}, expect=2)
    assert one(found, "exporters::otlp_http", "connect", "fail")[3] == f"127.0.0.1:{port}"


def test_its_own_address_as_backend(write):
    port = free_port()
    _, found, _ = doctor("--config", write(config({"otlp_grpc": f'endpoint: "http://localhost:{port}"'}, port=port)), expect=0)
    assert "this configuration" in one(found, "exporters::otlp_grpc", "connect", "warn")[4]


def test_many_signals_one_server(write):
    """A server that is not there is said once, not for each signal."""
    _, found, _ = doctor("--config", write(config({"otlp_http": f'endpoint: "http://127.0.0.1:{free_port()}"'}, signals=("traces", "metrics", "logs"))), expect=2)
    one(found, "exporters::otlp_http", "connect", "fail")


def test_a_unix_socket_as_backend(start, write, tmp_path):
    start(config({"nop": ""}, receivers=f'{{otlp: {{protocols: {{grpc: {{endpoint: {tmp_path}/s, transport: unix}}}}}}}}'))
    wait_until(lambda: (tmp_path / "s").exists())
    _, found, _ = doctor("--config", write(config({"otlp_grpc": f'endpoint: "unix://{tmp_path}/s", tls: {{insecure: true}}'})), expect=0)
    assert one(found, "exporters::otlp_grpc", "export")[0] == "ok"


def test_the_reference_collector_as_backend(reference, write):
    grpc, http = free_port(), free_port()
    reference(f"""
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: "127.0.0.1:{grpc}"}}, http: {{endpoint: "127.0.0.1:{http}"}}}}}}}}
exporters: {{debug: }}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [debug]}}, metrics: {{receivers: [otlp], exporters: [debug]}}, logs: {{receivers: [otlp], exporters: [debug]}}}}
""", wait_ports=(grpc, http))
    path = write(config({"otlp_grpc": f'endpoint: "http://127.0.0.1:{grpc}"', "otlp_http": f'endpoint: "http://127.0.0.1:{http}"',
                         "otlp_http/json": f'endpoint: "http://127.0.0.1:{http}", encoding: json'}, signals=("traces", "metrics", "logs")))
    _, found, _ = doctor("--config", path, expect=0)
    assert [f[0] for f in found if f[2] == "export"] == ["ok"] * 9
    f = failure(write, {"otlp_http": f'endpoint: "http://127.0.0.1:{grpc}"'})
    assert "otlp_grpc" in f[5]
    f = failure(write, {"otlp_grpc": f'endpoint: "http://127.0.0.1:{http}"'})
    assert "otlp_http" in f[5] or "gRPC" in f[5]


def test_http_to_a_server_that_says_that_it_wants_tls(write, http_sink):
    sink = http_sink(lambda s, n: (400, {"Content-Type": "text/plain"}, b"Client sent an HTTP request to an HTTPS server.\n"))
    f = failure(write, {"otlp_http": f'endpoint: "{sink.url}"'})
    assert "speaks TLS" in f[4] and "https://" in f[5]


# ---------------------------------------------------------------- scrapes
def scrape(write, target, more="", env=None, expect=None):
    receivers = (f'{{prometheus: {{config: {{scrape_configs: [{{job_name: j, static_configs: [{{targets: ["{target}"]}}], scrape_interval: 10s{more}}}]}}}}}}')
    _, found, text = doctor("--config", write(config({"nop": ""}, receivers=receivers, signals=("metrics",))), expect=expect, env=env)
    assert SECRET not in text
    return found


PAGE = b"# TYPE a counter\na_total 1\nb{x=\"1\"} 2\nb{x=\"2\"} 3\n"


def test_scrape_targets(write, http_sink):
    page = http_sink(lambda s, n: (200, {"Content-Type": "text/plain; version=0.0.4"}, PAGE))
    assert one(scrape(write, f"127.0.0.1:{page.port}", expect=0), "receivers::prometheus", "scrape")[4].startswith("3 samples")
    missing = http_sink(lambda s, n: (404, {}, b""))
    f = one(scrape(write, f"127.0.0.1:{missing.port}", expect=2), "receivers::prometheus", "scrape")
    assert "status 404" in f[4] and "metrics_path" in f[5]
    odd = http_sink(lambda s, n: (200, {"Content-Type": "text/plain"}, b"<html>"))
    assert "no metrics page" in one(scrape(write, f"127.0.0.1:{odd.port}", expect=2), "receivers::prometheus", "scrape")[4]
    assert "refused" in one(scrape(write, f"127.0.0.1:{free_port()}", expect=2), "receivers::prometheus", "connect")[4]


def test_scrape_with_credentials(write, http_sink):
    sink = http_sink(lambda s, n: (200 if s.requests[n]["headers"].get("authorization") == f"Bearer {SECRET}" else 401, {"Content-Type": "text/plain"}, PAGE))
    assert "authorization" in one(scrape(write, f"127.0.0.1:{sink.port}", expect=2), "receivers::prometheus", "scrape")[5]
    scrape(write, f"127.0.0.1:{sink.port}", more=', authorization: {credentials: "${env:DOCTOR_TOKEN}"}', env={"DOCTOR_TOKEN": SECRET}, expect=0)


# ---------------------------------------------------------------- authenticators
def test_token_files(write, http_sink, tmp_path):
    sink = http_sink(lambda s, n: (200 if s.requests[n]["headers"].get("authorization") == f"Bearer {SECRET}" else 401, {}, b""))
    token = tmp_path / "token"
    path = write(config({"otlp_http": f'endpoint: "{sink.url}", auth: {{authenticator: bearertokenauth}}'},
                        extensions=f"{{bearertokenauth: {{filename: {token}}}}}", names="[bearertokenauth]"))
    _, found, _ = doctor("--config", path, expect=2)
    assert "cannot read it" in one(found, "extensions::bearertokenauth", "file", "fail")[4]
    assert "credentials" in one(found, "exporters::otlp_http", "export", "fail")[4]
    token.write_text("wrong-token-123\n")
    token.chmod(0o600)
    _, found, text = doctor("--config", path, expect=2)
    assert one(found, "extensions::bearertokenauth", "token")[0] == "ok" and "wrong-token" not in text
    assert "refused the credentials" in one(found, "exporters::otlp_http", "export", "fail")[4]
    token.write_text(SECRET)
    token.chmod(0o644)
    _, found, text = doctor("--config", path, expect=0)
    assert one(found, "extensions::bearertokenauth", "file", "warn")[5] == "chmod o-r" and SECRET not in text
    token.write_text("")
    _, found, _ = doctor("--config", path, expect=2)
    assert "empty" in one(found, "extensions::bearertokenauth", "file", "fail")[4]


def test_user_files(write, tmp_path):
    users = tmp_path / "users"
    path = write(config({"nop": ""}, extensions=f"{{basicauth: {{htpasswd: {{file: {users}}}}}}}", names="[basicauth]",
                        receivers=f'{{otlp: {{protocols: {{http: {{endpoint: "0.0.0.0:{free_port()}", auth: {{authenticator: basicauth}}}}}}}}}}'))
    _, found, _ = doctor("--config", path, expect=2)
    assert one(found, "extensions::basicauth", "file")[0] == "fail"
    users.write_text("motel:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n")
    users.chmod(0o600)
    _, found, _ = doctor("--config", path, expect=0)
    assert one(found, "extensions::basicauth", "users")[4] == "1 user may pass"
    assert one(found, "receivers::otlp", "address")[0] == "ok"      # the door is guarded


# ---------------------------------------------------------------- files, variables, limits
def test_console_inputs(write, tmp_path):
    (tmp_path / "a.log").write_text("x\n")
    os.mkfifo(tmp_path / "pipe")
    path = write(config({"nop": ""}, receivers=f"{{console: {{include: ['{tmp_path}/*.log'], pipes: ['{tmp_path}/pipe', '{tmp_path}/a.log', '{tmp_path}/none'], "
                                               f"storage_file: '{tmp_path}/places'}}}}"))
    _, found, _ = doctor("--config", path, expect=2)
    assert one(found, "receivers::console", "files")[4] == "1 file"
    assert [(f[0], f[3].rsplit("/", 1)[1]) for f in found if f[2] == "pipe"] == [("ok", "pipe"), ("fail", "a.log"), ("warn", "none")]
    assert one(found, "receivers::console", "file")[0] == "ok" and not (tmp_path / "places").exists()


def test_files(write, tmp_path):
    (tmp_path / "there.jsonl").write_text("data\n")
    _, found, _ = doctor("--config", write(config({
        "file/new": f"path: {tmp_path}/new.jsonl", "file/there": f"path: {tmp_path}/there.jsonl", "file/folder": f"path: {tmp_path}",
        "file/missing": f"path: {tmp_path}/a/b/c.jsonl", "file/made": f"path: {tmp_path}/a/b/c.jsonl, create_directory: true"})), expect=2)
    grades = {f[1]: f for f in found if f[2] == "file"}
    assert {k.split("/")[1]: v[0] for k, v in grades.items()} == {"new": "ok", "there": "ok", "folder": "fail", "missing": "fail", "made": "ok"}
    assert "emptied" in grades["exporters::file/there"][4] and "mkdir -p" in grades["exporters::file/missing"][5]
    assert (tmp_path / "there.jsonl").read_text() == "data\n" and not (tmp_path / "new.jsonl").exists() and not (tmp_path / "a").exists()


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv, to be another user")
def test_what_another_user_may_not_write():
    with tempfile.TemporaryDirectory(prefix="motel-doctor-") as name:
        place = pathlib.Path(name)
        place.chmod(0o755)
        program = place / "motel"                       # where nobody may reach it
        shutil.copy(MOTEL, program)
        program.chmod(0o755)
        (place / "storage").mkdir()
        (place / "own").mkdir()
        os.chown(place / "own", 65534, 65534)
        path = place / "config.yaml"
        path.write_text(config({"file": f"path: {place}/out.jsonl", "file/own": f"path: {place}/own/out.jsonl"},
                               extensions=f"{{file_storage: {{directory: {place}/storage}}}}", names="[file_storage]",
                               more=f"motel: {{spill_directory: {place}/spill, summary: {place}/summary.json}}"))
        _, found, _ = doctor("--config", path, program=program, expect=2, prefix=["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
        for component in ("exporters::file", "extensions::file_storage", "motel::spill_directory", "motel::summary"):
            f = [f for f in found if f[1] == component][0]
            assert f[0] == "fail" and "this user (uid 65534) cannot make files" in f[4] and "Permission denied" in f[4], found
        assert one(found, "exporters::file/own", "file")[0] == "ok"
        assert os.listdir(place / "own") == [] == os.listdir(place / "storage")


def test_variables(write):
    path = write(config({"otlp_http": f'endpoint: "http://127.0.0.1:{free_port()}", headers: {{Authorization: "Bearer ${{env:DOCTOR_TOKEN}}"}}'}))
    _, found, _ = doctor("--config", path, expect=2)
    assert one(found, "config", "variable")[:1] == ("warn",) and one(found, "config", "variable")[3] == "DOCTOR_TOKEN"
    _, found, _ = doctor("--config", path, env={"DOCTOR_TOKEN": ""}, expect=2)
    empty = one(found, "config", "variable")
    assert empty[0] == "warn" and empty[3] == "DOCTOR_TOKEN" and "is empty" in empty[4] and "headers::Authorization" in empty[4]
    _, found, text = doctor("--config", path, env={"DOCTOR_TOKEN": SECRET}, expect=2)
    assert not [f for f in found if f[2] == "variable"] and SECRET not in text


def test_limits(write):
    path = write(config({"nop": ""}))
    _, found, _ = doctor("--config", path, "--memory-limit", "100000GiB", expect=0)
    assert "memory_limit" in [f for f in found if f[3] == "memory"][0][4]
    _, found, _ = doctor("--config", path, expect=0, prefix=["sh", "-c", 'ulimit -n 256; exec "$0" "$@"'])
    assert [f for f in found if f[3] == "open files"][0][0] == "warn"
