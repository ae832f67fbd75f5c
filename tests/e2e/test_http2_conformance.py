"""HTTP/2 (RFC 9113) of the OTLP receiver, frame by frame: what a peer must not send is answered with the error that the RFC names, and
what it may send is taken. After an error of one stream the connection goes on."""
import struct

import pytest
from wire_client import (ACK, CANCEL, COMPRESSION_ERROR, CONTINUATION, DATA, END_HEADERS, END_STREAM, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, GOAWAY,
                         H2, HEADERS, LOGS, NO_ERROR, PADDED, PING, PREFACE, PRIORITY, PRIORITY_FLAG, PROTOCOL_ERROR, PUSH_PROMISE, RST_STREAM,
                         SETTINGS, STREAM_CLOSED, WINDOW_UPDATE, frame, lasting_server, read_all, request_fields, settings)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with lasting_server(tmp_path_factory.mktemp("http2")) as s:
        yield s
        assert s.program.alive()
        with H2(s.grpc) as c:
            assert c.alive(1)


def u32(n):
    return struct.pack(">I", n)


LENGTH = [("content-length", "2")]
BODY = frame(DATA, END_STREAM, 1, b"{}")


def head(c, stream=1, end=False, **kw):
    return c.headers(stream, request_fields(**kw), end=end)


def rest(fields):
    """A literal header block without Huffman and without the table: what a field looks like in RFC 7541, 6.2.2."""
    return b"".join(b"\0" + bytes((len(n),)) + n + bytes((len(v),)) + v for n, v in fields)


RAW = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/v1/traces"), (b":authority", b"x"), (b"content-type", b"application/json")]


def raw(stream, fields, end=True):
    return frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, rest(fields))


