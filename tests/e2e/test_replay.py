"""motel replay: files to a backend, to a file, to stdout; what is remembered and what is said."""
import glob
import json
import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest

from conftest import MOTEL, ROOT, free_port, parse, records, span_request, wait_until

GOLDEN = os.path.join(ROOT, "tests", "golden", "console")
GYM_RUN = os.path.join(GOLDEN, "gym-run", "env-start.stdout.log")
PAIRED = os.path.join(GOLDEN, "paired.line.log"), os.path.join(GOLDEN, "paired.indent.log")


def replay(*args, env=None, **kw):
    return subprocess.run([MOTEL, "replay", *map(str, args)], capture_output=True, text=True, timeout=300, env={**os.environ, **(env or {})}, **kw)


def counts(text):
    """(spans, data points, log records) of the summary."""
    m = re.search(r"(?:Delivered|Wrote) ([\d,]+) spans, ([\d,]+) data points and ([\d,]+) log records", text)
    assert m, text
    return tuple(int(n.replace(",", "")) for n in m.groups())


def lines(n, start=0, per_line=1):
    """n lines of the file exporter with per_line spans each, ids counting up."""
    return "".join(json.dumps(span_request(per_line, start=start + i * per_line)) + "\n" for i in range(n))


def span_ids(sink):
    return [int.from_bytes(s.span_id, "big") for name, m in sink.messages() if name == "traces" for _, _, s in records(name, m)]


# ---- what arrives ----

@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
@pytest.mark.parametrize("path", PAIRED, ids=["line", "indent"])
def test_console_logs_become_what_the_sdk_would_have_sent(path, protocol, http_sink, grpc_sink):
    """The same data was captured from the SDK's OTLP exporter."""
    sink = http_sink() if protocol == "http/protobuf" else grpc_sink()
    done = replay(path, "--to", f"http://127.0.0.1:{sink.port}", "--protocol", protocol)
    assert done.returncode == 0, done.stderr
    got = {s: [r for name, m in sink.messages() if name == s for r in records(name, m)] for s in ("traces", "metrics", "logs")}
    for s in got:
        want = []
        for captured in sorted(glob.glob(os.path.join(GOLDEN, f"paired-*-{s}.http.pb"))):
            with open(captured, "rb") as f:
                want += list(records(s, parse(s, f.read())))
        assert len(got[s]) == len(want) > 0
        name = (lambda r: r.name) if s != "logs" else (lambda r: r.severity_number)
        assert sorted(str(name(r)) for _, _, r in got[s]) == sorted(str(name(r)) for _, _, r in want)
        assert all(dict(a)["service.name"] == dict(want[0][0])["service.name"] for a, _, _ in got[s])


def read_by_python(path):
    """(spans, data points, log records) of a log, as Python's own JSON reader finds them behind the prefixes of servers."""
    with open(path, encoding="utf-8", errors="replace") as f:
        text = "".join(re.sub(r"^\([^)]*\) ", "", line) for line in f)
    decoder, start, at, found = json.JSONDecoder(), re.compile(r"^\{", re.M), 0, [0, 0, 0]
    while (begin := start.search(text, at)):
        try:
            o, at = decoder.raw_decode(text, begin.start())
        except ValueError:
            at = begin.end()
            continue
        found[0] += "context" in o and "kind" in o
        found[1] += sum(len(m["data"]["data_points"]) for r in o.get("resource_metrics", ()) for s in r["scope_metrics"] for m in s["metrics"])
        found[2] += "observed_timestamp" in o
    return tuple(found)


@pytest.mark.parametrize("path", sorted(glob.glob(os.path.join(GOLDEN, "**", "*.log"), recursive=True)), ids=lambda p: os.path.relpath(p, GOLDEN))
def test_every_recorded_log_is_read_to_its_last_record(path):
    assert counts(replay(path, "--to", "-").stderr) == read_by_python(path)


