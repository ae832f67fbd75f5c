"""Authentication: who may send to the program, and what the program sends to backends that ask for credentials."""
import base64
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from conftest import HERE, MOTEL, REFERENCE, ROOT, decode, free_port, parse, post, span_request, wait_until

BEARER = "extensions: {bearertokenauth: {token: first-sekret}}"
# bob's password is "correct horse", carol's "open sesame", dave's "apache word" (MD5 of htpasswd)
BASIC = """
extensions:
  basicauth:
    htpasswd:
      inline: |
        bob:$$2y$$04$$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e
        carol:open sesame
"""
SETTINGS = {"bearertokenauth": BEARER, "basicauth": BASIC}
GOLDEN = os.path.join(ROOT, "tests", "golden", "auth", "refusals.json")
GRPC_METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def server(extensions, grpc, http, metrics=None, authenticator=None, more=""):
    """Both protocols behind the one authenticator; spans go to spans.jsonl."""
    name = authenticator or ("basicauth" if "basicauth" in extensions else "bearertokenauth")
    page = f"{{readers: [{{pull: {{exporter: {{prometheus: {{host: 127.0.0.1, port: {metrics}}}}}}}}}]}}" if metrics else "{level: none}"
    return f"""
{extensions}
receivers:
  otlp:
    protocols:
      grpc: {{endpoint: "127.0.0.1:{grpc}", auth: {{authenticator: {name}}}{more}}}
      http: {{endpoint: "127.0.0.1:{http}", auth: {{authenticator: {name}}}{more}}}
exporters: {{file: {{path: spans.jsonl}}}}
service:
  extensions: [{name}]
  telemetry: {{metrics: {page}, logs: {{level: debug}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [file]}}}}
"""


def client(port, exporter, extensions, level="debug"):
    """OTLP/HTTP in without authentication, out through an exporter that has it."""
    names = [line.split(":")[0].strip() for line in extensions.splitlines()[1:] if line.startswith("  ") and not line.startswith("   ")]
    return f"""
{extensions}
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters:
  {exporter}
service:
  extensions: [{", ".join(names)}]
  telemetry: {{metrics: {{level: none}}, logs: {{level: {level}}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [{exporter.split(":")[0]}]}}}}
"""


def spans_of(program):
    return sum(len(s["spans"]) for line in program.json_lines("spans.jsonl") for r in line["resourceSpans"] for s in r["scopeSpans"])


def grpc_call(port, metadata, n=1, credentials=None):
    """(code, message) of one Export call."""
    import grpc
    from google.protobuf import json_format
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace
    request = json_format.ParseDict({}, trace.ExportTraceServiceRequest())
    for i in range(n):
        request.resource_spans.add().scope_spans.add().spans.add(name=f"s{i}", trace_id=bytes([1] * 16), span_id=bytes([2] * 8))
    channel = grpc.secure_channel(f"127.0.0.1:{port}", credentials) if credentials else grpc.insecure_channel(f"127.0.0.1:{port}")
    with channel:
        call = channel.unary_unary(GRPC_METHOD, request_serializer=lambda m: m.SerializeToString(), response_deserializer=trace.ExportTraceServiceResponse.FromString)
        try:
            call(request, metadata=metadata, timeout=30)
            return 0, ""
        except grpc.RpcError as e:
            return e.code().value[0], e.details()


def post_or_cut(*args, **kw):
    """Like post(); None when the server closed while the request was still on its way."""
    try:
        return post(*args, **kw)
    except OSError:
        return None


def good_header(name):
    return "Bearer first-sekret" if name == "bearertokenauth" else basic("bob", "correct horse")


