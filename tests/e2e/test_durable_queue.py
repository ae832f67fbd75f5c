"""Queues on disk and spilling: what was acknowledged arrives, whatever happens in between."""
import os
import random
import resource
import shutil
import signal
import subprocess
import threading
import time

import pytest

from conftest import HttpSink, free_port, parse, post, records, span_request, wait_until

KILLS = int(os.environ.get("DURABLE_KILLS", "15"))

PIPELINE = """
receivers:
  otlp:
    protocols:
      http: {{endpoint: "127.0.0.1:{port}"}}
{extensions}exporters:
  otlp_http:
    endpoint: http://127.0.0.1:{sink}
    compression: none
    timeout: 30s
    retry_on_failure: {{initial_interval: 20ms, max_interval: 100ms, max_elapsed_time: 0}}
    sending_queue: {{{queue}}}
service:
  {service}
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    traces: {{receivers: [otlp], exporters: [otlp_http]}}
"""


def storage_config(port, sink, folder, queue="", storage=""):
    return PIPELINE.format(port=port, sink=sink, queue="storage: file_storage" + (", " + queue if queue else ""), service="extensions: [file_storage]",
                           extensions=f"extensions:\n  file_storage: {{directory: {folder}, create_directory: true{storage}}}\n")


def spill_config(port, sink, folder, queue="queue_size: 3, num_consumers: 1", motel=""):
    text = PIPELINE.format(port=port, sink=sink, queue=queue, service="extensions: []", extensions="")
    return text + f"motel: {{spill_directory: {folder}{motel}}}\n"


def numbers(sink, took=lambda n: True):
    """The numbers of all spans that the sink took, in order. A request that a kill cut short was not taken."""
    return [a.value.int_value for i, r in enumerate(list(sink.requests)) if took(i) and len(r["body"]) == int(r["headers"]["content-length"])
            for _, _, s in records("traces", parse("traces", r["body"])) for a in s.attributes if a.key == "n"]


def post_one(port, n, size=1):
    """The status, or None when nobody answered."""
    try:
        return post(port, "traces", span_request(size, start=n), timeout=30)[0]
    except OSError:
        return None


class Client(threading.Thread):
    """Sends spans with numbers of its own, one request after the other; keeps those that were acknowledged."""

    def __init__(self, port, first):
        super().__init__(daemon=True)
        self.port, self.next, self.acknowledged, self.ended = port, first, [], threading.Event()
        self.start()

    def run(self):
        while not self.ended.is_set():
            size = random.randrange(1, 20)
            if post_one(self.port, self.next, size) == 200:
                self.acknowledged += range(self.next, self.next + size)
            else:
                time.sleep(0.005)
            self.next += size

    def end(self):
        self.ended.set()
        self.join()
        return self.acknowledged


def test_killed_again_and_again(start, http_sink, tmp_path):
    """kill -9 at random moments under load: every acknowledged span arrives at least once."""
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)

    def moody(sink, n):     # now and then the backend does not take it
        return (503, {}, b"") if n % 7 == 3 else (200, {"Content-Type": "application/x-protobuf"}, b"")
    sink, port = http_sink(answer=moody), free_port()
    config = storage_config(port, sink.port, tmp_path / "queue", "queue_size: 100000")
    clients = [Client(port, 1 + i * 10_000_000) for i in range(4)]
    for _ in range(KILLS):
        p = start(config, wait_ports=[port])
        before = sum(len(c.acknowledged) for c in clients)
        wait_until(lambda: sum(len(c.acknowledged) for c in clients) > before, what="the first acknowledgement")
        time.sleep(chance.uniform(0, 1))    # the moment of the kill: any will do
        p.kill()
    acknowledged = sorted(n for c in clients for n in c.end())
    p = start(config, wait_ports=[port])
    missing = set(acknowledged)
    deadline = time.monotonic() + 120
    while missing and time.monotonic() < deadline:
        time.sleep(0.2)
        got = numbers(sink, lambda n: n % 7 != 3)
        missing = set(acknowledged) - set(got)
    print(f"{KILLS} kills, {len(acknowledged)} acknowledged, {len(got) - len(set(got))} of {len(got)} came twice")
    assert len(acknowledged) > KILLS
    assert not missing, f"{len(missing)} of {len(acknowledged)} missing"
    assert p.stop() == 0
    assert "damaged" not in p.stderr


def test_restart_drains_in_order(start, http_sink, tmp_path):
    sink_port, port = free_port(), free_port()
    config = storage_config(port, sink_port, tmp_path / "queue", "num_consumers: 1") + "motel: {shutdown_timeout: 1s}\n"
    p = start(config, wait_ports=[port])
    assert [post_one(port, n) for n in range(1, 21)] == [200] * 20
    assert p.stop() == 0
    assert "Not delivered: kept on disk for the next start" in p.stderr
    assert "20 kept on disk for the next start" in p.stderr
    sink = http_sink(port=sink_port)
    p = start(config, wait_ports=[port])
    assert "Taking up what the disk holds" in p.stderr
    assert post_one(port, 21) == 200
    wait_until(lambda: len(numbers(sink)) == 21, what="the queue drained")
    assert numbers(sink) == list(range(1, 22))
    assert p.stop() == 0


