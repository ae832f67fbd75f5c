"""What motel tells the service manager that started it (sd_notify), and when."""
import os
import signal
import socket
import time

import pytest

from conftest import connects, free_port, post, span_request, wait_until


class Manager:
    """A datagram socket that stands for systemd."""

    def __init__(self, name):
        self.name = name
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + name[1:] if name.startswith("@") else name)
        self.env = {"NOTIFY_SOCKET": name}

    def next(self, limit=60):
        """The next message, as {variable: value}; watchdog messages are passed over."""
        while True:
            message = self.any(limit)
            if message != {"WATCHDOG": "1"}:
                return message

    def any(self, limit=60):
        self.socket.settimeout(limit)
        return dict(line.split("=", 1) for line in self.socket.recv(4096).decode().splitlines())

    def silent(self):
        """Whether nothing waits to be read."""
        self.socket.setblocking(False)
        try:
            self.socket.recv(4096)
        except BlockingIOError:
            return True
        return False


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    # an address holds 107 bytes, a test's folder may be longer
    m = Manager(f"@motel-test-{os.getpid()}-{time.monotonic_ns()}" if request.param == "abstract" else f"/tmp/motel-test-{os.getpid()}.sock")
    yield m
    m.socket.close()
    if request.param == "path":
        os.unlink(m.name)


def stopped(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return f.read().rpartition(")")[2].split()[0] == "T"


def config(otlp, health, exporter="nop: ", more=""):
    return f"""
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{otlp}"}}}}}}}}
exporters: {{{exporter}}}
extensions: {{health_check: {{endpoint: "127.0.0.1:{health}"}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  extensions: [health_check]
  pipelines:
    traces: {{receivers: [otlp], exporters: [{exporter.split(":")[0]}]}}
{more}"""


def test_life(start, manager):
    """READY when health says so, RELOADING and READY around a reload that works and one that does not, STOPPING."""
    otlp, health = free_port(), free_port()
    motel = start(config(otlp, health), env=manager.env)
    ready = manager.next()
    assert ready == {"READY": "1", "STATUS": "Receiving: 1 pipeline"}
    assert connects(otlp)
    assert post(health, "", b"", path="/", method="GET")[0] == 200

    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    with open(motel.config_path, "w", encoding="utf-8") as f:
        f.write(config(otlp, health, more="    logs: {receivers: [otlp], exporters: [nop]}\n"))
    motel.process.send_signal(signal.SIGHUP)
    reloading = manager.next()
    assert reloading["RELOADING"] == "1"
    assert before <= int(reloading["MONOTONIC_USEC"]) <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    assert manager.next() == {"READY": "1", "STATUS": "Receiving: 2 pipelines"}

    with open(motel.config_path, "w", encoding="utf-8") as f:
        f.write("receivers: {nonsense: }\n")
    motel.process.send_signal(signal.SIGHUP)
    assert manager.next()["RELOADING"] == "1"
    assert manager.next() == {"READY": "1", "STATUS": "Reload failed, receiving with the old configuration: 2 pipelines"}

    motel.process.send_signal(signal.SIGTERM)
    stopping = manager.next()
    assert stopping["STOPPING"] == "1"
    assert motel.process.wait(60) == 0
    assert manager.silent()


def test_drain_asks_for_time(start, manager, http_sink):
    """A stop that has much to deliver says so before it does, with the time that it may take."""
    sink = http_sink(answer=lambda sink, n: (503, {}, b"") if n < 2 else (200, {}, b""))
    otlp, health = free_port(), free_port()
    exporter = f'otlp_http: {{endpoint: "{sink.url}", retry_on_failure: {{initial_interval: 200ms}}}}'
    motel = start(config(otlp, health, exporter), args=["--shutdown-timeout", "200s"], env=manager.env)
    assert manager.next()["READY"] == "1"
    assert post(otlp, "traces", span_request(1))[0] == 200
    motel.process.send_signal(signal.SIGTERM)
    stopping = manager.next()
    assert stopping["STOPPING"] == "1"
    assert stopping["STATUS"] == "Delivering what was received, for at most 200 s"
    assert 200_000_000 < int(stopping["EXTEND_TIMEOUT_USEC"]) < 210_000_000
    assert motel.process.wait(200) == 0
    assert len(sink.requests) >= 2, motel.stderr


def test_watchdog(start, manager):
    """The main loop tells twice in the given time that it goes round, and stops telling when it hangs."""
    otlp, health = free_port(), free_port()
    motel = start(config(otlp, health), env={**manager.env, "WATCHDOG_USEC": "400000"})
    assert manager.any()["READY"] == "1"
    for _ in range(5):
        assert manager.any() == {"WATCHDOG": "1"}
    motel.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: stopped(motel.pid), what="the stop")
    wait_until(manager.silent, what="silence")
    with pytest.raises(TimeoutError):
        manager.any(limit=1)
    motel.process.send_signal(signal.SIGCONT)
    assert manager.any() == {"WATCHDOG": "1"}
    assert motel.stop() == 0


