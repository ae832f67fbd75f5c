"""motel alone in a root folder, as a NeMo Gym job's collector, in namespaces of its own:

    unshare -mnpf --mount-proc --kill-child python static_inside.py SPEC.json

SPEC: {root, command, env, certificates, driver, driver_env, emulator, result}. The namespaces hold a name server on 127.0.0.1:53, which knows one
name, and a backend with TLS on port 443. The program sees nothing but `root`. The clients are the driver of the job tests, outside of the root.
"""
import base64
import fcntl
import json
import os
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import urllib.request

from support import e2e

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
PATIENCE = 120
NAME = "otlp.example.com"


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(s, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def question(query):
    """The name that a DNS query asks for, the type, and where the question ends (RFC 1035 section 4.1.2)."""
    at, labels = 12, []
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode())
        at += 1 + query[at]
    return ".".join(labels), struct.unpack(">H", query[at + 1:at + 3])[0], at + 5


class Dns:
    """A name server that answers A queries for NAME with 127.0.0.1, others for it with nothing, and refuses all other names."""

    def __init__(self):
        self.asked = []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 53))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            query, client = self.socket.recvfrom(4096)
            name, kind, end = question(query)
            self.asked.append(name)
            known, address = name == NAME, name == NAME and kind == 1
            head = query[:2] + struct.pack(">HHHHH", 0x8180 if known else 0x8183, 1, int(address), 0, 0)
            answer = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + socket.inet_aton("127.0.0.1") if address else b""
            self.socket.sendto(head + query[12:end] + answer, client)


def backend(certificates):
    sink = e2e.HttpSink(port=443)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(certificates, "server.pem"), os.path.join(certificates, "server.key"))
    sink.server.handle_error = lambda *_: None
    sink.server.socket = context.wrap_socket(sink.server.socket, server_side=True, do_handshake_on_connect=False)
    return sink


def wait_healthy(program, log):
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen("http://127.0.0.1:13133/", timeout=10) as r:
                if r.status == 200:
                    return
        except OSError:
            pass
        if program.poll() is not None or time.monotonic() > deadline:
            program.kill()
            with open(log, encoding="utf-8", errors="replace") as f:
                sys.exit(f"not healthy, exit code {program.poll()}:\n{f.read()[-6000:]}")
        time.sleep(0.02)


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        spec = json.load(f)
    loopback_up()
    dns, sink, log = Dns(), backend(spec["certificates"]), spec["result"] + ".log"

    def enter():
        os.chroot(spec["root"])
        os.chdir("/")
    with open(log, "wb") as f:
        program = subprocess.Popen(spec["command"], env=spec["env"], stdin=subprocess.DEVNULL, stdout=f, stderr=f, preexec_fn=enter)
    wait_healthy(program, log)
    driver = subprocess.run([sys.executable, spec["driver"]], env={**os.environ, **spec["driver_env"]}, capture_output=True, text=True)
    program.terminate()
    code = program.wait(timeout=PATIENCE)
    requests = [{"path": r["path"], "headers": r["headers"], "body": base64.b64encode(r["body"]).decode()} for r in sink.requests]
    with open(spec["result"], "w", encoding="utf-8") as f:
        json.dump({"code": code, "driver_code": driver.returncode, "driver": driver.stdout + driver.stderr, "asked": dns.asked, "requests": requests}, f)


main()
