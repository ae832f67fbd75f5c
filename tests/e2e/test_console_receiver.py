"""The console receiver with what the real Python SDK prints: files, pipes, standard input, restarts."""
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
from conftest import HERE, MOTEL, SIGNALS, free_port, records, value_of, wait_until

pytest.importorskip("opentelemetry.sdk")
CLIENT = os.path.join(HERE, "console_client.py")


def client(form, first, count, *args, **kw):
    return subprocess.Popen([sys.executable, CLIENT, form, str(first), str(count), *map(str, args)], **kw)


def run_client(*args, **kw):
    p = client(*args, **kw)
    assert p.wait(180) == 0


def config(receiver, sink, more=""):
    """A pipeline whose verdict is that of the backend: nothing is taken before it has it."""
    return f"""
receivers:
  console:
    poll_interval: 20ms
{receiver}
exporters:
  otlp_http:
    endpoint: {sink.url}
    compression: none
    sending_queue: {{enabled: false}}
    retry_on_failure: {{enabled: false}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    traces: {{receivers: [console{more}], exporters: [otlp_http]}}
    metrics: {{receivers: [console{more}], exporters: [otlp_http]}}
    logs: {{receivers: [console{more}], exporters: [otlp_http]}}
"""


@pytest.fixture
def begin(start):
    """start(), until the receiver has looked at the files."""
    def run(text):
        p = start(text)
        wait_until(lambda: "Everything is ready" in p.stderr, limit=60, what="the start")
        return p
    return run


def numbers(sink, signal_name="traces"):
    """How often each n came."""
    found = Counter()
    for name, message in sink.messages():
        if name == signal_name and name != "metrics":
            for _, _, x in records(name, message):
                found[next(value_of(a.value) for a in x.attributes if a.key == "n")] += 1
    return found


def points(sink):
    return sum(1 for name, message in sink.messages() if name == "metrics" for _ in records(name, message))


def once(n, first=0):
    return {i: 1 for i in range(first, first + n)}


def wait_for(sink, n, npoints=3):
    """Until everything is there, by signals in any order; then that everything is there once."""
    wait_until(lambda: points(sink) >= npoints and all(once(n).keys() <= numbers(sink, s).keys() for s in ("traces", "logs")), limit=60, what="everything")
    assert numbers(sink) == numbers(sink, "logs") == once(n) and points(sink) == npoints


def test_formats(begin, http_sink, tmp_path):
    """Lines, blocks and plain text, appended to files that are there before and after the start."""
    sink = http_sink()
    (tmp_path / "a.log").write_text("something old\n")
    p = begin(config(f"    include: [{tmp_path}/*.log]\n    passthrough: true", sink))
    run_client("line", 0, 10, "--out", tmp_path / "a.log")
    run_client("indent", 10, 10, "--out", tmp_path / "b.log")
    wait_for(sink, 20, 6)
    assert p.stop() == 0
    lines = p.stdout.splitlines()
    assert all(link.trace_state == "vendor=x,k2=it's" for s, m in sink.messages() if s == "traces" for _, _, x in records(s, m) for link in x.links)
    assert sorted(lines) == sorted(f"INFO: plain line {n} {{" if n % 7 == 0 else f"plain {n}" for n in range(20))


# What a console exporter does not print.
def reduced(signal_name, record):
    if signal_name == "metrics":
        return record
    for field in ("flags", "dropped_attributes_count", "dropped_events_count", "dropped_links_count"):
        if signal_name == "traces":
            record.ClearField(field)
    if signal_name == "traces":
        for link in record.links:
            assert link.trace_state in ("", "vendor=x,k2=it's")  # which the SDK's OTLP exporter leaves out
            link.ClearField("flags")
            link.ClearField("trace_state")
        record.start_time_unix_nano, record.end_time_unix_nano = micros(record.start_time_unix_nano), micros(record.end_time_unix_nano)
        for e in record.events:
            e.time_unix_nano = micros(e.time_unix_nano)
    else:
        record.time_unix_nano, record.observed_time_unix_nano = micros(record.time_unix_nano), micros(record.observed_time_unix_nano)
    return record


def micros(ns):
    return round(ns / 1000) * 1000


def times(record):
    """Takes the times out of a record: {name: nanoseconds}."""
    found = {f.name: v for f, v in record.ListFields() if f.name.endswith("unix_nano")}
    for name in found:
        record.ClearField(name)
    return found