def test_watchdog_of_another_process(start, manager):
    """WATCHDOG_PID names who is watched."""
    otlp, health = free_port(), free_port()
    motel = start(config(otlp, health), env={**manager.env, "WATCHDOG_USEC": "100000", "WATCHDOG_PID": "1"})
    assert manager.any()["READY"] == "1"
    assert motel.stop() == 0
    assert manager.any()["STOPPING"] == "1"
    assert manager.silent()


def test_start_that_fails(start, manager):
    """A port that is taken: never ready."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        motel = start(config(taken.getsockname()[1], free_port()), env=manager.env)
        assert motel.process.wait(60) == 1
    assert manager.silent()


def test_nothing_to_do(start, manager, tmp_path):
    """A run without telemetry ends well at once; a service that never said READY would have failed."""
    gym = tmp_path / "gym.yaml"
    gym.write_text("telemetry: {enabled: false}\n")
    motel = start(args=["--gym-config", str(gym)], env=manager.env)
    assert motel.process.wait(60) == 0
    assert manager.next()["READY"] == "1"


def test_nobody_there(start):
    """A manager that is gone, or of another kind, changes nothing but a line in the log."""
    for name in ("/nonexistent/notify", "vsock:2:1234"):
        otlp, health = free_port(), free_port()
        motel = start(config(otlp, health), env={"NOTIFY_SOCKET": name}, wait_ports=[otlp])
        assert motel.stop() == 0
        assert "The service manager" in motel.stderr


def test_a_manager_that_does_not_read(start, http_sink):
    """It holds up neither the start nor the stop: what was acknowledged is delivered within a short shutdown_timeout."""
    manager = Manager(f"@motel-test-{os.getpid()}-{time.monotonic_ns()}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as full, manager.socket:
        full.setblocking(False)
        with pytest.raises(BlockingIOError):
            while True:
                full.sendto(b"x", "\0" + manager.name[1:])
        otlp, sink = free_port(), http_sink()
        exporter = f'otlp_http: {{endpoint: "{sink.url}", sending_queue: {{batch: {{flush_timeout: 1m, min_size: 1000000}}}}}}'
        motel = start(config(otlp, free_port(), exporter), args=["--shutdown-timeout", "3s"], env={**manager.env, "WATCHDOG_USEC": "400000"}, wait_ports=[otlp])
        assert post(otlp, "traces", span_request(7))[0] == 200
        assert motel.stop() == 0
        assert len(sink.messages()) == 1
        assert motel.stderr.count("The service manager does not take messages") == 1


def test_run_leaves_it_to_the_command(start, manager, tmp_path):
    """Under `motel run` the command is the service: it gets the socket, and the collector says nothing in its name."""
    script = 'printf "%s\\n" "$NOTIFY_SOCKET" "$WATCHDOG_USEC"'
    motel = start(args=["run", "--", "sh", "-c", script], env={**manager.env, "WATCHDOG_USEC": "100000", "XDG_STATE_HOME": str(tmp_path)})
    assert motel.process.wait(60) == 0
    assert motel.stdout.splitlines()[:2] == [manager.name, "100000"]
    assert manager.silent()
