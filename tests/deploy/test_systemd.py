"""The systemd units: what systemd says of them, and the service run by a real systemd with all of its restrictions."""
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from support import ROOT, e2e

FOLDER = os.path.join(ROOT, "deploy", "systemd")
UNIT, USER_UNIT = os.path.join(FOLDER, "motel.service"), os.path.join(FOLDER, "user", "motel.service")
PAGE = os.path.join(ROOT, "docs", "deployment", "systemd.md")
HERE = os.path.dirname(os.path.abspath(__file__))
DROP_IN = "/etc/systemd/system/motel.service.d/test.conf"

CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:14317"}
      http:
        endpoint: "127.0.0.1:14318"
        tls: {cert_file: "${env:CREDENTIALS_DIRECTORY}/motel_cert.pem", key_file: "${env:CREDENTIALS_DIRECTORY}/motel_key.pem"}
  otlp/local: {protocols: {http: {endpoint: /run/motel/otlp.sock, transport: unix}}}
processors:
  batch: {timeout: 100ms}
  transform: {trace_statements: ['replace_pattern(span.name, "secret-[0-9]+", "${env:MARK}")']}
exporters:
  file: {path: "${env:STATE_DIRECTORY}/telemetry.jsonl", rotation: {max_megabytes: 1}}
  otlp_http:
    endpoint: http://localhost:14319
    compression: zstd
    auth: {authenticator: bearertokenauth}
    sending_queue: {storage: file_storage}
    retry_on_failure: {initial_interval: 200ms, max_interval: 500ms, max_elapsed_time: 0s}
extensions:
  health_check: {endpoint: "127.0.0.1:13133"}
  bearertokenauth: {filename: "${env:CREDENTIALS_DIRECTORY}/motel_backend"}
  file_storage: {directory: "${env:STATE_DIRECTORY}/queue", create_directory: true, fsync: true}
service:
  extensions: [health_check, bearertokenauth, file_storage]
  telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: 8888}}}}]}}
  pipelines:
    traces: {receivers: [otlp, otlp/local], processors: [transform, batch], exporters: [file, otlp_http]}
"""


def text_of(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def analyze(*args):
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    return subprocess.run(["systemd-analyze", *args], capture_output=True, text=True, timeout=120, check=False)


def installed(path, folder, change=lambda text: text):
    """The unit as it would be on a machine that has motel, below `folder`."""
    copy = os.path.join(folder, os.path.basename(path))
    with open(copy, "w", encoding="utf-8") as f:
        f.write(change(text_of(path).replace("/usr/bin/motel", os.path.realpath(e2e.MOTEL))))
    return copy


def quoted_score():
    return re.search(r"Overall exposure level for motel.service: (\d+\.\d) OK", text_of(PAGE))[1]


@pytest.mark.parametrize("path", [UNIT, USER_UNIT])
def test_verify(path, tmp_path):
    done = analyze("verify", "--man=no", installed(path, tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    broken = analyze("verify", "--man=no", installed(path, tmp_path, lambda t: t.replace("NoNewPrivileges=", "NoNewPrivilege=")))
    assert "'NoNewPrivilege' in section" in broken.stderr


def test_score(tmp_path):
    """As good as the page says, and no better; without a part of its hardening the unit fails the threshold."""
    limit = str(round(float(quoted_score()) * 10))
    done = analyze("security", "--offline=true", "--no-pager", f"--threshold={limit}", installed(UNIT, tmp_path))
    assert done.returncode == 0, done.stdout
    assert f"Overall exposure level for motel.service: {quoted_score()} OK" in done.stdout
    weaker = installed(UNIT, tmp_path, lambda t: t.replace("SystemCallFilter=", "#"))
    assert analyze("security", "--offline=true", "--no-pager", f"--threshold={limit}", weaker).returncode != 0


def test_sample_configuration():
    """As it stands, and with its commented parts switched on, as the comments say."""
    sample = os.path.join(FOLDER, "motel.yaml")
    full = re.sub(r"^#  ", "  ", text_of(sample), flags=re.M).replace("  extensions: [health_check]\n", "").replace("exporters: [file]", "exporters: [file, otlp_http]")
    assert "extensions: [health_check, bearertokenauth, file_storage]" in full
    for config in (sample, "yaml:" + full):
        done = subprocess.run([e2e.MOTEL, "validate", "--config", config], capture_output=True, text=True, timeout=60, check=False,
                              env={**os.environ, "STATE_DIRECTORY": "/tmp", "CREDENTIALS_DIRECTORY": "/tmp"})
        assert done.returncode == 0, f"{done.stderr}\n{config}"


def status(machine, name):
    with open(f"/proc/{main_pid(machine)}/status", encoding="utf-8") as f:
        return re.search(rf"^{name}:\s*(\S+)", f.read(), re.M)[1]


def main_pid(machine):
    """The service's process as the outside numbers it."""
    inner = machine.property("MainPID")
    for pid in machine.run("pgrep", "-x", "motel", only_network=True).stdout.split():
        with open(f"/proc/{pid}/status", encoding="utf-8") as f:
            ids = re.search(r"^NSpid:\s*(.*)", f.read(), re.M)[1].split()
        if ids[-1] == inner and os.readlink(f"/proc/{pid}/ns/net") == os.readlink(f"/proc/{machine.pid}/ns/net"):
            return int(pid)
    raise AssertionError(f"no process {inner} in the machine")


