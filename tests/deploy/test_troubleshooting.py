"""The troubleshooting page quotes what the program says: every text exists in the sources, and the usual ones are seen in a run."""
import functools
import glob
import os
import re
import socket
import subprocess
import threading
import urllib.error
import urllib.request

import pytest

from sample_checks import motel
from samples import read
from support import ROOT, e2e

PAGE = "docs/troubleshooting.md"
SPAN = (b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174",'
        b'"name": "a"}]}]}]}')


@functools.cache
def source_texts():
    """Every text of the program, with its escapes resolved and its pieces joined, as one; conversions stand as they are."""
    texts = []
    for folder in ("agent", "proto", "ottl", "receivers", "processors", "connectors", "exporters", "extensions"):
        for path in glob.glob(os.path.join(ROOT, folder, "**", "*.[ch]"), recursive=True):
            with open(path, encoding="utf-8") as f:
                code = re.sub(r"/\*.*?\*/|'\"'", "", f.read(), flags=re.S)
            for literals in re.findall(r'(?:"(?:[^"\\\n]|\\.)*"\s*)+', code):
                texts.append("".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', literals)))
    return "\n".join(t.replace('\\"', '"') for t in texts)


def quoted():
    """The messages of the page: code in the first column of its tables, but for commands and what a person would type."""
    for row in re.findall(r"^\| (.*?) \| ", read(PAGE), re.M):
        for span in re.findall(r"`([^`]+)`", row):
            if not span.startswith("motel "):
                yield span


MESSAGES = sorted(set(quoted()))


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_exists(message):
    numbers = re.sub(r"(Status Code) \d+$", r"\1 ", message)
    for part in re.split(r"…|(?<=code = )\w+$", numbers):
        assert part.strip() in source_texts(), f"{part!r} of {message!r} is in no source"


def test_the_page_has_messages():
    assert len(MESSAGES) > 80
    with pytest.raises(AssertionError):
        test_a_message_exists("bind: address is in use already")


def on_the_page(text):
    """The message of the page that a text of the program is an example of."""
    for message in MESSAGES:
        if re.search(re.escape(message).replace("…", ".*"), text):
            yield message


def seen(text, *messages):
    """Fails unless a text of the program shows each of the messages, and the page has them."""
    for message in messages:
        assert message in MESSAGES, f"the page does not have {message!r}"
        assert message in set(on_the_page(text)), f"{message!r} is not in:\n{text}"


def logged(p, *messages):
    """The same of the log of a program that runs, which may take a moment."""
    for message in messages:
        assert message in MESSAGES, f"the page does not have {message!r}"
        e2e.wait_until(lambda: message in set(on_the_page(p.stderr.replace('\\"', '"'))), what=f"{message!r} in:\n{p.stderr}\n")


BASE = """
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:%d"}}}}
processors: {batch: , memory_limiter: {check_interval: 1s, limit_mib: 1}}
exporters:
  otlp_http: {endpoint: "${env:BACKEND:-http://127.0.0.1:1}"}
  otlp_grpc: {endpoint: "${env:GRPC_BACKEND:-127.0.0.1:1}"}
  file: {path: "${env:OUT:-out.jsonl}"}
service: {telemetry: {metrics: {level: none}}, pipelines: {traces: {receivers: [otlp], exporters: [otlp_http]}}}
motel: {shutdown_timeout: 1s}
"""


def post(port, path="/v1/traces", data=SPAN, headers=None, scheme="http"):
    request = urllib.request.Request(f"{scheme}://127.0.0.1:{port}{path}", data, {"Content-Type": "application/json", **(headers or {})})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode("utf-8", "replace")
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode("utf-8", "replace")


def only_head(port, length):
    """The answer to the head of a request whose body is too large to be sent."""
    with socket.create_connection(("127.0.0.1", port), 60) as s:
        s.sendall(f"POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n".encode())
        answer = b""
        while piece := s.recv(65536):
            answer += piece
    return int(answer.split()[1]), answer.decode("utf-8", "replace")


@pytest.fixture
def running(start):
    """running(set…) starts motel with BASE and some --set; gives the process and its port."""
    def run(*sets, env=None, config=BASE, **kw):
        port = e2e.free_port()
        return start(config % port, args=[w for s in sets for w in ("--set", s)], env=env, wait_ports=[port], **kw), port
    return run


def wait_for(p, text):
    e2e.wait_until(lambda: text in p.stderr, what=f"{text!r} in:\n{p.stderr}\n")


MISTAKES = [
    ("exporters: {otlp_http: {endpoit: a, timeot: 1s}}", ['unknown key "…"; did you mean "…"?', "the configuration has these mistakes:"]),
    ("exporters: {elasticsearch: }", ['… type "…" is not supported by this build (supported: …)']),
    ("exporters: {otlp_htp: {endpoint: 'http://a'}}", ['unknown type: "…" for id: "…"']),
    ("service::pipelines::traces::exporters: [otlp_http/b]", ['references … "…" which is not configured']),
    ("processors::batch::metadata_keys: [a]", ["not supported: …"]),
    ("processors::batch::send_batch_size: '5'", ["expected …, got …"]),
    ("exporters: {a: ", ["not valid YAML"]),
    ("exporters::otlp_http::endpoint: '${X:-a}'", ['"…" has no scheme: write "env:…"']),
    ("telemetry: {enabled: true}", ["unknown section; a NeMo Gym config is given with --gym-config"]),
    ("{processors: {transform: {trace_statements: ['set(name']}}, service::pipelines::traces::processors: [transform]}",
     ["unable to parse OTTL …", "invalid syntax at …"]),
    ("receivers: {otlp/b: }", ["must specify at least one protocol when using the OTLP receiver"]),
    ("exporters::otlp_http::endpoint: '${env:NOT_SET_AT_ALL}'", ["at least one endpoint must be specified"]),
    ("exporters::otlp_http: {endpoint: '', logs_endpoint: 'http://a:1'}", ["either endpoint or … must be specified"]),
    ("exporters::otlp_http::endpoint: 'backend:4318'", ["endpoint must be a valid URL: expected …"]),
    ("processors::resource::attributes: [{key: a, value: '${env:NOT_SET_AT_ALL}', action: upsert}]", ['the variable of "value" is not set or empty; …']),
    ("extensions: {file_storage: {directory: /no/such/folder}}", ["directory must exist: stat …: no such file or directory"]),
]


@pytest.mark.parametrize("more, messages", MISTAKES, ids=[m[1][0] for m in MISTAKES])
def test_a_mistake_in_the_configuration(more, messages):
    run = motel("validate", "--config", "yaml:" + BASE % 4318, "--config", "yaml:" + more)
    assert run.returncode == 1
    seen(run.stderr, *messages)


def test_a_file_that_is_not_there():
    seen(motel("validate", "--config", "/no/such/file.yaml").stderr, 'cannot read the file "…": …')
    seen(motel("validate").stderr, "at least one config flag must be provided")


def test_a_port_that_is_taken(running, tmp_path):
    _, port = running()
    run = motel("--config", "yaml:" + BASE % port, folder=tmp_path)
    assert run.returncode == 1
    seen(run.stderr, "bind: address already in use")


def test_a_file_that_cannot_be_opened(tmp_path):
    run = motel("--config", "yaml:" + BASE % e2e.free_port(), "--set", "service.pipelines.traces.exporters=[file]", env={"OUT": "/no/such/folder/a"},
                folder=tmp_path)
    assert run.returncode == 1
    seen(run.stderr, 'cannot open "…": …')


def test_warnings_at_the_start(running):
    p, _ = running("exporters.otlp_http.headers={a: '${env:NOT_SET_AT_ALL}', authorization: 'Bearer ${env:SHORT}'}",
                   env={"SHORT": "abc", "MOTEL_REDACTT": "1"})
    logged(p, 'the environment variable "…" is not set, so this is empty', "the value of … is too short to be blanked out of logs and output",
         "the environment variable … is not known to motel")


def test_a_queue_on_disk_beside_one_in_memory(running, tmp_path):
    p, _ = running(f"extensions.file_storage={{directory: {tmp_path}}}", "service.extensions=[file_storage]",
                   "exporters.otlp_http.sending_queue.storage=file_storage", "service.pipelines.traces.processors=[batch]",
                   "service.pipelines.traces.exporters=[otlp_http, otlp_grpc]")
    logged(p, "Data is acknowledged before it is on disk, because not all exporters of the pipeline have a sending_queue with storage")


def test_answers_to_clients(running):
    _, port = running()
    for got, status, message in (
            (post(port, "/v1/tracez"), 404, "404 page not found"),
            (post(port, "/v1/logs"), 404, "404 page not found"),
            (post(port, data=None), 405, "405 method not allowed, supported: [POST]"),
            (post(port, headers={"Content-Type": "text/plain"}), 415,
             "415 unsupported media type, supported: [application/json, application/x-protobuf]"),
            (post(port, headers={"Content-Encoding": "br"}), 400, "unsupported Content-Encoding: …"),
            (post(port, data=b"asdasd", headers={"Content-Type": "application/x-protobuf"}), 400, "invalid protobuf at byte …"),
            (only_head(port, 20971521), 400, "http: request body too large")):
        assert got[0] == status
        seen(got[1], message)


def test_credentials_of_clients(running):
    p, port = running("extensions.bearertokenauth.token=a-token-of-a-test", "service.extensions=[bearertokenauth]",
                      "receivers.otlp.protocols.http.auth.authenticator=bearertokenauth")
    assert post(port)[0] == 401
    logged(p, "Requests without valid credentials are refused")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 415])
