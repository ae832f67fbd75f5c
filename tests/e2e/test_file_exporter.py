"""The file exporter on real disks: rotation, rights, crashes, full and missing disks, shared files, and its readers."""
import json
import os
import re
import signal
import struct
import subprocess
import threading
import time

import pytest

from conftest import count_spans, free_port, parse, post, span_request, wait_until

BIG = "x" * 3000


def config(exporters, port, extra="", pipelines=None):
    names = re.findall(r"^  (\S+):", exporters, re.M)
    pipelines = pipelines or f"traces: {{receivers: [otlp], exporters: [{', '.join(names)}]}}"
    return f"""
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters:
{exporters}
{extra}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    {pipelines}
"""


def numbers(path):
    """The numbers of all spans in the lines of a file; every line has to be one whole JSON object."""
    out = []
    with open(path, "rb") as f:
        data = f.read()
    assert b"\0" not in data
    assert data == b"" or data.endswith(b"\n"), f"{path} ends within a line: {data[-80:]}"
    for line in data.splitlines():
        for r in json.loads(line)["resourceSpans"]:
            for s in r["scopeSpans"]:
                out += [int(x["attributes"][0]["value"]["intValue"]) for x in s["spans"]]
    return out


def rotated(program, stem="out"):
    return sorted(n for n in os.listdir(program.folder) if n.startswith(stem + "-"))


def test_rotation_keeps_lines_whole_and_names_files_as_the_reference(start):
    port = free_port()
    program = start(config("  file: {path: out.jsonl, rotation: {max_megabytes: 1, max_backups: 2}}", port), wait_ports=[port])
    for i in range(1500):
        assert post(port, "traces", span_request(1, name=BIG, start=i))[0] == 200
    assert program.stop() == 0
    old = rotated(program)
    assert len(old) == 2 and all(re.fullmatch(r"out-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}-size\.jsonl", n) for n in old)
    assert all(os.path.getsize(program.path(n)) <= 1 << 20 for n in old + ["out.jsonl"])
    kept = [n for f in old + ["out.jsonl"] for n in numbers(program.path(f))]
    assert kept == list(range(1500 - len(kept), 1500))  # the newest, in order, none twice


@pytest.mark.parametrize("mask, file_mode, want", [(0o022, None, 0o644), (0o077, None, 0o600), (0o022, "0640", 0o640)])
def test_rights(start, mask, file_mode, want):
    port = free_port()
    extra = f'motel: {{file_mode: "{file_mode}"}}' if file_mode else ""
    before = os.umask(mask)
    try:
        program = start(config("  file: {path: plain.jsonl}\n  file/r: {path: turned.jsonl, rotation: {max_megabytes: 1}}", port, extra), wait_ports=[port])
    finally:
        os.umask(before)
    for i in range(500):
        assert post(port, "traces", span_request(1, name=BIG, start=i))[0] == 200
    assert program.stop() == 0
    files = ["plain.jsonl", "turned.jsonl"] + rotated(program, "turned")
    assert len(files) == 3
    assert {n: oct(os.stat(program.path(n)).st_mode & 0o777) for n in files} == {n: oct(want) for n in files}


def test_missing_directory_is_an_error_at_the_start(start):
    port = free_port()
    program = start(config("  file: {path: no/where/out.jsonl}", port))
    assert program.process.wait(20) == 1
    assert "no/where/out.jsonl" in program.stderr and "No such file or directory" in program.stderr


def test_missing_directory_can_be_made(start):
    port = free_port()
    program = start(config('  file: {path: no/where/out.jsonl, create_directory: true, directory_permissions: "0700"}', port), wait_ports=[port])
    assert os.stat(program.path("no/where")).st_mode & 0o777 == 0o700


