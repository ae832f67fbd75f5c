"""motel explain: the account of a configuration, as text and as JSON, its mistakes, and that no secret is in it."""
import json
import os
import subprocess

import pytest

import gym_job
from conftest import MOTEL

CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "${env:HOST:-0.0.0.0}:4317"}
      http: {endpoint: "127.0.0.1:4318", auth: {authenticator: bearertokenauth}}
  otlp/unused: {protocols: {grpc: }}
  prometheus: {config: {scrape_configs: [{job_name: a, static_configs: [{targets: ["localhost:9"]}]}]}}
processors:
  batch: {timeout: 1s, send_batch_size: "${env:SIZE:-100}"}
  resource: {attributes: [{key: a, value: "${env:NUM}", action: insert}]}
connectors: {spanmetrics: }
exporters:
  otlphttp: {endpoint: "https://user:${env:PW}@b.example/", headers: {authorization: "Bearer ${env:TOK}"}}
  otlp: {endpoint: "b:4317", tls: {insecure: true}}
  file: {path: out/x.jsonl}
extensions: {health_check: {cors: {}}, bearertokenauth: {token: "${env:SHORT}"}}
service:
  extensions: [health_check, bearertokenauth]
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [resource, batch], exporters: [otlphttp, otlp, spanmetrics]}
    metrics: {receivers: [spanmetrics, prometheus], exporters: [file]}