# ---- errors of the connection: GOAWAY with the code, or just the end
CONNECTION = {
    # 4.1, 4.2
    "frame larger than SETTINGS_MAX_FRAME_SIZE": (lambda c: head(c) + struct.pack(">I", (256 << 10) + 1)[1:] + bytes((DATA, 0)) + u32(1) + bytes(10), FRAME_SIZE_ERROR),
    "HEADERS larger than SETTINGS_MAX_FRAME_SIZE": (lambda c: struct.pack(">I", (256 << 10) + 1)[1:] + bytes((HEADERS, 4)) + u32(1) + bytes(10), FRAME_SIZE_ERROR),
    "SETTINGS larger than SETTINGS_MAX_FRAME_SIZE": (lambda c: b"\xff\xff\xff" + bytes((SETTINGS, 0)) + u32(0) + bytes(10), FRAME_SIZE_ERROR),
    # 4.3
    "header block that is no HPACK": (lambda c: frame(HEADERS, END_HEADERS, 1, b"\xff\xff\xff\xff\xff\xff"), COMPRESSION_ERROR),
    "index 0": (lambda c: frame(HEADERS, END_HEADERS, 1, b"\x80"), COMPRESSION_ERROR),
    "index beyond the table": (lambda c: frame(HEADERS, END_HEADERS, 1, b"\xff\x10"), COMPRESSION_ERROR),
    "table size beyond the setting": (lambda c: frame(HEADERS, END_HEADERS, 1, b"\x3f\xe1\xff\x03"), COMPRESSION_ERROR),
    "table size at the end of a block": (lambda c: frame(HEADERS, END_HEADERS, 1, rest(RAW) + b"\x20"), COMPRESSION_ERROR),
    "PRIORITY inside of a header block": (lambda c: c.headers(1, flags=0) + frame(PRIORITY, 0, 1, bytes(5)), PROTOCOL_ERROR),
    "DATA inside of a header block": (lambda c: c.headers(1, flags=0) + frame(DATA, 0, 1, b"x"), PROTOCOL_ERROR),
    "HEADERS of another stream inside of a header block": (lambda c: c.headers(1, flags=0) + c.headers(3, end=True), PROTOCOL_ERROR),
    "CONTINUATION of another stream": (lambda c: c.headers(1, flags=0) + frame(CONTINUATION, END_HEADERS, 3, b""), PROTOCOL_ERROR),
    # 5.1, 5.1.1
    "DATA of an idle stream": (lambda c: frame(DATA, END_STREAM, 1, b"x"), PROTOCOL_ERROR),
    "RST_STREAM of an idle stream": (lambda c: frame(RST_STREAM, 0, 1, u32(CANCEL)), PROTOCOL_ERROR),
    "WINDOW_UPDATE of an idle stream": (lambda c: frame(WINDOW_UPDATE, 0, 1, u32(1)), PROTOCOL_ERROR),
    "CONTINUATION of an idle stream": (lambda c: frame(CONTINUATION, END_HEADERS, 1, b""), PROTOCOL_ERROR),
    "HEADERS of an even stream": (lambda c: c.headers(2, end=True), PROTOCOL_ERROR),
    "HEADERS of a stream below the last one": (lambda c: head(c, 5, extra=LENGTH) + frame(DATA, END_STREAM, 5, b"{}") + c.headers(3, end=True), PROTOCOL_ERROR),
    # 5.4, 6
    "DATA on stream 0": (lambda c: frame(DATA, 0, 0, b"x"), PROTOCOL_ERROR),
    "DATA with too much padding": (lambda c: head(c) + frame(DATA, PADDED, 1, b"\x05abc"), PROTOCOL_ERROR),
    "HEADERS on stream 0": (lambda c: c.headers(0, end=True), PROTOCOL_ERROR),
    "HEADERS with too much padding": (lambda c: frame(HEADERS, END_HEADERS | PADDED, 1, b"\xff" + c.block(request_fields())), PROTOCOL_ERROR),
    "PRIORITY on stream 0": (lambda c: frame(PRIORITY, 0, 0, bytes(5)), PROTOCOL_ERROR),
    "RST_STREAM on stream 0": (lambda c: frame(RST_STREAM, 0, 0, u32(CANCEL)), PROTOCOL_ERROR),
    "RST_STREAM of 3 bytes": (lambda c: head(c) + frame(RST_STREAM, 0, 1, bytes(3)), FRAME_SIZE_ERROR),
    "SETTINGS on a stream": (lambda c: frame(SETTINGS, 0, 1), PROTOCOL_ERROR),
    "SETTINGS of 7 bytes": (lambda c: frame(SETTINGS, 0, 0, bytes(7)), FRAME_SIZE_ERROR),
    "SETTINGS acknowledged with a payload": (lambda c: frame(SETTINGS, ACK, 0, bytes(6)), FRAME_SIZE_ERROR),
    "ENABLE_PUSH 2": (lambda c: settings((2, 2)), PROTOCOL_ERROR),
    "INITIAL_WINDOW_SIZE 2^31": (lambda c: settings((4, 1 << 31)), FLOW_CONTROL_ERROR),
    "MAX_FRAME_SIZE 16383": (lambda c: settings((5, 16383)), PROTOCOL_ERROR),
    "MAX_FRAME_SIZE 2^24": (lambda c: settings((5, 1 << 24)), PROTOCOL_ERROR),
    "PUSH_PROMISE of a client": (lambda c: head(c) + frame(PUSH_PROMISE, END_HEADERS, 1, u32(2) + c.block(request_fields())), PROTOCOL_ERROR),
    "PING on a stream": (lambda c: frame(PING, 0, 1, bytes(8)), PROTOCOL_ERROR),
    "PING of 7 bytes": (lambda c: frame(PING, 0, 0, bytes(7)), FRAME_SIZE_ERROR),
    "GOAWAY on a stream": (lambda c: frame(GOAWAY, 0, 1, bytes(8)), PROTOCOL_ERROR),
    "GOAWAY of 7 bytes": (lambda c: frame(GOAWAY, 0, 0, bytes(7)), FRAME_SIZE_ERROR),
    "WINDOW_UPDATE of 0": (lambda c: frame(WINDOW_UPDATE, 0, 0, u32(0)), PROTOCOL_ERROR),
    "WINDOW_UPDATE of 0 on a stream": (lambda c: head(c) + frame(WINDOW_UPDATE, 0, 1, u32(0)), PROTOCOL_ERROR),     # nghttp2's choice
    "WINDOW_UPDATE of 3 bytes": (lambda c: frame(WINDOW_UPDATE, 0, 0, bytes(3)), FRAME_SIZE_ERROR),
    "window beyond 2^31 - 1": (lambda c: frame(WINDOW_UPDATE, 0, 0, u32((1 << 31) - 1)) * 2, FLOW_CONTROL_ERROR),
    "CONTINUATION behind END_HEADERS": (lambda c: head(c) + frame(CONTINUATION, END_HEADERS, 1, b""), PROTOCOL_ERROR),
    "CONTINUATION on stream 0": (lambda c: c.headers(1, flags=0) + frame(CONTINUATION, END_HEADERS, 0, b""), PROTOCOL_ERROR),
}


