"""motel health: what it says and its exit code for every state of a collector, for anything else that answers, and for nothing."""
import os
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest

from conftest import MOTEL, free_port, post, self_signed, span_request, wait_until

BASE = """
receivers: {nop: }
exporters: {nop: }
extensions: {%s}
service:
  extensions: [%s]
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [nop], exporters: [nop]}}
"""


def config(health, more="", used=""):
    return BASE % (f"health_check: {health}{more}", f"{used}health_check")


def health(*args, env=None, **kw):
    done = subprocess.run([MOTEL, "health", *map(str, args)], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                          env={**os.environ, **(env or {})}, **kw)
    assert done.stdout.count("\n") <= 1, "one line"
    return done


def well(done, address):
    assert done.returncode == 0 and done.stderr == "", done
    assert done.stdout.startswith(f"healthy: {address} answers 200: Server available, up "), done.stdout
    return True


@pytest.fixture
def running(start):
    port = free_port()
    program = start(config(f"{{endpoint: '127.0.0.1:{port}', path: /live}}"))
    well(health(f"127.0.0.1:{port}/live", "--wait", "60s"), f"http://127.0.0.1:{port}/live")
    return program, port


def test_waits_for_a_start_and_says_that_it_is_healthy(running):
    program, port = running
    for address in (f"127.0.0.1:{port}/live", f"{port}/live", f"http://127.0.0.1:{port}/live"):
        well(health(address), f"http://127.0.0.1:{port}/live")
    well(health("--config", program.config_path), f"http://127.0.0.1:{port}/live")


def test_any_other_answer_is_not_healthy(running):
    _, port = running
    done = health(port)
    assert (done.returncode, done.stdout) == (1, f"not healthy: http://127.0.0.1:{port}/ answers 404: 404 page not found\n")


def test_after_the_stop_nothing_answers(running):
    program, port = running
    assert program.stop() == 0
    done = health(f"{port}/live")
    assert done.returncode == 1 and done.stderr == ""
    assert done.stdout.startswith(f"no answer: http://127.0.0.1:{port}/live: ") and "Connection refused" in done.stdout
    done = health(f"{port}/live", "--wait", "300ms")
    assert done.returncode == 1 and done.stdout.endswith("; asked for 300ms\n"), done.stdout


class Answerer:
    """Answers every connection with the next of some texts (the last one again and again); None = not at all."""

    def __init__(self, *answers, family=socket.AF_INET, address=("127.0.0.1", 0), context=None):
        self.answers, self.asked, self.kept = list(answers), [], []
        self.socket = socket.socket(family)
        self.socket.bind(address)
        self.socket.listen(16)
        self.context = context
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def port(self):
        return self.socket.getsockname()[1]

    def _serve(self):
        while True:
            try:
                c, _ = self.socket.accept()
            except OSError:
                return
            try:
                self._answer(self.context.wrap_socket(c, server_side=True) if self.context else c)
            except OSError:
                pass

    def _answer(self, c):
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.kept.append(c)
        if answer is None:
            return
        text = b""
        while b"\r\n\r\n" not in text:
            text += c.recv(4096)
        self.asked.append(text.decode())
        c.sendall(answer)
        c.close()

    def close(self):
        self.socket.close()
        for c in self.kept:
            c.close()


def reply(status, body=b"", headers=b""):
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n%s" % (status, len(body), headers, body)


@pytest.fixture
def answers():
    made = []

    def make(*args, **kw):
        made.append(Answerer(*args, **kw))
        return made[-1]
    yield make
    for m in made:
        m.close()


UNAVAILABLE = b'{"status":"Server not available","upSince":"0001-01-01T00:00:00Z","uptime":""}'