def curl(machine, *args, check=True):
    return machine.run("curl", "-sS", "--noproxy", "*", "-m", "60", *args, only_network=True, check=check).stdout


def send(machine, name, *where):
    body = json.dumps(e2e.span_request(1, name=name))
    assert curl(machine, "-o", "/dev/null", "-w", "%{http_code}", "-H", "Content-Type: application/json", "-d", body, *where) == "200"


GRPC = """
import sys
sys.path.insert(0, sys.argv[1])
import grpc, json
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as t
request = t.ExportTraceServiceRequest()
span = request.resource_spans.add().scope_spans.add().spans.add()
span.name, span.trace_id, span.span_id = "grpc secret-3", b"t" * 16, b"s" * 8
with grpc.insecure_channel("127.0.0.1:14317", options=[("grpc.enable_http_proxy", 0)]) as channel:
    call = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export", request_serializer=t.ExportTraceServiceRequest.SerializeToString,
                               response_deserializer=t.ExportTraceServiceResponse.FromString)
    call(request, timeout=60, wait_for_ready=True)
"""


@pytest.fixture
def service(machine, tmp_path):
    """The service with CONFIG, TLS key and token as credentials. A system call that the unit does not allow ends it here."""
    keep = machine.root.read("/etc/motel/motel.yaml")
    e2e.self_signed(tmp_path, "localhost")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    for name, text in (("cert.pem", cert.read_text()), ("key.pem", key.read_text()), ("backend", "the-token-of-the-backend\n")):
        machine.root.write(f"/etc/motel/credentials/{name}", text, 0o600)
    machine.root.write("/etc/motel/motel.env", "MARK=hidden\n", 0o600)
    machine.root.write("/etc/motel/motel.yaml", CONFIG)
    machine.root.write(DROP_IN, "[Service]\nSystemCallErrorNumber=kill\n")
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "start", "motel")
    yield cert
    machine.run("systemctl", "stop", "motel")
    os.unlink(machine.root.path(DROP_IN))
    for name in ("cert.pem", "key.pem", "backend"):
        os.unlink(machine.root.path("/etc/motel/credentials", name))
    os.unlink(machine.root.path("/etc/motel/motel.env"))
    machine.root.write("/etc/motel/motel.yaml", keep)
    machine.run("systemctl", "daemon-reload")


def names_written(machine):
    path = machine.root.path("/var/lib/private/motel/telemetry.jsonl")
    return re.findall(r'"name":"([^"]*(?:hidden|secret)[^"]*)"', text_of(path)) if os.path.exists(path) else []


def test_service(machine, service, tmp_path):
    """TLS, gRPC, a Unix socket, regular expressions, a durable queue, files, a token: all of it within the restrictions."""
    assert machine.property("ActiveState") == "active"
    assert machine.property("StatusText") == "Receiving: 1 pipeline"
    assert curl(machine, "-o", "/dev/null", "-w", "%{http_code}", "http://127.0.0.1:13133/") == "200"      # ready means ready
    assert status(machine, "CapEff") == "0000000000000000" and status(machine, "CapBnd") == "0000000000000000"
    assert status(machine, "NoNewPrivs") == "1" and status(machine, "Seccomp") == "2"
    assert status(machine, "Uid") != "0"
    score = machine.run("systemd-analyze", "security", "--no-pager", "motel").stdout
    assert f"Overall exposure level for motel.service: {quoted_score()} OK" in score

    pid = main_pid(machine)
    send(machine, "tls secret-1", "--cacert", str(service), "https://localhost:14318/v1/traces")
    send(machine, "unix secret-2", "--unix-socket", f"/proc/{pid}/root/run/motel/otlp.sock", "http://localhost/v1/traces")
    assert os.stat(f"/proc/{pid}/root/run/motel/otlp.sock").st_mode & 0o777 == 0o770
    machine.run(sys.executable, "-c", GRPC, HERE, only_network=True)
    want = ["grpc hidden", "tls hidden", "unix hidden"]
    e2e.wait_until(lambda: sorted(names_written(machine)) == want, 60, "the file")
    assert "otelcol_receiver_accepted_spans" in curl(machine, "http://127.0.0.1:8888/metrics")

    # Nobody has taken the data: the queue is on disk, the next start delivers it.
    machine.run("systemctl", "stop", "motel")
    assert machine.property("Result") == "success"
    heard = tmp_path / "heard"
    heard.write_text("")
    backend = subprocess.Popen(machine.enter(sys.executable, os.path.join(HERE, "systemd_backend.py"), "14319", str(heard), only_network=True))
    try:
        machine.run("systemctl", "start", "motel")
        e2e.wait_until(lambda: "/v1/traces Bearer the-token-of-the-backend" in heard.read_text(), 60, "the delivery")
    finally:
        backend.kill()
        backend.wait()
    assert machine.property("NRestarts") == "0"
    assert "the-token-of-the-backend" not in machine.journal()