@pytest.mark.parametrize("port", ("grpc", "http"))
@pytest.mark.parametrize("name", CONNECTION)
def test_connection_error(server, name, port):
    make, code = CONNECTION[name]
    with H2(getattr(server, port)) as c:
        c.send(make(c))
        got = c.answers(lambda f: f[0] == GOAWAY)
        found = [int.from_bytes(f[3][4:8], "big") for f in got if f[0] == GOAWAY]
        assert found in ([code], []), (name, got)
        while c.next() is not None:
            pass
        assert c.closed, got


# ---- errors of one stream: RST_STREAM with the code; another stream of the connection is served
STREAM = {
    "window beyond 2^31 - 1": (lambda c: head(c) + frame(WINDOW_UPDATE, 0, 1, u32((1 << 31) - 1)), FLOW_CONTROL_ERROR),
    "upper case in a name": (lambda c: raw(1, RAW + [(b"X-Upper", b"1")]), PROTOCOL_ERROR),
    "empty name": (lambda c: raw(1, RAW + [(b"", b"1")]), PROTOCOL_ERROR),
    "colon in a name": (lambda c: raw(1, RAW + [(b"a:b", b"1")]), PROTOCOL_ERROR),
    "blank in a name": (lambda c: raw(1, RAW + [(b"a b", b"1")]), PROTOCOL_ERROR),
    "line feed in a value": (lambda c: raw(1, RAW + [(b"a", b"1\nb: 2")]), PROTOCOL_ERROR),
    "NUL in a value": (lambda c: raw(1, RAW + [(b"a", b"1\0")]), PROTOCOL_ERROR),
    "carriage return in the path": (lambda c: raw(1, [(b":path", b"/v1\r/x")] + [f for f in RAW if f[0] != b":path"]), PROTOCOL_ERROR),
    "connection": (lambda c: raw(1, RAW + [(b"connection", b"close")]), PROTOCOL_ERROR),
    "keep-alive": (lambda c: raw(1, RAW + [(b"keep-alive", b"1")]), PROTOCOL_ERROR),
    "proxy-connection": (lambda c: raw(1, RAW + [(b"proxy-connection", b"close")]), PROTOCOL_ERROR),
    "transfer-encoding": (lambda c: raw(1, RAW + [(b"transfer-encoding", b"chunked")]), PROTOCOL_ERROR),
    "upgrade": (lambda c: raw(1, RAW + [(b"upgrade", b"h2c")]), PROTOCOL_ERROR),
    "te other than trailers": (lambda c: raw(1, RAW + [(b"te", b"gzip")]), PROTOCOL_ERROR),
    "unknown pseudo header": (lambda c: raw(1, [(b":x", b"1")] + RAW), PROTOCOL_ERROR),
    ":status in a request": (lambda c: raw(1, [(b":status", b"200")] + RAW), PROTOCOL_ERROR),
    "pseudo header behind a field": (lambda c: raw(1, RAW[1:] + RAW[:1]), PROTOCOL_ERROR),
    "no :method": (lambda c: raw(1, RAW[1:]), PROTOCOL_ERROR),
    "no :scheme": (lambda c: raw(1, RAW[:1] + RAW[2:]), PROTOCOL_ERROR),
    "no :path": (lambda c: raw(1, RAW[:2] + RAW[3:]), PROTOCOL_ERROR),
    "empty :path": (lambda c: raw(1, RAW[:2] + [(b":path", b"")] + RAW[3:]), PROTOCOL_ERROR),
    ":method twice": (lambda c: raw(1, RAW[:1] + RAW), PROTOCOL_ERROR),
    ":path twice": (lambda c: raw(1, RAW[2:3] + RAW), PROTOCOL_ERROR),
    "body longer than content-length": (lambda c: head(c, extra=[("content-length", "1")]) + BODY, PROTOCOL_ERROR),
    "body shorter than content-length": (lambda c: head(c, extra=[("content-length", "3")]) + BODY, PROTOCOL_ERROR),
    "bodies longer than content-length together": (lambda c: head(c, extra=[("content-length", "3")]) + frame(DATA, 0, 1, b"{}") + BODY, PROTOCOL_ERROR),
    "content-length twice": (lambda c: head(c, extra=LENGTH + LENGTH) + BODY, PROTOCOL_ERROR),
    "content-length with a sign": (lambda c: head(c, extra=[("content-length", "+2")]) + BODY, PROTOCOL_ERROR),
    "pseudo header in trailers": (lambda c: head(c) + frame(DATA, 0, 1, b"{}") + raw(1, [(b":method", b"POST")]), PROTOCOL_ERROR),
    "trailers without END_STREAM": (lambda c: head(c) + frame(DATA, 0, 1, b"{}") + raw(1, [(b"x", b"y")], end=False), PROTOCOL_ERROR),
}