def test_three_pipelines_share_one_exporter(start):
    port = free_port()
    program = start(config("  file: {path: out.jsonl}", port, pipelines="\n    ".join(
        f"{s}: {{receivers: [otlp], exporters: [file]}}" for s in ("traces", "metrics", "logs"))), wait_ports=[port])
    log = {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": "x"}}]}]}]}
    metric = {"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "m", "gauge": {"dataPoints": [{"asInt": "1", "timeUnixNano": "1"}]}}]}]}]}

    def send(signal_name, body):
        for _ in range(100):
            assert post(port, signal_name, body)[0] == 200
    threads = [threading.Thread(target=send, args=a) for a in (("traces", span_request(1)), ("metrics", metric), ("logs", log))]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert program.stop() == 0
    kinds = [next(iter(line)) for line in program.json_lines("out.jsonl")]
    assert {k: kinds.count(k) for k in kinds} == {"resourceSpans": 100, "resourceMetrics": 100, "resourceLogs": 100}


def test_two_exporters_on_one_file_do_not_mix_lines(start):
    port = free_port()
    program = start(config("  file/a: {path: out.jsonl, flush_interval: 10ms}\n  file/b: {path: ./out.jsonl, flush_interval: 10ms}", port), wait_ports=[port])

    def send(first):
        for i in range(first, first + 100):
            assert post(port, "traces", span_request(1, name=BIG, start=i))[0] == 200
    threads = [threading.Thread(target=send, args=(1000 * i,)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert program.stop() == 0
    assert sorted(numbers(program.path("out.jsonl"))) == sorted(2 * [1000 * i + k for i in range(4) for k in range(100)])


def test_two_processes_append_long_lines_to_one_file(start, tmp_path):
    """Each line is longer than what is written at a time: they take turns, and one that is alone goes on in pieces."""
    ports = [free_port(), free_port()]
    path = tmp_path / "shared.jsonl"
    programs = [start(config(f"  file: {{path: {path}, append: true, flush_interval: 1ms}}", port), wait_ports=[port]) for port in ports]

    def send(port, first):
        for i in range(8):
            assert post(port, "traces", span_request(150, name=BIG, start=first + 150 * i), timeout=60)[0] == 200
    threads = [threading.Thread(target=send, args=(port, 10000 * i)) for i, port in enumerate(ports)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert programs[0].stop() == 0
    send(ports[1], 20000)
    assert programs[1].stop() == 0
    assert sorted(numbers(path)) == sorted(10000 * i + k for i in range(3) for k in range(1200))


@pytest.mark.parametrize("key", ["append: true", "rotation: {max_megabytes: 100}"])
def test_kill_9_while_writing_and_on_again(start, key):
    """Killed at any time, five times over: what the next start goes on with has whole lines, each record at most once."""
    port = free_port()
    text = config(f"  file: {{path: out.jsonl, {key}, flush_interval: 1ms}}", port)
    sent = 0
    folder = None
    for _ in range(5):
        program = start(text, wait_ports=[port]) if folder is None else start(text.replace("path: out.jsonl", f"path: {folder}/out.jsonl"), wait_ports=[port])
        folder = folder or program.folder
        first, killer = sent, threading.Timer(0.1, program.kill)
        try:
            while True:
                post(port, "traces", span_request(20, name=BIG, start=sent), timeout=20)
                sent += 20
                if sent == first + 100:
                    killer.start()
        except OSError:
            sent += 20
        killer.join()
    program = start(text.replace("path: out.jsonl", f"path: {folder}/out.jsonl"), wait_ports=[port])
    assert post(port, "traces", span_request(1, start=sent))[0] == 200
    assert program.stop() == 0
    got = [n for name in sorted(os.listdir(folder)) if name.startswith("out") for n in numbers(os.path.join(folder, name))]
    assert len(got) == len(set(got)) and sent in got and len(got) > 100


def test_unfinished_last_line_is_taken_away(start, tmp_path):
    port = free_port()
    path = tmp_path / "out.jsonl"
    whole = json.dumps(span_request(1, start=5), separators=(",", ":")) + "\n"
    path.write_text(whole + whole[:100])
    program = start(config(f"  file: {{path: {path}, append: true}}", port), wait_ports=[port])
    assert post(port, "traces", span_request(1, start=6))[0] == 200
    assert program.stop() == 0
    assert numbers(path) == [5, 6]
    assert "Unfinished record" in program.stderr


def test_moved_and_deleted_files_are_made_anew(start):
    port = free_port()
    program = start(config("  file: {path: out.jsonl, flush_interval: 5ms}", port), wait_ports=[port])
    for i, change in enumerate((lambda: os.rename(program.path("out.jsonl"), program.path("old.jsonl")), lambda: os.unlink(program.path("out.jsonl")))):
        assert post(port, "traces", span_request(1, start=i))[0] == 200
        wait_until(lambda: program.json_lines("out.jsonl"), what="a line in the file")
        change()
    assert post(port, "traces", span_request(1, start=2))[0] == 200
    assert program.stop() == 0
    assert numbers(program.path("old.jsonl")) == [0] and numbers(program.path("out.jsonl")) == [2]


def frames(path):
    with open(path, "rb") as f:
        data = f.read()
    while data:
        n = struct.unpack(">I", data[:4])[0]
        assert len(data) >= 4 + n
        yield data[4:4 + n]
        data = data[4 + n:]


def test_proto_and_zstd(start):
    zstandard = pytest.importorskip("zstandard")
    port = free_port()
    program = start(config("  file/p: {path: p, format: proto}\n  file/pz: {path: pz, format: proto, compression: zstd}\n  file/jz: {path: jz, compression: zstd}", port), wait_ports=[port])
    for i in range(3):
        assert post(port, "traces", span_request(5, start=5 * i))[0] == 200
    assert program.stop() == 0
    plain = list(frames(program.path("p")))
    assert [len(parse("traces", f).resource_spans[0].scope_spans[0].spans) for f in plain] == [5, 5, 5]
    unpack = zstandard.ZstdDecompressor().decompress
    assert [unpack(f) for f in frames(program.path("pz"))] == plain
    assert count_spans([json.loads(unpack(f)) for f in frames(program.path("jz"))]) == 15


def test_group_by_never_leaves_its_folder(start):
    port = free_port()
    program = start(config("  file: {path: out/*.jsonl, group_by: {enabled: true, resource_attribute: service.name, max_open_files: 2}}", port), wait_ports=[port])
    names = ["a", "sub/b", "../c", "../../../../d", "/e", "x/../../f"]
    for _ in range(2):
        for n in names:
            assert post(port, "traces", span_request(1, service=n))[0] == 200
    assert program.stop() == 0
    found = sorted(os.path.relpath(os.path.join(d, f), program.path("out")) for d, _, fs in os.walk(program.path("out")) for f in fs if f != "summary.json")
    assert found == ["a.jsonl", "c.jsonl", "d.jsonl", "e.jsonl", "f.jsonl", "sub/b.jsonl"]
    assert all(len(numbers(program.path("out/" + f))) == 2 for f in found)
    assert sorted(os.listdir(program.folder)) == ["config.yaml", "out", "stderr", "stdout"]


@pytest.fixture
def small_disk(tmp_path):
    """A file system of one megabyte."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    path = tmp_path / "disk"
    path.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(path)]).returncode != 0:
        pytest.skip("mounting is not allowed here")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


@pytest.mark.parametrize("batch", [False, True])
def test_full_disk(start, small_disk, batch):
    """Clients are refused, not lied to; when there is room again everything that was acknowledged is written, once."""
    port = free_port()
    text = config(f"  file: {{path: {small_disk}/out.jsonl, flush_interval: 5ms}}", port, "processors: {batch: {timeout: 20ms}}" if batch else "")
    program = start(text.replace("exporters: [file]", "processors: [batch], exporters: [file]") if batch else text, wait_ports=[port])
    taken = []
    for i in range(100000):
        status = post(port, "traces", span_request(3, name=BIG, start=3 * i))[0]
        if status != 200:
            break
        taken += range(3 * i, 3 * i + 3)
    assert status == 503
    assert program.stderr.count("Data is kept") == 1
    numbers(small_disk / "out.jsonl")  # whole lines only
    subprocess.run(["mount", "-o", "remount,size=200m", str(small_disk)], check=True)
    wait_until(lambda: post(port, "traces", span_request(1, start=10 ** 6))[0] == 200, 20, "a request that is taken")
    assert program.stop() == 0
    got = numbers(small_disk / "out.jsonl")
    assert len(got) == len(set(got)) and set(taken) <= set(got)
    assert "Writing works again" in program.stderr


def test_full_disk_at_the_end_says_what_was_lost(start, small_disk):
    port = free_port()
    program = start(config(f"  file: {{path: {small_disk}/out.jsonl, flush_interval: 5ms}}", port, "motel: {shutdown_timeout: 2s}"), wait_ports=[port])
    acknowledged = 0
    while post(port, "traces", span_request(3, name=BIG, start=acknowledged))[0] == 200:
        acknowledged += 3
    began = time.monotonic()
    assert program.stop() == 0
    assert time.monotonic() - began < 20
    lost = sum(int(n) for n in re.findall(r'Dropping data.*?"dropped_items": (\d+)', program.stderr))
    assert len(numbers(small_disk / "out.jsonl")) + lost == acknowledged and lost > 0


def test_pipe_without_a_reader_does_not_hold_up_the_end(start, tmp_path):
    port = free_port()
    os.mkfifo(tmp_path / "pipe")
    program = start(config(f"  file: {{path: {tmp_path}/pipe, flush_interval: 1ms}}", port, "motel: {shutdown_timeout: 1s}"), wait_ports=[port])
    for i in range(20):
        assert post(port, "traces", span_request(20, name=BIG, start=i))[0] == 200
    began = time.monotonic()
    assert program.stop(signal.SIGTERM) == 0
    assert time.monotonic() - began < 20


def test_reload_does_not_empty_the_file(start):
    port = free_port()
    program = start(config("  file: {path: out.jsonl, flush_interval: 1h}", port), wait_ports=[port])
    for i in range(3):
        assert post(port, "traces", span_request(1, start=i))[0] == 200
        if i < 2:
            program.process.send_signal(signal.SIGHUP)
            wait_until(lambda: program.stderr.count("The new configuration runs") > i, what="the reload")
    assert program.stop() == 0
    assert sorted(numbers(program.path("out.jsonl"))) == [0, 1, 2]