def assert_near(got, want):
    """Equal but for the last digit of times, which the SDK rounds through a float."""
    for x, y in [(got, want)] + list(zip(getattr(got, "events", ()), getattr(want, "events", ()))):
        left, right = times(x), times(y)
        assert left.keys() == right.keys()
        assert all(abs(left[k] - right[k]) <= 1000 for k in left)
    assert str(got) == str(want)


@pytest.mark.parametrize("form", ["line", "indent"])
def test_same_as_otlp(begin, http_sink, tmp_path, form):
    """The same telemetry over both ways is the same, less what the console does not carry."""
    printed, sent = http_sink(), http_sink()
    begin(config(f"    include: [{tmp_path}/*.log]", printed))
    run_client(form, 0, 12, "--otlp", sent.url, "--out", tmp_path / "a.log")
    wait_for(printed, 12)
    wait_for(sent, 12)
    for name in SIGNALS:
        left, right = ([(attributes, reduced(name, r)) for s, m in sink.messages() if s == name for attributes, _, r in records(s, m)]
                       for sink in (printed, sent))
        assert len(left) == len(right) == (3 if name == "metrics" else 12)
        for (got_resource, got), (want_resource, want) in zip(left, right):
            assert got_resource == want_resource
            if name == "metrics":
                assert str(got) == str(want)
            else:
                assert_near(got, want)


def first_number(path):
    """The n of the first span in a file of blocks; None before it is there."""
    found = re.search(r'"kind": "SpanKind.*?"n": (\d+)', path.read_text(), re.S)
    return int(found[1]) if found else None


def test_rotation(begin, http_sink, tmp_path):
    """Renamed and made anew under a program that goes on writing, again and again."""
    sink = http_sink()
    log = tmp_path / "app.log"
    begin(config(f"    include: [{log}]", sink))
    writer = client("indent", 0, 150, "--pause", 0.015, "--out", log)
    for i in range(6):
        time.sleep(0.2)
        # It has to be found before it has another name.
        wait_until(lambda: writer.poll() is not None or (log.exists() and first_number(log) in numbers(sink)), limit=60, what="the file to be found")
        if writer.poll() is None:
            log.rename(tmp_path / f"app.log.{i}")
    assert writer.wait(180) == 0
    wait_for(sink, 150)


def test_truncation(begin, http_sink, tmp_path):
    sink = http_sink()
    log = tmp_path / "app.log"
    begin(config(f"    include: ['{tmp_path}/app.log*']", sink))
    run_client("line", 0, 5, "--out", log)
    wait_for(sink, 5)
    log.write_text("")
    run_client("line", 5, 7, "--out", log)
    wait_for(sink, 12, 6)
    shutil.copy(log, tmp_path / "app.log.1")  # copytruncate
    os.truncate(log, 0)
    run_client("line", 12, 9, "--out", log)
    wait_for(sink, 21, 9)
    time.sleep(0.2)  # nothing of the copy comes again
    wait_for(sink, 21, 9)


def test_restart(begin, http_sink, tmp_path):
    """Stopped and started while a program writes: nothing is lost, nothing comes twice."""
    sink = http_sink()
    text = config(f"    include: ['{tmp_path}/*.log']\n    start_at: beginning\n    storage_file: {tmp_path}/places", sink)
    writer = client("indent", 0, 200, "--pause", 0.01, "--out", tmp_path / "a.log")
    for _ in range(5):
        p = begin(text)
        time.sleep(0.3 + random.random() / 3)
        assert p.stop() == 0
    assert writer.wait(180) == 0
    begin(text)
    wait_for(sink, 200)


def test_restart_beside_a_name_that_is_no_text(begin, http_sink, tmp_path):
    """A file whose name is not UTF-8 spoils the stored places neither of itself nor of others."""
    sink = http_sink()
    odd = f"{tmp_path}/{os.fsdecode(bytes([0xff]))}.log"
    text = config(f"    include: ['{tmp_path}/*.log']\n    start_at: beginning\n    storage_file: {tmp_path}/places", sink)
    run_client("line", 0, 10, "--out", tmp_path / "a.log")
    run_client("line", 10, 10, "--out", odd)
    p = begin(text)
    wait_for(sink, 20, 6)
    assert p.stop() == 0
    run_client("line", 20, 10, "--out", odd)
    p = begin(text)
    wait_for(sink, 30, 9)
    assert "Stored places are of no use" not in p.stderr