@pytest.mark.parametrize("name", STREAM)
def test_stream_error(server, name):
    make, code = STREAM[name]
    with H2(server.http) as c:
        c.send(make(c))
        assert c.status(1) == f"reset {code}"
        assert c.alive(3)


# ---- frames of streams that are over: RFC 9113 5.1
def test_closed_streams(server):
    """HEADERS on a stream that ended, or that the peer has reset, end the connection; DATA is passed over (nghttp2 has forgotten the stream, and counts
    the bytes into the window of the connection), and so is what may be on its way behind a reset of ours."""
    for end in (lambda c: frame(DATA, END_STREAM, 1, b"{}"), lambda c: frame(RST_STREAM, 0, 1, u32(CANCEL))):
        with H2(server.http) as c:
            c.send(head(c, extra=LENGTH), end(c))
            assert c.alive(3)
            c.send(frame(DATA, 0, 1, b"late"))
            assert c.alive(5)
            c.send(head(c, 1, end=True))
            goaway = c.answers(lambda f: f[0] == GOAWAY)[-1]
            assert goaway[0] == GOAWAY and int.from_bytes(goaway[3][4:8], "big") == STREAM_CLOSED
    with H2(server.http) as c:
        c.send(raw(1, RAW + [(b"te", b"gzip")], end=False))
        assert c.status(1) == f"reset {PROTOCOL_ERROR}"
        c.send(frame(DATA, 0, 1, b"late"), raw(1, [(b"x", b"y")]), frame(RST_STREAM, 0, 1, u32(CANCEL)), frame(WINDOW_UPDATE, 0, 1, u32(1)))
        assert c.alive(3)


def test_too_many_streams(server):
    """One more than announced is refused, not served; the others go on."""
    with H2(server.http) as c:
        for i in range(101):
            c.send(head(c, 1 + 2 * i, extra=LENGTH))
        assert c.status(201) in ("reset 7", "reset 1")
        c.send(frame(DATA, END_STREAM, 1, b"{}"))
        assert c.status(1) == "200"


# ---- what a peer may send
def test_preface(server):
    with socket_to(server.http) as s:               # not a preface, not HTTP/1 either
        s.sendall(PREFACE[:16] + b"XX\r\n\r\n\r\n\r\n")
        got, closed = read_all(s)
        assert closed and b" 400 " in got
    with H2(server.http, PREFACE) as c:             # the first frame has to be SETTINGS
        c.send(frame(PING, 0, 0, bytes(8)))
        got = c.answers(lambda f: f[0] == GOAWAY)
        assert got[-1][0] == GOAWAY and int.from_bytes(got[-1][3][4:8], "big") == PROTOCOL_ERROR


def socket_to(port):
    import socket
    return socket.create_connection(("127.0.0.1", port), 30)


def test_settings_and_pings_are_acknowledged(server):
    with H2(server.http) as c:
        c.send(settings((1, 0), (3, 1), (4, 65536), (5, 16384), (6, 100), (0x99, 7)), frame(PING, 0, 0, b"abcdefgh"), frame(PING, ACK, 0, b"unasked "))
        got = c.answers(lambda f: f[0] == PING)
        assert sum(f[0] == SETTINGS and f[1] & ACK for f in got) == 2
        assert got[-1][1] & ACK and got[-1][3] == b"abcdefgh"
        assert c.alive(1)


