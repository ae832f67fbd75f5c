"""motel beside a NeMo Gym job: --gym-config, the environment over it, what the sinks get, explain."""
import os
import re
import signal
import subprocess
import sys

import pytest

from conftest import HERE, MOTEL, SIGNALS, free_port, records, wait_until

FREE = re.compile("^(NEMO_|OTEL_|SLURM_JOB_ID)")
CLEAN = {k: v for k, v in os.environ.items() if not FREE.match(k)}
GYM = """
policy_model:
  responses_api_models:
    openai_model: {entrypoint: app.py, openai_api_key: "${policy_api_key}"}
telemetry:
  enabled: true
  logs_enabled: true
"""


class Job:
    """A folder with a Gym config and motel's addresses in a second file, since tests share a machine."""

    def __init__(self, start, folder, gym=GYM):
        self.start, self.folder = start, folder
        self.grpc, self.http, self.health = free_port(), free_port(), free_port()
        self.write(gym)
        self.addresses = f"""
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: "127.0.0.1:{self.grpc}"}}, http: {{endpoint: "127.0.0.1:{self.http}"}}}}}}}}
extensions: {{health_check: {{endpoint: "127.0.0.1:{self.health}"}}}}
"""

    def write(self, gym):
        (self.folder / "gym.yaml").write_text(gym)

    def run(self, **env):
        return self.start(self.addresses, args=["--gym-config", str(self.folder / "gym.yaml")],
                          env={**dict.fromkeys(set(os.environ) - set(CLEAN), ""), **env}, wait_ports=[self.grpc, self.http])

    def client(self, *attributes, protocol="grpc", **env):
        port = self.grpc if protocol == "grpc" else self.http
        subprocess.run([sys.executable, os.path.join(HERE, "gym_client.py"), *attributes], check=True, timeout=180,
                       env={**CLEAN, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", "OTEL_EXPORTER_OTLP_PROTOCOL": protocol, **env})


@pytest.fixture
def job(start, tmp_path):
    return lambda *args: Job(start, tmp_path, *args)


def resources(sink):
    """The resource attributes of every record that the sink got, by signal."""
    got = {s: [] for s in SIGNALS}
    for name, message in sink.messages():
        got[name] += [attributes for attributes, _, _ in records(name, message)]
    return got


def motel(*args, env=None, cwd=None):
    return subprocess.run([MOTEL, *map(str, args)], capture_output=True, text=True, timeout=120, cwd=cwd, env={**CLEAN, **(env or {})})


STAMPED = {"service.name": "nemo-gym/policy_model", "nemo.gym.service_group": "nemo-gym", "nemo.gym.server.name": "policy_model",
           "nemo.gym.server.type": "responses_api_models", "nemo.run.id": "4711"}


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_a_program_of_the_run_is_stamped(job, grpc_sink, http_sink, protocol):
    sink = grpc_sink() if protocol == "grpc" else http_sink()
    job = job()
    program = job.run(OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{sink.port}", OTEL_EXPORTER_OTLP_PROTOCOL=protocol, SLURM_JOB_ID="4711",
                      OTEL_EXPORTER_OTLP_HEADERS="x-team=a%20b,authorization=Bearer%20top-secret")
    job.client("nemo.gym.server.name=policy_model", "nemo.gym.server.type=responses_api_models", protocol=protocol)
    assert program.stop() == 0
    for name, got in resources(sink).items():
        assert len(got) == 1, name
        assert {k: got[0].get(k) for k in STAMPED} == STAMPED, name
    sent = sink.requests[0]["metadata" if protocol == "grpc" else "headers"]
    assert (sent["x-team"], sent["authorization"]) == ("a b", "Bearer top-secret")
    assert "top-secret" not in program.stderr


def test_what_gym_itself_sends_stays_as_it_is(job, grpc_sink):
    sink = grpc_sink()
    job = job()
    program = job.run(OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{sink.port}", NEMO_LENS_RUN_ID="another")
    job.client("nemo.run.id=run-1", "nemo.gym.service_group=g", "service.name=own/policy_model", "nemo.gym.server.name=policy_model")
    program.stop()
    for name, got in resources(sink).items():
        assert (got[0]["nemo.run.id"], got[0]["nemo.gym.service_group"], got[0]["service.name"]) == ("run-1", "g", "own/policy_model"), name


def test_the_console_exporter(job):
    job = job()
    program = job.run(NEMO_LENS_EXPORTER="console", NEMO_GYM_OTEL_RUN_ID="run-7", OTEL_SERVICE_NAME="evals")
    job.client("nemo.gym.server.name=judge", "service.name=unknown_service:python")
    assert program.stop() == 0
    lines = program.json_lines("stdout")
    assert len(lines) == 3
    for line in lines:
        text = str(line)
        assert "run-7" in text and "evals/judge" in text and "nemo.gym.service_group" in text


def test_signals_that_are_off_and_exporters_of_their_own(job, grpc_sink, http_sink):
    grpc, http = grpc_sink(), http_sink()
    job = job(GYM + "  metrics_enabled: ${oc.env:METRICS,false}\n")
    program = job.run(OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{grpc.port}", OTEL_EXPORTER_OTLP_LOGS_PROTOCOL="http/protobuf",
                      OTEL_EXPORTER_OTLP_LOGS_ENDPOINT=f"{http.url}/in/logs", OTEL_EXPORTER_OTLP_LOGS_HEADERS="a=b")
    job.client("service.name=x")
    program.stop()
    assert [name for name, _ in grpc.messages()] == ["traces"]
    assert [(r["path"], r["headers"].get("a")) for r in http.requests] == [("/in/logs", "b")]


def test_a_reload_reads_the_block_again_and_keeps_the_run(job, grpc_sink):
    sink = grpc_sink()
    job = job()
    program = job.run(OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{sink.port}")
    for name in ("first", "second"):
        if name == "second":
            job.write(GYM + "  service_name: second\n")
            program.process.send_signal(signal.SIGHUP)
            wait_until(lambda: "The new configuration runs" in program.stderr, limit=60, what="the reload")
        job.client("service.name=unknown_service")
    job.write("telemetry: {enabled: false, exporter: console}")
    program.process.send_signal(signal.SIGHUP)
    wait_until(lambda: program.stderr.count("The new configuration runs") == 2 or "Reload failed" in program.stderr, limit=60, what="the second reload")
    program.stop()
    for name, got in resources(sink).items():
        assert sorted(a["service.name"] for a in got) == ["nemo-gym", "second"], name
        assert len({a["nemo.run.id"] for a in got}) == 1, name
        assert re.fullmatch("[0-9a-f]{12}", got[0]["nemo.run.id"])


@pytest.mark.parametrize("gym, env, why", [
    ("policy_model: {}", {}, "enabled is false (default)"),
    ("telemetry: {enabled: false, exporter: nonsense}", {}, "enabled is false (gym.yaml:1:22)"),
    (GYM, {"NEMO_LENS_ENABLED": "Off"}, "enabled is false (NEMO_LENS_ENABLED)"),
])
def test_telemetry_that_is_off_is_said_and_nothing_done(tmp_path, gym, env, why):
    (tmp_path / "gym.yaml").write_text(gym)
    for command in ([], ["validate"], ["print-config"]):
        r = motel(*command, "--gym-config", "gym.yaml", env=env, cwd=tmp_path)
        assert (r.returncode, r.stdout, r.stderr) == (0, "", f"NeMo Gym telemetry is off: {why}. Nothing to do.\n")
    r = motel("explain", "--gym-config", "gym.yaml", env={**env, "NEMO_GYM_OTEL_EXPORTER": "otlp"}, cwd=tmp_path)
    if "nonsense" not in gym:
        assert r.returncode == 0 and re.search(r"^enabled +false", r.stdout, re.M)


def test_motel_does_not_send_to_itself(tmp_path):
    (tmp_path / "gym.yaml").write_text(GYM)
    r = motel("--gym-config", "gym.yaml", env={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4317"}, cwd=tmp_path)
    assert r.returncode == 1 and r.stderr.startswith("Error: OTEL_EXPORTER_OTLP_ENDPOINT: ") and "motel itself" in r.stderr
    r = motel("--gym-config", "gym.yaml", cwd=tmp_path)
    assert r.returncode == 1 and "needs a destination: set OTEL_EXPORTER_OTLP_ENDPOINT" in r.stderr


def test_mistakes_have_their_place(tmp_path):
    (tmp_path / "gym.yaml").write_text(GYM + "  exporter: zipkin\n  otlp_endpoint: ${policy_url}\n")
    r = motel("validate", "--gym-config", "gym.yaml", env={"NEMO_GYM_OTEL_LOGS_ENABLED": "perhaps"}, cwd=tmp_path)
    assert r.returncode == 1
    for text in ("gym.yaml:8:13: telemetry::exporter: expected otlp or console, got \"zipkin\"", "gym.yaml:9:18: telemetry::otlp_endpoint: ",
                 "NEMO_GYM_OTEL_LOGS_ENABLED: expected 1, true, yes, on or 0, false, no, off, got \"perhaps\""):
        assert text in r.stderr
    r = motel("validate", "--gym-config", "gym.yaml", cwd=tmp_path / "..")
    assert r.returncode == 1 and 'cannot read the file "gym.yaml"' in r.stderr


def test_a_bad_url_of_a_variable_names_the_variable(tmp_path):
    (tmp_path / "gym.yaml").write_text(GYM)
    r = motel("validate", "--gym-config", "gym.yaml", cwd=tmp_path,
              env={"OTEL_EXPORTER_OTLP_ENDPOINT": "backend:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"})
    assert r.returncode == 1 and "OTEL_EXPORTER_OTLP_ENDPOINT: exporters::otlp_http/gym::endpoint: endpoint must be a valid URL" in r.stderr


def test_explain_and_print_config_show_no_secrets(tmp_path):
    (tmp_path / "gym.yaml").write_text(GYM + "  otlp_headers: x-key=${oc.env:KEY}\n")
    env = {"KEY": "key-12345", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://me:pass-678@backend:4317", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "x-key=other-9012",
           "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
    r = motel("explain", "--gym-config", "gym.yaml", env=env, cwd=tmp_path)
    assert r.returncode == 0 and r.stderr == ""
    assert re.search(r"^otlp_headers +\[REDACTED\] +gym.yaml:8:17$", r.stdout, re.M)
    assert re.search(r"^otlp_traces_headers +\[REDACTED\] +OTEL_EXPORTER_OTLP_TRACES_HEADERS$", r.stdout, re.M)
    printed = motel("print-config", "--gym-config", "gym.yaml", env=env, cwd=tmp_path)
    assert printed.returncode == 0 and "otlp_http/gym_traces:" in printed.stdout
    for secret in ("key-12345", "pass-678", "other-9012"):
        assert secret not in r.stdout + printed.stdout


def test_gym_config_is_for_what_loads_one():
    r = motel("components", "--gym-config", "x")
    assert r.returncode == 1 and "unknown flag: --gym-config here" in r.stderr
