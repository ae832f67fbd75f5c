"""One running agent: its rendered configuration, ports and folder, and how it is asked for what it has done."""
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from harness.peers import ACCEPTED, PEERS
from harness.system import Failed, connects, free_ports, wait_exit_ms, wait_for

PORT_NAMES = ("GRPC", "HTTP", "HEALTH", "TELEMETRY", "SINK", "PAGE")
SPAN_IN_FILE = re.compile(rb'"spanId":"[0-9a-f]{16}"')
POINT_IN_FILE = re.compile(rb'"timeUnixNano":"')
EMPTY_POST = (b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n"
              b"Content-Length: 0\r\n\r\n")


class Cannot(Exception):
    """The peer has no such pipeline; the text says why."""


def http_get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as r:
        return r.read()


def http_post(port, path, body):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=body, headers={"Content-Type": "application/x-protobuf"})
    with urllib.request.urlopen(request, timeout=20) as r:
        return r.status


def answers_otlp(port):
    """Whether an empty OTLP request gets an answer; one that refuses it is an answer, too."""
    try:
        with socket.create_connection(("127.0.0.1", port), 1) as s:
            s.settimeout(5)
            s.sendall(EMPTY_POST)
            return s.recv(64).startswith(b"HTTP/1.1 ")
    except OSError:
        return False


class Agent:
    """`prefix` is put before the command line (taskset), `arguments` after it."""

    def __init__(self, peer_name, configuration, work, prefix=(), arguments=()):
        self.peer = PEERS[peer_name]
        self.folder = tempfile.mkdtemp(prefix=f"{peer_name}-", dir=work)
        self.ports = dict(zip(PORT_NAMES, free_ports(len(PORT_NAMES))))
        self.process = None
        try:
            text = self.peer.render(configuration, {**self.ports, "OUT": self.folder})
        except KeyError as e:
            self.remove()
            raise Cannot(e.args[0]) from None
        self.config = os.path.join(self.folder, f"config.{self.peer.suffix}")
        with open(self.config, "w", encoding="utf-8") as f:
            f.write(text)
        self.has_otlp = str(self.ports["HTTP"]) in text
        self.argv = [*prefix, *self._command(text), *arguments]

    def _command(self, text):
        names = {"program": self.peer.find(), "config": self.config, "out": self.folder}
        argv = [a.format(**names) for a in self.peer.argv]
        return argv + text.split() if self.peer.lines_are_arguments else argv

    def start(self):
        environment = {**os.environ, **self.peer.environment}
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.started = time.monotonic()
            self.process = subprocess.Popen(self.argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder, env=environment)
        return self

    @property
    def pid(self):
        return self.process.pid

    def _alive(self):
        if self.process.poll() is not None:
            raise Failed(f"{self.peer.name} ended with {self.process.returncode}: {self.log_tail()}")
        return True

    def wait_ready(self, limit_s=30, every_s=0.0003):
        """Milliseconds from the start until it answers: an OTLP request, a health check, or a connection."""
        if self.peer.floor == "grpc":
            ready = lambda: connects(self.ports["GRPC"])  # noqa: E731
        elif self.has_otlp:
            ready = lambda: answers_otlp(self.ports["HTTP"])  # noqa: E731
        else:
            ready = lambda: connects(self.ports["HEALTH"])  # noqa: E731
        wait_for(lambda: self._alive() and ready(), limit_s, f"{self.peer.name} is ready", every_s)
        return (time.monotonic() - self.started) * 1e3

    def accepted(self):
        """Records that its receivers took, by its own count; None when it has no such counter."""
        if not self.peer.counts:
            return None
        try:
            text = http_get(self.ports["TELEMETRY"], "/metrics").decode()
        except (OSError, urllib.error.URLError) as e:
            raise Failed(f"the counters of {self.peer.name} do not answer: {e}") from None
        return int(sum(float(v) for v in ACCEPTED.findall(text)))

    def file(self, signal_name):
        return os.path.join(self.folder, f"{signal_name}.jsonl")

    def records_in_file(self, signal_name):
        """Spans, or data points, in the file of OTLP JSON lines."""
        pattern, n = (SPAN_IN_FILE if signal_name == "traces" else POINT_IN_FILE), 0
        if os.path.exists(self.file(signal_name)):
            with open(self.file(signal_name), "rb") as f:
                n = sum(len(pattern.findall(line)) for line in f)
        return n

    def log_tail(self):
        try:
            with open(os.path.join(self.folder, "log"), "rb") as f:
                return f.read()[-400:].decode("utf-8", "replace")
        except OSError:
            return ""

    def stop_ms(self):
        """SIGTERM; milliseconds until it has ended."""
        self._alive()
        self.process.send_signal(signal.SIGTERM)
        return wait_exit_ms(self.process)

    def remove(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()