def test_unknown_frames_and_flags_are_passed_over(server):
    with H2(server.http) as c:
        c.send(frame(0x99, 0xff, 0, b"x"), frame(0x16, 0, 1, b"x"), head(c, extra=LENGTH), frame(0x16, 0xff, 1, bytes(100)),
               frame(DATA, END_STREAM | 0xf6 & ~PADDED, 1, b"{}"))
        assert c.status(1) == "200"
        assert c.alive(3)


def test_padding_priority_and_continuations(server):
    with H2(server.http) as c:
        block = c.block(request_fields(extra=LENGTH))
        c.send(frame(PRIORITY, 0, 1, u32(0) + b"\x10"),
               frame(HEADERS, PADDED | PRIORITY_FLAG, 1, b"\x04" + u32(0) + b"\x10" + block[:5] + bytes(4)),
               frame(CONTINUATION, 0, 1, block[5:9]), frame(CONTINUATION, 0, 1, b""), frame(CONTINUATION, END_HEADERS, 1, block[9:]),
               frame(DATA, PADDED, 1, b"\x03{" + bytes(3)), frame(DATA, 0, 1, b""), frame(DATA, PADDED | END_STREAM, 1, b"\x00}"))
        assert c.status(1) == "200"
        assert c.alive(3)


def test_trailers_and_goaway_of_the_client(server):
    with H2(server.http) as c:
        c.send(head(c), frame(DATA, 0, 1, b"{}"), frame(HEADERS, END_HEADERS | END_STREAM, 1, c.block([("x-checksum", "1")])),
               frame(GOAWAY, 0, 0, u32(0) + u32(NO_ERROR)))
        assert c.status(1) == "200"


def test_small_windows_of_the_client(server):
    """The answer keeps to the window, also when that becomes negative, and goes on with it."""
    with H2(server.http) as c:
        c.send(settings((4, 3)), head(c, extra=LENGTH), BODY)
        assert c.status(1) == "200"
        got = c.answers(lambda f: f[0] == DATA)
        assert got[-1][3] and len(got[-1][3]) <= 3
        body = got[-1][3]
        c.send(settings((4, 0)))
        c.answers(lambda f: f[0] == SETTINGS and f[1] & ACK)
        c.send(frame(WINDOW_UPDATE, 0, 1, u32(1000)))
        for f in c.answers(lambda f: f[0] == DATA and f[1] & END_STREAM):
            body += f[3] if f[0] == DATA else b""
        assert body == b'{"partialSuccess":{}}'


def test_windows_of_the_server(server):
    """A body of more than all windows arrives, because they are given back, and a stream that waits does not hold another one."""
    with H2(server.http) as c:
        body = b'{"resourceSpans":[]' + b" " * (6 << 20) + b"}"
        c.send(head(c), head(c, 3, extra=LENGTH))
        assert c.upload(1, body)
        assert c.status(1) == "200"
        c.send(frame(DATA, END_STREAM, 3, b"{}"))
        assert c.status(3) == "200"


def test_grpc_by_hand(server):
    """One call whose message comes in pieces, whose trailers hold the status; the stream of an unknown service."""
    with H2(server.grpc) as c:
        c.send(c.headers(1, request_fields(LOGS, kind="application/grpc", extra=[("te", "trailers")])))
        for piece in (b"\0", b"\0\0\0", b"\0"):
            c.send(frame(DATA, 0, 1, piece))
        c.send(frame(DATA, END_STREAM, 1, b""))
        got = c.answers(lambda f: f[2] == 1 and f[1] & END_STREAM)
        fields = [dict(c.decoder.decode(f[3])) for f in got if f[0] == HEADERS]
        assert fields[0][":status"] == "200" and fields[-1]["grpc-status"] == "0"
        assert b"".join(f[3] for f in got if f[0] == DATA)[:5] in (bytes(5), b"\0\0\0\0\2")
        c.send(c.headers(3, request_fields("/a.B/C", kind="application/grpc", extra=[("te", "trailers")])), frame(DATA, END_STREAM, 3, bytes(5)))
        got = c.answers(lambda f: f[2] == 3 and f[1] & END_STREAM)
        assert dict(c.decoder.decode(got[-1][3]))["grpc-status"] == "12"