def test_kill(begin, http_sink, tmp_path):
    """Killed at any moment: nothing is lost; what the backend got just before the end may come again."""
    sink = http_sink()
    text = config(f"    include: ['{tmp_path}/*.log']\n    start_at: beginning\n    storage_file: {tmp_path}/places", sink)
    writer = client("line", 0, 300, "--pause", 0.005, "--out", tmp_path / "a.log")
    for _ in range(6):
        p = begin(text)
        time.sleep(0.2 + random.random() / 3)
        p.kill()
    assert writer.wait(180) == 0
    begin(text)
    wait_until(lambda: points(sink) >= 3 and numbers(sink).keys() == numbers(sink, "logs").keys() == once(300).keys(), limit=60, what="everything")
    found = numbers(sink)
    assert sum(found.values()) - 300 <= 6 * 20, "more came twice than were on their way at each kill"


def test_reload(begin, http_sink, tmp_path):
    """A reload in the middle of everything: the new graph goes on where the old one was."""
    sink = http_sink()
    p = begin(config(f"    include: ['{tmp_path}/*.log']", sink))
    writer = client("indent", 0, 150, "--pause", 0.01, "--out", tmp_path / "a.log")
    for _ in range(4):
        time.sleep(0.4)
        p.process.send_signal(signal.SIGHUP)
    assert writer.wait(180) == 0
    wait_for(sink, 150)


def test_backend_away(begin, http_sink, tmp_path):
    """Refused records wait in the file and come once when the backend takes them."""
    down = {"now": True}
    sink = http_sink(answer=lambda s, n: (503, {}, b"") if down["now"] else (200, {"Content-Type": "application/x-protobuf"}, b""))
    begin(config(f"    include: ['{tmp_path}/*.log']", sink))
    run_client("line", 0, 20, "--out", tmp_path / "a.log")
    wait_until(lambda: len(sink.requests) >= 3, limit=60, what="refusals")
    with sink.lock:
        down["now"] = False
        sink.requests.clear()
    wait_until(lambda: points(sink) == 3 and numbers(sink) == numbers(sink, "logs") == once(20), limit=60, what="everything once")


def test_named_pipe(begin, http_sink, tmp_path):
    """Two programs one after the other, and two at once, write lines to a pipe that comes after the start."""
    sink = http_sink()
    fifo = tmp_path / "pipe"
    begin(config(f"    pipes: [{fifo}]", sink))
    os.mkfifo(fifo)
    run_client("indent", 0, 10, "--out", fifo)
    wait_for(sink, 10)
    writers = [client("line", first, 20, "--out", fifo) for first in (10, 30)]
    assert [w.wait(180) for w in writers] == [0, 0]
    wait_for(sink, 50, 9)


def test_stdin(http_sink, tmp_path):
    """A program's output goes through: its telemetry to the backend, its lines to the terminal. The end of the input is no error."""
    sink = http_sink()
    (tmp_path / "c.yaml").write_text(config("    stdin: true\n    passthrough: true", sink))
    with open(tmp_path / "err", "wb") as err:
        motel = subprocess.Popen([MOTEL, "--config", tmp_path / "c.yaml"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err)
    run_client("indent", 0, 10, stdout=motel.stdin)
    motel.stdin.close()
    wait_for(sink, 10)
    time.sleep(0.2)
    assert motel.poll() is None
    motel.terminate()
    out = motel.stdout.read().decode()
    assert motel.wait(20) == 0
    assert out == "".join(f"INFO: plain line {n} {{\n" if n % 7 == 0 else f"plain {n}\n" for n in range(10))
    assert "error" not in (tmp_path / "err").read_text()


def test_lines_of_the_file_exporter(start, begin, http_sink, tmp_path):
    """What the file exporter wrote is read back."""
    sink = http_sink()
    port = free_port()
    p = start(f"""
receivers: {{otlp: {{protocols: {{http: {{endpoint: 127.0.0.1:{port}}}}}}}}}
exporters: {{file: {{path: {tmp_path}/out.jsonl}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    traces: {{receivers: [otlp], exporters: [file]}}
    metrics: {{receivers: [otlp], exporters: [file]}}
    logs: {{receivers: [otlp], exporters: [file]}}
""", wait_ports=[port])
    run_client("line", 0, 10, "--otlp", f"http://127.0.0.1:{port}", stdout=subprocess.DEVNULL)
    assert p.stop() == 0
    begin(config(f"    include: ['{tmp_path}/*.jsonl']\n    start_at: beginning\n    follow: false", sink))
    wait_for(sink, 10)
