"""HTTP/1.1 framing (RFC 9112) against the OTLP receiver: what two readers may understand differently is refused with 400 and ends the
connection, as the first request of a connection and as a later one. A request that stands inside of a body, or behind an error, is never answered."""
import socket

import pytest
from conftest import post, wait_until
from wire_client import lasting_server, read_all, send_all

BODY = b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"MARKER"}]}]}]}'
SMUGGLED = b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
FIRST = b"GET /nope HTTP/1.1\r\nHost: x\r\n\r\n"
LINE = b"POST /nope HTTP/1.1\r\n"
HEAD = LINE + b"Host: x\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def chunked(text):
    return CHUNKED + text


# Refused: 400 (or silence, where the parser gives up before there is a request), then the end.
BAD = {
    "length and chunked": HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked and length": HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "lengths differ": HEAD + b"Content-Length: 5\r\nContent-Length: 200\r\n\r\n0\r\n\r\n",
    "length twice": HEAD + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "length with plus": HEAD + b"Content-Length: +5\r\n\r\n0\r\n\r\n",
    "length with minus": HEAD + b"Content-Length: -5\r\n\r\n0\r\n\r\n",
    "length with a blank inside": HEAD + b"Content-Length: 5 5\r\n\r\n0\r\n\r\n",
    "list of lengths": HEAD + b"Content-Length: 5, 5\r\n\r\n0\r\n\r\n",
    "hexadecimal length": HEAD + b"Content-Length: 0x5\r\n\r\n0\r\n\r\n",
    "length of words": HEAD + b"Content-Length: five\r\n\r\n0\r\n\r\n",
    "empty length": HEAD + b"Content-Length:\r\n\r\n0\r\n\r\n",
    "length of 20 digits": HEAD + b"Content-Length: 18446744073709551621\r\n\r\n0\r\n\r\n",
    "blank before the colon of a length": HEAD + b"Content-Length : 5\r\n\r\n0\r\n\r\n",
    "tab before the colon of an encoding": HEAD + b"Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n",
    "xchunked": HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunked, identity": HEAD + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "identity, chunked": HEAD + b"Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n",
    "identity": HEAD + b"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "gzip, chunked": HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunked twice": HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked and another field of encoding": HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n",
    "quoted chunked": HEAD + b'Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n',
    "chunked with a vertical tab": HEAD + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "empty encoding": HEAD + b"Transfer-Encoding:\r\n\r\n0\r\n\r\n",
    "encoding on a folded line": HEAD + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "encoding of HTTP/1.0": b"POST /nope HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "folded field": HEAD + b"A: b\r\n\tc\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "folded first field": LINE + b" Host: x\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "NUL in a value": HEAD + b"A: b\0c\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "NUL in a name": HEAD + b"A\0: b\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "NUL in the target": b"POST /nope\0 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "bare CR in a value": HEAD + b"A: b\rContent-Length: 5\r\n\r\n0\r\n\r\n",
    "bare CR behind a value": HEAD + b"A: b\r\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "bare LF behind the request line": b"POST /nope HTTP/1.1\nHost: x\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "bare LF behind a field": HEAD + b"A: b\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "bare LF at the end of the head": HEAD + b"Content-Length: 5\r\n\n0\r\n\r\n",
    "bare LF twice at the end of the head": HEAD + b"Content-Length: 5\n\n0\r\n\r\n",
    "control character": HEAD + b"A: b\x7f\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "no colon": HEAD + b"A\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "only a colon": HEAD + b":\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "no name": HEAD + b": b\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "no host": LINE + b"Content-Length: 5\r\n\r\n0\r\n\r\n",
    "two hosts": HEAD + b"Host: y\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "two blanks in the request line": b"POST  /nope HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "blank in the target": b"POST /no pe HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "HTTP/1.2": b"POST /nope HTTP/1.2\r\nHost: x\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "HTTP/2.0": b"POST /nope HTTP/2.0\r\nHost: x\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "http/1.1": b"POST /nope http/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "HTTP/0.9": b"POST /nope\r\n\r\n",
    "garbage": b"\x01\x02\x03\r\n\r\n",
}
# Answered (404) or refused; nothing behind it is taken for a request in any case: a chunked request is the last one of its connection.
CHUNKS = {
    "ordinary": chunked(b"5\r\n12345\r\n0\r\n\r\n"),
    "hexadecimal prefix": chunked(b"0x5\r\n12345\r\n0\r\n\r\n"),
    "plus": chunked(b"+5\r\n12345\r\n0\r\n\r\n"),
    "minus": chunked(b"-5\r\n12345\r\n0\r\n\r\n"),
    "blank before the size": chunked(b" 5\r\n12345\r\n0\r\n\r\n"),
    "blank behind the size": chunked(b"5 \r\n12345\r\n0\r\n\r\n"),
    "17 digits": chunked(b"00000000000000005\r\n12345\r\n0\r\n\r\n"),
    "beyond 64 bits": chunked(b"10000000000000005\r\n12345\r\n0\r\n\r\n"),
    "no size": chunked(b"\r\n12345\r\n0\r\n\r\n"),
    "extension": chunked(b"5;a=b\r\n12345\r\n0\r\n\r\n"),
    "extension with a bare LF": chunked(b"5;\n12345\r\n0\r\n\r\n"),
    "extension with a quoted CR LF": chunked(b'5;a="\r\n12345\r\n0\r\n\r\n'),
    "bare LF behind the size": chunked(b"5\n12345\r\n0\r\n\r\n"),
    "bare LF behind the data": chunked(b"5\r\n12345\n0\r\n\r\n"),
    "bare LF at the end": chunked(b"5\r\n12345\r\n0\n\n"),
    "CR without LF behind the size": chunked(b"5\r12345\r\n0\r\n\r\n"),
    "nothing behind the data": chunked(b"5\r\n123450\r\n\r\n"),
    "other bytes behind the data": chunked(b"5\r\n12345XX0\r\n\r\n"),
    "data longer than the size": chunked(b"3\r\n12345\r\n0\r\n\r\n"),
    "framing in the trailers": chunked(b"0\r\nContent-Length: 50\r\nTransfer-Encoding: x\r\n\r\n"),
    "trailer with NUL": chunked(b"0\r\nA: \0\r\n\r\n"),
    "trailer without colon": chunked(b"0\r\nA\r\n\r\n"),
}
# Answered, and the connection goes on.
GOOD = {
    "no body": HEAD + b"\r\n",
    "length": HEAD + b"Content-Length: 5\r\n\r\n12345",
    "blanks before a length": HEAD + b"Content-Length: \t 5\r\n\r\n12345",
    "leading zeros": HEAD + b"Content-Length: 0005\r\n\r\n12345",
    "a request inside of a body": HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(SMUGGLED), SMUGGLED),
    "absolute form": b"POST http://y/nope?a=b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n12345",
    "asterisk": b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
    "authority form": b"CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    "query": b"POST /nope?a=b%00c&d=+ HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n12345",
    "empty host": LINE + b"Host:\r\nContent-Length: 5\r\n\r\n12345",
    "high bytes in a value": HEAD + b"A: \xc3\xa9\xff\r\nContent-Length: 5\r\n\r\n12345",
    "long head": HEAD + b"".join(b"A-%d: %s\r\n" % (i, b"v" * 100) for i in range(100)) + b"Content-Length: 5\r\n\r\n12345",
    "empty lines before": b"\r\n\r\n" + HEAD + b"Content-Length: 5\r\n\r\n12345",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with lasting_server(tmp_path_factory.mktemp("framing")) as s:
        yield s
        assert s.program.alive()
        assert post(s.http, "traces", {"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "last"}]}]}]})[0] == 200
        wait_until(lambda: "last" in str(s.lines()))
        assert "MARKER" not in str(s.lines())


def statuses(answer):
    return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:] + answer.split(b"HTTP/1.0 ")[1:]]


