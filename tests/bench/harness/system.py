"""What the harness asks the operating system: CPU clocks, memory, ports, times of ending, and pages that are warm."""
import mmap
import os
import resource
import select
import socket
import tempfile
import time

MIB = 1 << 20


class Failed(Exception):
    """Something could not be measured, or data was lost; the text says what."""


def cpu_seconds(pid):
    """CPU time of all threads of the process, from its own clock (nanoseconds; clock_getcpuclockid(3))."""
    return time.clock_gettime((~pid << 3) | 2)


def memory(pid):
    """VmRSS, VmHWM and RssAnon in KiB, and the number of Threads."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        fields = dict(line.split(":", 1) for line in f)
    return {k: int(fields[k].split()[0]) for k in ("VmRSS", "VmHWM", "RssAnon", "Threads")}


def free_ports(n):
    """n TCP ports that nobody listens on, outside the range that the system gives to clients."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        first, last = map(int, f.read().split())
    candidates = [*range(10000, first), *range(last + 1, 65536)]
    start, ports = int.from_bytes(os.urandom(4), "big"), []
    for i in range(len(candidates)):
        port = candidates[(start + i * 7919) % len(candidates)]
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == n:
            return ports
    raise Failed(f"no {n} free ports")


def connects(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def wait_for(condition, limit_s, what, every_s=0.002):
    """Polls until condition() is true, and returns its value."""
    end = time.monotonic() + limit_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Failed(f"{what}: not within {limit_s} s")
        time.sleep(every_s)


def wait_settled(read, wanted, limit_s, quiet_s=10.0):
    """Polls read() until it reaches `wanted`, or does not change for quiet_s; returns the last value."""
    value, changed, end = None, time.monotonic(), time.monotonic() + limit_s
    while time.monotonic() < end:
        now = read()
        if wanted is not None and now >= wanted:
            return now
        if now != value:
            value, changed = now, time.monotonic()
        elif time.monotonic() - changed > quiet_s:
            break
        time.sleep(0.05)
    return read()


def wait_file_quiet(path, quiet_s=0.7, limit_s=60):
    """Waits until the file is there and has not grown for quiet_s."""
    size, changed, end = -1, time.monotonic(), time.monotonic() + limit_s
    while time.monotonic() < end:
        now = os.path.getsize(path) if os.path.exists(path) else 0
        if now != size:
            size, changed = now, time.monotonic()
        elif now and time.monotonic() - changed > quiet_s:
            return
        time.sleep(0.05)


def wait_exit_ms(process, limit_s=40):
    """Milliseconds until the process has ended, without polling; kills it at the limit and raises."""
    t = time.monotonic()
    fd = os.pidfd_open(process.pid)
    try:
        ended = select.select([fd], [], [], limit_s)[0]
        ms = (time.monotonic() - t) * 1e3
    finally:
        os.close(fd)
    if not ended:
        process.kill()
    process.wait()
    if not ended:
        raise Failed(f"did not end within {limit_s} s")
    return ms


def raise_descriptor_limit():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def warm_pages(folder, each_bytes=512 * MIB):
    """Touches and frees 512 MiB of page cache (a file in `folder`) and 512 MiB of anonymous memory.

    Some virtual machines give memory that is free back to their host, and then the first touch of a page costs
    microseconds. Which agent pays for that is chance. After this the kernel has pages at hand that the host has backed.
    """
    block = memoryview(bytes(4 * MIB))
    with tempfile.TemporaryFile(dir=folder, buffering=0) as f:
        for _ in range(each_bytes // len(block)):
            f.write(block)
    with mmap.mmap(-1, each_bytes) as m:
        for at in range(0, each_bytes, 4 * MIB):
            m[at:at + 4 * MIB] = block