def test_reload(machine, service):
    """A good configuration takes over without a new process; a mistake fails the reload and nothing else."""
    pid = machine.property("MainPID")
    machine.root.write("/etc/motel/motel.yaml", CONFIG + "    logs: {receivers: [otlp], exporters: [file]}\n")
    machine.run("systemctl", "reload", "motel")
    e2e.wait_until(lambda: machine.property("StatusText") == "Receiving: 2 pipelines", 60, "the reload")
    e2e.wait_until(lambda: machine.property("ActiveState") == "active", 60, "the end of the reload")
    machine.root.write("/etc/motel/motel.yaml", CONFIG.replace("timeout: 100ms", "timeot: 100ms"))
    assert machine.run("systemctl", "reload", "motel", check=False).returncode != 0
    assert 'did you mean "timeout"?' in machine.journal()
    assert machine.property("ActiveState") == "active" and machine.property("MainPID") == pid


def test_watchdog(machine, service):
    """A process that hangs is ended and started anew."""
    machine.root.write(DROP_IN, "[Service]\nWatchdogSec=5s\nRestartSec=100ms\n")
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "restart", "motel")
    pid = machine.property("MainPID")
    machine.run("sh", "-c", f"kill -STOP {pid}")       # the shell's: the machine has no other
    e2e.wait_until(lambda: machine.property("NRestarts") != "0" and machine.property("ActiveState") == "active", 120, "the watchdog")
    assert machine.property("MainPID") != pid
    assert "Watchdog timeout" in machine.journal()


def test_forbidden_system_call_is_noticed(machine, service):
    """The proof that test_service would fail: a filter without a call that every network program makes."""
    machine.root.write(DROP_IN, "[Service]\nSystemCallErrorNumber=kill\nSystemCallFilter=~bind\nRestart=no\n")
    machine.run("systemctl", "daemon-reload")
    assert machine.run("systemctl", "restart", "motel", check=False).returncode != 0
    e2e.wait_until(lambda: machine.property("Result") in ("signal", "core-dump"), 60, "the end by a signal")
    machine.run("systemctl", "reset-failed", "motel")


def test_user_service(machine):
    """systemctl --user, without root."""
    machine.run("useradd", "-m", "joe")
    home = "/home/joe/.config/motel"
    machine.root.write(f"{home}/motel.yaml", text_of(os.path.join(FOLDER, "motel.yaml")))
    machine.run("chown", "-R", "joe:", "/home/joe")
    machine.run("systemctl", "start", "user@" + machine.run("id", "-u", "joe").stdout.strip())
    uid = machine.run("id", "-u", "joe").stdout.strip()

    def as_joe(*argv, check=True):
        return machine.run("setpriv", "--reuid", "joe", "--regid", "joe", "--init-groups", "env", f"XDG_RUNTIME_DIR=/run/user/{uid}", "HOME=/home/joe", *argv, check=check)
    as_joe("systemctl", "--user", "start", "motel")
    try:
        assert as_joe("systemctl", "--user", "show", "--value", "-p", "StatusText", "motel").stdout.strip() == "Receiving: 3 pipelines"
        as_joe("motel", "health")
        send(machine, "of joe", "http://127.0.0.1:4318/v1/traces")
        as_joe("systemctl", "--user", "reload", "motel")
        e2e.wait_until(lambda: as_joe("systemctl", "--user", "show", "--value", "-p", "ActiveState", "motel").stdout.strip() == "active", 60, "the reload")
    finally:
        as_joe("systemctl", "--user", "stop", "motel", check=False)
    state = as_joe("systemd-path", "user-state-private", check=False)
    found = machine.run("grep", "-rl", "of joe", "/home/joe").stdout
    assert "telemetry.jsonl" in found, state
