"""Whom motel trusts when the configuration names no authority: the file of SSL_CERT_FILE, the folders of SSL_CERT_DIR, for exporters and scrapes alike."""
import os
import shutil
import subprocess

import pytest

from conftest import HttpSink, wait_until
from test_otlp_exporters import RETRY, certificates, https_sink, send, tls_grpc_sink  # noqa: F401

GOOD, BAD = True, False
CASES = {
    "file": ({"SSL_CERT_FILE": "{d}/ca.pem"}, GOOD),
    "other file": ({"SSL_CERT_FILE": "{d}/other.pem"}, BAD),
    "missing file": ({"SSL_CERT_FILE": "{d}/missing.pem"}, BAD),
    "folders beside another file": ({"SSL_CERT_FILE": "{d}/other.pem", "SSL_CERT_DIR": "{d}/nothing::{d}/folder"}, GOOD),
    "folders beside a missing file": ({"SSL_CERT_FILE": "{d}/missing.pem", "SSL_CERT_DIR": "{d}/folder"}, GOOD),
    "folders beside a pipe without a writer": ({"SSL_CERT_FILE": "{d}/pipe", "SSL_CERT_DIR": "{d}/folder"}, GOOD),
    "a pipe without a writer": ({"SSL_CERT_FILE": "{d}/pipe"}, BAD),
    "folders without it": ({"SSL_CERT_FILE": "{d}/other.pem", "SSL_CERT_DIR": "{d}/nothing"}, BAD),
}
SCRAPE = """
receivers:
  prometheus:
    config:
      scrape_configs:
      - {{job_name: x, scheme: https, scrape_interval: 200ms, static_configs: [{{targets: ["localhost:{port}"]}}]}}
exporters:
  file: {{path: {path}}}
service:
  telemetry: {{metrics: {{level: none}}, logs: {{level: debug}}}}
  pipelines: {{metrics: {{receivers: [prometheus], exporters: [file]}}}}
"""


@pytest.fixture(scope="module")
def places(certificates):  # noqa: F811
    """The certificates, and a folder of them in which there is more than certificates."""
    folder = certificates / "folder"
    folder.mkdir()
    (folder / "sub").mkdir()
    (folder / "README").write_text("What lies here is trusted.\n")
    (folder / "broken.pem").write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    (folder / "link").symlink_to("nowhere")
    os.mkfifo(folder / "fifo")
    os.mkfifo(certificates / "pipe")
    shutil.copy(certificates / "server.key", folder / "a.key")
    shutil.copy(certificates / "other.pem", folder / "b.pem")
    shutil.copy(certificates / "ca.pem", folder / "c.0")
    return certificates


def environment(places, case):
    variables, good = CASES[case]
    return {"SSL_CERT_DIR": "", **{k: v.format(d=places) for k, v in variables.items()}}, good


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_exporters(send, places, kind, case):  # noqa: F811
    env, good = environment(places, case)
    sink = (https_sink if kind == "http" else tls_grpc_sink)(places)
    try:
        endpoint = f"https://localhost:{sink.port}" if kind == "http" else f"localhost:{sink.port}"
        program = send({f"otlp_{kind}": f"endpoint: '{endpoint}', {RETRY}"}, env=env)
        if good:
            wait_until(lambda: sink.requests, what=f"a request; {program.stderr[-1500:]}")
        else:
            wait_until(lambda: "Dropping data" in program.stderr)
            assert not sink.requests and "cert" in program.stderr.lower() and "/proc/" not in program.stderr
            assert kind == "grpc" or ("the certificates of this machine" if "folders" in case or "pipe" in case else env["SSL_CERT_FILE"]) in program.stderr
    finally:
        sink.close()


@pytest.mark.parametrize("case", CASES)
def test_scrapes(start, places, tmp_path, case):
    env, good = environment(places, case)
    sink = https_sink(places)
    sink.answer = lambda *_: (200, {"Content-Type": "text/plain; version=0.0.4"}, b"answered 1\n")
    try:
        program = start(SCRAPE.format(port=sink.port, path=tmp_path / "metrics.jsonl"), env=env)
        names = lambda: {m["name"] for line in program.json_lines(str(tmp_path / "metrics.jsonl"))
                         for r in line["resourceMetrics"] for s in r["scopeMetrics"] for m in s["metrics"]}
        wait_until(lambda: "up" in names(), what=f"a scrape; {program.stderr[-1500:]}")
        if good:
            wait_until(lambda: "answered" in names(), what=f"a scrape that succeeds; {program.stderr[-1500:]}")
        else:
            assert not sink.requests and "answered" not in names()
    finally:
        sink.close()



@pytest.mark.parametrize("case", CASES)
def test_a_proxy_behind_tls(send, places, case):  # noqa: F811
    env, good = environment(places, case)
    proxy = https_sink(places)
    try:
        program = send({"otlp_http": f"endpoint: 'http://backend.example:4318', proxy_url: 'https://localhost:{proxy.port}', {RETRY}"}, env=env)
        if good:
            wait_until(lambda: proxy.requests, what=f"a request; {program.stderr[-1500:]}")
        else:
            wait_until(lambda: "Dropping data" in program.stderr)
            assert not proxy.requests and "cert" in program.stderr.lower()
    finally:
        proxy.close()


@pytest.mark.parametrize("tls", (False, True))
def test_folders_are_read_for_tls_alone(send, places, tls):  # noqa: F811
    """Reading them takes a while, and what was read is kept: in a file in memory."""
    env, _ = environment(places, "folders beside another file")
    sink = https_sink(places) if tls else HttpSink()
    try:
        program = send({"otlp_http": f"endpoint: '{'https' if tls else 'http'}://localhost:{sink.port}', {RETRY}"}, env=env)
        wait_until(lambda: sink.requests, what=f"a request; {program.stderr[-1500:]}")
        held = subprocess.run(["ls", "-l", f"/proc/{program.pid}/fd"], capture_output=True, text=True, check=False).stdout
        assert ("memfd:pem" in held) == tls, held
    finally:
        sink.close()