"""
ENV = {"NUM": "42", "PW": "pw19", "TOK": "tok-77123456", "SHORT": "q7z"}


def explain(*args, env=None, cwd=None):
    return subprocess.run([MOTEL, "explain", *map(str, args)], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, cwd=cwd,
                          env={**os.environ, **(env or {})})


@pytest.fixture
def told(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG)
    done = explain("--config", "c.yaml", "--format", "json", env=ENV, cwd=tmp_path)
    assert done.returncode == 0 and done.stderr == "", done
    return json.loads(done.stdout)


def test_pipelines(told):
    traces, metrics = told["pipelines"]
    assert (traces["receivers"], traces["processors"], traces["exporters"]) == (["otlp"], ["resource", "batch"], ["otlphttp", "otlp", "[spanmetrics]"])
    assert metrics["receivers"] == ["[spanmetrics]", "prometheus"]
    assert told["joints"] == [{"id": "spanmetrics", "from": ["traces"], "to": ["metrics"]}]


def settings(told, path):
    return {s["key"]: s for c in told["components"] if c["path"] == path for s in c["settings"]}


def test_settings_that_are_not_the_default(told):
    batch = settings(told, "processors::batch")
    assert (batch["timeout"]["value"], batch["timeout"]["default"], batch["timeout"]["at"]) == ("1s", "200ms", "c.yaml:10:20")
    assert batch["send_batch_size"]["value"] == "100 records" and set(batch) == {"timeout", "send_batch_size"}
    assert settings(told, "connectors::spanmetrics") == {}
    assert settings(told, "receivers::otlp/unused")["protocols::grpc"]["value"] == "on"


def test_ports_destinations_and_files(told, tmp_path):
    ports = {p["address"]: p for p in told["ports"]}
    assert set(ports) == {"0.0.0.0:4317", "127.0.0.1:4318", "localhost:13133"}, "not those of what is unused"
    assert ports["127.0.0.1:4318"]["auth"] == "bearertokenauth" and ports["0.0.0.0:4317"]["tls"] == "none"
    destinations = {d["address"]: d for d in told["destinations"]}
    assert set(destinations) == {"https://***@b.example/v1/traces", "b:4317", "http://localhost:9/metrics"}
    assert destinations["b:4317"]["tls"] == "none" and destinations["https://***@b.example/v1/traces"]["tls"] == "TLS"
    files = {(f["path"], f["use"]) for f in told["files"]}
    assert {(f"{tmp_path}/out/x.jsonl", "written"), (f"{tmp_path}/out/summary.json", "written")} <= files


def test_variables_and_their_types(told):
    variables = {v["name"]: v["places"] for v in told["variables"]}
    assert {(n, variables[n][0]["state"], variables[n][0].get("value"), variables[n][0]["type"]) for n in ("HOST", "SIZE", "NUM", "PW", "TOK", "SHORT")} == {
        ("HOST", "default", "0.0.0.0", "part of a string"), ("SIZE", "default", "100", "int"),
        ("NUM", "set", "42", "int (any type may stand here)"), ("PW", "set", "[REDACTED]", "part of a string"),
        ("TOK", "set", "[REDACTED]", "part of a string"), ("SHORT", "set", "[REDACTED]", "string")}
    assert variables["NUM"][0]["of"] == "processors::resource::attributes[0]::value" and variables["NUM"][0]["at"] == "c.yaml:11:43"


def test_what_to_look_at(told):
    notes = {(n["kind"], n.get("of")) for n in told["notes"]}
    assert {("deprecated", "exporters::otlphttp"), ("deprecated", "exporters::otlp"), ("deprecated", "connectors::spanmetrics"),
            ("unused", "receivers::otlp/unused"), ("no effect", "extensions::health_check::cors")} <= notes


def test_text_has_the_same_and_no_secret(told, tmp_path):
    done = explain("--config", "c.yaml", env=ENV, cwd=tmp_path)
    assert done.returncode == 0 and done.stderr == ""
    for line in ("  traces   otlp  ->  resource  ->  batch  ->  otlphttp, otlp, [spanmetrics]", "  [spanmetrics] joins traces to metrics",
                 "    timeout: 1s, by default 200ms  (c.yaml:10:20)", "    exporters::otlphttp::headers::authorization: set \"[REDACTED]\", part of a string"):
        assert line in done.stdout, line
    for secret in ("pw19", "tok-77123456", "q7z"):
        assert secret not in done.stdout and secret not in json.dumps(told)


def test_where_a_merged_value_came_from(tmp_path):
    (tmp_path / "a.yaml").write_text(CONFIG)
    (tmp_path / "b.yaml").write_text("processors: {batch: {send_batch_size: 7}}\n")
    done = explain("--config", "a.yaml", "--config", "b.yaml", "--set", "processors.batch.timeout=3s", "--format", "json", env=ENV, cwd=tmp_path)
    batch = settings(json.loads(done.stdout), "processors::batch")
    assert (batch["timeout"]["at"], batch["send_batch_size"]["at"]) == ("--set", "b.yaml:1:39")
    assert json.loads(done.stdout)["sources"] == ["a.yaml", "b.yaml", "--set processors.batch.timeout"]


def test_mistakes_are_those_of_validate(tmp_path):
    (tmp_path / "c.yaml").write_text(CONFIG.replace("timeout: 1s", "timeot: 1s"))
    done = explain("--config", "c.yaml", env=ENV, cwd=tmp_path)
    validate = subprocess.run([MOTEL, "validate", "--config", "c.yaml"], capture_output=True, text=True, timeout=60, cwd=tmp_path, env={**os.environ, **ENV})
    assert (done.returncode, done.stdout) == (1, "") and done.stderr == validate.stderr and 'unknown key "timeot"' in done.stderr
    assert explain("--config", tmp_path / "none.yaml").returncode == 1


def test_without_a_configuration_the_built_in_one():
    done = explain()
    assert done.returncode == 0 and done.stdout.startswith("configuration: built-in\n")


@pytest.mark.parametrize("name", gym_job.NAMES)
def test_the_files_of_gym(name, tmp_path):
    text = gym_job.load(name)
    (tmp_path / "c.yaml").write_text(text)
    token = gym_job.token_variable(text)
    for form in ("text", "json"):
        done = explain("--config", "c.yaml", "--format", form, env={token: "sk-very-secret", "SLURM_JOB_ID": "123"}, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "sk-very-secret" not in done.stdout and token in done.stdout and ":4317" in done.stdout


def test_a_gym_config_with_a_configuration_over_it(tmp_path):
    (tmp_path / "gym.yaml").write_text("telemetry: {enabled: true, service_name: s, otlp_endpoint: 'http://b.example:4317', otlp_headers: 'a=hidden-one'}\n")
    (tmp_path / "c.yaml").write_text("processors: {batch: {timeout: 3s}}\n")
    done = explain("--gym-config", "gym.yaml", "--config", "c.yaml", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.startswith("FIELD ") and "hidden-one" not in done.stdout
    assert "timeout: 3s, by default 200ms  (c.yaml:1:31)" in done.stdout and "\npipelines\n" in done.stdout
    done = explain("--gym-config", "gym.yaml", "--format", "json", cwd=tmp_path)
    block = {f["field"]: f for f in json.loads(done.stdout)["telemetry_block"]}
    assert block["service_name"]["value"] == "s" and block["service_name"]["from"].startswith("gym.yaml:1:")
    assert "hidden-one" not in done.stdout


def test_print_config_shows_the_sizer(tmp_path):
    (tmp_path / "c.yaml").write_text("receivers: {nop: }\nexporters: {otlp_http: {endpoint: 'http://x:1'}}\n"
                                     "service: {telemetry: {metrics: {level: none}}, pipelines: {logs: {receivers: [nop], exporters: [otlp_http]}}}\n")
    done = subprocess.run([MOTEL, "print-config", "--config", tmp_path / "c.yaml"], capture_output=True, text=True, timeout=60)
    assert "      sizer: requests\n" in done.stdout


STORED = """
receivers: {{otlp: {{protocols: {{grpc: }}}}}}
exporters: {{otlp_http: {{endpoint: "https://b.example", headers: {{Authorization: "Bearer ${{env:NOT_SET}}"}}, {queue}}}}}
extensions: {{file_storage: {{directory: {folder}, compaction: {{on_start: {compacts}, directory: {folder}}}}}}}
service:
  extensions: [file_storage]
  pipelines: {{traces: {{receivers: [otlp], exporters: [otlp_http]}}, metrics: {{receivers: [otlp], exporters: [otlp_http]}}}}
