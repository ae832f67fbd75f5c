"""The command line, the life of the process and reload: what the reference collector accepts and refuses, signals, exit codes."""
import http.client
import json
import os
import re
import signal
import subprocess
import threading
import time

import pytest

from conftest import MOTEL, ROOT, connects, free_port, post, records, span_request, wait_until

with open(os.path.join(ROOT, "tests", "golden", "cli", "cases.json"), encoding="utf-8") as f:
    CASES = json.load(f)
BASE = next(c["config"] for c in CASES if c["name"] == "validate-ok")
RECORDED_PORTS = ("25317", "25318", "25399")
RECORDED_ENV = {"EP": "127.0.0.1:25317", "NUM": "42"}

NOP = """
receivers: {nop: }
exporters: {nop: }
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [nop], exporters: [nop]}}
"""


def run(*args, env=None, **kw):
    return subprocess.run([MOTEL, *args], capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL,
                          env={**os.environ, **(env or {})}, **kw)


def built_in():
    """The component types of the program: {"receiver otlp", …}."""
    types, kind = set(), None
    for line in run("components").stdout.splitlines():
        if re.match(r"\w+s:", line):
            kind = line.split(":")[0][:-1]
        elif "- name: " in line:
            types.add(f"{kind} {line.split(': ')[1]}")
    return types


BUILT_IN = built_in()


def needs(*types):
    return pytest.mark.skipif(not set(types) <= BUILT_IN, reason=f"not in this build: {set(types) - BUILT_IN}")


def names(text, word):
    """Whether the text has the word by itself; a short one must stand in quotes."""
    if len(word) <= 2:
        return re.search(r"""["'`]%s["'`]""" % re.escape(word), text) is not None
    return re.search(r"(?<!\w)%s(?!\w)" % re.escape(word), text, re.I) is not None


@pytest.fixture
def ports():
    """Free ports for those of the recorded cases."""
    return {p: str(free_port()) for p in RECORDED_PORTS}


def moved(text, ports):
    return re.sub("|".join(ports), lambda m: ports[m[0]], text)


@pytest.mark.parametrize("case", [c for c in CASES], ids=lambda c: c["name"])
def test_as_the_reference(case, start, ports, tmp_path):
    missing = set(case["needs"]) - BUILT_IN
    if missing:
        pytest.skip(f"not in this build: {missing}")
    path = tmp_path / "case.yaml"
    config = case.get("config")
    if config is not None:
        path.write_text(moved(BASE if config == "BASE" else config, ports))
    args = [moved(a, ports).replace("CONFIG", str(path)) for a in case["args"]]
    env = {k: moved(v, ports) for k, v in RECORDED_ENV.items()}
    if not case["starts"]:
        done = run(*args, env=env)
        assert done.returncode == case["exit"], done.stderr
        if case["exit"]:
            words = [moved(w, ports) for w in case["words"]]
            assert re.search("^Error: ", done.stderr, re.M)
            assert not words or any(names(done.stderr, w) for w in words), done.stderr
        return
    program = start(args=args, env=env, wait_ports=[int(ports["25317"])])
    assert program.stop(getattr(signal, case["signal"])) == 0 if case["signal"] != "SIGHUP" else reloads(program)


def reloads(program):
    program.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "The new configuration runs" in program.stderr, what="the reload")
    return program.stop() == 0