# ---------------------------------------------------------------- servers
@pytest.mark.parametrize("name", SETTINGS)
def test_who_may_send(start, name):
    grpc, http, metrics = free_port(), free_port(), free_port()
    program = start(server(SETTINGS[name], grpc, http, metrics), wait_ports=[grpc, http, metrics])
    good, wrong = good_header(name), good_header(name)[:-3] + "AAA"
    for header in (None, wrong, wrong, "Nonsense"):
        status, headers, body = post(http, "traces", span_request(1), headers={"Authorization": header} if header else {})
        assert status == 401 and json.loads(body)["code"] == 16, body
        assert headers["Www-Authenticate"].split()[0] == ("Bearer" if name == "bearertokenauth" else "Basic")
        assert grpc_call(grpc, [("authorization", header)] if header else [])[0] == 16
    for _ in range(2):
        assert post(http, "traces", span_request(1), headers={"Authorization": good})[0] == 200
        assert grpc_call(grpc, [("authorization", good)]) == (0, "")
    # either protocol on the port of the other has to show the same
    assert post(grpc, "traces", span_request(1))[0] == 401
    assert post(grpc, "traces", span_request(1), headers={"Authorization": good})[0] == 200
    assert grpc_call(http, [])[0] == 16
    wait_until(lambda: spans_of(program) == 5, what="the spans of those who may")
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics", timeout=10) as r:
        page = r.read().decode()
    counted = {line.split('transport="')[1].split('"')[0]: line.rsplit(" ", 1)[1] for line in page.splitlines() if line.startswith("motel_server_unauthenticated")}
    assert counted == {"http": "5", "grpc": "5"}, page
    assert program.stop() == 0
    secret = "first-sekret" if name == "bearertokenauth" else "open sesame"
    assert "Requests without valid credentials are refused" in program.stderr
    for text in (secret, good.split()[1], wrong.split()[1]):
        assert text not in program.stderr + page


def test_a_body_of_a_stranger_is_not_read(start):
    """A refused request with a large body costs the connection or a bounded read, and the next client is served."""
    grpc, http = free_port(), free_port()
    program = start(server(BEARER, grpc, http), wait_ports=[grpc, http])
    body = b"x" * (30 << 20)
    answer = post_or_cut(http, "traces", body, content_type="application/x-protobuf")
    assert answer is None or answer[0] == 401
    assert post(http, "traces", span_request(1), headers={"Authorization": good_header("bearertokenauth")})[0] == 200
    assert program.stop() == 0


