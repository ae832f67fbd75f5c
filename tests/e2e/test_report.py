"""motel report: a verdict over logs and files."""
import glob
import gzip
import json
import os
import re
import subprocess

import pytest

from conftest import MOTEL, ROOT

GYM_RUN = os.path.join(ROOT, "tests", "golden", "console", "gym-run", "env-start.stdout.log")  # the terminal: all servers


def report(*args, **kw):
    return subprocess.run([MOTEL, "report", *map(str, args)], capture_output=True, text=True, timeout=240, **kw)


def judged(*args):
    done = report("--json", *args)
    return done.returncode, json.loads(done.stdout)


@pytest.fixture
def server_logs(tmp_path):
    """The run again as a log for each server: {name: path}."""
    logs = {}
    with open(GYM_RUN, encoding="utf-8") as f:
        for line in f:
            m = re.match(r"\((\w+)\) ", line)
            logs.setdefault(m[1] if m else "orchestrator", []).append(line)
    for name, lines in logs.items():
        (tmp_path / f"{name}.log").write_text("".join(lines), encoding="utf-8")
    return {name: tmp_path / f"{name}.log" for name in logs}


def spans_of(*paths):
    found = []
    for path in paths:
        with open(path, encoding="utf-8") as f:
            found += filter(None, map(console_span, f))
    return found


def edit(path, change):
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")


def console_span(line):
    """The span of a line of console output, or None."""
    try:
        record = json.loads(line[line.index("{"):])
    except ValueError:
        return None
    return record if "context" in record and "kind" in record else None


def otlp_line(spans):
    """A line of the file exporter, from console spans."""
    def attributes(a):
        return [{"key": k, "value": {"boolValue": v} if isinstance(v, bool) else {"intValue": str(v)} if isinstance(v, int) else {"stringValue": str(v)}} for k, v in a.items()]
    kinds = {"SpanKind.INTERNAL": 1, "SpanKind.SERVER": 2, "SpanKind.CLIENT": 3}
    return json.dumps({"resourceSpans": [{"resource": {"attributes": attributes(s["resource"]["attributes"])}, "scopeSpans": [{"scope": {}, "spans": [
        {"traceId": s["context"]["trace_id"][2:], "spanId": s["context"]["span_id"][2:], "parentSpanId": (s["parent_id"] or "0x")[2:], "name": s["name"],
         "kind": kinds[s["kind"]], "startTimeUnixNano": "1", "endTimeUnixNano": "5", "attributes": attributes(s["attributes"]), "status": {}}]}]} for s in spans]}) + "\n"


def test_a_healthy_run(server_logs):
    done = report(GYM_RUN)
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("11 traces: 3 span the environment, agent, model and resources servers; 1 spans the environment, agent and resources servers; "
                                  "7 stay in one service; none is broken. Propagation works.\n")
    code, j = judged(GYM_RUN)
    assert code == 0 and j["propagation"] == "works" and j["traces"] == {"judged": 11, "joined": 4, "single_service": 7, "broken": 0, "not_judged": 0}
    spans = {s["context"]["span_id"]: s["resource"]["attributes"]["service.name"] for s in spans_of(GYM_RUN)}
    assert j["spans"] == len(spans) > 200
    assert {s["name"]: s["spans"] for s in j["services"] if s["spans"]} == {n: list(spans.values()).count(n) for n in spans.values()}
    # The servers' own logs say the same, and what is there twice counts once.
    code, split = judged(*server_logs.values())
    assert code == 0 and split["traces"] == j["traces"] and split["spans"] == len(spans)
    code, both = judged(GYM_RUN, *server_logs.values())
    assert code == 0 and both["traces"] == j["traces"] and both["spans"] == both["duplicate_spans"] == len(spans)


def test_a_log_is_missing(server_logs):
    done = report(*(path for name, path in server_logs.items() if "simple_agent" not in name))
    assert done.returncode == 1 and "Propagation is broken." in done.stdout
    assert "never seen" in done.stdout and "its file is not among those" in done.stdout
    assert re.search(r"^  [0-9a-f]{32}  \d+ spans of ", done.stdout, re.M)


def test_the_model_server_does_not_read_the_context(server_logs):
    """Its requests begin traces of their own, as when their headers are not looked at."""
    own = {s["context"]["span_id"] for s in spans_of(server_logs["policy_model"])}
    edit(server_logs["policy_model"], lambda text: re.sub(
        r'"parent_id": "(0x\w+)"', lambda m: m[0] if m[1] in own else '"parent_id": null', re.sub(r'"trace_id": "0x....', '"trace_id": "0xffff', text)))
    code, j = judged(*server_logs.values())
    broken = [t for t in j["broken_traces"] if "begins_anew" in t["faults"] or "roots" in t["faults"]]
    assert code == 1 and j["propagation"] == "broken" and len(broken) == 3 == j["traces"]["broken"]
    assert all(t["services"] == ["nemo-gym/policy_model"] and t["root"].startswith("POST ") for t in broken)


