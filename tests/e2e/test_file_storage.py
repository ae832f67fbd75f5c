"""Queues in files: what was acknowledged arrives after a kill, secrets stay off the disk, a full queue goes on, odd files are refused."""
import glob
import os
import signal
import subprocess

import pytest

from conftest import MOTEL, free_port, parse, post, records, span_request, value_of, wait_until

CONFIG = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
extensions:
  file_storage: {{directory: {directory}, create_directory: true, {keys}}}
exporters:
  otlp_http:
    endpoint: http://127.0.0.1:{sink}
    compression: none
    headers: {{authorization: "Bearer ${{env:QUEUE_TOKEN}}"}}
    retry_on_failure: {{initial_interval: 50ms, max_interval: 200ms, max_elapsed_time: 0s}}
    sending_queue: {{storage: file_storage, queue_size: 100000}}
service:
  extensions: [file_storage]
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    traces: {{receivers: [otlp], exporters: [otlp_http]}}
"""
TOKEN = "sk-live-0123456789abcdef"


class World:
    """One queue folder, the ports, and a motel that may be ended and started again."""

    def __init__(self, start, folder, keys=""):
        self.start, self.port, self.sink_port, self.keys = start, free_port(), free_port(), keys
        self.directory = str(folder / "queue")
        self.motel = None

    @property
    def config(self):
        return CONFIG.format(port=self.port, sink=self.sink_port, directory=self.directory, keys=self.keys or "timeout: 20s")

    def run(self, token=TOKEN):
        self.motel = self.start(self.config, env={"QUEUE_TOKEN": token}, wait_ports=[self.port])

    def post(self, first, n=1, name="op"):
        return post(self.port, "traces", span_request(n, name=name, start=first))[0]

    def file(self):
        return glob.glob(self.directory + "/*.mdb")[0]


def numbers(sink):
    """The numbers of the spans that have arrived."""
    return [value_of(a.value) for s, m in sink.messages() for _, _, span in records(s, m) for a in span.attributes if a.key == "n"]


@pytest.fixture
def world(start, tmp_path):
    return lambda keys="": World(start, tmp_path, keys)


@pytest.mark.parametrize("keys", ["fsync: false", "fsync: true"])
def test_kill(world, http_sink, keys):
    w = world(keys)
    acknowledged = []
    for life in range(4):
        w.run()
        for i in range(life * 1000, life * 1000 + 20):
            assert w.post(i) == 200
            acknowledged.append(i)
        w.motel.process.send_signal(signal.SIGKILL)
        w.motel.process.wait()
    assert os.path.basename(w.file()) == "exporter_otlp_http__traces.mdb"
    sink = http_sink(port=w.sink_port)
    w.run()
    wait_until(lambda: set(acknowledged) <= set(numbers(sink)), what="all that was acknowledged")
    assert set(numbers(sink)) == set(acknowledged)


def test_secrets(world, http_sink):
    w = world()
    w.run()
    assert w.post(1, name=f"before {TOKEN} after") == 200
    assert w.post(2) == 200
    w.motel.kill()
    with open(w.file(), "rb") as f:
        held = f.read()
    assert b"before " in held and TOKEN.encode() not in held and TOKEN[:10].encode() not in held

    sink = http_sink(port=w.sink_port)
    w.run()
    wait_until(lambda: set(numbers(sink)) == {1, 2}, what="both spans")
    assert f"before {TOKEN} after" in {span.name for s, m in sink.messages() for _, _, span in records(s, m)}


def test_secret_that_is_gone(world, http_sink):
    w = world()
    w.run()
    assert w.post(1, name=TOKEN) == 200
    assert w.post(2) == 200
    w.motel.kill()
    sink = http_sink(port=w.sink_port)
    w.run(token="sk-live-another-value")
    wait_until(lambda: "SHA-256" in w.motel.stderr and numbers(sink), what="the log line and the other span")
    assert w.motel.stop() == 0
    assert set(numbers(sink)) == {2} and TOKEN not in w.motel.stderr


def test_full(world, http_sink):
    """Several times full: what is refused is refused, what is taken arrives, and the file keeps to its limit."""
    w = world("max_size: 1500000")
    opened, arrived = [False], set()

    def answer(sink, n):
        if not opened[0]:
            return 503, {}, b""
        message = parse("traces", sink.requests[n]["body"])
        arrived.update(value_of(a.value) for _, _, span in records("traces", message) for a in span.attributes if a.key == "n")
        return 200, {"Content-Type": "application/x-protobuf"}, b""
    http_sink(answer, port=w.sink_port)
    w.run()
    taken, number = set(), 0
    for _ in range(4):
        opened[0], status = False, 200
        while status == 200:
            assert number < 1000000
            status = w.post(number, n=200)
            taken |= set(range(number, number + 200)) if status == 200 else set()
            number += 200
        assert status == 503 and os.path.getsize(w.file()) <= 1500000
        opened[0] = True
        wait_until(lambda: taken <= arrived, what="the queue to be empty")
    assert arrived == taken


def test_held_by_another(world):
    w, other = world(), world("timeout: 100ms")
    w.run()
    r = subprocess.run([MOTEL, "--config", write(w, other.config)], capture_output=True, text=True, timeout=60, env={**os.environ, "QUEUE_TOKEN": TOKEN}, check=False)
    assert r.returncode == 1
    assert "exporter_otlp_http__traces.mdb: the queue file is held by another process (waited 100ms)" in r.stderr
    assert w.post(1) == 200
    w.motel.kill()


def write(w, text):
    path = w.directory + ".yaml"
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def test_not_a_queue(world):
    w = world()
    os.mkdir(w.directory)
    path = w.directory + "/exporter_otlp_http__traces.mdb"
    with open(path, "wb") as f:
        f.write(b"something else" * 1000)
    r = subprocess.run([MOTEL, "--config", write(w, w.config)], capture_output=True, text=True, timeout=60, env={**os.environ, "QUEUE_TOKEN": TOKEN}, check=False)
    assert r.returncode == 1 and "set recreate: true to move it aside and start empty" in r.stderr
    with open(path, "rb") as f:
        assert f.read() == b"something else" * 1000
    w.keys = "recreate: true"
    w.run()
    assert w.post(1) == 200
    with open(glob.glob(path + ".backup-*")[0], "rb") as f:
        assert f.read() == b"something else" * 1000
    assert "was moved aside" in w.motel.stderr
    w.motel.kill()