def test_a_backend_that_says_no(running, http_sink, status):
    sink = http_sink(lambda s, n: (status, {"Content-Type": "text/plain"}, b"no"))
    p, port = running(env={"BACKEND": sink.url})
    assert post(port)[0] == 200
    logged(p, "Exporting failed. Dropping data.", f"responded with HTTP Status Code {status}")


@pytest.mark.parametrize("status", [429, 503])
def test_a_backend_that_is_busy(running, http_sink, status):
    sink = http_sink(lambda s, n: (status, {"Content-Type": "text/plain"}, b"no"))
    p, port = running(env={"BACKEND": sink.url})
    assert post(port)[0] == 200
    logged(p, "Exporting failed. Will retry the request after interval.", f"responded with HTTP Status Code {status}")


def test_a_backend_that_is_no_otlp(running, http_sink):
    sink = http_sink(lambda s, n: (200, {"Content-Type": "application/json"}, b"<html>"))
    p, port = running(env={"BACKEND": sink.url})
    post(port)
    logged(p, "error parsing … response: …")


def test_a_backend_that_is_not_there_until_the_stop(running):
    p, port = running("exporters.otlp_http.sending_queue={queue_size: 1, num_consumers: 1}")
    assert post(port)[0] == 200
    status, body = post(port)
    assert status == 503
    seen(body, "sending queue is full")
    logged(p, 'failed to make an HTTP request: Post "…": …', "Exporting failed. Rejecting data.")
    assert p.stop() == 0
    seen(p.stderr, "interrupted due to shutdown:", "Exporting failed. Dropping data.", "Summary: …")