@pytest.mark.parametrize("compressed", [False, True])
def test_files_and_json(tmp_path, http_sink, compressed):
    path = tmp_path / "traces.jsonl"
    path.write_text(lines(200, per_line=3))
    if compressed:
        zstandard = pytest.importorskip("zstandard")
        path = tmp_path / "traces.jsonl.zst"
        path.write_bytes(zstandard.ZstdCompressor().compress((tmp_path / "traces.jsonl").read_bytes()))
    sink = http_sink()
    done = replay(path, "--to", sink.url, "--protocol", "http/json", "--compression", "none")
    assert done.returncode == 0 and counts(done.stderr) == (600, 0, 0)
    assert all(r["headers"]["content-type"] == "application/json" for r in sink.requests)
    ids = [int(s["spanId"], 16) for r in sink.requests for e in json.loads(r["body"])["resourceSpans"] for c in e["scopeSpans"] for s in c["spans"]]
    assert sorted(ids) == list(range(1, 601))


def test_attributes_and_headers(tmp_path, http_sink):
    path = tmp_path / "traces.jsonl"
    path.write_text(lines(1))
    sink = http_sink()
    done = replay(path, "--to", sink.url, "--set-resource", "run_id=${env:HOME} $1", "--set-resource", "service.name=again=yes", "--header", "Authorization=Bearer s$cret-token")
    assert done.returncode == 0, done.stderr
    (attributes, _, _), = [r for s, m in sink.messages() for r in records(s, m)]
    assert attributes == {"service.name": "again=yes", "run_id": "${env:HOME} $1"}
    assert sink.requests[0]["headers"]["authorization"] == "Bearer s$cret-token"


def test_the_variables_of_the_sdk(tmp_path, grpc_sink):
    path = tmp_path / "traces.jsonl"
    path.write_text(lines(1))
    sink = grpc_sink()
    done = replay(path, env={"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{sink.port}", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
                             "OTEL_EXPORTER_OTLP_HEADERS": "x-token=a%20b, y = 2"})
    assert done.returncode == 0, done.stderr
    assert sink.requests[0]["metadata"]["x-token"] == "a b" and len(sink.requests) == 1


def test_large_lines_are_cut_for_the_backend(tmp_path, grpc_sink):
    """A batch of the file exporter can be larger than what a gRPC server takes (4 MiB)."""
    path = tmp_path / "traces.jsonl"
    path.write_text(lines(1, per_line=60000))
    assert path.stat().st_size > 10 << 20
    sink = grpc_sink()
    done = replay(path, "--to", f"http://127.0.0.1:{sink.port}", "--protocol", "grpc")
    assert done.returncode == 0 and counts(done.stderr) == (60000, 0, 0)
    assert sorted(span_ids(sink)) == list(range(1, 60001)) and len(sink.requests) > 1


def test_to_a_file_and_to_stdout(tmp_path):
    out = tmp_path / "out.jsonl"
    done = replay(GYM_RUN, "--to", out)
    assert done.returncode == 0 and done.stdout == ""
    spans = counts(done.stderr)[0]
    again = replay(out, "--to", "-")
    assert again.returncode == 0 and counts(again.stderr) == counts(done.stderr)
    printed = [json.loads(line) for line in again.stdout.splitlines()]
    assert sum("context" in p for p in printed) == spans > 200
    more = replay(GYM_RUN, "--to", f"file:{out}")  # adds to it
    assert more.returncode == 0 and counts(replay(out, "--to", "-").stderr)[0] == 2 * spans


def test_stdin(http_sink):
    sink = http_sink()
    done = replay("-", "--to", sink.url, input=lines(5))
    assert done.returncode == 0 and sorted(span_ids(sink)) == [1, 2, 3, 4, 5]


# ---- what does not ----

def test_refused_data_is_left_out(tmp_path, http_sink):
    """A backend that does not like some requests gets the others."""
    path = tmp_path / "traces.jsonl"
    path.write_text(lines(3000, per_line=10))
    sink = http_sink(lambda s, n: (400, {}, b"bad day") if n == 3 else (200, {}, b""))
    done = replay(path, "--to", sink.url)
    taken = counts(done.stderr)[0]
    assert done.returncode == 1 and 0 < taken < 30000
    assert f"{30000 - taken:,} records were refused" in done.stderr and "400" in done.stderr


