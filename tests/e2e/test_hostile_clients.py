"""Strangers that want to do harm: many connections, slow ones, floods of frames, bombs, deep nesting. While each goes on, a client that behaves is
served on connections of its own; afterwards memory, processor and descriptors are as before.

HOSTILE_SCALE (default 0.1) is the size: 1 is 5,000 idle connections, 500 slow ones, 1,000 half-open streams, and strict bounds of time and
resident memory, which on a machine with other work would mean little.
"""
import contextlib
import gzip
import json
import os
import resource
import socket
import struct
import time
import zlib

import pytest
from conftest import post, wait_until
from wire_client import (CONTINUATION, DATA, END_HEADERS, END_STREAM, H2, HEADERS, LOGS, PING, PREFACE, PRIORITY, RST_STREAM, SETTINGS, TRACES, Neighbour,
                         Server, calm, frame, read_all, request_fields, send_all, settings)

SCALE = float(os.environ.get("HOSTILE_SCALE", "0.1"))
FULL = SCALE >= 1
GOOD_P99_MS = 50 if FULL else 20000
MEMORY_MIB = 64             # what receivers, batches and queues may hold during an attack, beyond what was there before
SPAN = {"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "op"}]}]}]}


def number(full, least=1):
    return max(least, int(full * SCALE))


@pytest.fixture(autouse=True)
def descriptors():
    """As many as there may be, for us and for the program."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def held_mib(server):
    return server.metric("otelcol_process_runtime_heap_alloc_bytes") / (1 << 20)


@contextlib.contextmanager
def under_attack(server, what):
    """The body is the attack."""
    assert post(server.http, "traces", SPAN)[0] == 200
    before, rss, held = server.descriptors(), server.rss_mib(), held_mib(server)
    good = Neighbour(server)
    wait_until(lambda: len(good.times) > 20, what="the first requests of the good client")
    good.times.clear()
    most = [0.0]
    watch = lambda: most.__setitem__(0, max(most[0], held_mib(server) - held))  # noqa: E731
    try:
        yield watch
        watch()
        enough = len(good.times) + 20
        wait_until(lambda: len(good.times) > enough, what="more requests of the good client")
    finally:
        good.stop()
    figures = good.figures()
    print(f"\n{what}: good client {figures['requests']} requests, p50 {figures['p50_ms']:.1f} ms, p99 {figures['p99_ms']:.1f} ms, worst {figures['max_ms']:.1f} ms; "
          f"held {most[0]:.1f} MiB more, RSS {rss:.0f} to {server.rss_mib():.0f} MiB")
    assert not good.bad, good.bad[:3]
    assert figures["p99_ms"] < GOOD_P99_MS
    assert most[0] < MEMORY_MIB
    wait_until(lambda: server.descriptors() <= before + 12, what="descriptors to return")
    wait_until(lambda: held_mib(server) < held + 8, what="memory to return")
    calm(server, *((2.0, 0.05) if FULL else (0.5, 0.5)))
    if FULL:
        assert server.rss_mib() < rss + 100
    assert server.program.alive()


def close_all(clients):
    for c in clients:
        c.close()


def connect(port):
    return socket.create_connection(("127.0.0.1", port), 60)


# ---------------------------------------------------------------- many and slow
def test_idle_connections(start):
    """They cost little while they last, and end after their time."""
    server = Server(start, motel="client_timeout: 8s")
    n = min(number(5000), (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 300) // 2)
    with under_attack(server, f"{n} idle connections") as watch:
        clients = [connect(server.http if i % 2 else server.grpc) for i in range(n)]
        watch()
        for s in clients:
            got, closed = read_all(s, 60)
            assert closed and not got
        close_all(clients)
    assert server.closed("header timeout") >= n


def test_slow_heads(start):
    """A byte now and then is no progress: the head as a whole has its time, also that of a later request."""
    server = Server(start, motel="client_timeout: 4s")
    n = number(500, 10)
    with under_attack(server, f"{n} slow heads") as watch:
        clients = [connect(server.http) for _ in range(n)]
        for s in clients[::2]:
            s.sendall(b"GET /nope HTTP/1.1\r\nHost: x\r\n\r\n")
            while b"404 page not found" not in s.recv(4096):
                pass
        left, deadline = set(clients), time.monotonic() + 90
        while left and time.monotonic() < deadline:
            left = {s for s in left if send_all(s, b"P")}
            watch()
            time.sleep(0.2)
        assert not left
        close_all(clients)
    assert server.closed("header timeout") + server.closed("malformed") >= n / 2


def test_half_open_streams(start):
    """HEADERS, and then nothing but pings: the streams are reset, each in its time; nothing at all: the connection ends."""
    server = Server(start, motel="client_timeout: 4s")
    n = number(1000, 100)
    with under_attack(server, f"{n} half-open streams") as watch:
        clients = [H2(server.grpc if i % 2 else server.http) for i in range(n // 50)]
        for i, c in enumerate(clients):
            kind = "application/grpc" if i % 2 else "application/json"
            c.send(*(c.headers(1 + 2 * k, request_fields(TRACES if i % 2 else "/v1/traces", kind=kind)) for k in range(50)))
        alive = clients[::2]
        resets, deadline = 0, time.monotonic() + 90
        while resets < 50 * len(alive) and time.monotonic() < deadline:
            for c in alive:
                c.send(frame(PING, 0, 0, bytes(8)))
                while (f := c.next(0.01)) is not None:
                    resets += f[0] == RST_STREAM
            watch()
        assert resets == 50 * len(alive)
        for c in clients[1::2]:
            while c.next(60) is not None:
                pass
            assert c.closed
        close_all(c.s for c in clients)
    assert server.closed("read timeout") >= n // 2


def test_phases_end(start):
    """A head that stalls, a body that stalls, a preface and silence, a header block that never ends: each in about its time."""
    server = Server(start, http_keys=", read_header_timeout: 2s, read_timeout: 3s, keepalive: {idle_timeout: 2s}", motel="client_timeout: 2s")
    head = b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    phases = {"nothing": b"", "half a head": head, "a head": head + b"Content-Length: 10\r\n\r\n", "half a body": head + b"Content-Length: 10\r\n\r\n{}",
              "half a chunk": head + b"Transfer-Encoding: chunked\r\n\r\na\r\n{}", "an answer": head + b"Content-Length: 2\r\n\r\n{}", "half a preface": PREFACE[:20],
              "a preface": PREFACE, "half a header block": PREFACE + settings() + frame(HEADERS, 0, 1, b"\x83"), "half a frame": PREFACE + settings() + b"\0\1\0\0\0\0\0\0\1abc"}
    clients = {name: connect(server.http) for name in phases}
    started = time.monotonic()
    for name, s in clients.items():
        s.sendall(phases[name])
    for name, s in clients.items():
        if name == "half a frame":      # no stream was ever opened: it may idle as any HTTP/2 client may
            continue
        _, closed = read_all(s, 60)
        took = time.monotonic() - started
        assert closed, name
        assert took < (6 if FULL else 50), (name, took)
        print(f"{name}: {took:.1f} s")
    close_all(clients.values())


def test_clients_that_do_not_read(start):
    """Answers that are not taken: the connection ends after its time, and nothing piles up before."""
    server = Server(start, motel="client_timeout: 3s")
    with under_attack(server, "clients that do not read") as watch:
        clients = []
        for _ in range(number(100, 5)):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.connect(("127.0.0.1", server.page))
            s.setblocking(False)
            clients.append(s)
        request = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 100
        left, deadline = set(clients), time.monotonic() + 90
        while left and time.monotonic() < deadline:
            for s in list(left):
                try:
                    s.send(request)
                except BlockingIOError:
                    pass
                except OSError:
                    left.discard(s)
            watch()
            time.sleep(0.1)
        assert not left
        close_all(clients)
        with H2(server.http, PREFACE + settings((4, 0))) as c:  # no window for the answers
            c.send(*(c.headers(1 + 2 * k, request_fields(extra=[("content-length", "2")])) + frame(DATA, END_STREAM, 1 + 2 * k, b"{}") for k in range(50)))
            reset = set()
            c.answers(lambda f: f[0] == RST_STREAM and (reset.add(f[2]) or len(reset) == 50), 60)
            assert len(reset) == 50
    assert server.closed("write timeout") >= 50


def test_more_connections_than_may_be(start):
    """All places are taken by clients that do nothing: who has something to send gets one of them."""
    server = Server(start, motel="max_connections: 64")
    clients = [connect(server.http) for _ in range(200)]
    assert post(server.http, "traces", SPAN, timeout=60)[0] == 200
    assert server.closed("evicted") > 0             # the page of metrics has places of its own
    assert server.metric("motel_server_connections") <= 64
    close_all(clients)
    wait_until(lambda: server.metric("motel_server_connections") <= 2, what="connections to end")
    calm(server, 0.5, 0.5)


# ---------------------------------------------------------------- floods
def reset_flood(c, i):
    return c.headers(1 + 2 * i, request_fields()) + frame(RST_STREAM, 0, 1 + 2 * i, struct.pack(">I", 8))


FLOODS = {
    "resets": reset_flood,
    "settings": lambda c, i: settings((4, 65535)),
    "settings acknowledged": lambda c, i: settings(ack=True),
    "pings": lambda c, i: frame(PING, 0, 0, struct.pack(">Q", i)),
    "priorities": lambda c, i: frame(PRIORITY, 0, 1, struct.pack(">IB", 0, i % 256)),
    "empty data": lambda c, i: (c.headers(1, request_fields()) if i == 0 else b"") + frame(DATA, 0, 1),
    "continuations": lambda c, i: frame(CONTINUATION, 0, 1) if i else c.headers(1, flags=0),
    "streams refused": lambda c, i: c.headers(1 + 2 * i, request_fields()) if i < 100 else reset_flood(c, i),
}


@pytest.mark.parametrize("reads", (False, True), ids=("deaf", "reading"))
@pytest.mark.parametrize("name", FLOODS)
def test_floods(start, name, reads):
    """Frames that cost their sender nothing end the connection, whether it reads what comes back or not."""
    server = Server(start)
    rounds = number(10)
    with under_attack(server, f"flood of {name}, {'reading' if reads else 'deaf'}") as watch:
        for _ in range(rounds):
            with H2(server.http) as c:
                c.s.settimeout(60)
                ended = False
                for at in range(0, 40000, 200):
                    if not c.send(*(FLOODS[name](c, i) for i in range(at, at + 200))):
                        ended = True
                        break
                    while reads and c.next(0) is not None:
                        pass
                    if c.closed:
                        ended = True
                        break
                if not ended:
                    while c.next(60) is not None:
                        pass
                    ended = c.closed
                assert ended
            watch()
    if name not in ("continuations", "settings acknowledged"):      # nghttp2 ends those at once
        assert server.closed("flood") >= rounds


def test_header_bombs(start):
    """A field of 4,000 bytes in the table, named thousands of times in a few bytes; and heads without end."""
    server = Server(start)
    n = number(200, 20)
    with under_attack(server, f"{n} header bombs") as watch:
        for i in range(n):
            with H2(server.grpc if i % 2 else server.http) as c:
                block = c.block(request_fields())
                bomb = b"\x40\x01a\x7f" + b"\xa1\x1e" + b"v" * 4000         # a literal with indexing: 127 + 33 + 30 * 128 = 4,000
                c.send(settings(ack=True), frame(HEADERS, END_HEADERS | END_STREAM, 1, block + bomb + b"\xbe" * 15000))
                assert c.status(1) in ("431", "reset 1", "goaway 9", "reset 11", "goaway 11"), i
            if i % 20 == 0:
                watch()
    line = b"POST /v1/traces HTTP/1.1\r\nHost: x\r\n"
    for first in (b"", b"GET /nope HTTP/1.1\r\nHost: x\r\n\r\n"):
        for head in (line + b"X: " + b"v" * 65536 + b"\r\n\r\n", line + b"".join(b"X-%d: y\r\n" % i for i in range(10000)) + b"\r\n"):
            with connect(server.http) as s:
                s.sendall(first)
                while first and b"404 page not found" not in s.recv(4096):
                    pass
                send_all(s, head)
                got, closed = read_all(s, 60)
                assert closed and b" 200 " not in got
                assert not got or got[9:12] in (b"431", b"413"), got[:100]


# ---------------------------------------------------------------- bombs
def zeros(compressor, mib):
    chunk, out = bytes(1 << 20), []
    for _ in range(mib):
        out.append(compressor.compress(chunk))
    return b"".join(out) + compressor.flush()


def bombs():
    zstandard = pytest.importorskip("zstandard")
    mib = number(1000, 100)
    return {"gzip": zeros(zlib.compressobj(1, zlib.DEFLATED, 31), mib), "gzip of many": gzip.compress(bytes(1 << 20)) * mib,
            "zlib": zeros(zlib.compressobj(1), mib), "zstd": zeros(zstandard.ZstdCompressor(level=1).compressobj(), mib),
            "zstd of many": zstandard.ZstdCompressor().compress(bytes(1 << 20)) * mib}


def grpc_call(c, stream, body, extra=()):
    """grpc-status of one call."""
    c.send(c.headers(stream, request_fields(LOGS, kind="application/grpc", extra=[("te", "trailers"), *extra])))
    c.upload(stream, struct.pack(">BI", bool(extra), len(body)) + body)
    while (f := c.next(60)) is not None:
        if f[0] == HEADERS and f[2] == stream:
            fields = dict(c.decoder.decode(f[3]))
            if "grpc-status" in fields:
                return fields["grpc-status"]
    return None


def test_compressed_bombs(start):
    """A gigabyte of zeros: refused before it is there."""
    server = Server(start)
    made = bombs()
    with under_attack(server, "compressed bombs") as watch:
        for _ in range(number(10)):
            for name, bomb in made.items():
                coding = name.split()[0]
                status, _, body = post(server.http, "traces", bomb, "application/x-protobuf", {"Content-Encoding": coding}, timeout=60)
                assert status == 400 and b"too large" in body, (name, body)
                watch()
                if coding in ("gzip", "zstd"):
                    with H2(server.grpc) as c:
                        assert grpc_call(c, 1, bomb, [("grpc-encoding", coding)]) == "8", name
    small = zlib.compressobj(9, zlib.DEFLATED, 31)
    zip_of_spaces = small.compress(b"{" + b" " * 900000 + b"}") + small.flush()        # little is free, whatever the ratio
    assert post(server.http, "traces", zip_of_spaces, headers={"Content-Encoding": "gzip"})[0] == 200


def test_ratio_of_compression(start):
    zstandard = pytest.importorskip("zstandard")
    server = Server(start, motel="max_decompression_ratio: 100")
    for size, status in ((1 << 20, 200), (2 << 20, 400)):
        body = zstandard.ZstdCompressor().compress(b"{" + b" " * (size - 2) + b"}")
        got = post(server.http, "traces", body, headers={"Content-Encoding": "zstd"})
        assert got[0] == status and (status == 200 or b"max_decompression_ratio" in got[2])


# ---------------------------------------------------------------- nesting
def field(number_, length):
    out = [number_ << 3 | 2]
    while length >= 0x80:
        out.append(length & 0x7f | 0x80)
        length >>= 7
    return bytes(out + [length])


def wrap(levels, path, inner=b"\x0a\x01x"):
    """`inner` inside of fields `path` (innermost first), `levels` times over."""
    heads, size = [], len(inner)
    for _ in range(levels):
        for n in path:
            heads.append(field(n, size))
            size += len(heads[-1])
    return b"".join(reversed(heads)) + inner


def nested_bodies(levels):
    body = [1, 2, 2, 5]     # resource_logs, scope_logs, log_records, body: outermost first
    for name, path in (("maps", (2, 1, 6)), ("lists", (1, 5))):
        yield name, wrap(1, reversed(body), wrap(levels, path))
    yield "groups", b"\x0b" * levels
    yield "groups in a record", wrap(1, (2, 2, 1), b"\x7b" * levels)


def nested_json(levels):
    value = '{"arrayValue":{"values":[' * levels + '{"stringValue":"x"}' + "]}}" * levels
    yield "lists", '{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":%s}]}]}]}' % value
    value = '{"kvlistValue":{"values":[{"key":"k","value":' * levels + '{"stringValue":"x"}' + "}]}}" * levels
    yield "maps", '{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":%s}]}]}]}' % value
    yield "unknown arrays", '{"x":%s%s}' % ("[" * levels, "]" * levels)
    yield "unknown objects", '{"x":%s1%s}' % ('{"a":' * levels, "}" * levels)
    yield "open arrays", '{"x":' + "[" * levels
    yield "arrays in place of a request", "[" * levels


def test_deep_nesting(start):
    """100,000 levels, in every shape: an error, with a stack of 1 MiB as well; 64 levels are fine."""
    server = Server(start)
    levels = 100000
    with under_attack(server, f"{levels} levels of nesting") as watch:
        for _ in range(number(10)):
            for name, body in nested_bodies(levels):
                assert post(server.http, "logs", body, "application/x-protobuf", timeout=60)[0] == 400, name
                with H2(server.grpc) as c:
                    assert grpc_call(c, 1, body[:4 << 20]) == "13", name
            for name, body in nested_json(levels):
                assert post(server.http, "logs", body, timeout=60)[0] == 400, name
            watch()
    for name, body in list(nested_bodies(64))[:2]:
        assert post(server.http, "logs", body, "application/x-protobuf")[0] == 200, name
    for name, body in list(nested_json(64))[:4]:
        assert post(server.http, "logs", body)[0] == 200, name
    wait_until(lambda: len(server.lines()) > 4)


def test_limits_of_one_record(start):
    server = Server(start, motel="max_nesting: 10, max_attributes: 100")
    for levels, status in ((10, 200), (11, 400)):
        for _, body in list(nested_json(levels))[:2]:
            assert post(server.http, "logs", body)[0] == status
    for n, status in ((100, 200), (101, 400)):
        attributes = [{"key": f"k{i}", "value": {"intValue": "1"}} for i in range(n)]
        for record in ({"attributes": attributes}, {"body": {"kvlistValue": {"values": attributes}}}):
            got = post(server.http, "logs", json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}))
            assert got[0] == status and (status == 200 or b"101 attributes, expected at most 100" in got[2])