def test_no_server_passes_it_on(server_logs):
    """Each server's spans have trace ids of their own."""
    for i, path in enumerate(server_logs.values()):
        own = {s["context"]["span_id"] for s in spans_of(path)}
        edit(path, lambda text, i=i, own=own: re.sub(
            r'"parent_id": "(0x\w+)"', lambda m: m[0] if m[1] in own else '"parent_id": null', re.sub(r'"trace_id": "0x....', f'"trace_id": "0x{i:04x}', text)))
    done = report(*server_logs.values())
    assert done.returncode == 1 and "Propagation is broken." in done.stdout and "span the" not in done.stdout


@pytest.mark.parametrize("form", ["plain", "zstd", "messages"])
def test_files_of_the_file_exporter(tmp_path, form):
    spans = spans_of(GYM_RUN)
    lines = [otlp_line(spans[i:i + 7]).encode() for i in range(0, len(spans), 7)]
    path = tmp_path / "traces.jsonl"
    if form == "plain":
        path.write_bytes(b"".join(lines))
    else:
        zstandard = pytest.importorskip("zstandard")
        compress = zstandard.ZstdCompressor().compress
        if form == "zstd":
            path.write_bytes(compress(b"".join(lines[:9])) + compress(b"".join(lines[9:])))
        else:
            frames = [compress(line.rstrip(b"\n")) for line in lines]
            path.write_bytes(b"".join(len(f).to_bytes(4, "big") + f for f in frames))
    code, j = judged(path)
    assert code == 0 and j["spans"] == len(spans) and j["duplicate_spans"] == 0
    # The same data in another form changes nothing but the count of duplicates.
    code, both = judged(path, GYM_RUN)
    assert code == 0 and both["traces"]["joined"] == j["traces"]["joined"]


def test_indented_logs():
    files = glob.glob(os.path.join(ROOT, "tests", "golden", "console", "two-servers.lens-0.1.0.*.log"))
    code, j = judged(*files)
    assert len(files) == 2 and code in (0, 1) and {s["name"] for s in j["services"] if s["spans"]} == {"nemo-gym/my_simple_agent", "nemo-gym/policy_model"}


def test_stdin():
    with open(GYM_RUN, "rb") as f:
        from_file, from_stdin = report(GYM_RUN), subprocess.run([MOTEL, "report", "-"], stdin=f, capture_output=True, text=True, timeout=240)
    assert (from_file.returncode, from_file.stdout) == (from_stdin.returncode, from_stdin.stdout)


def test_a_torn_file_counts_as_far_as_it_goes(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    path = tmp_path / "torn.zst"
    with open(GYM_RUN, "rb") as f:
        path.write_bytes(zstandard.ZstdCompressor(level=1).compress(f.read())[:-200])
    done = report("--json", path)
    assert "ends within a compressed message" in done.stderr and str(path) in done.stderr
    assert done.returncode in (0, 1) and json.loads(done.stdout)["propagation"]


@pytest.mark.parametrize("content, words", [(None, "No such file"), (gzip.compress(b"{}"), "zcat"), (b"\0\0\1\0\x0a\x0b", "format: json"), ("dir", "/*")])
def test_what_cannot_be_read(tmp_path, content, words):
    path = tmp_path / "file"
    if content == "dir":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    done = report(path)
    assert done.returncode == 2 and done.stderr.startswith("Error: ") and words in done.stderr and str(path) in done.stderr
    assert done.stdout == ""


def test_nothing_in_it(tmp_path):
    path = tmp_path / "plain.log"
    path.write_text("hello\nworld\n")
    done = report(path)
    assert done.returncode == 1 and "no telemetry in it (2 other lines)" in done.stderr and "No spans" in done.stdout


def test_usage():
    for args in ([], ["--nosuch"], ["--max-traces", "none", "x"], ["--config", "x", "y"]):
        done = report(*args)
        assert done.returncode == 2 and done.stderr.startswith("Error: "), args
    assert "Exit codes" in report("--help").stdout
    assert subprocess.run([MOTEL, "help", "report"], capture_output=True, text=True, timeout=240).stdout == report("--help").stdout


def test_a_pipe_that_closes():
    done = subprocess.run(["/bin/sh", "-c", f"'{MOTEL}' report --all --json '{GYM_RUN}' >/dev/full"], capture_output=True, text=True, timeout=240)
    assert done.returncode == 2 and "stdout" in done.stderr