def test_a_backend_that_refuses_everything_is_given_up(tmp_path, http_sink):
    path = tmp_path / "traces.jsonl"
    path.write_text(lines(40000, per_line=10))
    state = tmp_path / "state"
    sink = http_sink(lambda s, n: (401, {}, b"who are you?"))
    done = replay(path, "--to", sink.url, "--state", state)
    assert done.returncode == 1 and "refuses everything" in done.stderr and "401" in done.stderr and len(sink.requests) < 60
    sink.answer = None
    assert replay(path, "--to", sink.url, "--state", state).returncode == 0
    got = [int.from_bytes(s.span_id, "big") for r in sink.requests[-2000:] if r for s in ()]
    assert got == [] and len(set(span_ids(sink))) == 400000


def test_partial_success_is_not_success(tmp_path, http_sink):
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTracePartialSuccess, ExportTraceServiceResponse
    path = tmp_path / "traces.jsonl"
    path.write_text(lines(10))
    body = ExportTraceServiceResponse(partial_success=ExportTracePartialSuccess(rejected_spans=4, error_message="four too many")).SerializeToString()
    sink = http_sink(lambda s, n: (200, {"Content-Type": "application/x-protobuf"}, body))
    done = replay(path, "--to", sink.url)
    assert done.returncode == 1 and "4 records were taken and then dropped" in done.stderr and "four too many" in done.stderr


def test_retries(tmp_path, http_sink):
    path = tmp_path / "traces.jsonl"
    path.write_text(lines(10))
    sink = http_sink(lambda s, n: (503, {}, b"") if n < 2 else (200, {}, b""))
    done = replay(path, "--to", sink.url)
    assert done.returncode == 0 and counts(done.stderr) == (10, 0, 0) and len(sink.requests) == 3


def test_a_backend_that_does_not_answer_is_said(tmp_path, http_sink):
    """Nobody should think that the program hangs."""
    path = tmp_path / "traces.jsonl"
    path.write_text(lines(3))
    port = free_port()
    with subprocess.Popen([MOTEL, "replay", str(path), "--to", f"http://127.0.0.1:{port}"], stderr=subprocess.PIPE, text=True) as p:
        said = p.stderr.readline()
        assert said == f"No answer from http://127.0.0.1:{port}; trying for two minutes. Ctrl-C ends the attempt.\n"
        sink = http_sink(port=port)
        rest = p.communicate(timeout=100)[1]
    assert p.returncode == 0 and counts(rest) == (3, 0, 0) and "No answer" not in rest and sorted(span_ids(sink)) == [1, 2, 3]


def test_the_other_protocol_is_named(tmp_path, grpc_sink):
    """What a gRPC server answers to HTTP/1.1 tells nobody what is wrong."""
    path = tmp_path / "traces.jsonl"
    path.write_text(lines(3))
    with subprocess.Popen([MOTEL, "replay", str(path), "--to", f"http://127.0.0.1:{grpc_sink().port}"], stderr=subprocess.PIPE, text=True) as p:
        assert p.stderr.readline().startswith("No answer from ")
        p.send_signal(signal.SIGINT)
        rest = p.communicate(timeout=60)[1]
    assert p.returncode == 1 and "3 records did not get there" in rest and "The other one is --protocol grpc." in rest


def test_damaged_records_are_counted(tmp_path, http_sink):
    path = tmp_path / "mixed.log"
    path.write_text("INFO:     Started server process [575]\n" + lines(2) + '{"resourceSpans": [{"resource": 5}]}\nbye\n')
    sink = http_sink()
    done = replay(path, "--to", sink.url)
    assert done.returncode == 1 and counts(done.stderr) == (2, 0, 0) and "1 records in the files are damaged" in done.stderr
    assert "lines are no telemetry" in done.stderr