@pytest.mark.parametrize("answer, code, said", [
    (reply(b"200 OK"), 0, "healthy: %s answers 200"),
    (reply(b"204 No Content"), 0, "healthy: %s answers 204"),
    (reply(b"200 OK", b"fine\nreally\n"), 0, "healthy: %s answers 200: fine"),
    (reply(b"200 OK", b"\x1b[31mred\x07"), 0, "healthy: %s answers 200: ?[31mred?"),
    (reply(b"200 OK", "\x9b31m \u202e \u00fc".encode() + b"\x9b\xff"), 0, "healthy: %s answers 200: ?31m ? \u00fc??"),
    (reply(b"200 OK", b"{not json"), 0, "healthy: %s answers 200: {not json"),
    (reply(b"503 Service Unavailable", UNAVAILABLE), 1, "not healthy: %s answers 503: Server not available"),
    (reply(b"500 Internal Server Error"), 1, "not healthy: %s answers 500"),
    (reply(b"302 Found", b"", b"Location: http://127.0.0.1:1/\r\n"), 1, "not healthy: %s answers 302; redirects are not followed"),
    (reply(b"401 Unauthorized"), 1, "not healthy: %s answers 401; it asks for credentials: --header Authorization=..."),
    (b"SSH-2.0-OpenSSH\r\n", 1, "no answer: %s: "),
    (b"", 1, "no answer: %s: EOF (the server closed the connection without an answer)"),
], ids=lambda x: x.decode(errors="replace")[:30] if isinstance(x, bytes) else None)
def test_whatever_answers(answers, answer, code, said):
    server = answers(answer)
    done = health(server.port)
    assert done.returncode == code and done.stderr == "", done
    want = said % f"http://127.0.0.1:{server.port}/"
    assert done.stdout == want + "\n" or (want.endswith(": ") and done.stdout.startswith(want)), done.stdout
    assert server.asked[0].startswith("GET / HTTP/1.1\r\n")


def test_a_server_that_says_nothing(answers):
    server = answers(None)
    begun = time.monotonic()
    done = health(server.port, "--timeout", "300ms")
    assert (done.returncode, done.stdout) == (1, f"no answer: http://127.0.0.1:{server.port}/: nothing came within 300ms\n")
    assert time.monotonic() - begun >= 0.3
    done = health(server.port, "--timeout", "60s", "--wait", "400ms")
    assert (done.returncode, done.stdout) == (1, f"no answer: http://127.0.0.1:{server.port}/: nothing came within 400ms; asked for 400ms\n")


def test_waits_through_refusals_and_bad_answers(answers):
    server = answers(b"", reply(b"503 Service Unavailable", UNAVAILABLE), reply(b"503 Service Unavailable", UNAVAILABLE), reply(b"200 OK"))
    done = health(server.port, "--wait", "60s")
    assert (done.returncode, done.stdout) == (0, f"healthy: http://127.0.0.1:{server.port}/ answers 200\n")
    assert len(server.asked) == 4


def test_the_last_bad_answer_is_what_is_said(answers):
    server = answers(reply(b"503 Service Unavailable", UNAVAILABLE))
    done = health(server.port, "--wait", "200ms")
    assert done.returncode == 1
    assert done.stdout == f"not healthy: http://127.0.0.1:{server.port}/ answers 503: Server not available; asked for 200ms\n"


def test_proxies_of_the_environment_are_not_asked(answers):
    proxy, server = answers(reply(b"200 OK")), answers(reply(b"200 OK"))
    env = {"http_proxy": f"http://127.0.0.1:{proxy.port}", "HTTP_PROXY": f"http://127.0.0.1:{proxy.port}"}
    assert health("192.0.2.1:1", "--timeout", "500ms", env=env).returncode == 1
    assert health(server.port, env=env).returncode == 0
    assert not proxy.asked


def test_unix_socket(start, tmp_path):
    path = tmp_path / "h.sock"
    program = start(config(f"{{endpoint: '{path}', transport: unix, path: /live}}"))
    well(health("--config", program.config_path, "--wait", "60s"), f"unix:{path}")
    assert health(f"unix:{path}").stdout.startswith(f"not healthy: unix:{path} answers 404")
    done = health(f"unix:{tmp_path}/other.sock")
    assert done.returncode == 1 and done.stdout.startswith(f"no answer: unix:{tmp_path}/other.sock: "), done.stdout


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return self_signed(tmp_path_factory.mktemp("tls"), "elsewhere.example")


def test_tls(start, certificate):
    port = free_port()
    program = start(config(f"{{endpoint: '127.0.0.1:{port}', tls: {{cert_file: '{certificate}/cert.pem', key_file: '{certificate}/key.pem'}}}}"))
    url = f"https://127.0.0.1:{port}/"
    well(health("--config", program.config_path, "--wait", "60s"), url)
    well(health(url, "--insecure"), url)
    done = health(url)
    assert done.returncode == 1 and done.stdout.startswith(f"no answer: {url}: TLS: "), done.stdout
    assert health(port).returncode == 1, "plain text"


