"""motel run: a command with the collector beside it. What it prints and how it ends is unchanged, and its telemetry arrives."""
import fcntl
import glob
import json
import os
import pty
import random
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest

from conftest import HERE, MOTEL, connects, free_port, records, wait_until

CLIENT = os.path.join(HERE, "server_client.py")
CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:%(grpc)d"}, http: {endpoint: "127.0.0.1:%(http)d"}}}
processors: {gym: }
exporters: {otlp_grpc: {endpoint: "http://127.0.0.1:%(backend)d"}}
service:
  pipelines:
    traces: &all {receivers: [otlp], processors: [gym], exporters: [otlp_grpc]}
    metrics: *all
    logs: *all
"""
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "NEMO_", "SLURM_", "MOTEL_"))}


@pytest.fixture
def no_terminal(monkeypatch):
    """Commands run in a session of their own, as in a batch job."""
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **kw: popen(*a, **{"start_new_session": True, **kw}))


pytestmark = pytest.mark.usefixtures("no_terminal")


def run(*args, env=None, **kw):
    kw = {"stdin": subprocess.DEVNULL, "capture_output": True, "timeout": 180, "env": {**CLEAN, **(env or {})}, **kw}
    return subprocess.run([MOTEL, "run", *map(str, args)], **kw)


def start(*args, env=None, **kw):
    return subprocess.Popen([MOTEL, "run", *map(str, args)], **{"stdin": subprocess.DEVNULL, "env": {**CLEAN, **(env or {})}, **kw})


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(c) for c in f.read().split()]


def pipeline_of(pid):
    """The process of the pipeline: motel's child that is motel, too, once the command is something else."""
    def find():
        found = []
        for child in children(pid):
            try:
                found.append((os.readlink(f"/proc/{child}/exe") == os.path.realpath(MOTEL), child))
            except OSError:
                return None
        return found if len(found) == 2 and sum(own for own, _ in found) == 1 else None
    return max(wait_until(find, limit=60, what="the pipeline"))[1]


@pytest.fixture
def config(tmp_path):
    """config(backend port) writes a configuration and returns its path and ports."""
    def write(backend, extra=""):
        ports = {"grpc": free_port(), "http": free_port(), "backend": backend}
        (tmp_path / "job.yaml").write_text(CONFIG % ports + extra)
        return tmp_path / "job.yaml", ports
    return write


def got(sink, signal_name):
    return [r for name, m in sink.messages() if name == signal_name for r in records(name, m)]


def objects(text):
    """The JSON objects that begin at the begin of a line, as Python reads them."""
    decoder, at = json.JSONDecoder(), 0
    while (found := re.compile(r"^\{", re.M).search(text, at)):
        try:
            value, at = decoder.raw_decode(text, found.start())
            yield value
        except ValueError:
            at = found.end()


# ---- the real thing ----

@pytest.mark.parametrize("form", ["line", "indent"])
def test_a_program_that_prints_its_telemetry(form, config, grpc_sink):
    sink = grpc_sink()
    path, _ = config(sink.port)
    bare = subprocess.run([sys.executable, CLIENT, form, "5", "7"], capture_output=True, timeout=60, env=CLEAN)
    done = run("--config", path, "--", sys.executable, CLIENT, form, 5, 7, env={"NEMO_GYM_OTEL_RUN_ID": "run-1"})
    assert done.returncode == bare.returncode == 7
    assert done.stderr == bare.stderr
    changing = rb"0x[0-9a-f]{16,32}|\d{4}-\d\d-\d\dT[\d:.]+Z|\d{15,}|[0-9a-f-]{36}"  # ids and times
    assert re.sub(changing, b"?", done.stdout) == re.sub(changing, b"?", bare.stdout)
    spans, metrics, logs = (got(sink, s) for s in ("traces", "metrics", "logs"))
    assert sorted(s.name for _, _, s in spans) == sorted([f"POST /run/{i}" for i in range(5)] + ["inner"] * 5)
    assert [m.name for _, _, m in metrics] == ["requests"] and metrics[0][2].sum.data_points[0].as_int == 5
    assert sorted(r.body.string_value for _, _, r in logs) == [f"request {i}" for i in range(5)]
    for attributes, _, _ in spans + metrics + logs:
        assert attributes["nemo.run.id"] == "run-1" and attributes["nemo.gym.service_group"] == "nemo-gym"
        assert attributes["service.name"] == "nemo-gym/agent"
    # The same spans that were printed.
    assert {s.span_id.hex() for _, _, s in spans} == set(re.findall(r'"span_id": "0x(\w{16})"', done.stdout.decode())) - {"0" * 16} - \
        {h for h in re.findall(r'"trace_id": "0x0{32}", "span_id": "0x(\w{16})"', done.stdout.decode())}