def test_a_torn_file(tmp_path, http_sink):
    zstandard = pytest.importorskip("zstandard")
    path, whole = tmp_path / "torn.zst", tmp_path / "whole.jsonl"
    path.write_bytes(zstandard.ZstdCompressor().compress(lines(20000).encode())[:-5])
    whole.write_text(lines(3, start=50000))
    sink = http_sink()
    done = replay(path, whole, "--to", sink.url)
    assert done.returncode == 1 and f"{path}: ends within a compressed message" in done.stderr
    assert set(range(50001, 50004)) < set(span_ids(sink)) and counts(done.stderr)[0] > 10000


# ---- state ----

def test_the_same_again_sends_nothing(tmp_path, http_sink):
    files = [tmp_path / f"{i}.jsonl" for i in range(3)]
    for i, path in enumerate(files):
        path.write_text(lines(100, start=100 * i))
    state, sink = tmp_path / "state.json", http_sink()
    args = (*files, "--to", sink.url, "--state", state)
    assert replay(*args).returncode == 0
    requests = len(sink.requests)
    again = replay(*args)
    assert again.returncode == 0 and counts(again.stderr) == (0, 0, 0) and len(sink.requests) == requests
    assert sorted(span_ids(sink)) == list(range(1, 301))


def test_a_file_that_grows(tmp_path, http_sink):
    """In the middle of a line, in the middle of an indented record, and by whole lines."""
    with open(PAIRED[1], encoding="utf-8") as f:
        text = f.read()
    path, state, sink = tmp_path / "server.log", tmp_path / "state.json", http_sink()
    whole = counts(replay(PAIRED[1], "--to", "-").stderr)
    sums = [0, 0, 0]
    for end in (1000, 1500, 20000, 20001, 60000, len(text)):
        path.write_text(text[:end])
        done = replay(path, "--to", sink.url, "--state", state)
        assert done.returncode == 0, done.stderr
        sums = [a + b for a, b in zip(sums, counts(done.stderr))]
    assert tuple(sums) == whole


def test_a_new_file_of_an_old_name(tmp_path, http_sink):
    path, state, sink = tmp_path / "traces.jsonl", tmp_path / "state.json", http_sink()
    for start in (0, 1000):
        path.write_text(lines(50, start=start))
        assert counts(replay(path, "--to", sink.url, "--state", state).stderr) == (50, 0, 0)
    os.rename(path, tmp_path / "traces-old.jsonl")
    path.write_text(lines(50, start=2000))
    done = replay(path, tmp_path / "traces-old.jsonl", "--to", sink.url, "--state", state)
    assert counts(done.stderr) == (50, 0, 0)
    assert len(set(span_ids(sink))) == len(span_ids(sink)) == 150


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("compressed", [False, True])
def test_interrupted_and_gone_on(tmp_path, http_sink, how, compressed):
    text = lines(30000, per_line=5)
    path, state = tmp_path / "traces.jsonl", tmp_path / "state.json"
    path.write_text(text)
    if compressed:
        path.write_bytes(pytest.importorskip("zstandard").ZstdCompressor().compress(text.encode()))
    sink = http_sink(delay=0.3)
    args = [MOTEL, "replay", str(path), "--to", sink.url, "--state", str(state)]
    with subprocess.Popen(args, stderr=subprocess.PIPE, text=True) as p:
        wait_until(lambda: len(sink.requests) >= 30 and state.exists(), limit=60, what="some requests")
        p.send_signal(how)
        stderr = p.communicate(timeout=120)[1]
    if how == signal.SIGINT:
        assert p.returncode == 1 and "Interrupted." in stderr
    before = len(set(span_ids(sink)))
    assert before < 150000
    sink.delay = 0
    done = replay(*args[2:])
    assert done.returncode == 0, done.stderr
    ids = span_ids(sink)
    assert set(ids) == set(range(1, 150001))
    twice = len(ids) - 150000
    assert twice < before, "it began at the beginning"
    if how == signal.SIGINT:
        assert twice <= 5 * 2 * 16  # what a slow machine has not answered five seconds later


