"""Where and with what was measured: the machine, and the versions of everything that took part."""
import os
import platform
import re
import shutil
import subprocess

from harness.peers import ROOT

LIBRARIES = ("libmicrohttpd", "libnghttp2", "libcurl", "gnutls", "libdeflate", "libisal", "libzstd", "liblz4", "libprotobuf-c", "jansson",
             "yaml-0.1", "libpcre2-8")


def said(*argv):
    """First line that a command prints, or None."""
    try:
        r = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=ROOT)
    except OSError:
        return None
    lines = (r.stdout or r.stderr).strip().splitlines()
    return lines[0].strip() if r.returncode == 0 and lines else None


def read(path):
    try:
        with open(path, encoding="ascii", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def cpu_model():
    found = re.search(r"^(?:model name|Model|CPU part)\s*:\s*(.*)$", read("/proc/cpuinfo"), re.M)
    return found.group(1) if found else platform.machine()


def hypervisor():
    if not re.search(r"^flags\s*:.*\bhypervisor\b", read("/proc/cpuinfo"), re.M):
        return "none seen"
    text = subprocess.run(["lscpu"], capture_output=True, text=True, check=False).stdout if shutil.which("lscpu") else ""
    found = re.search(r"^Hypervisor vendor:\s*(.*)$", text, re.M)
    return found.group(1) if found else "yes, unknown"


def describe():
    release = dict(line.split("=", 1) for line in read("/etc/os-release").splitlines() if "=" in line)
    total = re.search(r"MemTotal:\s*(\d+)", read("/proc/meminfo"))
    return {
        "cpu": cpu_model(), "cores": len(os.sched_getaffinity(0)), "architecture": platform.machine(),
        "memory_mib": int(total.group(1)) // 1024 if total else None,
        "kernel": platform.release(), "system": release.get("PRETTY_NAME", "?").strip('"'),
        "governor": read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip() or "not visible",
        "hypervisor": hypervisor(),
        "transparent_hugepages": (re.search(r"\[(\w+)\]", read("/sys/kernel/mm/transparent_hugepage/enabled")) or [None, "not visible"])[1],
    }


def versions():
    libraries = {name: said("pkg-config", "--modversion", name) for name in LIBRARIES}
    return {"commit": said("git", "describe", "--always", "--dirty"), "compiler": said(os.environ.get("CC", "cc"), "--version"),
            "libc": " ".join(platform.libc_ver()), "h2load": said("h2load", "--version"), "python": platform.python_version(),
            "libraries": {k: v for k, v in libraries.items() if v}}
