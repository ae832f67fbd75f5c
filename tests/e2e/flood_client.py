"""Sends a great deal of traces over plain sockets, as fast as they are taken, and says what became of it.

    flood_client.py PORT json|protobuf MEGABYTES [SIZE_KB,SIZE_KB,…]

Prints {"statuses": {status: requests}, "spans": spans acknowledged, "offered": bytes}. A refused request is not sent again; an answer that comes
before the end of the body ends it.
"""
import json
import select
import socket
import struct
import sys


def field(number, payload):
    n, length = len(payload), b""
    while n > 127:
        length += bytes((n & 127 | 128,))
        n >>= 7
    return bytes((number << 3 | 2,)) + length + bytes((n,)) + payload


def text_attribute(key, value):
    return field(1, key) + field(2, field(1, value))


def protobuf_body(spans):
    span = (field(1, b"\x11" * 16) + field(2, b"\x22" * 8) + field(5, b"POST /v1/responses") + struct.pack("<BQBQ", 0x39, 10**18, 0x41, 10**18 + 1)
            + b"".join(field(9, text_attribute(b"attribute.%d" % i, b"some text that a span may carry along %d" % i)) for i in range(6)))
    return field(1, field(1, field(1, text_attribute(b"service.name", b"flood"))) + field(2, field(2, span) * spans))


def json_body(spans):
    attributes = [{"key": f"attribute.{i}", "value": {"stringValue": f"some text that a span may carry along {i}"}} for i in range(6)]
    span = json.dumps({"traceId": "11" * 16, "spanId": "22" * 8, "name": "POST /v1/responses", "kind": 2, "startTimeUnixNano": str(10**18),
                       "endTimeUnixNano": str(10**18 + 1), "attributes": attributes})
    resource = json.dumps({"attributes": [{"key": "service.name", "value": {"stringValue": "flood"}}]})
    return ('{"resourceSpans":[{"resource":%s,"scopeSpans":[{"spans":[%s]}]}]}' % (resource, ",".join([span] * spans))).encode()


def make(kind, size):
    build = json_body if kind == "json" else protobuf_body
    spans = max(1, size // (len(build(101)) - len(build(100))))
    return spans, build(spans)


def read_answer(s):
    """(status, connection stays open); 0 when there is no answer."""
    got = b""
    while b"\r\n\r\n" not in got:
        piece = s.recv(65536)
        if not piece:
            return 0, False
        got += piece
    head, rest = got.split(b"\r\n\r\n", 1)
    lines = head.lower().split(b"\r\n")
    length = next((int(l[15:]) for l in lines if l.startswith(b"content-length:")), 0)
    while len(rest) < length:
        piece = s.recv(65536)
        if not piece:
            break
        rest += piece
    return int(lines[0].split()[1]), b"connection: close" not in lines


def exchange(s, head, body):
    s.sendall(head)
    at, view = 0, memoryview(body)
    while at < len(body):
        readable, writable, _ = select.select([s], [s], [])
        if readable:
            status, stays = read_answer(s)
            return status, False
        if writable:
            at += s.send(view[at:at + 262144])
    return read_answer(s)


def flood(port, kind, total, sizes):
    bodies = [make(kind, size) for size in sizes]
    content = "application/json" if kind == "json" else "application/x-protobuf"
    heads = [f"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: {content}\r\nContent-Length: {len(b)}\r\n\r\n".encode() for _, b in bodies]
    statuses, acknowledged, offered, s, i = {}, 0, 0, None, 0
    while offered < total:
        spans, body = bodies[i % len(bodies)]
        try:
            s = s or socket.create_connection(("127.0.0.1", port), 30)
            s.settimeout(60)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            status, stays = exchange(s, heads[i % len(bodies)], body)
        except (ConnectionError, BrokenPipeError):
            status, stays = "reset", False
        except TimeoutError:
            status, stays = "timeout", False
        if not stays and s:
            s.close()
            s = None
        statuses[str(status)] = statuses.get(str(status), 0) + 1
        acknowledged += spans if status == 200 else 0
        offered += len(body)
        i += 1
    return {"statuses": statuses, "spans": acknowledged, "offered": offered}


if __name__ == "__main__":
    wanted = [int(x) * 1000 for x in sys.argv[4].split(",")] if len(sys.argv) > 4 else [30000, 300000, 2000000]
    print(json.dumps(flood(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]) * 1000000, wanted)))
