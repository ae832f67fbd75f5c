"""Clients that send what no library would: bare bytes, HTTP/2 frames one by one; and a receiver with its own metrics to look at."""
import contextlib
import os
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request

import hpack
from conftest import MOTEL, SANITIZER_WORDS, Program, free_port, wait_until

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITY_FLAG = 1, 1, 4, 8, 32
NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR, SETTINGS_TIMEOUT, STREAM_CLOSED, FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL, \
    COMPRESSION_ERROR, CONNECT_ERROR, ENHANCE_YOUR_CALM = range(12)
TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
LOGS = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"


class Server:
    """The program with an otlp receiver, a file exporter, and the page of its own metrics."""

    def __init__(self, start, grpc_keys="", http_keys="", motel="", program=None):
        self.grpc, self.http, self.page = free_port(), free_port(), free_port()
        kw = {"program": program} if program else {}
        self.program = start(f"""
motel: {{{motel}}}
receivers:
  otlp:
    protocols:
      grpc: {{endpoint: "127.0.0.1:{self.grpc}"{grpc_keys}}}
      http: {{endpoint: "127.0.0.1:{self.http}"{http_keys}}}
exporters:
  file: {{path: out.jsonl, flush_interval: 20ms}}
service:
  telemetry: {{metrics: {{readers: [{{pull: {{exporter: {{prometheus: {{host: 127.0.0.1, port: {self.page}}}}}}}}}]}}}}
  pipelines:
    traces: {{receivers: [otlp], exporters: [file]}}
    logs: {{receivers: [otlp], exporters: [file]}}
""", wait_ports=(self.grpc, self.http, self.page), **kw)

    def lines(self):
        return self.program.json_lines("out.jsonl")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.program.pid}/fd"))

    def cpu_seconds(self):
        with open(f"/proc/{self.program.pid}/stat", encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_mib(self):
        with open(f"/proc/{self.program.pid}/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)

    def metric(self, name, **labels):
        """The value on the page of own metrics; None when it is not there."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.page}/metrics", timeout=30) as r:
            page = r.read().decode()
        for line in page.splitlines():
            if (line.startswith(name + "{") or line.startswith(name + " ")) and all(f'{k}="{v}"' in line for k, v in labels.items()):
                return float(line.rsplit(" ", 1)[1])
        return None

    def closed(self, reason):
        return self.metric("motel_server_closed_connections", reason=reason)


@contextlib.contextmanager
def lasting_server(folder):
    """A Server for the tests of a whole module; in the end it is there, stops well and has nothing of a sanitizer to tell."""
    s = Server(lambda config, **kw: Program(MOTEL, folder, config, **kw))
    yield s
    assert s.program.stop() == 0
    assert not any(w in s.program.stderr for w in SANITIZER_WORDS), s.program.stderr[-3000:]


def read_all(s, limit=20.0):
    """What comes until the peer closes, and whether it did."""
    got, deadline = b"", time.monotonic() + limit
    while True:
        s.settimeout(max(0.01, deadline - time.monotonic()))
        try:
            chunk = s.recv(65536)
        except TimeoutError:
            return got, False
        except OSError:
            return got, True
        if not chunk:
            return got, True
        got += chunk


def send_all(s, data):
    """Sends as much as the peer takes; False when it has closed."""
    try:
        s.sendall(data)
        return True
    except OSError:
        return False


# ---------------------------------------------------------------- HTTP/2
def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def settings(*pairs, ack=False):
    return frame(SETTINGS, ACK if ack else 0, 0, b"".join(struct.pack(">HI", k, v) for k, v in pairs))


def request_fields(path="/v1/traces", method="POST", kind="application/json", extra=(), drop=()):
    fields = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "x"), ("content-type", kind), *extra]
    return [f for f in fields if f[0] not in drop]


class H2:
    """One connection. Nothing is checked; what comes is read on demand."""

    def __init__(self, port, preface=PREFACE + settings(), timeout=30):
        self.s = socket.create_connection(("127.0.0.1", port), timeout)
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.encoder, self.decoder = hpack.Encoder(), hpack.Decoder()
        self.decoder.max_header_list_size = 1 << 20
        self.buffer, self.closed, self.kept = b"", False, []
        self.send(preface)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.s.close()

    def send(self, *parts):
        return send_all(self.s, b"".join(parts))

    def block(self, fields):
        return self.encoder.encode(fields)

    def headers(self, stream, fields=None, end=False, flags=None):
        return frame(HEADERS, (END_HEADERS | (END_STREAM if end else 0)) if flags is None else flags, stream, self.block(fields or request_fields()))

    def next(self, limit=20.0):
        """(kind, flags, stream, payload); None when the connection ended or nothing came in time."""
        deadline = time.monotonic() + limit
        if self.kept:
            return self.kept.pop(0)
        while True:
            if len(self.buffer) >= 9:
                n = int.from_bytes(self.buffer[:3], "big")
                if len(self.buffer) >= 9 + n:
                    head, payload = self.buffer[:9], self.buffer[9:9 + n]
                    self.buffer = self.buffer[9 + n:]
                    return head[3], head[4], int.from_bytes(head[5:9], "big") & 0x7fffffff, payload
            if self.closed:
                return None
            self.s.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                chunk = self.s.recv(65536)
            except TimeoutError:
                return None
            except OSError:
                chunk = b""
            self.closed = not chunk
            self.buffer += chunk

    def upload(self, stream, data, limit=60.0):
        """Sends a whole body, on the first stream of the connection, as far as the windows let it; stops when the stream is answered. The frames that
        came meanwhile are given by next() afterwards."""
        window, at, deadline, kept = {0: 65535, stream: 65535}, 0, time.monotonic() + limit, []
        while at < len(data) and time.monotonic() < deadline:
            n = min(window[0], window[stream], 16384, len(data) - at)
            if n and not self.send(frame(DATA, END_STREAM if at + n == len(data) else 0, stream, data[at:at + n])):
                break
            at, window[0], window[stream] = at + n, window[0] - n, window[stream] - n
            while at < len(data) and (f := self.next(0 if n else limit)) is not None:
                n = n or 1
                if f[0] == WINDOW_UPDATE and f[2] in window:
                    window[f[2]] += int.from_bytes(f[3], "big")
                elif f[0] == SETTINGS and not f[1] & ACK:
                    values = dict(struct.unpack(">HI", f[3][i:i + 6]) for i in range(0, len(f[3]), 6))
                    window[stream] += values.get(4, 65535) - 65535
                    self.send(settings(ack=True))
                else:
                    kept.append(f)
                    if f[2] == stream or f[0] == GOAWAY:
                        at = len(data)
            if not n:
                break
        self.kept = kept + self.kept
        return at == len(data)

    def answers(self, until, limit=20.0):
        """Frames until one for which until(frame) is true (which is the last one), the end, or the limit."""
        got, deadline = [], time.monotonic() + limit
        while time.monotonic() < deadline:
            f = self.next(max(0.01, deadline - time.monotonic()))
            if f is None:
                break
            got.append(f)
            if until(f):
                break
        return got

    def status(self, stream, limit=20.0):
        """The :status that comes on the stream; "reset N" or "goaway N" when that comes instead; None for nothing."""
        while (f := self.next(limit)) is not None:
            kind, _, at, payload = f
            if kind == HEADERS:
                fields = dict(self.decoder.decode(payload))
                if at == stream:
                    return fields.get(":status")
            elif kind == RST_STREAM and at == stream:
                return f"reset {int.from_bytes(payload, 'big')}"
            elif kind == GOAWAY:
                return f"goaway {int.from_bytes(payload[4:8], 'big')}"
        return None

    def alive(self, stream, port_path="/v1/traces"):
        """Whether another request on the same connection is answered."""
        self.send(self.headers(stream, request_fields(port_path, extra=[("content-length", "2")])), frame(DATA, END_STREAM, stream, b"{}"))
        return self.status(stream) == "200"


# ---------------------------------------------------------------- a client that behaves
class Neighbour:
    """good_client.py: one request after the other on connections of its own, each timed, until stop()."""

    def __init__(self, server):
        self.times, self.bad = [], []
        self.program = subprocess.Popen([sys.executable, os.path.join(os.path.dirname(__file__), "good_client.py"), str(server.http)],
                                        stdout=subprocess.PIPE, text=True)
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        for line in self.program.stdout:
            took, _, bad = line.strip().partition(" ")
            self.times.append(float(took))
            if bad:
                self.bad.append(bad)

    def stop(self):
        alive = self.program.poll() is None
        self.program.kill()
        self.program.wait()
        self.thread.join(60)
        self.program.stdout.close()
        assert alive and not self.thread.is_alive()

    def figures(self):
        times = sorted(self.times)
        return {"requests": len(times), "p50_ms": 1000 * times[len(times) // 2], "p99_ms": 1000 * times[int(len(times) * 0.99)], "max_ms": 1000 * times[-1]}


def calm(server, seconds=2.0, share=0.25):
    """The processor time goes back to next to nothing: seen over `seconds` at a time, until a generous limit."""
    def quiet():
        before = server.cpu_seconds()
        time.sleep(seconds)
        return server.cpu_seconds() - before < share * seconds
    wait_until(quiet, 60, "a calm processor")