def test_spill_keeps_the_order(start, http_sink, tmp_path):
    """Memory, then disk; what the stop leaves is written, and is older than what was spilled."""
    sink_port, port = free_port(), free_port()
    config = spill_config(port, sink_port, tmp_path / "spill", motel=", shutdown_timeout: 1s")
    p = start(config, wait_ports=[port])
    assert [post_one(port, n) for n in range(1, 21)] == [200] * 20
    assert os.stat(tmp_path / "spill").st_mode & 0o777 == 0o700
    assert p.stop() == 0
    assert "20 kept on disk for the next start" in p.stderr
    sink = http_sink(port=sink_port)
    p = start(config, wait_ports=[port])
    assert [post_one(port, n) for n in range(21, 31)] == [200] * 10
    wait_until(lambda: len(numbers(sink)) == 30, what="the spill drained")
    assert numbers(sink) == list(range(1, 31))
    assert p.stop() == 0
    assert "kept on disk" not in p.stderr


def test_spill_directory_of_flag_and_variable(start, tmp_path):
    port = free_port()
    text = PIPELINE.format(port=port, sink=free_port(), queue="queue_size: 1, num_consumers: 1", service="extensions: []", extensions="")
    for i, kw in enumerate(({"args": ["--spill-directory", str(tmp_path / "0"), "--shutdown-timeout", "1s"]},
                            {"env": {"MOTEL_SPILL_DIRECTORY": str(tmp_path / "1"), "MOTEL_SHUTDOWN_TIMEOUT": "1s"}})):
        p = start(text, wait_ports=[port], **kw)
        assert [post_one(port, n) for n in range(1, 5)] == [200] * 4
        assert p.stop() == 0
        assert "4 kept on disk for the next start" in p.stderr
        assert os.listdir(tmp_path / str(i))


def test_reload_neither_loses_nor_doubles(start, http_sink, tmp_path):
    """The old graph goes on with what it holds, then gives the rest to the new one."""
    sink_port, port = free_port(), free_port()
    config = storage_config(port, sink_port, tmp_path / "queue") + "motel: {shutdown_timeout: 2s}\n"
    p = start(config, wait_ports=[port])
    assert [post_one(port, n) for n in range(1, 31)] == [200] * 30
    for i in range(2):
        p.process.send_signal(signal.SIGHUP)
        wait_until(lambda: p.stderr.count("The new configuration runs") == i + 1, what="the reload")
        assert [post_one(port, n) for n in range(31 + 10 * i, 41 + 10 * i)] == [200] * 10
    wait_until(lambda: p.stderr.count("The old configuration has ended") == 2, what="the old graphs ended")
    sink = http_sink(port=sink_port)
    wait_until(lambda: len(set(numbers(sink))) == 50, what="all delivered")
    assert p.stop() == 0
    assert sorted(numbers(sink)) == list(range(1, 51))


def test_second_signal_saves_what_it_can(start, http_sink, tmp_path):
    """With a spill directory a second signal ends the waiting, not the writing."""
    sink_port, port = free_port(), free_port()
    config = spill_config(port, sink_port, tmp_path / "spill", queue="queue_size: 100, num_consumers: 1", motel=", shutdown_timeout: 60s")
    p = start(config, wait_ports=[port])
    assert [post_one(port, n) for n in range(1, 11)] == [200] * 10
    p.process.send_signal(signal.SIGTERM)
    wait_until(lambda: "Starting shutdown" in p.stderr, what="the stop")
    began = time.monotonic()
    assert p.stop() == 0
    assert time.monotonic() - began < 40
    sink = http_sink(port=sink_port)
    p = start(config, wait_ports=[port])
    wait_until(lambda: len(numbers(sink)) == 10, what="all delivered")
    assert numbers(sink) == list(range(1, 11))
    assert p.stop() == 0


# ---- a full disk ----

def fill(port, limit=3000):
    """Posts until five were refused; the numbers that were taken."""
    taken, refused = [], 0
    for n in range(1, limit):
        status = post_one(port, n * 100, 100)
        assert status in (200, 503)
        taken += range(n * 100, n * 100 + 100) if status == 200 else []
        refused += status == 503
        if refused == 5:
            return taken
    pytest.fail("the disk was never full")


def full_and_free_again(start, http_sink, config, port, sink_port, prepare=None):
    began = time.monotonic()
    p = start(config, wait_ports=[port])
    if prepare:
        prepare(p)
    taken = fill(port)
    assert len(taken) > 0
    assert 1 <= p.stderr.count("The queue on disk cannot be written") <= 1 + (time.monotonic() - began) / 5
    sink = http_sink(port=sink_port)
    wait_until(lambda: set(numbers(sink)) >= set(taken), limit=90, what="all that was acknowledged delivered")
    wait_until(lambda: post_one(port, 5_000_000, 10) == 200, what="new data taken")
    wait_until(lambda: 5_000_009 in numbers(sink), what="the new data delivered")
    assert p.stop() == 0
    assert set(numbers(sink)) >= set(taken)
    assert "damaged" not in p.stderr


