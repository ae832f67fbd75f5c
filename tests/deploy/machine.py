"""A Debian machine in namespaces: a copy of the shared root whose systemd runs as process 1, with a network of its own."""
import os
import shutil
import signal
import subprocess

import pytest

from support import ROOT, debian_root, e2e, version

BOOT = os.path.join(ROOT, "tests", "deploy", "boot_machine")
APT = ["apt-get", "-qq", "-y", "--no-install-recommends", "-o", "Dpkg::Use-Pty=0"]


def debian_package(folder):
    """Path of the package, built by deploy/debian/build into `folder`, or where MOTEL_DEB says."""
    if os.environ.get("MOTEL_DEB"):
        return os.environ["MOTEL_DEB"]
    for program in ("dpkg-buildpackage", "dh", "lintian"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    done = subprocess.run([os.path.join(ROOT, "deploy", "debian", "build")], env={**os.environ, "MOTEL_DIST": str(folder)},
                          capture_output=True, text=True, timeout=3000, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    path = done.stdout.strip()
    assert os.path.basename(path).startswith(f"motel_{version()}-1_")
    return path


class Root:
    """A copy of a Debian root, in which programs run by chroot, with the network of the outside."""

    def __init__(self, folder, suite="bookworm"):
        self.folder = str(folder)
        debian_root(suite, folder)

    def run(self, *argv, check=True, **kw):
        done = subprocess.run(["chroot", self.folder, *argv], capture_output=True, text=True, timeout=600, check=False,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}, **kw)
        assert not check or done.returncode == 0, f"{argv}: exit {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done

    def path(self, *parts):
        return os.path.join(self.folder, *(p.lstrip("/") for p in parts))

    def write(self, path, text, mode=0o644):
        os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
        with open(self.path(path), "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(self.path(path), mode)

    def read(self, path):
        with open(self.path(path), encoding="utf-8") as f:
            return f.read()

    def remove(self):
        subprocess.run(["rm", "-rf", "--one-file-system", self.folder], check=True)


class Machine:
    """The root, booted."""

    def __init__(self, root, log):
        self.root, self.log = root, str(log)
        with open(self.log, "wb") as f:
            self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", BOOT, root.folder], stdin=subprocess.DEVNULL, stdout=f, stderr=f)
        self.pid = e2e.wait_until(self._find, 120, "a process 1")
        e2e.wait_until(self._booted, 180, "the boot")

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def _children(self, pid):
        try:
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
                return [int(p) for p in f.read().split()]
        except OSError:
            return []

    def _find(self):
        """systemd, which is process 1 of its namespace."""
        if self.process.poll() == 77:
            pytest.skip(self.said().strip())
        assert self.process.poll() is None, self.said()
        below = [self.process.pid]
        for pid in below:
            below += self._children(pid)
        for pid in below:
            try:
                with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
                    if f.read().strip() == "systemd" and os.readlink(f"/proc/{pid}/ns/pid") != os.readlink("/proc/self/ns/pid"):
                        return pid
            except OSError:
                pass
        return None

    def _booted(self):
        assert self.process.poll() is None, self.said()
        return self.run("systemctl", "is-system-running", check=False).stdout.strip() in ("running", "degraded")

    def enter(self, *argv, only_network=False):
        """The command line that runs argv in there; with `only_network` a program of the outside, on the inner network."""
        return ["nsenter", "-t", str(self.pid), *(["-n"] if only_network else ["-m", "-p", "-n", "-i", "-u", "-C"]), *argv]

    def run(self, *argv, check=True, only_network=False, timeout=180, **kw):
        env = None if only_network else {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(self.enter(*argv, only_network=only_network), capture_output=True, text=True, timeout=timeout, check=False, env=env, cwd="/", **kw)
        assert not check or done.returncode == 0, f"{argv}: exit {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done

    def property(self, name, unit="motel"):
        return self.run("systemctl", "show", "--value", "-p", name, unit).stdout.strip()

    def journal(self, unit="motel"):
        return self.run("journalctl", "--no-pager", "-o", "cat", "-u", unit).stdout

    def stop(self):
        """Ends it and all that runs in there at once; nothing in there is wanted any more."""
        if self.process.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
        self.process.wait(120)
