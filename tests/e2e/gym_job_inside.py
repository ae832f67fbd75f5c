"""The collector's part of a Gym job script in namespaces of its own, where all its ports are free and its absolute paths can be made:

    unshare -rmnpf --mount-proc --kill-child python gym_job_inside.py SPEC.json

SPEC: {job, folder, script, program, places, backend: {port, tls} or null, certificates, driver: [command…], exit, env}. `folder` is the job's folder
outside, which the script sees under its own path `job`; `places` are paths at which the program stands. Writes result.json to `folder`.
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
import time

from conftest import HttpSink

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1

# srun starts the task and stays as its parent, as the real one does. The driver is the test's own.
SRUN = """#!/bin/bash
output=/dev/null
while [[ $1 == --* ]]; do case $1 in --output=*) output=${1#--output=} ;; esac; shift; done
case $output in */driver-*) "$JOB_PYTHON" "$JOB_DRIVER" > "$output" 2>&1 ;; *) "$@" > "$output" 2>&1 ;; esac
"""

# The script's 20 s for late telemetry are shortened, and its 5 s between two looks at the health check end when it answers; the wait for the end is as it is.
PRELUDE = """healthy() { for _ in {1..50}; do curl -sf http://localhost:13133/ > /dev/null 2>&1 && return; command sleep 0.1; done; }
sleep() { case $1 in 20) command sleep "$JOB_GRACE" ;; 5) healthy ;; *) command sleep "$1" ;; esac; }
pkill() { date +%s.%N > terminated; command pkill "$@"; }
gym_nodes=(localhost)
"""


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(s, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def bind(source, target):
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        open(target, "ab").close()
    subprocess.run(["mount", "--rbind", source, target], check=True)


def mirror(source, target, made):
    """`target` shows what is in `source`, and has room for the paths `made` (relative to it)."""
    os.makedirs(target, exist_ok=True)
    here = {p.split("/")[0] for p in made}
    for name in os.listdir(source) if os.path.isdir(source) else ():
        old, new = os.path.join(source, name), os.path.join(target, name)
        if os.path.islink(old):
            os.symlink(os.readlink(old), new)
        elif name in here:
            mirror(old, new, [p.partition("/")[2] for p in made if p.split("/")[0] == name and "/" in p])
        else:
            bind(old, new)


def private_root(spec):
    """A root in which the job's folder and the program's places exist; chroots into it."""
    root = os.path.join(spec["folder"], "root")
    os.makedirs(root)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", root], check=True)
    mirror("/", root, [p.lstrip("/") for p in [spec["job"], *spec["places"]]])
    bind(spec["folder"], root + spec["job"])
    for place in spec["places"]:
        os.makedirs(os.path.dirname(root + place), exist_ok=True)
        os.symlink(spec["program"], root + place)
    if spec["certificates"]:
        bind(os.path.join(spec["certificates"], "hosts"), root + "/etc/hosts")
        bind(os.path.join(spec["certificates"], "ca.pem"), root + "/etc/ssl/certs/ca-certificates.crt")
    os.chroot(root)
    os.chdir(spec["job"])


def backend(spec):
    if not spec["backend"]:
        return None
    sink = HttpSink(port=spec["backend"]["port"])
    if spec["backend"]["tls"]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(os.path.join(spec["certificates"], "server.pem"), os.path.join(spec["certificates"], "server.key"))
        sink.server.handle_error = lambda *_: None
        sink.server.socket = context.wrap_socket(sink.server.socket, server_side=True, do_handshake_on_connect=False)
    return sink


def write(path, text, mode=0o644):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        spec = json.load(f)
    loopback_up()
    sink = backend(spec)
    private_root(spec)
    os.makedirs("logs", exist_ok=True)
    os.makedirs("bin", exist_ok=True)
    write("bin/srun", SRUN, 0o755)
    os.symlink(spec["program"], "bin/otelcol-contrib")
    env = {**os.environ, **spec["env"], "PATH": f"{spec['job']}/bin:{os.environ['PATH']}", "USER": "root", "JOB_PYTHON": sys.executable, "JOB_DRIVER": spec["driver"]}
    begin = time.time()
    done = subprocess.run(["bash", "-c", PRELUDE + spec["script"]], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    end = time.time()
    with open("terminated", encoding="utf-8") as f:
        terminated = float(f.read())
    left = subprocess.run(["pgrep", "-f", "collector.yaml"], capture_output=True, text=True).stdout.split()
    requests = [{"path": r["path"], "headers": r["headers"], "body": base64.b64encode(r["body"]).decode()} for r in (sink.requests if sink else [])]
    write("result.json", json.dumps({"code": done.returncode, "stdout": done.stdout, "stderr": done.stderr, "seconds": end - begin,
                                     "stop_seconds": end - terminated, "left": left, "requests": requests}))


main()