def test_credentials(start, tmp_path):
    port = free_port()
    program = start(config(f"{{endpoint: '127.0.0.1:{port}', auth: {{authenticator: bearertokenauth}}}}, bearertokenauth: {{token: '${{env:PROBE_TOKEN}}'}}",
                           used="bearertokenauth, "), env={"PROBE_TOKEN": "correct-horse"})
    env = {"PROBE_TOKEN": "correct-horse"}
    done = health("--config", program.config_path, "--wait", "60s", "--header", "Authorization=Bearer correct-horse", env=env)
    well(done, f"http://127.0.0.1:{port}/")
    done = health(port)
    assert done.returncode == 1 and f"not healthy: http://127.0.0.1:{port}/ answers 401" in done.stdout, done.stdout
    assert done.stdout.endswith("; it asks for credentials: --header Authorization=...\n"), done.stdout
    assert health(port, "--header", "Authorization=Bearer wrong-horse").returncode == 1


def test_passwords_of_the_address_are_not_shown(answers):
    server = answers(reply(b"200 OK"))
    done = health(f"http://probe:hunter22@127.0.0.1:{server.port}/x?token=hunter33")
    assert done.returncode == 0 and "hunter" not in done.stdout + done.stderr
    assert done.stdout == f"healthy: http://***@127.0.0.1:{server.port}/x?*** answers 200\n"


@pytest.mark.parametrize("args, said", [
    (["a", "b"], 'Error: unexpected argument "b"'),
    (["ftp://x"], 'Error: expected http://HOST:PORT/PATH, https://..., HOST:PORT or unix:PATH, got "ftp://x"'),
    (["localhost:http"], 'Error: expected an address such as 127.0.0.1:13133, got "localhost:http"'),
    (["--timeout", "3"], 'Error: invalid argument "3" for "--timeout" flag: expected a time such as 3s, at most 24h'),
    (["--wait", "-1s"], 'Error: invalid argument "-1s" for "--wait" flag: expected a time such as 3s, at most 24h'),
    (["--header", "x", "localhost"], "Error: --header: expected NAME=VALUE"),
    (["--config", "CONFIG", "localhost"], "Error: either an address or a configuration that has it: motel health [ADDRESS | --config FILE]"),
    (["--config", "/nonexistent.yaml"], "Error: "),
    (["--nope"], "Error: unknown flag: --nope"),
])
def test_mistakes(args, said, tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(config("{}"))
    done = health(*[str(path) if a == "CONFIG" else a for a in args])
    assert done.returncode == 1 and done.stdout == "" and done.stderr.startswith(said), done


def test_a_configuration_without_a_health_check(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(config("{}").replace("extensions: [health_check]", "extensions: []"))
    done = health("--config", path)
    assert (done.returncode, done.stderr) == (1, "Error: the configuration has no health_check in service::extensions\n")


def test_a_collector_that_stops_is_not_healthy(start, http_sink):
    """While it delivers what it holds, the answer is 503."""
    port, otlp = free_port(), free_port()
    release = threading.Event()
    sink = http_sink(answer=lambda s, n: (release.wait(60), (200, {}, b""))[1])
    program = start(f"""
receivers: {{otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{otlp}'}}}}}}}}
exporters: {{otlp_http: {{endpoint: '{sink.url}', encoding: json}}}}
extensions: {{health_check: {{endpoint: '127.0.0.1:{port}'}}}}
service:
  extensions: [health_check]
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [otlp_http]}}}}
""", wait_ports=[otlp, port])
    assert post(otlp, "traces", span_request())[0] == 200
    wait_until(lambda: sink.requests, what="the request")
    program.process.send_signal(signal.SIGTERM)
    said = f"not healthy: http://127.0.0.1:{port}/ answers 503: Server not available\n"
    wait_until(lambda: health(port).stdout == said, what="the answer of a collector that stops")
    assert health("--config", program.config_path).returncode == 1
    release.set()
    assert program.process.wait(60) == 0


def test_anybody_may_ask_on_a_read_only_system(running):
    """No file is written, no variable needed, any user may ask."""
    _, port = running
    if os.getuid() != 0:
        pytest.skip("not root: cannot become another user")
    try:
        done = subprocess.run([MOTEL, "health", f"{port}/live"], env={}, cwd="/", user=65534, group=65534, extra_groups=[],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    except PermissionError:
        pytest.skip("the program is in a folder of root's")
    well(done, f"http://127.0.0.1:{port}/live")