def test_slow_passwords_with_large_first_requests(start):
    """Until a slow comparison has ended, no more than a part of a request is taken: 503, and the next try passes."""
    grpc, http = free_port(), free_port()
    program = start(server(BASIC, grpc, http), wait_ports=[grpc, http])
    request = span_request(1)
    request["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["name"] = "n" * (2 << 20)
    header = {"Authorization": good_header("basicauth")}
    answer = post_or_cut(http, "traces", request, headers=header)
    assert answer is None or (answer[0] == 503 and answer[1]["Retry-After"] == "1")
    assert post(http, "traces", span_request(1), headers=header)[0] == 200
    assert post(http, "traces", request, headers=header)[0] == 200
    assert program.stop() == 0
    assert spans_of(program) == 2


def test_clients_that_leave_while_they_are_checked(start):
    """Also in the middle of the body, so that nobody ever asks for the outcome."""
    grpc, http = free_port(), free_port()
    program = start(server(BASIC, grpc, http), wait_ports=[grpc, http])
    for i in range(40):
        with socket.create_connection(("127.0.0.1", http), 30) as s:
            s.sendall(f"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {2 + i % 2}\r\n"
                      f"Authorization: {basic('bob', f'guess {i}')}\r\n\r\n{{}}".encode())
    header = {"Authorization": good_header("basicauth")}
    wait_until(lambda: post(http, "traces", span_request(1), headers=header)[0] == 200, what="room for one who stays")
    assert program.stop() == 0


def test_tokens_of_a_file_that_changes(start, tmp_path):
    """Swapped as mounted secrets are: the folder behind a symbolic link."""
    for name, text in (("one", "old-sekret # comment\nsecond-sekret\n"), ("two", "new-sekret\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "token").write_text(text)
    os.symlink("one", tmp_path / "data")
    os.symlink("data/token", tmp_path / "token")
    grpc, http = free_port(), free_port()
    program = start(server(f"extensions: {{bearertokenauth: {{filename: {tmp_path}/token}}}}", grpc, http), wait_ports=[grpc, http])

    def answers(*tokens):
        return [post(http, "traces", span_request(1), headers={"Authorization": f"Bearer {t}"})[0] for t in tokens]
    assert answers("old-sekret", "second-sekret", "new-sekret") == [200, 200, 401]
    os.symlink("two", tmp_path / "data.new")
    os.rename(tmp_path / "data.new", tmp_path / "data")
    assert answers("old-sekret", "second-sekret", "new-sekret") == [401, 401, 200]
    os.unlink(tmp_path / "two" / "token")
    assert answers("new-sekret") == [200]
    assert program.stop() == 0
    assert "sekret" not in program.stderr and "keeping last value" in program.stderr


def test_passwords_of_a_file_that_changes(start, tmp_path):
    (tmp_path / "users").write_text("carol:open sesame\n")
    grpc, http = free_port(), free_port()
    program = start(server(f"extensions: {{basicauth: {{htpasswd: {{file: {tmp_path}/users}}}}}}", grpc, http), wait_ports=[grpc, http])

    def answer(password):
        return post(http, "traces", span_request(1), headers={"Authorization": basic("carol", password)})[0]
    assert [answer("open sesame"), answer("another")] == [200, 401]
    (tmp_path / "users").write_text("carol:another\n")
    assert [answer("open sesame"), answer("another")] == [401, 200]
    assert program.stop() == 0


def test_reload_with_another_token(start):
    grpc, http = free_port(), free_port()
    program = start(server(BEARER, grpc, http), wait_ports=[grpc, http])

    def answer(token):
        return post(http, "traces", span_request(1), headers={"Authorization": f"Bearer {token}"})[0]
    assert [answer("first-sekret"), answer("next-sekret")] == [200, 401]
    with open(program.config_path, "w", encoding="utf-8") as f:
        f.write(server(BEARER.replace("first", "next"), grpc, http))
    program.process.send_signal(signal.SIGHUP)
    header = {"Authorization": "Bearer next-sekret"}
    wait_until(lambda: (post_or_cut(http, "traces", span_request(1), headers=header) or (0,))[0] == 200, what="the new token in force")
    assert answer("first-sekret") == 401
    assert grpc_call(grpc, [("authorization", "Bearer next-sekret")]) == (0, "")
    assert program.stop() == 0
    assert "sekret" not in program.stderr


@pytest.mark.parametrize("name", SETTINGS)
def test_health_check(start, name):
    grpc, http, health = free_port(), free_port(), free_port()
    text = server(SETTINGS[name], grpc, http).replace("receivers:", f"  health_check: {{endpoint: '127.0.0.1:{health}', auth: {{authenticator: {name}}}}}\nreceivers:", 1)
    text = text.replace("extensions: {bearertokenauth: {token: first-sekret}}", "extensions:\n  bearertokenauth: {token: first-sekret}")
    start(text.replace(f"extensions: [{name}]", f"extensions: [health_check, {name}]"), wait_ports=[grpc, http, health])

    def get(**headers):
        return post(health, "", "", headers=headers, path="/", method="GET")
    status, headers, body = get()
    assert (status, headers["Content-Type"]) == (401, "text/plain; charset=utf-8")
    assert body in (b"missing or empty authorization header: Authorization\n", b"no basic auth provided\n")
    assert get(Authorization=good_header(name))[0] == 200
    assert get(Authorization=good_header(name) + "x")[0] == 401


def replay(row, ports):
    if row["via"] == "grpc":
        code, message = grpc_call(ports["grpc"], [("authorization", row["authorization"])] if row["authorization"] is not None else [])
        return {"code": code, "message": message}
    headers = {"Authorization": row["authorization"]} if row["authorization"] is not None else {}
    status, got, body = post(ports["http"], "traces", b"{}", content_type=row["type"], headers=headers, path=row["path"])
    return {"status": status, "type": got["Content-Type"], "body": json.loads(body) if "json" in got["Content-Type"] else base64.b64encode(body).decode()}


@pytest.mark.parametrize("name", SETTINGS)
def test_refusals_read_as_the_references(start, name):
    ports = {"grpc": free_port(), "http": free_port()}
    start(server(SETTINGS[name], ports["grpc"], ports["http"]), wait_ports=ports.values())
    with open(GOLDEN, encoding="utf-8") as f:
        rows = [r for r in json.load(f) if r["authenticator"] == name]
    assert len(rows) > 10
    for row in rows:
        assert replay(row, ports) == row["want"], row


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_python_sdk(start, protocol):
    """The SDK with a token, without, and with a wrong one: only the first leaves spans."""
    ports = {"grpc": free_port(), "http": free_port()}
    program = start(server(BEARER, ports["grpc"], ports["http"]), wait_ports=ports.values())
    for headers in ("", "authorization=Bearer%20wrong", "authorization=Bearer%20first-sekret"):
        env = {**os.environ, "OTEL_EXPORTER_OTLP_HEADERS": headers}
        subprocess.run([sys.executable, os.path.join(HERE, "sdk_client.py"), protocol, "none", f"http://127.0.0.1:{ports[protocol]}"], env=env,
                       check=True, timeout=180, capture_output=True)
    wait_until(lambda: spans_of(program) == 3, what="the spans of one client")
    assert program.stop() == 0
    assert spans_of(program) == 3


def test_curl(start):
    grpc, http = free_port(), free_port()
    start(server(BASIC, grpc, http), wait_ports=[grpc, http])

    def curl(*args):
        return subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-H", "Content-Type: application/json", "-d", "{}", *args,
                               f"http://127.0.0.1:{http}/v1/traces"], check=True, capture_output=True, text=True, timeout=60).stdout
    assert [curl(), curl("-u", "carol:open sesame"), curl("-u", "bob:wrong"), curl("-u", "bob:correct horse")] == ["401", "200", "401", "200"]


# ---------------------------------------------------------------- mistakes in the configuration
@pytest.mark.parametrize("change, words", [
    (("extensions: [bearertokenauth]", "extensions: []"), 'failed to resolve authenticator "bearertokenauth": authenticator not found'),
    (("auth: {authenticator: bearertokenauth}", "auth: {authenticator: nobody/x}"), 'failed to resolve authenticator "nobody/x": authenticator not found'),
    (("auth: {authenticator: bearertokenauth}", "auth: {}"), 'failed to resolve authenticator "": authenticator not found'),
])
def test_unknown_authenticators(start, change, words):
    grpc, http = free_port(), free_port()
    program = start(server(BEARER, grpc, http).replace(*change))
    wait_until(lambda: not program.alive(), what="the end")
    assert program.process.returncode == 1
    assert f'failed to create "otlp" receiver: {words}' in program.stderr, program.stderr


@pytest.mark.parametrize("change, words", [
    (("extensions: [bearertokenauth]", "extensions: []"), '::auth: failed to create "otlp" receiver: failed to resolve authenticator "bearertokenauth"'),
    (("auth: {authenticator: bearertokenauth}", "auth: {authenticator: nobody/x}"), 'failed to resolve authenticator "nobody/x": authenticator not found'),
    (("auth: {authenticator: bearertokenauth}", "auth: {}"), 'failed to resolve authenticator "": authenticator not found'),
    (("file: {path: spans.jsonl}", "otlp_http: {endpoint: 'http://h', auth: {authenticator: nobody}}"),
     'exporters::otlp_http::auth: failed to create "otlp_http" exporter: failed to resolve authenticator "nobody"'),
    (("file: {path: spans.jsonl}", "otlp_grpc: {endpoint: 'http://h:1', auth: {authenticator: bearertokenauth}}"), "the credentials require transport level security"),
])
def test_validate_finds_wrong_authenticators(tmp_path, change, words):
    text = server(BEARER, 1, 2)
    assert change[0] in text
    (tmp_path / "c.yaml").write_text(text.replace(*change).replace("exporters: [file]", "exporters: [otlp_http]" if "otlp_http" in change[1] else
                                                                   "exporters: [otlp_grpc]" if "otlp_grpc" in change[1] else "exporters: [file]"))
    r = subprocess.run([MOTEL, "validate", "--config", str(tmp_path / "c.yaml")], capture_output=True, text=True, timeout=60)
    assert r.returncode == 1 and words in r.stderr, r.stderr


def test_wrong_kind_of_authenticator(start):
    grpc, http = free_port(), free_port()
    program = start(server("extensions: {basicauth: {client_auth: {username: a, password: b}}}", grpc, http))
    wait_until(lambda: not program.alive(), what="the end")
    assert "requested authenticator is not a server authenticator" in program.stderr, program.stderr


def test_grpc_credentials_need_tls(start):
    program = start(client(free_port(), 'otlp_grpc: {endpoint: "127.0.0.1:1", tls: {insecure: true}, auth: {authenticator: bearertokenauth}}',
                           "extensions:\n  bearertokenauth: {token: first-sekret}"))
    wait_until(lambda: not program.alive(), what="the end")
    assert "the credentials require transport level security" in program.stderr
    assert "first-sekret" not in program.stderr


def test_print_config_hides_credentials(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("extensions:\n  bearertokenauth: {tokens: [first-sekret, second-sekret]}\n  bearertokenauth/b: {token: third-sekret}\n"
                    "  basicauth: {htpasswd: {inline: 'a:fourth-sekret'}}\n  basicauth/c: {client_auth: {username: u, password: fifth-sekret}}\n"
                    "receivers: {nop: }\nexporters: {nop: }\nservice: {pipelines: {traces: {receivers: [nop], exporters: [nop]}}}\n")
    done = subprocess.run([MOTEL, "print-config", "--config", str(path)], capture_output=True, text=True, check=True, timeout=60)
    assert "sekret" not in done.stdout + done.stderr
    assert done.stdout.count("[REDACTED]") >= 5, done.stdout


def test_a_server_that_is_open_says_so(start):
    port, closed, grpc = free_port(), free_port(), free_port()
    text = f"""
extensions: {{bearertokenauth: {{token: first-sekret}}}}
receivers:
  otlp: {{protocols: {{http: {{endpoint: "0.0.0.0:{port}"}}, grpc: {{endpoint: "127.0.0.1:{grpc}"}}}}}}
  otlp/closed: {{protocols: {{http: {{endpoint: "0.0.0.0:{closed}", auth: {{authenticator: bearertokenauth}}}}}}}}
exporters: {{nop: }}
service:
  extensions: [bearertokenauth]
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp, otlp/closed], exporters: [nop]}}}}
"""
    program = start(text, wait_ports=[port, closed, grpc])
    assert program.stop() == 0
    lines = [line for line in program.stderr.splitlines() if "asks for no credentials" in line]
    assert len(lines) == 1 and f":{port}" in lines[0], program.stderr


# ---------------------------------------------------------------- clients
def send_one(port, sink):
    """A request through the program to the backend."""
    n = len(sink.requests)
    assert post(port, "traces", span_request(1))[0] == 200
    wait_until(lambda: len(sink.requests) == n + 1)


def replace_token(folder, text):
    (folder / "next").write_text(text)
    os.rename(folder / "next", folder / "token")


def test_http_credentials_are_read_for_every_request(start, http_sink, tmp_path):
    (tmp_path / "token").write_text("old-sekret\n")
    sink, port = http_sink(), free_port()
    program = start(client(port, f"otlp_http: {{endpoint: '{sink.url}', headers: {{authorization: Bearer config-sekret, x-other: kept}}, "
                                 "auth: {authenticator: bearertokenauth}}",
                           f"extensions:\n  bearertokenauth: {{filename: {tmp_path}/token}}"), wait_ports=[port])
    send_one(port, sink)
    replace_token(tmp_path, "new-sekret\n")
    send_one(port, sink)
    assert [r["headers"]["authorization"] for r in sink.requests] == ["Bearer old-sekret", "Bearer new-sekret"]
    assert all(r["headers"]["x-other"] == "kept" for r in sink.requests)
    assert program.stop() == 0
    assert "sekret" not in program.stderr


def test_data_waits_for_the_token(start, http_sink, tmp_path):
    """Without the file nothing is sent and nothing lost; when it comes, all goes out."""
    sink, port = http_sink(), free_port()
    program = start(client(port, f"otlp_http: {{endpoint: '{sink.url}', retry_on_failure: {{initial_interval: 50ms, max_interval: 50ms}}, "
                                 "auth: {authenticator: bearertokenauth}}",
                           f"extensions:\n  bearertokenauth: {{filename: {tmp_path}/token}}"), wait_ports=[port])
    assert post(port, "traces", span_request(1))[0] == 200
    wait_until(lambda: "failed to get credentials: no bearer token" in program.stderr, what="the reason in the log")
    assert not sink.requests
    replace_token(tmp_path, "late-sekret")
    wait_until(lambda: sink.requests, what="the request")
    assert sink.requests[0]["headers"]["authorization"] == "Bearer late-sekret"
    assert program.stop() == 0


def test_a_backend_that_quotes_the_token(start, http_sink):
    """google.rpc.Status {code 16, message}: the log has the message without the token."""
    quoted = b"no room for first-sekret here"
    sink = http_sink(lambda s, n: (401, {"Content-Type": "application/x-protobuf"}, b"\x08\x10\x12" + bytes([len(quoted)]) + quoted))
    port = free_port()
    program = start(client(port, f"otlp_http: {{endpoint: '{sink.url}', sending_queue: {{enabled: false}}, auth: {{authenticator: bearertokenauth}}}}",
                           "extensions:\n  bearertokenauth: {token: first-sekret}"), wait_ports=[port])
    status, _, body = post(port, "traces", span_request(1))
    assert status == 401 and b"no room for ************ here" in body, body
    assert program.stop() == 0
    assert "first-sekret" not in program.stderr


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Key and certificate for 127.0.0.1, which signs itself."""
    folder = tmp_path_factory.mktemp("certificate")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-addext", "basicConstraints=critical,CA:TRUE"], check=True, cwd=folder, capture_output=True)
    return folder


def test_grpc_metadata_of_every_call(start, grpc_sink, certificate, tmp_path):
    import grpc
    (tmp_path / "word").write_text("one\n")
    credentials = grpc.ssl_server_credentials([((certificate / "key.pem").read_bytes(), (certificate / "cert.pem").read_bytes())])
    sink, port = grpc_sink(credentials=credentials), free_port()
    program = start(client(port, f"otlp_grpc: {{endpoint: '127.0.0.1:{sink.port}', tls: {{ca_file: {certificate}/cert.pem}}, "
                                 "headers: {Authorization: Bearer config-sekret, x-other: kept}, auth: {authenticator: basicauth}}",
                           f"extensions:\n  basicauth: {{client_auth: {{username: u, password_file: {tmp_path}/word}}}}"), wait_ports=[port])
    send_one(port, sink)
    (tmp_path / "word").write_text("two\n")
    send_one(port, sink)
    assert [r["metadata"]["authorization"] for r in sink.requests] == [basic("u", "one"), basic("u", "two")]
    assert all(r["metadata"]["x-other"] == "kept" for r in sink.requests)
    assert program.stop() == 0


# ---------------------------------------------------------------- with the reference collector
def reference_has(name):
    if not REFERENCE:
        return False
    done = subprocess.run([REFERENCE, "components"], capture_output=True, text=True, check=False, timeout=60)
    return name in done.stdout


CLIENTS = {"bearertokenauth": "extensions:\n  bearertokenauth: {token: first-sekret}",
           "basicauth": "extensions:\n  basicauth: {client_auth: {username: bob, password: correct horse}}"}


@pytest.mark.reference
@pytest.mark.parametrize("exporter", ["otlp_http", "otlp_grpc"])
@pytest.mark.parametrize("ours", ["client", "server"])
@pytest.mark.parametrize("name", SETTINGS)
def test_with_the_reference(start, reference, certificate, name, ours, exporter):
    """Ours sends to the reference's server, and the other way around, with good credentials and with bad ones."""
    if not reference_has(name):
        pytest.skip(f"the reference collector has no {name}")
    grpc, http = free_port(), free_port()
    tls = f", tls: {{cert_file: {certificate}/cert.pem, key_file: {certificate}/key.pem}}"
    one, other = (start, reference) if ours == "server" else (reference, start)
    receiver = one(server(SETTINGS[name], grpc, http, more=tls), wait_ports=[grpc, http])
    target = f"'https://127.0.0.1:{http}'" if exporter == "otlp_http" else f"'127.0.0.1:{grpc}'"
    keys = f"endpoint: {target}, tls: {{ca_file: {certificate}/cert.pem}}, sending_queue: {{enabled: false}}, auth: {{authenticator: {name}}}"
    for extensions, status in ((CLIENTS[name], 200), (CLIENTS[name].replace("sekret", "wrong").replace("horse", "cow"), 401)):
        port = free_port()
        other(client(port, f"{exporter}: {{{keys}}}", extensions), wait_ports=[port])
        got = post(port, "traces", span_request(1))
        assert got[0] == status, (got, receiver.stderr[-3000:])
    wait_until(lambda: spans_of(receiver) == 1, what="the span of who may send")