def talk(server, *parts, limit=20):
    """Sends the parts, the later ones once the answer to the first is there; all that came, and whether the server has closed."""
    with socket.create_connection(("127.0.0.1", server.http), 30) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        before = b""
        for part in parts[:-1]:
            send_all(s, part)
            while b"404 page not found" not in before:
                before += s.recv(4096)
        send_all(s, parts[-1])
        got, closed = read_all(s, limit)
        return before, got, closed


def smuggle(server, bad, place):
    """What is answered to a bad request with another one behind it, until the server closes."""
    bad += SMUGGLED
    _, got, closed = talk(server, *{"first": (bad,), "later": (FIRST, bad), "pipelined": (FIRST + bad,)}[place])
    assert closed, got
    assert b"partialSuccess" not in got
    return got


@pytest.mark.parametrize("place", ("first", "later", "pipelined"))
@pytest.mark.parametrize("name", BAD)
def test_refused(server, name, place):
    got = smuggle(server, BAD[name], place)
    found = statuses(got)
    if place == "pipelined":
        assert found[:1] == [404]
        found = found[1:]
    assert set(found) <= {400, 413, 505}, got      # libmicrohttpd names some of them otherwise
    if place == "first":
        assert found == [400]


@pytest.mark.parametrize("place", ("first", "later", "pipelined"))
@pytest.mark.parametrize("name", CHUNKS)
def test_chunks(server, name, place):
    got = smuggle(server, CHUNKS[name], place)
    found = statuses(got)[place == "pipelined":]
    assert found in ([404], [400], [413], []), got


@pytest.mark.parametrize("place", ("first", "later", "pipelined"))
@pytest.mark.parametrize("name", GOOD)
def test_taken(server, name, place):
    """Two more requests behind it are answered, each once."""
    good = GOOD[name] + FIRST + LINE + b"Host: x\r\nConnection: close\r\n\r\n"
    _, got, closed = talk(server, *{"first": (good,), "later": (FIRST, good), "pipelined": (FIRST + good,)}[place])
    assert closed
    assert statuses(got) == [404] * (4 if place == "pipelined" else 3), got
    assert b"partialSuccess" not in got


@pytest.mark.parametrize("pieces", (1, 7))
def test_heads_in_pieces(server, pieces):
    """A head is judged the same, however it comes."""
    for name in ("NUL in a value", "bare LF behind a field", "folded field", "bare LF at the end of the head"):
        with socket.create_connection(("127.0.0.1", server.http), 30) as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            s.sendall(FIRST)
            got = b""
            while b"404 page not found" not in got:
                got += s.recv(4096)
            for i in range(0, len(BAD[name]), pieces):
                if not send_all(s, BAD[name][i:i + pieces]):
                    break
            send_all(s, SMUGGLED)
            got, closed = read_all(s)
            assert closed and set(statuses(got)) <= {400}, (name, got)


def test_error_ends_the_connection(server):
    """What is pipelined behind a request that was refused is not answered."""
    for bad in (HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", HEAD + b"Content-Length: x\r\n\r\n"):
        _, got, closed = talk(server, SMUGGLED.replace(b"MARKER", b"served") + bad + SMUGGLED + SMUGGLED)
        assert closed and statuses(got)[0] == 200 and set(statuses(got)[1:]) == {400}, got
