"""The page for people who come from otelcol-contrib says what is true: what it calls there is there, what it calls missing is refused."""
import os
import re
import shlex
import urllib.request

import pytest
import yaml

from sample_checks import KINDS, LEAST, completed, component_signals, flags_of, motel
from samples import read
from support import ROOT, e2e

PAGE = "docs/moving-from-otelcol-contrib.md"
OWN = {"receivers": {"console", "gym_memory"}, "processors": {"gym"}, "connectors": set(), "exporters": {"console"}, "extensions": set()}
MORE = {"processors": {"filter": {"error_mode": "ignore"}, "transform": {"error_mode": "ignore"}},
        "extensions": {"basicauth": {"client_auth": {"username": "a", "password": "b"}}, "file_storage": {"directory": "/tmp"}}}


def section(heading, level="##"):
    text = read(PAGE).split(f"\n{level} {heading}\n", 1)[1]
    return re.split(rf"\n#{{1,{len(level)}}} ", text)[0]


def rows(kind):
    return re.findall(r"^\| `(\w+)` \| (yes|no) \|", section(kind.capitalize(), "###"), re.M)


COMPONENTS = [(kind, name, there) for kind in KINDS for name, there in rows(kind)]
REFUSED = re.findall(r"^\| `(\w+::[^`]+: [^`]+)` \|", read(PAGE), re.M)


def test_the_tables_are_complete():
    for kind in KINDS:
        listed = {name for k, name, there in COMPONENTS if k == kind and there == "yes"}
        names = {c["name"] for c in yaml.safe_load(motel("components").stdout)[kind]}
        assert listed == names - OWN[kind], kind
    assert len(COMPONENTS) > 60 and len(REFUSED) > 12


@pytest.mark.parametrize("kind, name, there", COMPONENTS, ids=[f"{k}-{n}" for k, n, _ in COMPONENTS])
def test_a_component(kind, name, there):
    config = {**LEAST.get(kind, {}), **MORE.get(kind, {})}.get(name)
    said = completed(yaml.safe_dump({kind: {name: config}}))
    if there == "yes":
        assert name in component_signals()[kind] and said == ""
    else:
        assert f'type "{name}" is not supported by this build' in said


@pytest.mark.parametrize("line", REFUSED)
def test_a_key_that_is_refused(line):
    said = completed(line + "\n")
    assert "not supported" in said and "unknown key" not in said


WHOLE = "{receivers: {nop: }, exporters: {nop: }, service: {pipelines: {traces: {receivers: [nop], exporters: [nop]}}}}"


def test_flags_and_commands():
    for words in re.findall(r"^\| (`[^|]+)\| (?:the same|reads)", section("Command line"), re.M):
        for flag in re.findall(r"`(--[a-z-]+)`", words):
            assert flag in flags_of("")
    for command in ("validate", "components", "featuregate", "print-config"):
        assert motel(command, *(["--config", "yaml:" + WHOLE] if command in ("validate", "print-config") else [])).returncode == 0
    assert "never prints secrets" in motel("print-config", "--mode", "unredacted", "--config", "yaml:" + WHOLE).stderr
    assert motel("validate", "--config", "yaml:" + WHOLE).stdout == ""


def test_the_second_motel_of_side_by_side():
    command = re.search(r"^motel --config collector\.yaml \\\n(.*?)^```", read(PAGE), re.M | re.S)[0].removesuffix("```")
    words = shlex.split(command.replace("\\\n", " "))[1:]
    run = motel("validate", *[os.path.join(ROOT, "deploy", "collector.yaml") if w == "collector.yaml" else w for w in words])
    assert (run.returncode, run.stderr) == (0, "")


METERED = """
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:%d"}}}}
processors: {batch: }
exporters: {otlp_http: {endpoint: "http://127.0.0.1:1"}}
service:
  telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %d}}}}]}}
  pipelines: {traces: {receivers: [otlp], processors: [batch], exporters: [otlp_http]}}
"""


def test_metrics_that_are_named(start):
    ports = e2e.free_port(), e2e.free_port()
    start(METERED % ports, wait_ports=ports)
    page = urllib.request.urlopen(f"http://127.0.0.1:{ports[1]}/metrics", timeout=30).read().decode()
    same, other = section("Its own metrics and logs").split("Differences:")
    named = re.findall(r"`(otelcol_\w+)…?`", same)
    assert len(named) >= 10
    assert [name for name in named if f"\n{name}" not in page] == []
    assert re.findall(r"`(otelcol_process_runtime_total\w+)`", other) and "otelcol_process_runtime_total" not in page
