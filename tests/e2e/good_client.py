"""A client that behaves: good_client.py PORT sends one request after the other to an otlp receiver and prints how long each took.

A program of its own, so that it measures the server and not who else uses its interpreter. It runs until it is killed."""
import socket
import sys
import time

PORT = int(sys.argv[1])
BODY = b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"good"}]}]}]}'
REQUEST = b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
PAUSE_S = 0.01


def connect():
    s = socket.create_connection(("127.0.0.1", PORT), 30)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def ask(s):
    s.sendall(REQUEST)
    got = b""
    while not got.endswith(b"}"):
        chunk = s.recv(4096)
        if not chunk:
            raise OSError("closed")
        got += chunk
    return got


s, n = connect(), 0
while True:
    started, bad = time.monotonic(), ""
    try:
        if n % 10 == 9:         # a new connection now and then
            s.close()
            s = connect()
        got = ask(s)
        if b" 200 OK" not in got:
            bad = repr(got)
    except OSError as e:
        bad = repr(e)
        s.close()
        s = connect()
    print(time.monotonic() - started, bad, flush=True)
    n += 1
    time.sleep(PAUSE_S)
