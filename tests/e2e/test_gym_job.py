"""A submitted NeMo Gym job: the configuration and the job script's part, byte for byte as Gym writes them, with motel in place of the collector.

They name fixed ports and absolute folders, so each runs in namespaces of its own (gym_job_inside.py)."""
import base64
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

import gym_job
from conftest import HERE, MOTEL, SANITIZER_WORDS, decode, parse, records, signed_by_ca
from test_secrets import assert_nowhere, forms

TOKEN, SENT = "sk-a$$b#1", "sk-a$b#1"
SPANS = 300
NAMESPACES = ["unshare", "-rmnpf", "--mount-proc", "--kill-child"]


def why_not():
    for program in ("unshare", "mount", "bash", "curl", "pkill", "pgrep", "openssl"):
        if not shutil.which(program):
            return f"there is no {program}"
    tried = subprocess.run([*NAMESPACES, "sh", "-c", "mount -t tmpfs tmpfs /tmp"], capture_output=True, text=True)
    return f"no namespaces of our own: {tried.stderr.strip()}" if tried.returncode else ""


WHY_NOT = why_not()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A CA that the job trusts, and a certificate for the managed backend, whose name leads here."""
    folder = signed_by_ca(tmp_path_factory.mktemp("certificates"), "otlp.example.com")
    (folder / "hosts").write_text("127.0.0.1 localhost otlp.example.com\n")
    return folder


class Job:
    """A job that ran."""

    def __init__(self, name, folder, certificates, backend=True, code=0, scrapes=False):
        self.name, self.folder, config = name, folder, gym_job.load(name)
        script = gym_job.load(name, ".collector-part.sh")
        self.path = re.search(r"path: (/\S*)/otel/metrics\.jsonl", config).group(1)
        endpoint = re.search(r"endpoint: (https?)://[^/:\s]+(?::(\d+))?", config)
        tls = endpoint.group(1) == "https"
        program = re.search(r"(\S+) --config ", script).group(1)
        (folder / "otel").mkdir(parents=True)
        shutil.copyfile(gym_job.path_of(name), folder / "otel" / "collector.yaml")
        ports = [int(p) for p in re.findall(r"- localhost:(\d+)", config)]
        spec = {"job": self.path, "folder": str(folder), "script": script, "program": os.path.abspath(MOTEL), "places": [program] if program.startswith("/") else [],
                "backend": {"port": int(endpoint.group(2) or 443), "tls": tls} if backend else None, "certificates": str(certificates) if tls and backend else "",
                "driver": os.path.join(HERE, "gym_job_driver.py"),
                "env": {gym_job.token_variable(config): TOKEN, "SLURM_JOB_ID": gym_job.JOB_ID, "JOB_EXIT": str(code), "JOB_SPANS": str(SPANS), "JOB_GRACE": "1",
                        "JOB_SCRAPES": json.dumps([p for p in ports if p != 9400] if scrapes else [])}}
        (folder / "spec.json").write_text(json.dumps(spec))
        done = subprocess.run([*NAMESPACES, sys.executable, os.path.join(HERE, "gym_job_inside.py"), str(folder / "spec.json")], capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stdout + done.stderr
        (folder / "spec.json").unlink()     # holds the token
        self.result = json.loads((folder / "result.json").read_text())
        (folder / "result.json").unlink()
        self.log = (folder / "logs" / f"otel_collector-{gym_job.JOB_ID}.log").read_text(errors="replace")
        self.driver = (folder / "logs" / f"driver-{gym_job.JOB_ID}.log").read_text(errors="replace")
        assert not any(w in self.log for w in SANITIZER_WORDS), self.log[-6000:]

    def lines(self, signal_name):
        text = (self.folder / "otel" / f"{signal_name}.jsonl").read_text(encoding="utf-8")
        assert text.endswith("\n") or not text
        return [json.loads(x) for x in text.split("\n")[:-1]]

    def entries(self, signal_name):
        """(resource attributes, record) of the job's file; a record is a span, a metric or a log record."""
        outer, inner, leaf = {"traces": ("resourceSpans", "scopeSpans", "spans"), "metrics": ("resourceMetrics", "scopeMetrics", "metrics"),
                              "logs": ("resourceLogs", "scopeLogs", "logRecords")}[signal_name]
        for line in self.lines(signal_name):
            for r in line[outer]:
                attributes = {a["key"]: next(iter(a["value"].values()), None) for a in r["resource"]["attributes"]}
                for s in r[inner]:
                    yield from ((attributes, x) for x in s[leaf])

    def arrived(self, signal_name):
        return [parse(signal_name, decode(base64.b64decode(r["body"]), r["headers"].get("content-encoding", "")))
                for r in self.result["requests"] if r["path"].endswith("/v1/" + signal_name)]

    def summary(self):
        return json.loads((self.folder / "otel" / "summary.json").read_text(encoding="utf-8"))

    def exported(self, exporter, signal_name):
        return next(e for e in self.summary()["exporters"] if e["exporter"] == exporter and e["signal"] == signal_name)