def test_validate_is_silent_about_a_good_file(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(NOP)
    done = run("validate", "--config", str(path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_every_mistake_with_its_place(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("receivers: {nop: , nosuch: }\nexporters: {nop: }\nprocesors: {}\n"
                    "service: {pipelines: {trace: , logs: {receivers: [nop/2], exporters: []}}}\n")
    done = run("validate", "--config", str(path))
    assert done.returncode == 1 and done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0].startswith("Error: ")
    for place in ("3:1: procesors: ", "1:20: receivers::nosuch: ", "4:23: service::pipelines::trace: ",
                  "4:32: service::pipelines::logs: must have at least one exporter",
                  '4:51: service::pipelines::logs: references receiver "nop/2"'):
        assert any(line.startswith(f"{path}:{place}") for line in lines), (place, done.stderr)


def test_validate_without_a_file_is_a_mistake():
    done = run("validate")
    assert done.returncode == 1 and "--config" in done.stderr


def test_print_config_can_be_run(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(NOP)
    shown = run("print-config", "--config", str(path))
    assert shown.returncode == 0
    path.write_text(shown.stdout)
    again = run("print-config", "--config", str(path))
    assert again.returncode == 0 and again.stdout == shown.stdout
    assert run("validate", "--config", str(path)).returncode == 0
    as_json = run("print-config", "--format=json", "--config", str(path))
    assert json.loads(as_json.stdout)["service"]["pipelines"]["traces"] == \
        {"receivers": ["nop"], "processors": [], "exporters": ["nop"]}


@needs("exporter otlp_http", "exporter file", "receiver otlp")
def test_print_config_of_real_components_can_be_run(tmp_path):
    """What excludes each other, or asks for another key, is printed only when it was given."""
    path = tmp_path / "c.yaml"
    for http, file in (("", ""), (", idle_conn_timeout: 5s", ", create_directory: true, directory_permissions: '0700'"),
                       (", keepalive: {idle_conn_timeout: 5s}", ", create_directory: true")):
        path.write_text("receivers: {otlp: {protocols: {grpc: , http: }}}\n"
                        f"exporters: {{otlp_http: {{endpoint: 'http://x:1'{http}}}, file: {{path: x{file}}}, debug: }}\n"
                        "service: {pipelines: {logs: {receivers: [otlp], exporters: [otlp_http, file, debug]}}}\n")
        shown = run("print-config", "--config", str(path))
        assert shown.returncode == 0, shown.stderr
        assert shown.stdout.count("idle_conn_timeout: 5s") == bool(http)
        assert ('directory_permissions: "0700"' in shown.stdout) == ("0700" in file)
        path.write_text(shown.stdout)
        again = run("print-config", "--config", str(path))
        assert (again.returncode, again.stdout, again.stderr) == (0, shown.stdout, "")


@needs("processor resource")
def test_unset_variables_are_named_beside_the_mistakes_they_make(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(NOP + "processors: {resource: {attributes: [{key: a, action: upsert, value: '${env:NEVER_SET}'}]}}\n")
    for args in (["validate"], ["print-config"], []):
        done = run(*args, "--config", str(path))
        assert done.returncode == 1
        first, second = done.stderr.splitlines()
        assert first.startswith("Warning: ") and '"NEVER_SET" is not set' in first
        assert second.startswith("Error: ") and "processors::resource::attributes[0]::value: " in second


def test_a_log_file_that_cannot_be_opened_is_named(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(NOP)
    done = run("--config", str(path), "--set", f"service.telemetry.logs.output_paths=[{tmp_path}/none/x.log]")
    assert done.returncode == 1
    assert f'output_paths: cannot open "{tmp_path}/none/x.log": No such file' in done.stderr


@needs("exporter otlp_http")
def test_print_config_hides_secrets(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("receivers: {nop: }\n"
                    "exporters: {otlp_http: {endpoint: 'http://x', headers: {a: 'Bearer ${env:MY_TOKEN}', b: typed-in}}}\n"
                    "service: {pipelines: {traces: {receivers: [nop], exporters: [otlp_http]}}}\n")
    for form in ("yaml", "json"):
        done = run("print-config", "--format", form, "--config", str(path), env={"MY_TOKEN": "s3cr3t-token"})
        assert done.returncode == 0 and "[REDACTED]" in done.stdout
        assert "s3cr3t" not in done.stdout and "typed-in" not in done.stdout


def test_help_and_version():
    done = run("--help")
    assert done.returncode == 0 and "Examples:" in done.stdout and "MOTEL_SHUTDOWN_TIMEOUT" in done.stdout
    assert run("--version").stdout == run("version").stdout != ""
    assert run("help").stdout == done.stdout


def test_output_that_cannot_be_written_is_a_failure():
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([MOTEL, "components"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=20)
    assert done.returncode == 1 and "stdout" in done.stderr


def test_motel_settings_by_flag_variable_and_file(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(NOP + "motel: {shutdown_timeout: 1s}\n")

    def timeout(*flags, **env):
        done = run("print-config", "--config", str(path), *flags, env=env)
        assert done.returncode == 0, done.stderr
        return re.search("shutdown_timeout: (.*)", done.stdout)[1]
    assert timeout() == "1s"
    assert timeout(MOTEL_SHUTDOWN_TIMEOUT="2s") == "2s"
    assert timeout("--shutdown-timeout", "3s", MOTEL_SHUTDOWN_TIMEOUT="2s") == "3s"
    done = run("validate", "--config", str(path), env={"MOTEL_SHUTDOWN_TIMOUT": "2s"})
    assert done.returncode == 0 and "MOTEL_SHUTDOWN_TIMOUT" in done.stderr
    done = run("validate", "--config", str(path), "--redact=maybe")
    assert done.returncode == 1 and "--redact" in done.stderr


def test_closed_standard_descriptors(tmp_path):
    """Files and sockets never get descriptor 0, 1 or 2, where log lines would go."""
    path = tmp_path / "c.yaml"
    path.write_text(NOP)
    p = subprocess.Popen(["/bin/sh", "-c", f"exec '{MOTEL}' --config '{path}' <&- >&- 2>&-"])
    try:
        wait_until(lambda: os.path.exists(f"/proc/{p.pid}/fd/2") and os.readlink(f"/proc/{p.pid}/exe").endswith("motel"),
                   what="the start")
        assert [os.readlink(f"/proc/{p.pid}/fd/{fd}") for fd in range(3)] == ["/dev/null"] * 3
        time.sleep(0.2)
        p.terminate()
        assert p.wait(20) == 0
    finally:
        p.kill()
        p.wait()


def test_command_line_stays_as_it_was(start):
    program = start(NOP)
    wait_until(lambda: "Everything is ready" in program.stderr)
    with open(f"/proc/{program.pid}/cmdline", "rb") as f:
        assert f.read().split(b"\0")[:-1] == [a.encode() for a in (MOTEL, "--config", program.config_path)]


def test_lines_of_a_life(start):
    program = start(NOP)
    wait_until(lambda: "Everything is ready" in program.stderr)
    assert program.stop() == 0
    lines = [line.split("\t")[2] for line in program.stderr.splitlines()]
    for earlier, later in zip(LIFE, LIFE[1:]):
        assert lines.index(earlier) < lines.index(later), lines


LIFE = ["Starting motel...", "Everything is ready. Begin running and processing data.", "Received signal from OS",
        "Starting shutdown...", "Shutdown complete."]


@needs("receiver otlp")
def test_port_in_use_is_named(start, ports):
    config = moved(BASE, ports)
    start(config, wait_ports=[int(ports["25317"]), int(ports["25318"])])
    second = start(config)
    assert second.process.wait(20) == 1
    error = second.stderr[second.stderr.index("Error: "):]
    assert f"127.0.0.1:{ports['25317']}" in error or f"127.0.0.1:{ports['25318']}" in error
    assert "ss -ltnp" in error


@needs("receiver otlp")
def test_no_port_is_opened_before_all_is_checked(tmp_path, ports):
    path = tmp_path / "c.yaml"
    path.write_text(moved(BASE, ports).replace("exporters: [nop]", "exporters: [nop, nope]"))
    trace = run("--config", str(path))
    assert trace.returncode == 1
    assert not connects(int(ports["25317"]))


# ---- reload

@needs("receiver otlp", "exporter file")
def test_reload_changes_the_pipelines(start, ports):
    config = moved(BASE, ports).replace("nop:", "file: {path: first.jsonl, flush_interval: 50ms}").replace("[nop]", "[file]")
    http_port = int(ports["25318"])
    program = start(config, wait_ports=[http_port])
    assert post(http_port, "traces", span_request(1))[0] == 200
    with open(program.config_path, "w", encoding="utf-8") as f:
        f.write(config.replace("first.jsonl", "second.jsonl"))
    program.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "The new configuration runs" in program.stderr, what="the reload")
    assert post(http_port, "traces", span_request(1, start=1))[0] == 200
    assert program.stop() == 0
    assert len(program.json_lines("first.jsonl")) == 1
    assert len(program.json_lines("second.jsonl")) == 1


class Client(threading.Thread):
    """Sends one span after the other, on one connection or a new one for each, and counts the answers."""

    def __init__(self, port, first, keep):
        super().__init__()
        self.port, self.next, self.keep = port, first, keep
        self.accepted, self.other, self.ended = 0, [], threading.Event()

    def run(self):
        connection = None
        while not self.ended.is_set():
            try:
                if not connection or not self.keep:
                    connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
                connection.request("POST", "/v1/traces", json.dumps(span_request(1, start=self.next)), {"Content-Type": "application/json"})
                answer = connection.getresponse()
                answer.read()
                if answer.status == 200:
                    self.accepted += 1
                else:
                    self.other.append(answer.status)
            except OSError as e:
                self.other.append(repr(e))
                connection = None
            self.next += 1


@needs("receiver otlp", "exporter otlp_http")
def test_nothing_is_lost_or_refused_during_reloads(start, ports, http_sink):
    sink = http_sink()
    port = int(ports["25318"])
    config = moved(BASE, ports).replace("nop:", f"otlp_http: {{endpoint: '{sink.url}'}}").replace("[nop]", "[otlp_http]")
    program = start(config, wait_ports=[port])
    clients = [Client(port, i * 1000000, keep=i % 2) for i in range(4)]
    for c in clients:
        c.start()
    for n in range(1, 6):
        before = sum(c.accepted for c in clients)
        wait_until(lambda: sum(c.accepted for c in clients) > before + 20, what="traffic")
        program.process.send_signal(signal.SIGHUP)
        wait_until(lambda: program.stderr.count("The new configuration runs") == n, what="the reload")
    for c in clients:
        c.ended.set()
    for c in clients:
        c.join()
    assert program.stop() == 0
    assert [c.other for c in clients] == [[]] * 4
    assert sum(1 for s, m in sink.messages() for _ in records(s, m)) == sum(c.accepted for c in clients)


def test_reload_of_a_bad_file_changes_nothing(start):
    program = start(NOP)
    wait_until(lambda: "Everything is ready" in program.stderr)
    with open(program.config_path, "w", encoding="utf-8") as f:
        f.write(NOP.replace("exporters: [nop]", "exporters: [nope]"))
    program.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "the old configuration keeps running" in program.stderr, what="the refusal")
    assert 'references exporter \\"nope\\"' in program.stderr
    with open(program.config_path, "w", encoding="utf-8") as f:
        f.write(NOP)
    assert reloads(program)


@needs("receiver otlp")
def test_reload_that_cannot_start_keeps_the_old(start, ports):
    config = moved(BASE, ports)
    grpc, http_port = int(ports["25317"]), int(ports["25318"])
    program = start(config, wait_ports=[grpc, http_port])
    other = start(config.replace(str(grpc), str(free_port())).replace(str(http_port), ports["25399"]), wait_ports=[int(ports["25399"])])
    with open(program.config_path, "w", encoding="utf-8") as f:
        f.write(config.replace(str(http_port), ports["25399"]))
    program.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "the old configuration keeps running" in program.stderr, what="the refusal")
    assert ports["25399"] in program.stderr
    assert post(http_port, "traces", span_request(1))[0] == 200
    assert other.alive() and program.stop() == 0


# ---- stop

@needs("receiver otlp", "exporter otlp_http")
def test_a_second_signal_ends_the_wait(start, ports, http_sink):
    sink = http_sink(delay=40)
    http_port = int(ports["25318"])
    config = moved(BASE, ports).replace("nop:", f"otlp_http: {{endpoint: '{sink.url}'}}").replace("[nop]", "[otlp_http]")
    program = start(config, wait_ports=[http_port])
    assert post(http_port, "traces", span_request(1))[0] == 200
    wait_until(lambda: sink.requests, what="the first request")
    program.process.terminate()
    wait_until(lambda: "Starting shutdown" in program.stderr)
    begin = time.monotonic()
    assert program.stop(signal.SIGINT) == 0
    assert time.monotonic() - begin < 15
    assert "second signal" in program.stderr


@needs("receiver otlp", "exporter otlp_http")
def test_shutdown_timeout_bounds_the_stop(start, ports, http_sink):
    sink = http_sink(delay=30)
    http_port = int(ports["25318"])
    config = moved(BASE, ports).replace("nop:", f"otlp_http: {{endpoint: '{sink.url}'}}").replace("[nop]", "[otlp_http]")
    program = start(config, wait_ports=[http_port], args=["--shutdown-timeout=1s"])
    assert post(http_port, "traces", span_request(1))[0] == 200
    wait_until(lambda: sink.requests, what="the first request")
    begin = time.monotonic()
    assert program.stop() == 0
    assert 0.5 < time.monotonic() - begin < 15
    assert "otlp_http: traces 1 in, none sent, 1 dropped" in program.stderr


# ---- no configuration

DEV_PORTS = (4317, 4318, 13133)
needs_dev_ports = pytest.mark.skipif(any(connects(p) for p in DEV_PORTS), reason="one of the ports 4317, 4318, 13133 is taken")
needs_dev = needs("receiver otlp", "exporter console", "extension health_check")


@needs_dev
@needs_dev_ports
def test_without_a_configuration_it_shows_what_programs_send(start):
    program = start(wait_ports=DEV_PORTS)
    wait_until(lambda: "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318" in program.stderr, what="the banner")
    assert "Ctrl-C" in program.stderr
    assert post(13133, "traces", None, path="/", method="GET")[0] == 200
    assert post(4318, "traces", span_request(1))[0] == 200
    wait_until(lambda: program.stdout, what="the span on stdout")
    second = start()
    assert second.process.wait(20) == 1
    assert "Another collector may be running" in second.stderr
    assert not connects(8888)
    assert program.stop(signal.SIGHUP) == 0


@needs_dev
def test_set_changes_the_built_in_configuration(start):
    grpc, http_port, health = (free_port() for _ in range(3))
    program = start(args=["--set", f"receivers.otlp.protocols.http.endpoint=127.0.0.1:{http_port}", "--set",
                          f"receivers.otlp.protocols.grpc.endpoint=127.0.0.1:{grpc}", "--set",
                          f"extensions.health_check.endpoint=127.0.0.1:{health}"], wait_ports=(grpc, http_port, health))
    wait_until(lambda: "Change:" in program.stderr, what="the banner")
    for port in (grpc, http_port, health):
        assert f"http://127.0.0.1:{port}" in program.stderr
    assert post(http_port, "logs", {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": "hi"}}]}]}]})[0] == 200
    wait_until(lambda: '"hi"' in program.stdout, what="the log record")


@needs_dev
def test_the_built_in_configuration_is_a_file_to_start_from(tmp_path):
    shown = run("print-config")
    path = tmp_path / "motel.yaml"
    path.write_text(shown.stdout)
    assert run("validate", "--config", str(path)).returncode == 0


# ---- which protocols are on, and strictness

ONE_PIPELINE = """
receivers: {receivers}
exporters: {{nop: }}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    traces: {{receivers: [{used}], exporters: [nop]}}
    logs: {{receivers: [{used}], exporters: [nop]}}
"""


@needs("receiver otlp")
@needs_dev_ports
def test_only_listed_protocols_are_on_and_null_means_defaults(start):
    config = ONE_PIPELINE.format(receivers="{otlp/http: {protocols: {http: }}, otlp/grpc: {protocols: {grpc: }}}", used="otlp/http, otlp/grpc")
    program = start(config, wait_ports=(4317, 4318))
    with open(f"/proc/{program.pid}/net/tcp", encoding="utf-8") as f:
        listening = [line.split()[1] for line in f if line.split()[3] == "0A"]
    for port in (4317, 4318):
        assert listening.count(f"0100007F:{port:04X}") == 1 and f"00000000:{port:04X}" not in listening


@needs("receiver otlp")
@pytest.mark.parametrize("receiver", ["{otlp: }", "{otlp: {protocols: }}", "{otlp: {protocols: {}}}"])
def test_a_receiver_without_a_protocol_is_a_mistake(tmp_path, receiver):
    path = tmp_path / "c.yaml"
    path.write_text(ONE_PIPELINE.format(receivers=receiver, used="otlp"))
    done = run("validate", "--config", str(path))
    assert done.returncode == 1 and "must specify at least one protocol" in done.stderr


@needs("processor batch", "exporter otlp_http", "exporter otlp_grpc")
@pytest.mark.parametrize("good, change", [
    (True, {}),
    (True, {"processors": "", "exporters": "[otlphttp]"}),
    (True, {"processors": "[]", "exporters": "[otlphttp/a, otlp_http/b, otlp, otlp_grpc/c]"}),
    (True, {"pipeline": "traces/2"}),
    (True, {"timeout": "1m30s"}), (True, {"timeout": "0s"}), (True, {"timeout": "1.5h"}), (True, {"timeout": "0"}),
    (False, {"timeout": "5"}), (False, {"timeout": "'5'"}), (False, {"timeout": "10"}),
    (False, {"pipeline": "trace"}), (False, {"exporters": "[]"}), (False, {"exporters": "[otlp_http]"}),
    (False, {"exporters": "[otlp_http/a]"}), (False, {"top": "endpont: {}"}), (False, {"batch": "endpont: 1, "}),
    (False, {"tls": "endpont: 1, "}), (False, {"top": "receivers: {nop: }"}),
])
def test_strictness_and_aliases(tmp_path, good, change):
    v = {"pipeline": "traces", "processors": "[batch]", "exporters": "[otlphttp]", "timeout": "200ms", "top": "", "batch": "", "tls": "", **change}
    path = tmp_path / "c.yaml"
    path.write_text("""
receivers: {{nop: }}
processors: {{batch: {{{batch}timeout: {timeout}}}}}
exporters:
  otlphttp: {{endpoint: "http://127.0.0.1:9", tls: {{{tls}insecure: true}}}}
  otlphttp/a: {{endpoint: "http://127.0.0.1:9"}}
  otlp_http/b: {{endpoint: "http://127.0.0.1:9"}}
  otlp: {{endpoint: "127.0.0.1:9"}}
  otlp_grpc/c: {{endpoint: "127.0.0.1:9"}}
service: {{pipelines: {{{pipeline}: {{receivers: [nop], processors: {processors}, exporters: {exporters}}}}}}}
{top}
""".format(**v))
    done = run("validate", "--config", str(path))
    assert done.returncode == (0 if good else 1), done.stderr
    if good:
        assert '"otlphttp" alias is deprecated; use "otlp_http" instead' in done.stderr
        assert '"otlp" alias is deprecated; use "otlp_grpc" instead' in done.stderr
    else:
        assert str(path) in done.stderr


# ---- readiness

@needs("receiver otlp", "extension health_check", "exporter otlp_http")
def test_health_follows_the_life(start, ports, http_sink):
    """200 only once data is taken, 503 from the stop on, until the port closes."""
    sink = http_sink(delay=2)
    health, http_port = free_port(), int(ports["25318"])
    config = moved(BASE, ports).replace("nop:", f"otlp_http: {{endpoint: '{sink.url}'}}").replace("[nop]", "[otlp_http]") \
        .replace("service:", f"extensions: {{health_check: {{endpoint: '127.0.0.1:{health}', path: /healthz}}}}\nservice:\n  extensions: [health_check]")
    program = start(config)

    def status(path="/healthz"):
        try:
            return post(health, "traces", None, path=path, method="GET")[0]
        except OSError:
            return None
    wait_until(lambda: status() == 200, what="readiness")
    assert post(http_port, "traces", span_request(1))[0] == 200
    assert status("/other") == 404
    wait_until(lambda: sink.requests, what="the first request")
    program.process.terminate()
    seen = []
    while program.alive():
        seen.append(status())
        time.sleep(0.02)
    assert program.process.wait() == 0
    seen = seen[next(i for i, s in enumerate(seen) if s != 200):] if any(s != 200 for s in seen) else []
    assert 503 in seen and 200 not in seen, seen


@needs("receiver otlp", "extension health_check")
def test_not_ready_when_a_port_is_taken(start, ports):
    health = free_port()
    config = moved(BASE, ports)
    start(config, wait_ports=[int(ports["25317"]), int(ports["25318"])])
    second = start(config.replace("service:", f"extensions: {{health_check: {{endpoint: '127.0.0.1:{health}'}}}}\nservice:\n  extensions: [health_check]"))
    ready = []
    while second.alive():
        try:
            ready.append(post(health, "traces", None, path="/", method="GET")[0])
        except OSError:
            pass
    assert second.process.wait() == 1 and 200 not in ready
    assert ports["25317"] in second.stderr or ports["25318"] in second.stderr


# ---- memory

@pytest.mark.plain_only
@needs("receiver otlp", "exporter otlp_http")
def test_memory_is_given_back_after_a_burst(start, ports, http_sink):
    sink = http_sink(delay=0.02)
    port = int(ports["25318"])
    config = moved(BASE, ports).replace("nop:", f"otlp_http: {{endpoint: '{sink.url}', sending_queue: {{num_consumers: 1}}}}") \
        .replace("[nop]", "[otlp_http]")
    program = start(config, wait_ports=[port])

    def anonymous_kib():
        with open(f"/proc/{program.pid}/status", encoding="ascii") as f:
            return int(re.search(r"RssAnon:\s+(\d+)", f.read())[1])
    body = json.dumps(span_request(1000))
    for _ in range(400):
        assert post(port, "traces", body)[0] == 200
    peak = anonymous_kib()
    assert peak > 16000
    wait_until(lambda: anonymous_kib() < peak / 2 and anonymous_kib() < 12000, limit=40, what="less memory")
    assert len(sink.requests) <= 400