@pytest.mark.parametrize("form", ["line", "indent"])
def test_to_a_reference_collector(form, config, reference):
    """What arrives there is what was printed: ids, names, times, values."""
    port = free_port()
    backend = reference(f"""
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: 127.0.0.1:{port}}}}}}}}}
exporters: {{file: {{path: out.jsonl}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: &all {{receivers: [otlp], exporters: [file]}}, metrics: *all, logs: *all}}
""", wait_ports=[port])
    path, _ = config(port)
    done = run("--config", path, "--", sys.executable, CLIENT, form, 20, 3, env={"SLURM_JOB_ID": "4711"}, text=True)
    assert (done.returncode, done.stderr.count("INFO")) == (3, 2)
    assert backend.stop() == 0
    entries = {k: [e for line in backend.json_lines("out.jsonl") for e in line.get(f"resource{k}", ())] for k in ("Spans", "Metrics", "Logs")}
    for e in sum(entries.values(), []):
        attributes = {a["key"]: a["value"].get("stringValue") for a in e["resource"]["attributes"]}
        assert (attributes["nemo.run.id"], attributes["nemo.gym.service_group"]) == ("4711", "nemo-gym")
    spans = {(s["traceId"], s["spanId"], s.get("parentSpanId", "") or None, s["name"]) for e in entries["Spans"] for c in e["scopeSpans"] for s in c["spans"]}
    logs = {(r.get("traceId", ""), r.get("spanId", ""), r["body"]["stringValue"]) for e in entries["Logs"] for c in e["scopeLogs"] for r in c["logRecords"]}
    points = [(m["name"], p["asInt"]) for e in entries["Metrics"] for c in e["scopeMetrics"] for m in c["metrics"] for p in m["sum"]["dataPoints"]]
    printed = list(objects(done.stdout))
    assert len(spans) == 40 and len(logs) == 20 and points == [("requests", "20")]
    assert spans == {(o["context"]["trace_id"][2:], o["context"]["span_id"][2:], (o["parent_id"] or "0x")[2:] or None, o["name"]) for o in printed if "context" in o}
    assert logs == {(o["trace_id"][2:].strip("0") and o["trace_id"][2:], o["span_id"][2:].strip("0") and o["span_id"][2:], o["body"]) for o in printed if "observed_timestamp" in o}


def test_a_program_that_exports(config, grpc_sink):
    """Its SDK finds motel by the variables."""
    sink = grpc_sink()
    path, ports = config(sink.port)
    code = ("import os, sys; sys.argv = ['x', 'http', 'none', os.environ['OTEL_EXPORTER_OTLP_ENDPOINT'], '4'];"
            f"sys.path.insert(0, {HERE!r}); import sdk_client; sdk_client.main(); print(os.environ['OTEL_EXPORTER_OTLP_PROTOCOL'])")
    done = run("--config", path, sys.executable, "-c", code, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "http/protobuf\n", "")
    assert sorted(s.name for _, _, s in got(sink, "traces")) == [f"py-span-{i}" for i in range(4)]


def test_without_a_configuration(tmp_path):
    code = f"import os, subprocess, sys; subprocess.run([sys.executable, {CLIENT!r}, 'line', '2']); " + \
        f"subprocess.run([sys.executable, {os.path.join(HERE, 'sdk_client.py')!r}, 'grpc', 'none', os.environ['OTEL_EXPORTER_OTLP_ENDPOINT'], '3'])"
    done = run(sys.executable, "-c", code, cwd=tmp_path)
    assert done.returncode == 0 and b"motel" not in done.stderr, done.stderr
    (path,) = glob.glob(str(tmp_path / "*"))
    assert re.fullmatch(r"motel-[0-9a-f]{12}\.jsonl", os.path.basename(path))
    with open(path, encoding="utf-8") as f:
        lines = [json.loads(line) for line in f]
    spans = [s["name"] for x in lines for e in x.get("resourceSpans", ()) for c in e["scopeSpans"] for s in c["spans"]]
    assert sorted(spans) == sorted(["POST /run/0", "POST /run/1", "inner", "inner", "py-span-0", "py-span-1", "py-span-2"])
    ids = {a["value"]["stringValue"] for x in lines for k in x for e in x[k] for a in e["resource"]["attributes"] if a["key"] == "nemo.run.id"}
    assert len(ids) == 1 and ids.pop() in os.path.basename(path)
    report = subprocess.run([MOTEL, "report", path], capture_output=True, text=True, timeout=20)
    assert "py-client/agent" in report.stdout


def test_a_run_without_telemetry_leaves_nothing(tmp_path):
    assert run("true", cwd=tmp_path).returncode == 0 and os.listdir(tmp_path) == []