def check_end(job, code):
    """The script saw the collector healthy, stopped it and handed the driver's exit code on; the collector ended in time, by itself."""
    assert "otel_collector ready." in job.result["stdout"], job.result
    assert job.result["code"] == code, (job.result, job.driver, job.log[-3000:])
    assert job.result["left"] == [] and job.result["stop_seconds"] < 30
    assert "Shutdown complete." in job.log and "second signal" not in job.log


def check_files(job):
    """All that the driver sent is in the three files, stamped, without the token."""
    spans = list(job.entries("traces"))
    assert len(spans) == 2 * SPANS and {a["service.name.override"] for a, _ in spans} == {"nemo-gym/agent", "nemo-gym/policy_model"}
    assert sorted(x["body"]["stringValue"] for _, x in job.entries("logs")) == ["hello from agent", "hello from policy_model"]
    metrics = list(job.entries("metrics"))
    names = {m["name"] for _, m in metrics}
    assert {"gym.rollout.duration_ms", "traces.span.metrics.duration", "traces.span.metrics.calls"} <= names, names
    run_id = os.path.basename(os.path.dirname(job.path))
    for attributes, _ in [*spans, *job.entries("logs"), *metrics]:
        assert attributes["run_id"] == run_id and attributes["Authorization"] == "[REDACTED]" and isinstance(attributes["slurm_job_id"], str)
    assert_nowhere(job.folder, TOKEN, SENT, but=())


@pytest.mark.parametrize("name", gym_job.NAMES)
def test_a_job(tmp_path, certificates, name):
    """Unchanged files, a backend under the name that they give; with exit code 0 and another."""
    code = 0 if name.startswith(("a", "b")) else 3
    job = Job(name, tmp_path / "job", certificates, code=code)
    check_end(job, code)
    check_files(job)
    assert {r["headers"]["authorization"] for r in job.result["requests"]} == {f"Bearer {SENT}"}
    for signal_name in ("traces", "metrics", "logs"):
        got = [(a, x) for m in job.arrived(signal_name) for a, _, x in records(signal_name, m)]
        assert len(got) == len(list(job.entries(signal_name))) and {a["Authorization"] for a, _ in got} == {SENT}
        sent = job.exported("otlp_http/managed", signal_name)
        assert sent["in"] == sent["sent"] > 0 and sent["rejected"] == sent["dropped"] == 0
    assert job.summary()["run"]["lost"] == 0 and job.summary()["signals"]["traces"]["accepted"] == 2 * SPANS


def test_scrapes_of_a_job(tmp_path, certificates):
    """Two model servers and a node exporter answer, the GPU exporter does not: metrics of the first, up 0 of the other, and the share in the summary."""
    job = Job("c-two-services.gpqa-x", tmp_path / "job", certificates, scrapes=True)
    check_end(job, 0)
    check_files(job)
    metrics = list(job.entries("metrics"))
    vllm = {a["service.name.override"] for a, m in metrics if m["name"] == "vllm_requests_total"}
    assert vllm <= {"gym-judge/policy", "gym-judge/judge", "dcgm", "node"} and vllm & {"gym-judge/policy", "gym-judge/judge", "node"}
    scrapes = {(s["job"], s["instance"]): s for s in job.summary()["scrapes"]}
    assert set(scrapes) == {("gym-judge/policy", "localhost:8000"), ("gym-judge/judge", "localhost:8001"), ("dcgm", "localhost:9400"), ("node", "localhost:9101")}
    assert scrapes[("dcgm", "localhost:9400")]["succeeded"] == 0
    assert "Summary: good scrapes: " in job.log


def test_the_backend_is_down_all_the_time(tmp_path, certificates):
    """Nothing is missing in the files, the summary says what the backend did not get, and the stop does not take for ever."""
    job = Job("a-default.aime25", tmp_path / "job", certificates, backend=False, code=4)
    check_end(job, 4)
    check_files(job)
    for signal_name in ("traces", "metrics", "logs"):
        managed, file = job.exported("otlp_http/managed", signal_name), job.exported(f"file/{signal_name}", signal_name)
        assert managed["in"] == managed["dropped"] == file["in"] == file["sent"] > 0 and managed["sent"] == 0
    assert job.summary()["run"]["lost"] == sum(job.exported("otlp_http/managed", s)["in"] for s in ("traces", "metrics", "logs"))
    assert re.search(r"warn\tSummary: otlp_http/managed: traces 600 in, none sent, 600 dropped", job.log)
