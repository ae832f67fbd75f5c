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
    """(name, yes or no); a row may have several names, among them the former one."""
    for names, there in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (yes|no) \|", section(kind.capitalize(), "###"), re.M):
        yield from ((name, there) for name in re.findall(r"\w+", names))


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


@pytest.mark.parametrize("kind, name", [(k, n) for k, n, there in COMPONENTS if there == "no" and "_" in n])
def test_both_spellings_are_there(kind, name):
    """Of what was renamed: a former name is refused as the new one is, so a reader looks for it, too."""
    former = name.replace("_", "")
    if "is not supported by this build" in completed(yaml.safe_dump({kind: {former: None}})):
        assert (kind, former, "no") in COMPONENTS


def test_every_row_says_what_to_do():
    for kind in KINDS:
        assert re.findall(r"^.*\| no \| *\|$", section(kind.capitalize(), "###"), re.M) == []


SPAN_METRICS = """
receivers:
  otlp: {protocols: {grpc: , http: }}
  prometheus: {config: {scrape_configs: [{job_name: a, static_configs: [{targets: ["127.0.0.1:9100"]}]}]}}
connectors: {spanmetrics: }
exporters:
  otlp_http: {endpoint: "https://backend.example.com", sending_queue: {storage: file_storage}}
extensions: {file_storage: {directory: /tmp}}
service:
  extensions: [file_storage]
  pipelines:
    traces: {receivers: [otlp], exporters: [otlp_http, spanmetrics]}
    metrics: {receivers: [spanmetrics, prometheus], exporters: [otlp_http]}
    logs: {receivers: [otlp], exporters: [otlp_http]}
"""


def side_by_side():
    """The two files of the step: the copy, and motel's own."""
    step = read(PAGE).split("**4. Side by side.**")[1].split("**5. Switch.**")[0]
    return re.findall(r"^```yaml\n(.*?)^```", step, re.M | re.S)


def explained(folder, *configs):
    args = [w for c in configs for w in ("--config", "yaml:" + c)]
    valid = motel("validate", *args, folder=folder)
    assert valid.returncode == 0, valid.stderr
    return yaml.safe_load(motel("explain", "--format", "json", *args, folder=folder).stdout)


def test_side_by_side_nothing_reaches_the_backend(tmp_path):
    """No connection, no port and no file is one of the running collector's."""
    own, beside = read("deploy/collector.yaml"), side_by_side()[1]
    before, after = explained(tmp_path, own), explained(tmp_path, own, beside)
    assert len(before["destinations"]) == 3 and after["destinations"] == []
    assert {p["address"].rsplit(":", 1)[1] for p in before["ports"]} & {p["address"].rsplit(":", 1)[1] for p in after["ports"]} == set()
    assert len(after["ports"]) == len(before["ports"])
    assert {f["path"] for f in before["files"]} & {f["path"] for f in after["files"]} <= {str(tmp_path / "summary.json")}


def test_side_by_side_with_a_connector_and_a_queue(tmp_path):
    """As the page says: the connector stays in the list of its pipeline. Without it the file is refused."""
    beside = side_by_side()[1]
    line = re.search(r"`(traces: \{exporters: \[file/beside, spanmetrics\]\})`", read(PAGE))[1]
    assert "    traces: {exporters: [file/beside]}\n" in beside
    after = explained(tmp_path, SPAN_METRICS, beside.replace("traces: {exporters: [file/beside]}", line))
    assert [d["address"] for d in after["destinations"] if "scraped" not in d["protocol"]] == [], after["destinations"]
    assert str(tmp_path / "beside-queue") in [f["path"] for f in after["files"]] and "/tmp" not in [f["path"] for f in after["files"]]
    refused = motel("validate", "--config", "yaml:" + SPAN_METRICS, "--config", "yaml:" + beside)
    assert refused.returncode == 1 and 'connector "spanmetrics" used as receiver' in refused.stderr


def test_side_by_side_the_copy_changes_nothing_else(tmp_path):
    """What the running collector did before, it does with the copy: its pipelines are the same, and there are three more."""
    own, copy = read("deploy/collector.yaml"), side_by_side()[0]
    before, after = explained(tmp_path, own), explained(tmp_path, own, copy)
    assert [p for p in after["pipelines"] if not p["name"].endswith("/motel")] == before["pipelines"]
    assert len(after["pipelines"]) == 6


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