def test_a_state_of_something_else(tmp_path, http_sink):
    path, state, sink = tmp_path / "traces.jsonl", tmp_path / "state.json", http_sink()
    path.write_text(lines(1))
    assert replay(path, "--to", sink.url, "--state", state).returncode == 0
    other = replay(path, "--to", "http://127.0.0.1:9", "--state", state)
    assert other.returncode == 2 and sink.url in other.stderr
    state.write_text("{}")
    assert replay(path, "--to", sink.url, "--state", state).returncode == 2
    assert replay("-", "--to", sink.url, "--state", tmp_path / "s", input="").returncode == 2


# ---- pace, progress, usage ----

def test_rate(tmp_path, http_sink):
    path = tmp_path / "traces.jsonl"
    path.write_text(lines(300))
    sink = http_sink()
    began = time.monotonic()
    done = replay(path, "--to", sink.url, "--rate", 200)
    took = time.monotonic() - began
    assert done.returncode == 0 and counts(done.stderr) == (300, 0, 0)
    assert 1.2 < took


def test_progress_on_a_terminal(tmp_path, http_sink):
    path = tmp_path / "traces.jsonl"
    path.write_text(lines(1000))
    sink = http_sink()
    master, slave = pty.openpty()
    with subprocess.Popen([MOTEL, "replay", str(path), "--to", sink.url, "--rate", "800"], stderr=slave) as p:
        os.close(slave)
        shown = b""
        while True:
            ready, _, _ = select.select([master], [], [], 120)
            assert ready
            try:
                data = os.read(master, 65536)
            except OSError:
                break
            if not data:
                break
            shown += data
        assert p.wait(10) == 0
    os.close(master)
    assert re.search(rb"\d+%  [\d,]+ records  [\d,]+/s .*\(file 1 of 1: .*\x1b\[K\r", shown), shown
    assert shown.rstrip().endswith(b"Delivered 1,000 spans, 0 data points and 0 log records to " + sink.url.encode() + b".")


def test_no_progress_where_nobody_looks(tmp_path, http_sink):
    path = tmp_path / "traces.jsonl"
    path.write_text(lines(10))
    assert replay(path, "--to", http_sink().url).stderr.count("\r") == 0


@pytest.mark.parametrize("args, words", [
    ([], "name the files"), (["FILE"], "say where to"), (["FILE", "--to", "ftp://x"], "http://HOST:PORT"), (["FILE", "--to", "localhost:4317"], "http://localhost:4317"),
    (["FILE", "--to", "http://x:1", "--protocol", "udp"], "udp"), (["FILE", "--to", "out", "--protocol", "grpc"], "for a backend"),
    (["FILE", "--to", "http://x:1", "--header", "novalue"], "NAME=VALUE"), (["FILE", "--to", "http://x:1", "--set-resource", "=x"], "NAME=VALUE"),
    (["FILE", "--to", "http://x:1", "--rate", "0"], "--rate"), (["FILE", "--to", "http://x:1", "--compression", "rar"], "rar"),
    (["missing.jsonl", "--to", "http://x:1"], "missing.jsonl"), (["FILE", ".", "--to", "http://x:1"], "name the files in it: ./*"), (["FILE", "--to", "FILE"], "to be written as well"), (["FILE", "--nosuch"], "nosuch")])
def test_usage(tmp_path, args, words):
    path = tmp_path / "file.jsonl"
    path.write_text(lines(1))
    done = replay(*(str(path) if a == "FILE" else a for a in args), env={"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, cwd=tmp_path)
    assert done.returncode == (1 if "written" in words else 2) and "Error: " in done.stderr and words in done.stderr, done.stderr


def test_port_4317_is_grpc(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text("")
    assert replay(path, "--to", f"http://127.0.0.1:{free_port()}").returncode == 0  # nothing to send
    assert "Exit codes" in replay("--help").stdout