def limit_files(p):
    resource.prlimit(p.pid, resource.RLIMIT_FSIZE, (2 << 20, 2 << 20))


def test_full_disk_by_a_limit(start, http_sink, tmp_path):
    port, sink_port = free_port(), free_port()
    config = storage_config(port, sink_port, tmp_path / "queue", "queue_size: 100000")
    full_and_free_again(start, http_sink, config, port, sink_port, limit_files)


def test_full_disk_by_a_limit_spill(start, http_sink, tmp_path):
    port, sink_port = free_port(), free_port()
    full_and_free_again(start, http_sink, spill_config(port, sink_port, tmp_path / "spill"), port, sink_port, limit_files)


def test_full_disk_by_max_size(start, http_sink, tmp_path):
    port, sink_port = free_port(), free_port()
    config = storage_config(port, sink_port, tmp_path / "queue", "queue_size: 100000", ", max_size: 2097152")
    full_and_free_again(start, http_sink, config, port, sink_port)


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    r = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)], stderr=subprocess.PIPE, text=True, check=False)
    if r.returncode:
        pytest.skip(f"no small file system can be mounted here: {r.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("kind", ["storage", "spill"])
def test_full_disk(start, http_sink, small_disk, kind):
    port, sink_port = free_port(), free_port()
    config = storage_config(port, sink_port, small_disk / "q", "queue_size: 100000") if kind == "storage" else spill_config(port, sink_port, small_disk / "q")
    full_and_free_again(start, http_sink, config, port, sink_port)


@pytest.mark.parametrize("kind", ["storage", "spill"])
def test_directory_removed_while_running(start, http_sink, tmp_path, kind):
    """What was acknowledged is written to a new directory: before and after the removal."""
    sink_port, port = free_port(), free_port()
    config = storage_config(port, sink_port, tmp_path / "q") + "motel: {shutdown_timeout: 1s}\n" if kind == "storage" \
        else spill_config(port, sink_port, tmp_path / "q", motel=", shutdown_timeout: 1s")
    p = start(config, wait_ports=[port])
    assert [post_one(port, n) for n in range(1, 11)] == [200] * 10
    shutil.rmtree(tmp_path / "q")
    assert [post_one(port, n) for n in range(11, 21)] == [200] * 10
    assert "The queue file was removed or replaced while in use, and was written anew" in p.stderr
    shutil.rmtree(tmp_path / "q")
    assert p.stop() == 0
    sink = http_sink(port=sink_port)
    p = start(config, wait_ports=[port])
    wait_until(lambda: sorted(set(numbers(sink))) == list(range(1, 21)), what="all delivered")
    assert p.stop() == 0


# ---- mistakes ----

def test_storage_without_an_extension(start, tmp_path):
    text = PIPELINE.format(port=free_port(), sink=1, queue="storage: file_storage/none", service="extensions: []", extensions="")
    for args in (None, ["validate"]):
        p = start(text, args=args) if args is None else None
        if p:
            assert p.process.wait(30) == 1
            error = p.stderr
        else:
            (tmp_path / "c.yaml").write_text(text)
            r = subprocess.run([os.environ["MOTEL"], "validate", "--config", str(tmp_path / "c.yaml")], stderr=subprocess.PIPE, text=True, timeout=30, check=False)
            assert r.returncode == 1
            error = r.stderr
        assert 'exporters::otlp_http::sending_queue::storage: failed to create "otlp_http" exporter' in error
        assert 'no storage client extension found: "file_storage/none"' in error


def test_a_file_of_something_else(start, tmp_path):
    """A queue file of another program or version: storage refuses to start, spilling moves it aside."""
    port = free_port()
    folder = tmp_path / "q"
    folder.mkdir()
    file = folder / "exporter_otlp_http__traces.mdb"
    file.write_bytes(b"not a queue" * 1000)
    p = start(storage_config(port, 1, folder))
    assert p.process.wait(30) == 1
    assert 'failed to start "otlp_http" exporter' in p.stderr and "not a queue file" in p.stderr
    assert file.read_bytes() == b"not a queue" * 1000
    p = start(spill_config(port, 1, folder), wait_ports=[port])
    assert p.stop() == 0
    assert any(n.startswith("exporter_otlp_http__traces.mdb.backup-") for n in os.listdir(folder))


# ---- the reference collector ----

def test_the_reference_takes_the_same_configuration(reference, start, http_sink, tmp_path):
    """One YAML with a persistent queue and batches in it: both deliver what was left by the run before."""
    for run in (reference, start):
        sink_port, port = free_port(), free_port()
        config = storage_config(port, sink_port, tmp_path / str(port), "queue_size: 1000, num_consumers: 2, sizer: requests, batch: {sizer: items, flush_timeout: 50ms, min_size: 10, max_size: 20}")
        p = run(config, wait_ports=[port])
        assert [post_one(port, n * 10, 10) for n in range(1, 9)] == [200] * 8
        p.kill()
        sink = http_sink(port=sink_port)
        p = run(config, wait_ports=[port])
        wait_until(lambda: sorted(set(numbers(sink))) == list(range(10, 90)), what="all delivered")
        p.stop()