def test_two_at_a_time(tmp_path):
    """Without a configuration no port is taken twice."""
    running = [start("sh", "-c", "echo $OTEL_EXPORTER_OTLP_ENDPOINT; sleep 1", cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    ends = [p.communicate(timeout=120) for p in running]
    assert [p.returncode for p in running] == [0, 0] and ends[0][1] == ends[1][1] == b""
    assert ends[0][0] != ends[1][0] and ends[0][0].startswith(b"http://127.0.0.1:")


# ---- output ----

def test_bytes_are_bytes(tmp_path):
    data = random.Random(1).randbytes(3_000_000)
    (tmp_path / "data").write_bytes(data)
    done = run("sh", "-c", f"cat {tmp_path}/data; head -c 1000001 {tmp_path}/data >&2; exit 5", cwd=tmp_path)
    assert done.returncode == 5 and done.stdout == data and done.stderr == data[:1000001]


def test_the_order_of_both_streams(tmp_path):
    code = "import os\nfor i in range(2000):\n os.write(1 + i % 2, b'%d\\n' % i)"
    done = run(sys.executable, "-c", code, cwd=tmp_path, capture_output=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.stdout == b"".join(b"%d\n" % i for i in range(2000))


def test_to_one_file_and_to_two(tmp_path):
    with open(tmp_path / "both", "wb") as both, open(tmp_path / "out", "wb") as out, open(tmp_path / "err", "wb") as err:
        run("sh", "-c", "echo 1; echo 2 >&2; echo 3", cwd=tmp_path, capture_output=False, stdout=both, stderr=both)
        run("sh", "-c", "echo 1; echo 2 >&2; echo 3", cwd=tmp_path, capture_output=False, stdout=out, stderr=err)
    assert [(tmp_path / n).read_bytes() for n in ("both", "out", "err")] == [b"1\n2\n3\n", b"1\n3\n", b"2\n"]


def test_prompts_come_at_once(tmp_path):
    with start("sh", "-c", "printf 'name? '; read x; echo hello $x", cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        assert os.read(p.stdout.fileno(), 100) == b"name? "
        out, _ = p.communicate(b"motel\n", timeout=120)
    assert out == b"hello motel\n" and p.returncode == 0


def test_a_slow_reader_loses_nothing(tmp_path):
    """The command waits for it, as it would without motel, and so does motel at the end."""
    line = b"x" * 99 + b"\n"
    with start(sys.executable, "-c", "import sys\nfor _ in range(20000): sys.stdout.write('x' * 99 + '\\n')", cwd=tmp_path, stdout=subprocess.PIPE) as p:
        time.sleep(1)
        assert p.poll() is None
        total = 0
        while data := os.read(p.stdout.fileno(), 65536):
            assert data in line * (len(data) // 100 + 2)
            total += len(data)
            time.sleep(0.005)
        assert p.wait(30) == 0 and total == 2_000_000


def test_a_reader_that_goes_away(tmp_path):
    """`motel run … | head`: the command gets SIGPIPE, as without motel."""
    done = subprocess.run(["sh", "-c", f"('{MOTEL}' run -- yes; echo $? >code) | head -1"], capture_output=True, timeout=60, cwd=tmp_path, env=CLEAN)
    assert done.stdout == b"y\n" and (tmp_path / "code").read_text() == f"{128 + signal.SIGPIPE}\n"


def test_stdin_is_the_commands(tmp_path):
    done = run("sh", "-c", "cat; echo end", cwd=tmp_path, stdin=None, input=b"text" * 50000)
    assert done.stdout == b"text" * 50000 + b"end\n"


def test_a_process_that_is_left_behind(tmp_path):
    """It keeps the output open; motel does not wait for it."""
    began = time.monotonic()
    done = run("sh", "-c", "echo begin; sleep 30 & echo end", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout == b"begin\nend\n" and time.monotonic() - began < 15
    assert b"left behind" in done.stderr


def test_a_command_that_closes_its_output(tmp_path):
    done = run("sh", "-c", "echo a; exec >&- 2>&-; sleep 0.2; exit 3", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (3, b"a\n", b"")


def test_motel_without_standard_streams(tmp_path):
    """Its own pipes must not get their numbers."""
    done = subprocess.run(["sh", "-c", f"'{MOTEL}' run -- sh -c 'cat; echo out; echo err >&2; exit 4' <&- >&- 2>&-"], timeout=180, cwd=tmp_path, env=CLEAN)
    assert done.returncode == 4 and os.listdir(tmp_path) == []


def test_a_line_that_does_not_end(tmp_path):
    """It looks like a record, and is longer than any."""
    done = run("sh", "-c", "printf '{\"name\": \"'; head -c 100000000 /dev/zero | tr '\\0' x; exit 2", cwd=tmp_path)
    assert done.returncode == 2 and len(done.stdout) == 100000010 and done.stdout.endswith(b"xxx")


# ---- exit codes and signals ----

@pytest.mark.parametrize("command, code", [("exit 0", 0), ("exit 42", 42), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -KILL $$", 137), ("kill -SEGV $$", 139)])
def test_exit_codes(command, code, tmp_path):
    done = run("sh", "-c", command, cwd=tmp_path)
    assert done.returncode == code and done.stderr == b""


def test_what_cannot_be_run(tmp_path):
    (tmp_path / "script").write_text("not executable")
    for args, code, words in ((["nosuchcommand"], 127, b"nosuchcommand"), (["./script"], 126, b"Permission denied"), ([], 125, b"COMMAND"),
                              (["--nosuch", "true"], 125, b"nosuch"), (["--"], 125, b"COMMAND")):
        done = run(*args, cwd=tmp_path)
        assert done.returncode == code and words in done.stderr, args
        assert done.stdout == b""


def test_flags_behind_the_command_are_its_own(tmp_path):
    assert run("echo", "--config", "-x", "--", "--help", cwd=tmp_path).stdout == b"--config -x -- --help\n"
    assert run("--", "echo", "--config", cwd=tmp_path).stdout == b"--config\n"
    assert b"Exit codes" in run("--help", cwd=tmp_path).stdout


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_the_command(sig, config, grpc_sink):
    sink = grpc_sink()
    path, _ = config(sink.port)
    with start("--config", path, sys.executable, CLIENT, "line", 3, 9, "wait", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        out = b""
        while b"waiting" not in out:
            out += os.read(p.stdout.fileno(), 65536)
        p.send_signal(sig)
        rest, err = p.communicate(timeout=120)
    assert p.returncode == 9 and b"got the signal" in rest and err.count(b"INFO") == 2
    assert len(got(sink, "traces")) == 6 and len(got(sink, "logs")) == 3 and len(got(sink, "metrics")) == 1


@pytest.mark.parametrize("sig", [signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT])
def test_other_signals(sig, tmp_path):
    code = f"import os, signal, sys, time\nsignal.signal({int(sig)}, lambda *_: (os.write(1, b'got it\\n'), sys.exit(3)))\nprint('ready', flush=True)\nwhile True: time.sleep(0.05)"
    with start(sys.executable, "-c", code, cwd=tmp_path, stdout=subprocess.PIPE) as p:
        assert p.stdout.readline() == b"ready\n"
        p.send_signal(sig)
        out, _ = p.communicate(timeout=120)
    assert out == b"got it\n" and p.returncode == 3


def test_a_command_that_does_not_end_at_term(tmp_path):
    """Then motel does not, either, however often it is told."""
    # Python runs a handler late when the signal comes just before a system call that waits: no handler, or no long wait.
    code = "import os, signal, sys\nsignal.pthread_sigmask(signal.SIG_BLOCK, [15])\nprint('ready', flush=True)\n" \
        "for _ in range(2):\n    signal.sigwait([15])\n    os.write(1, b'no\\n')\nsys.stdin.read()\nsys.exit(6)"
    with start(sys.executable, "-c", code, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        assert p.stdout.readline() == b"ready\n"
        for _ in range(2):
            p.terminate()
            assert p.stdout.readline() == b"no\n"
        out, _ = p.communicate(b"end\n", timeout=120)
    assert p.returncode == 6 and out == b""


def test_the_whole_group_gets_it(tmp_path):
    """A shell that waits for a program does not pass a signal on; motel sends it to both."""
    with start("sh", "-c", "sleep 600; true", cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        wait_until(lambda: any(b"sleep" in open(f"/proc/{g}/cmdline", "rb").read() for c in children(p.pid) for g in children(c)), limit=60, what="the sleep")
        p.terminate()
        _, err = p.communicate(timeout=50)  # the sleep holds the output open
    assert p.returncode == 143 and err == b""


def test_ignored_signals_stay_ignored(tmp_path):
    done = subprocess.run(["sh", "-c", f"trap '' INT; exec '{MOTEL}' run -- sh -c 'kill -INT $$; echo still here'"], capture_output=True, timeout=120, cwd=tmp_path, env=CLEAN)
    assert done.stdout == b"still here\n" and done.returncode == 0


def test_stopped_before_the_command_runs(tmp_path):
    """motel waits for its pipeline when the signal comes: the command never starts."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with start("--config", fifo, "--", "echo", "ran", cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        wait_until(lambda: len(children(p.pid)) == 2, limit=60, what="both processes")
        p.terminate()
        out, _ = p.communicate(timeout=120)
    assert p.returncode == 143 and out == b""


# ---- the environment ----

def test_the_environment(config):
    path, ports = config(1)

    def env_of(**given):
        done = run("--config", path, "--", "env", "-0", env=given)
        assert done.returncode == 0 and done.stderr == b"", done.stderr
        return dict(x.split("=", 1) for x in done.stdout.decode().split("\0") if x)
    env = env_of()
    assert env["NEMO_GYM_OTEL_ENABLED"] == "true" and re.fullmatch("[0-9a-f]{12}", env["NEMO_GYM_OTEL_RUN_ID"])
    assert env["OTEL_EXPORTER_OTLP_ENDPOINT"] == f"http://127.0.0.1:{ports['http']}" and env["OTEL_EXPORTER_OTLP_PROTOCOL"] == "http/protobuf"
    assert set(env) - set(CLEAN) == {"NEMO_GYM_OTEL_ENABLED", "NEMO_GYM_OTEL_RUN_ID", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL"}
    assert all(env[k] == v for k, v in CLEAN.items())
    env = env_of(OTEL_EXPORTER_OTLP_PROTOCOL="grpc", SLURM_JOB_ID="4711", NEMO_GYM_OTEL_ENABLED="0")
    assert env["OTEL_EXPORTER_OTLP_ENDPOINT"] == f"http://127.0.0.1:{ports['grpc']}" and env["OTEL_EXPORTER_OTLP_PROTOCOL"] == "grpc"
    assert env["NEMO_GYM_OTEL_RUN_ID"] == "4711" and env["NEMO_GYM_OTEL_ENABLED"] == "0"
    env = env_of(OTEL_EXPORTER_OTLP_ENDPOINT="http://elsewhere:1", NEMO_GYM_OTEL_RUN_ID="mine")
    assert env["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://elsewhere:1" and "OTEL_EXPORTER_OTLP_PROTOCOL" not in env and env["NEMO_GYM_OTEL_RUN_ID"] == "mine"


def test_wildcard_addresses(config, tmp_path):
    path, ports = config(1)
    path.write_text(path.read_text().replace("127.0.0.1:" + str(ports["http"]), f"0.0.0.0:{ports['http']}"))
    done = run("--config", path, "--", "sh", "-c", "echo $OTEL_EXPORTER_OTLP_ENDPOINT", text=True)
    assert done.stdout == f"http://127.0.0.1:{ports['http']}\n"


def test_a_gym_config(tmp_path, grpc_sink):
    """The variables of the exporter are motel's; the command gets motel's address."""
    sink = grpc_sink()
    (tmp_path / "gym.yaml").write_text("telemetry: {enabled: true, logs_enabled: true, memory_profiling: {enabled: true, interval_seconds: 0.2}}\n")
    more = tmp_path / "ports.yaml"
    more.write_text(f"receivers: {{otlp: {{protocols: {{grpc: {{endpoint: '127.0.0.1:{free_port()}'}}, http: {{endpoint: '127.0.0.1:{free_port()}'}}}}}}}}\n"
                    f"extensions: {{health_check: {{endpoint: '127.0.0.1:{free_port()}'}}}}\n")
    server = "import os; os.execve('/bin/cat', ['cat'], {**os.environ, 'NEMO_GYM_CONFIG_PATH': 'policy_model'})"
    with start("--gym-config", tmp_path / "gym.yaml", "--config", more, "--", "sh", "-c", f"env; '{sys.executable}' '{CLIENT}' line 2; '{sys.executable}' -c \"{server}\"",
               env={"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{sink.port}", "OTEL_EXPORTER_OTLP_HEADERS": "x-token=secret-token", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "5000"},
               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        wait_until(lambda: any(m.name == "gym.server.processes" for _, _, m in got(sink, "metrics")), limit=60, what="the server's memory")
        out, err = p.communicate(timeout=120)  # its stdin ends, and so does it
    assert p.returncode == 0, err
    assert "secret-token" not in out and "TRACES_TIMEOUT" not in out
    endpoint = re.search("^OTEL_EXPORTER_OTLP_ENDPOINT=(.*)$", out, re.M)[1]
    assert endpoint.startswith("http://127.0.0.1:") and str(sink.port) not in endpoint
    assert "NEMO_GYM_OTEL_MEMORY_PROFILING_ENABLED=false" in out
    assert len(got(sink, "traces")) == 4 and len(got(sink, "logs")) == 2 and all(r["metadata"]["x-token"] == "secret-token" for r in sink.requests)
    names = {m.name for _, _, m in got(sink, "metrics")}
    assert {"requests", "gym.host.memory.usage", "gym.server.memory.usage"} <= names
    servers = {a.value.string_value for _, _, m in got(sink, "metrics") if m.name == "gym.server.processes" for p in m.gauge.data_points for a in p.attributes if a.key == "nemo.gym.server.name"}
    assert servers == {"policy_model"}


def test_two_gym_runs_at_a_time(tmp_path, grpc_sink):
    """On a machine of a cluster nobody knows who else is there."""
    sink = grpc_sink()
    (tmp_path / "gym.yaml").write_text("telemetry: {enabled: true}\n")
    code = "print(__import__('os').environ['OTEL_EXPORTER_OTLP_ENDPOINT'], flush=True); __import__('sys').stdin.read()"
    running = [start("--gym-config", tmp_path / "gym.yaml", "--", sys.executable, "-c", code, env={"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{sink.port}"},
                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    first, second = (p.stdout.readline() for p in running)
    assert first != second and str(sink.port) not in first + second and all(a.startswith("http://127.0.0.1:") for a in (first, second))
    for p in running:
        assert p.communicate(timeout=120)[1] == "" and p.returncode == 0
    chosen = free_port()
    done = run("--gym-config", tmp_path / "gym.yaml", "--set", f"receivers.otlp.protocols.http.endpoint=127.0.0.1:{chosen}", "--", "sh", "-c", "echo $OTEL_EXPORTER_OTLP_ENDPOINT",
               env={"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{sink.port}"}, text=True)
    assert (done.stdout, done.stderr) == (f"http://127.0.0.1:{chosen}\n", "")
    done = run("--gym-config", tmp_path / "gym.yaml", "--", "echo", "fine", env={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4317"}, text=True)
    assert (done.stdout, done.stderr) == ("fine\n", "")  # a collector of the machine: not motel itself


def test_a_gym_config_with_telemetry_off(tmp_path):
    (tmp_path / "gym.yaml").write_text("telemetry: {enabled: false}\n")
    done = run("--gym-config", tmp_path / "gym.yaml", "--", "sh", "-c", "env; exit 4", text=True, cwd=tmp_path)
    assert done.returncode == 4 and done.stderr == "" and "OTEL_EXPORTER" not in done.stdout and "NEMO_GYM_OTEL_ENABLED" not in done.stdout


# ---- which pipelines ----

def test_the_consoles_place_in_a_configuration(tmp_path, http_sink):
    """A configuration with a console receiver of its own says where the output goes; one without otlp gets it into the first pipelines."""
    sink = http_sink()
    base = f"exporters: {{otlp_http/a: {{endpoint: '{sink.url}/a'}}, otlp_http/b: {{endpoint: '{sink.url}/b'}}}}\n"
    for receivers, first, second, where in (("{nop: }", "nop", "nop", {"/a/v1/traces"}), ("{console/mine: , nop: }", "nop", "console/mine", {"/b/v1/traces"}),
                                            ("{otlp: {protocols: {http: {endpoint: '127.0.0.1:0'}}}, nop: }", "nop", "otlp", {"/b/v1/traces"})):
        sink.requests.clear()
        (tmp_path / "c.yaml").write_text(base + f"receivers: {receivers}\nservice: {{pipelines: {{traces: {{receivers: [{first}], exporters: [otlp_http/a]}}, traces/2: {{receivers: [{second}], exporters: [otlp_http/b]}}}}}}\n")
        done = run("--config", tmp_path / "c.yaml", "--", sys.executable, CLIENT, "line", 1, text=True)
        assert done.returncode == 0 and done.stderr.count("\n") == 2, done.stderr
        assert {r["path"] for r in sink.requests} == where


def test_set_and_settings(tmp_path):
    done = run("--set", "exporters.file.path=mine.jsonl", "--shutdown-timeout", "5s", "--", sys.executable, CLIENT, "line", 1, cwd=tmp_path)
    assert done.returncode == 0 and os.listdir(tmp_path) == ["mine.jsonl"] and (tmp_path / "mine.jsonl").stat().st_size > 0


def test_what_motel_prints_goes_to_stderr(tmp_path):
    """An exporter that writes to stdout does not get into the command's."""
    config = "exporters: {console: }\nreceivers: {nop: }\nservice: {pipelines: {traces: {receivers: [nop], exporters: [console]}}}\n"
    (tmp_path / "c.yaml").write_text(config)
    done = run("--config", tmp_path / "c.yaml", "--", sys.executable, CLIENT, "indent", 1, text=True)
    assert done.returncode == 0 and '\n{"name": "POST /run/0"' in done.stderr and '{"name": "POST' not in done.stdout


# ---- trouble ----

def test_a_bad_configuration_does_not_keep_the_command_from_running(tmp_path):
    (tmp_path / "bad.yaml").write_text("receivers: {nosuch: }\n")
    done = run("--config", tmp_path / "bad.yaml", "--", "sh", "-c", "env; exit 3", text=True)
    assert done.returncode == 3 and "nosuch" in done.stderr and "the command runs without it" in done.stderr
    assert "OTEL_EXPORTER" not in done.stdout and "NEMO_GYM_OTEL_ENABLED" not in done.stdout


def test_a_port_that_is_taken(config):
    import socket
    path, ports = config(1)
    with socket.socket() as s:
        s.bind(("127.0.0.1", ports["http"]))
        s.listen()
        done = run("--config", path, "--", "sh", "-c", "echo fine; exit 3")
    assert done.returncode == 3 and done.stdout == b"fine\n" and str(ports["http"]).encode() in done.stderr and b"runs without it" in done.stderr


def test_a_folder_that_cannot_be_written(tmp_path):
    if os.geteuid() == 0:
        folder = "/proc"
    else:
        folder = tmp_path
        os.chmod(folder, 0o500)
    done = run("sh", "-c", "echo fine", cwd=folder)
    assert done.returncode == 0 and done.stdout == b"fine\n" and b"runs without it" in done.stderr


def test_the_pipeline_is_killed(config, grpc_sink):
    path, _ = config(grpc_sink().port)
    with start("--config", path, "--", "sh", "-c", "echo begin; read x; cat /dev/zero | head -c 20000000; echo end; exit 6", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        assert p.stdout.readline() == b"begin\n"
        os.kill(pipeline_of(p.pid), signal.SIGKILL)
        out, err = p.communicate(b"\n", timeout=120)
    assert p.returncode == 6 and out == b"\0" * 20000000 + b"end\n" and b"the command goes on without it" in err


def test_the_pipeline_is_stuck(config, grpc_sink):
    """Its process does not move at all: the command's output still flows, and at the end motel gives up on the pipeline."""
    path, _ = config(grpc_sink().port)
    with start("--config", path, "--shutdown-timeout", "1s", "--", "sh", "-c", "echo begin; read x; yes '{\"name\": 1}' | head -c 30000000; exit 6",
               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        assert p.stdout.readline() == b"begin\n"
        pipeline = pipeline_of(p.pid)
        os.kill(pipeline, signal.SIGSTOP)
        p.stdin.write(b"\n")
        p.stdin.flush()
        total = 0
        while total < 30000000:
            data = os.read(p.stdout.fileno(), 1 << 20)
            assert data
            total += len(data)
        _, err = p.communicate(timeout=120)
    assert p.returncode == 6 and b"does not end" in err and b"left out" in err


def test_a_backend_that_takes_nothing(config, tmp_path):
    """Out of reach: the command is not slower, nothing of it is lost, and the flush ends in time."""
    path, _ = config(free_port())
    began = time.monotonic()
    done = run("--config", path, "--shutdown-timeout", "2s", "--", sys.executable, CLIENT, "line", 200, 5, text=True)
    assert done.returncode == 5 and done.stdout.count("POST /run/") >= 400
    assert time.monotonic() - began < 60 and "dropped_items" in done.stderr


def test_impatience_at_the_end(config):
    path, _ = config(free_port())
    with start("--config", path, "--", sys.executable, CLIENT, "line", 3, 5, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        out = b""
        while b"no line end" not in out:
            out += os.read(p.stdout.fileno(), 65536)
        wait_until(lambda: len(children(p.pid)) == 1, limit=60, what="the end of the command")
        p.terminate()
        _, err = p.communicate(timeout=120)
    assert p.returncode == 5 and b"not delivered is lost" in err and err.count(b"\n") < 20


def test_a_long_end_is_explained_at_a_terminal(config, tmp_path):
    path, _ = config(free_port())
    t = Terminal([MOTEL, "run", "--config", str(path), "--", sys.executable, CLIENT, "line", "3", "5"], tmp_path)
    t.expect(b"the command has ended; its telemetry is delivered for at most 25 s (Ctrl-C ends at once)")
    t.type(b"\x03")
    t.expect(b"ended at once; telemetry that was not delivered is lost")
    assert t.end() == 5


def test_what_does_not_fit_is_counted(tmp_path):
    """A full disk: records that nobody took, and output that was not read, are said at the end."""
    if not os.access("/dev/full", os.W_OK):
        pytest.skip("no /dev/full")
    (tmp_path / "c.yaml").write_text("receivers: {console: }\nexporters: {file: {path: /dev/full}}\nservice: {pipelines: {traces: {receivers: [console], exporters: [file]}}}\n")
    done = run("--config", tmp_path / "c.yaml", "--shutdown-timeout", "2s", "--", sys.executable, CLIENT, "line", 1500, text=True)
    assert done.returncode == 0 and done.stdout.count('"kind"') == 3000
    assert "No space left on device" in done.stderr and '"bytes_not_read": ' in done.stderr
    assert re.search(r"telemetry in \d+ bytes of output was left out", done.stderr)


def test_motel_is_killed(config, grpc_sink):
    """The pipeline notices, delivers what it has and ends."""
    sink = grpc_sink()
    path, ports = config(sink.port)
    with start("--config", path, "--", "sh", "-c", f"'{sys.executable}' '{CLIENT}' line 2; echo begin; exec sleep 5", stdout=subprocess.PIPE) as p:
        while (line := p.stdout.readline()) != b"begin\n":
            assert line
        pipeline = pipeline_of(p.pid)
        p.kill()
        p.wait()
    wait_until(lambda: len(got(sink, "traces")) == 4, limit=60, what="the spans")
    wait_until(lambda: not connects(ports["http"]), limit=60, what="the end of the pipeline")
    wait_until(lambda: not os.path.exists(f"/proc/{pipeline}") or open(f"/proc/{pipeline}/stat").read().split()[2] == "Z", limit=60, what="the end of the pipeline")


def test_both_processes_get_the_signal(config, grpc_sink):
    """As pkill -f does it, which finds both by their command line; only one of them follows it."""
    sink = grpc_sink()
    path, _ = config(sink.port)
    with start("--config", path, "--", sys.executable, CLIENT, "line", 3, 9, "wait", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        out = b""
        while b"waiting" not in out:
            out += os.read(p.stdout.fileno(), 65536)
        pipeline = pipeline_of(p.pid)
        with open(f"/proc/{p.pid}/cmdline", "rb") as a, open(f"/proc/{pipeline}/cmdline", "rb") as b:
            assert a.read() == b.read()
        for pid in (pipeline, p.pid):
            os.kill(pid, signal.SIGTERM)
        p.communicate(timeout=120)
    assert p.returncode == 9 and len(got(sink, "traces")) == 6 and len(got(sink, "metrics")) == 1


# ---- at a terminal ----

class Terminal:
    """A session with a terminal of its own, and a program in the foreground."""

    def __init__(self, argv, cwd, env=None):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvpe(argv[0], argv, {**CLEAN, **(env or {})})
        self.seen = b""

    def expect(self, text, limit=60):
        deadline = time.monotonic() + limit
        while text not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], max(0, deadline - time.monotonic()))
            assert ready, self.seen
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            assert data, self.seen
            self.seen += data
        before, self.seen = self.seen.split(text, 1)
        return before

    def type(self, keys):
        os.write(self.fd, keys)

    def modes(self):
        """The local modes that a program has set."""
        return termios.tcgetattr(self.fd)[3]

    def end(self, limit=60):
        deadline = time.monotonic() + limit
        while True:
            try:
                while select.select([self.fd], [], [], 0)[0] and (data := os.read(self.fd, 65536)):
                    self.seen += data
            except OSError:
                pass
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
            assert time.monotonic() < deadline, self.seen
            time.sleep(0.02)


COUNTS_INTERRUPTS = """
import os, signal, sys, time
n = []
signal.signal(signal.SIGINT, lambda *_: (n.append(1), os.write(1, b'interrupt %d\\n' % len(n))))
print('ready', flush=True)
while len(n) < 3:
    time.sleep(0.02)
time.sleep(0.3)
print('total', len(n), flush=True)
sys.exit(12)
"""


def test_control_c_reaches_the_command_once(tmp_path):
    t = Terminal([MOTEL, "run", "--", sys.executable, "-c", COUNTS_INTERRUPTS], tmp_path)
    t.expect(b"ready")
    for i in range(1, 4):
        t.type(b"\x03")
        t.expect(b"interrupt %d" % i)
    t.expect(b"total 3")
    assert t.end() == 12


def test_control_c_ends_a_command_without_a_handler(tmp_path):
    t = Terminal([MOTEL, "run", "--", sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(60)"], tmp_path)
    t.expect(b"ready")
    t.type(b"\x03")
    t.expect(b"KeyboardInterrupt")
    assert t.end() == 130


def test_the_command_reads_and_sets_the_terminal(tmp_path):
    """SIGTTIN and SIGTTOU stop processes in the background; this one is in the foreground."""
    groups = "import os; print(os.tcgetpgrp(os.open('/dev/tty', os.O_RDWR)), os.getpgrp())"
    t = Terminal([MOTEL, "run", "--", "sh", "-c", f"stty -echo && read x && stty echo && echo got $x && '{sys.executable}' -c \"{groups}\""], tmp_path)
    wait_until(lambda: not t.modes() & termios.ECHO, limit=60, what="no echo")
    t.type(b"word\r")
    t.expect(b"got word")
    assert t.end() == 0
    foreground, group = t.seen.split()
    assert foreground == group


def test_job_control(tmp_path):
    """Control-Z stops it, fg goes on. What is typed while nobody reads is lost or another's: each key waits until its reader has the terminal."""
    (tmp_path / "job").write_text(f"#!/bin/sh\nexec '{MOTEL}' run -- sh -c 'echo started; read x; echo read $x'\n")
    (tmp_path / "job").chmod(0o755)
    t = Terminal(["bash", "--norc", "--noprofile", "-i"], tmp_path, {"PS1": "prompt> ", "HISTFILE": "", "TERM": "dumb"})
    shell = t.pid

    def shell_reads():
        return os.tcgetpgrp(t.fd) == shell and not t.modes() & termios.ICANON

    def job_reads():
        return os.tcgetpgrp(t.fd) != shell and t.modes() & termios.ICANON
    wait_until(shell_reads, limit=60, what="the shell")
    t.type(b"./job\r")
    t.expect(b"started")
    wait_until(job_reads, limit=60, what="the job in the foreground")
    t.type(b"\x1a")
    t.expect(b"Stopped")
    wait_until(shell_reads, limit=60, what="the shell again")
    t.type(b"fg\r")
    wait_until(job_reads, limit=60, what="the job in the foreground again")
    t.type(b"again\r")
    t.expect(b"read again")
    wait_until(shell_reads, limit=60, what="the shell at last")
    t.type(b"exit\r")
    assert t.end() == 0


def test_the_output_is_a_terminal_where_it_was_one(tmp_path):
    """Lines come when they are written, and programs know the size."""
    code = "import os, signal, sys, time\nsignal.signal(signal.SIGWINCH, lambda *_: os.write(1, f'size {tuple(os.get_terminal_size())}\\n'.encode()))\n" \
        "print('tty', os.isatty(1), os.isatty(2), tuple(os.get_terminal_size()))\nwhile True: time.sleep(0.05)"
    t = Terminal([MOTEL, "run", "--", sys.executable, "-c", code], tmp_path)
    t.expect(b"tty True True (")
    fcntl.ioctl(t.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 123, 0, 0))
    t.expect(b"size (123, 33)\r\n")
    t.type(b"\x03")
    t.expect(b"KeyboardInterrupt")
    assert t.end() == 130


def test_one_of_both_is_a_terminal(tmp_path):
    t = Terminal(["sh", "-c", f"'{MOTEL}' run -- sh -c 'test -t 1 || echo out; test -t 2 && echo err >&2' >out"], tmp_path)
    t.expect(b"err")
    assert t.end() == 0 and (tmp_path / "out").read_text() == "out\n"


def test_a_pager_behind_it(tmp_path):
    """The shell puts both into one process group, and both want the terminal."""
    t = Terminal(["sh", "-c", f"'{MOTEL}' run -- echo hello | (cat; read x </dev/tty; echo pager $x)"], tmp_path)
    t.expect(b"hello")
    t.type(b"quit\r")
    t.expect(b"pager quit")
    assert t.end() == 0


def test_a_terminal_is_told_where_the_telemetry_is(tmp_path):
    t = Terminal([MOTEL, "run", "--", sys.executable, CLIENT, "line", "2"], tmp_path)
    t.expect(b"motel run: 4 spans, 1 data points and 2 log records: in motel-")
    assert t.end() == 0


def test_a_signal_from_elsewhere_at_a_terminal(tmp_path):
    t = Terminal([MOTEL, "run", "--", sys.executable, "-c", "import os, signal, sys, time\nsignal.signal(15, lambda *_: (os.write(1, b'term\\n'), sys.exit(5)))\nprint('ready', flush=True)\nwhile True: time.sleep(0.05)"], tmp_path)
    t.expect(b"ready")
    os.kill(t.pid, signal.SIGTERM)
    t.expect(b"term")
    assert t.end() == 5
