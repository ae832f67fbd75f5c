"""What loads the agents: h2load, and connections of our own that stay open."""
import json
import re
import socket
import struct
import subprocess

from harness.agent import http_get
from harness.system import Failed, wait_for, connects

SERVICES = {"traces": ("trace", "Trace"), "attributes": ("trace", "Trace"), "metrics": ("metrics", "Metrics"), "logs": ("logs", "Logs")}
SIGNALS = {"traces": "traces", "attributes": "traces", "metrics": "metrics", "logs": "logs"}
SINK_KEYS = {"traces": "spans", "metrics": "points", "logs": "logs"}
FRAME_DATA, FRAME_HEADERS, FRAME_SETTINGS, FRAME_PING = 0, 1, 4, 6
END_STREAM, END_HEADERS, ACK = 1, 4, 1


def signal_of(body):
    return SIGNALS[body.split("_")[0]]


def grpc_path(body):
    package, service = SERVICES[body.split("_")[0]]
    return f"/opentelemetry.proto.collector.{package}.v1.{service}Service/Export"


class Sink:
    """The backend or the scrape target: tests/bench/sink.c."""

    def __init__(self, program, port, page=None):
        self.port = port
        self.process = subprocess.Popen([program, *(["-p", page] if page else []), str(port)])
        wait_for(lambda: connects(port), 10, "the sink listens")

    def stats(self):
        return json.loads(http_get(self.port, "/stats"))

    def stop(self):
        self.process.kill()
        self.process.wait()


def _h2load_argv(agent, payloads, protocol, body, gzip):
    if protocol == "grpc":
        return ["h2load", "-m", "1", "-d", payloads.path(body + ".grpc"), "-H", "content-type: application/grpc", "-H", "te: trailers",
                f"http://127.0.0.1:{agent.ports['GRPC']}{grpc_path(body)}"]
    argv = ["h2load", "--h1", "-d", payloads.path(body + (".pb.gz" if gzip else ".pb")), "-H", "content-type: application/x-protobuf"]
    return argv + (["-H", "content-encoding: gzip"] if gzip else []) + [f"http://127.0.0.1:{agent.ports['HTTP']}/v1/{signal_of(body)}"]


def h2load(agent, payloads, protocol, body, requests, connections=8, gzip=False, rate=0, may_refuse=False):
    """Sends the requests, one at a time on each connection, at most `rate` a second in all; returns (seconds, answered with 2xx).

    Raises when a request failed; with may_refuse only when one got no answer at all.
    """
    connections = max(1, min(connections, requests))
    argv = _h2load_argv(agent, payloads, protocol, body, gzip)
    argv[1:1] = ["-n", str(requests), "-c", str(connections), "-t", "1", *(["--rps", str(rate / connections)] if rate else [])]
    said = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False).stdout
    took = re.search(r"finished in ([\d.]+)(us|ms|s|m),", said)
    codes = re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", said)
    data = re.search(r"\((\d+)\) headers .*?\((\d+)\) data", said)
    if not (took and codes and data):
        raise Failed("h2load said: " + said[-300:])
    good, answered = int(codes[1]), sum(int(codes[i]) for i in range(1, 5))
    if good != requests and not may_refuse or answered != requests:
        raise Failed(f"of {requests} requests {good} were accepted and {answered} answered")
    if protocol == "grpc" and not agent.peer.floor and int(data[2]) < 5 * requests:
        raise Failed(f"gRPC errors: {data[2]} bytes of messages in {requests} answers")
    return float(took[1]) * {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60}[took[2]], good


def _receive(s, n):
    data = bytearray()
    while len(data) < n:
        piece = s.recv(n - len(data))
        if not piece:
            raise Failed("the agent closed the connection")
        data += piece
    return bytes(data)


def _connect(port):
    s = socket.create_connection(("127.0.0.1", port), 10)
    s.settimeout(20)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


class HttpConnection:
    """An HTTP/1.1 connection that stays open."""

    def __init__(self, port):
        self.socket = _connect(port)

    def send(self, body):
        """Sends a trace request."""
        self.socket.sendall(b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n"
                            b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def receive(self):
        """Reads the answer; raises when it is not 2xx."""
        answer = bytearray()
        while b"\r\n\r\n" not in answer:
            answer += _receive(self.socket, 1)
        length = re.search(rb"content-length: *(\d+)", answer, re.I)
        _receive(self.socket, int(length[1]) if length else 0)
        if not answer.startswith(b"HTTP/1.1 2"):
            raise Failed(f"HTTP answer: {bytes(answer[:40])!r}")

    def close(self):
        self.socket.close()


class GrpcConnection:
    """An HTTP/2 connection that stays open; makes one gRPC call (RFC 9113, and RFC 7541 with literal header fields only)."""

    def __init__(self, port):
        self.socket = _connect(port)
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self._frame(FRAME_SETTINGS, 0, 0, b""))

    @staticmethod
    def _frame(kind, flags, stream, payload):
        return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload

    @staticmethod
    def _literal(name, value):
        return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value

    def send(self, body):
        """Sends a trace request."""
        fields = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", grpc_path("traces").encode()), (b":authority", b"localhost"),
                  (b"content-type", b"application/grpc"), (b"te", b"trailers")]
        message = b"\0" + struct.pack(">I", len(body)) + body
        self.socket.sendall(self._frame(FRAME_HEADERS, END_HEADERS, 1, b"".join(self._literal(*f) for f in fields)) +
                            self._frame(FRAME_DATA, END_STREAM, 1, message))

    def receive(self):
        """Reads the answer until the stream ends; raises when there was no message in it."""
        got = 0
        while True:
            head = _receive(self.socket, 9)
            length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
            payload = _receive(self.socket, length)
            got += length if kind == FRAME_DATA else 0
            if kind in (FRAME_SETTINGS, FRAME_PING) and not flags & ACK:
                self.socket.sendall(self._frame(kind, ACK, 0, payload if kind == FRAME_PING else b""))
            if kind in (FRAME_DATA, FRAME_HEADERS) and flags & END_STREAM:
                break
        if got < 5:
            raise Failed("a gRPC call was refused")

    def close(self):
        self.socket.close()


CONNECTIONS = {"http": (HttpConnection, "HTTP"), "grpc": (GrpcConnection, "GRPC")}


def open_connections(agent, protocol, n, body):
    """n connections, each of which has made one request; 8 requests are under way at a time."""
    kind, port = CONNECTIONS[protocol]
    held = []
    try:
        while len(held) < n:
            some = [kind(agent.ports[port]) for _ in range(min(8, n - len(held)))]
            held += some
            for c in some:
                c.send(body)
            for c in some:
                c.receive()
    except (OSError, Failed) as e:
        close_all(held)
        raise Failed(f"connection {len(held)} of {n}: {e}") from None
    return held


def close_all(held):
    for c in held:
        c.close()