"""


@pytest.mark.parametrize("used", (False, True))
def test_a_storage_that_nothing_uses(tmp_path, used):
    path = tmp_path / "c.yaml"
    path.write_text(STORED.format(folder=tmp_path, queue="sending_queue: {storage: file_storage}" if used else "", compacts=str(used).lower()))
    told = json.loads(explain("--config", path, "--format", "json", env={"SSL_CERT_FILE": "/nowhere/ca.pem"}).stdout)
    assert (("unused", "extensions::file_storage") in {(n["kind"], n.get("of")) for n in told["notes"]}) != used
    files = [f["of"] for f in told["files"]]
    assert ("extensions::file_storage::compaction::directory" in files) == used
    assert files.count("exporters::otlp_http::tls") == 1, "the authorities are told once, not for each signal"
    place = next(v for v in told["variables"] if v["name"] == "NOT_SET")["places"][0]
    assert place["state"] == "not set" and "value" not in place


def test_values_command_no_terminal(tmp_path):
    """What a variable or a text of the configuration holds is shown without what a terminal would obey."""
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG.replace("out/x.jsonl", "\"out/\\e[31m\\u009b1m.jsonl\""))
    env = {**ENV, "NUM": "\x1b[2J\u202e"}
    text = explain("--config", path, env=env).stdout
    assert "out/ [31m 1m.jsonl" in text and all(c.isprintable() for c in text.replace("\n", "")), text
    told = json.loads(explain("--config", path, "--format", "json", env=env).stdout)
    assert any("\x1b[31m\x9b1m" in f["path"] for f in told["files"]), told["files"]


def test_variables_in_the_query_of_a_url(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG.replace("https://user:${env:PW}@b.example/", "https://b.example/x?key=${env:ASKED}"))
    for form in ("text", "json"):
        done = explain("--config", path, "--format", form, env={**ENV, "ASKED": "q-55"})
        assert done.returncode == 0 and "ASKED" in done.stdout and "q-55" not in done.stdout, done.stdout