def test_a_grpc_backend_that_is_not_there(running):
    p, port = running("service.pipelines.traces.exporters=[otlp_grpc]")
    post(port)
    logged(p, "Error while dialing: dial tcp …: connect: …", "code = Unavailable")


def test_what_stays_on_disk(running, tmp_path):
    p, port = running("motel.spill_directory=" + str(tmp_path / "spill"))
    post(port)
    wait_for(p, "Will retry")
    assert p.stop() == 0
    seen(p.stderr, "Not delivered: kept on disk for the next start")


def test_memory(running):
    p, port = running("service.pipelines.traces.processors=[memory_limiter]")
    status, body = post(port)
    assert status == 503
    seen(body, "data refused due to high memory usage")
    logged(p, "Memory is short. New data is refused until there is room.", "Memory usage is above soft limit. Refusing data.")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return e2e.self_signed(tmp_path_factory.mktemp("certificate"), "other")


def test_tls(running, certificate):
    tls = f"receivers.otlp.protocols.http.tls={{cert_file: {certificate}/cert.pem, key_file: {certificate}/key.pem}}"
    server, port = running(tls)
    assert post(port)[0] == 400
    logged(server, "A TLS handshake failed", "the client speaks plain text to a port with TLS")
    for sets, env, own, library in (
            ([], {"BACKEND": f"https://127.0.0.1:{port}"}, "TLS: …", "server certificate verification failed"),
            ([f"exporters.otlp_http.tls.ca_file={certificate}/cert.pem"], {"BACKEND": f"https://127.0.0.1:{port}"}, "TLS: …",
             "does not match"),
            (["service.pipelines.traces.exporters=[otlp_grpc]"], {"GRPC_BACKEND": f"127.0.0.1:{port}"},
             "authentication handshake failed: …", "The certificate is NOT trusted"),
            (["service.pipelines.traces.exporters=[otlp_grpc]", f"exporters.otlp_grpc.tls.ca_file={certificate}/cert.pem"],
             {"GRPC_BACKEND": f"127.0.0.1:{port}"}, "authentication handshake failed: …", "The name in the certificate does not match the expected")):
        client, inlet = running(*sets, env=env)
        post(inlet)
        logged(client, own)
        assert library in client.stderr and library in read(PAGE)
    plain, inlet = running()
    client, other = running(env={"BACKEND": f"https://127.0.0.1:{inlet}"})
    post(other)
    logged(plain, "A client speaks TLS to a port without TLS; its connections are closed")


def test_plain_text_to_a_backend_with_tls(running):
    """A server that reads the request as the beginning of TLS and hangs up, as most libraries do."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        def hang_up():
            for _ in range(2):
                client, _ = server.accept()
                client.recv(1)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                client.close()
        threading.Thread(target=hang_up, daemon=True).start()
        p, port = running(env={"BACKEND": f"http://127.0.0.1:{server.getsockname()[1]}"})
        post(port)
        wait_for(p, "Recv failure: Connection reset by peer")
    assert "Recv failure: Connection reset by peer" in read(PAGE)


SCRAPE = """
receivers: {prometheus: {config: {scrape_configs: [{job_name: a, scrape_interval: 100ms, static_configs: [{targets: ["127.0.0.1:%d"]}]}]}}}
exporters: {nop: }
service: {telemetry: {metrics: {level: none}}, pipelines: {metrics: {receivers: [prometheus], exporters: [nop]}}}
"""


def test_a_target_that_is_down(start):
    p = start(SCRAPE % e2e.free_port())
    logged(p, "Failed to scrape Prometheus endpoint")


def test_a_reload_with_a_mistake(running):
    p, _ = running()
    wait_for(p, "Everything is ready.")
    with open(p.config_path, "a", encoding="utf-8") as f:
        f.write("nonsense: {}\n")
    p.process.send_signal(1)
    logged(p, "Mistake in the configuration")
    assert p.alive()
