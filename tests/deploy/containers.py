"""Runs a container image without an engine: the layout is unpacked by umoci and started by crun, read-only, as the image's user, in
namespaces of its own. What a test needs on the container's network (clients, backends) is brought into its network namespace."""
import ctypes
import functools
import json
import os
import shutil
import signal
import subprocess
import tarfile
import threading

import pytest

from support import e2e

PORTS = (4317, 4318, 13133, 8888)
# crun refuses a machine with both versions of cgroups mounted, and needs none of them: it gets a view with one version.
ONE_CGROUP = 'umount -R /sys/fs/cgroup 2>/dev/null; mount -t cgroup2 none /sys/fs/cgroup && exec "$@"'


def why_not():
    """The reason why no container can be started here, or None."""
    if os.geteuid() != 0:
        return "only root may start containers in these tests"
    for program in ("crun", "umoci", "nsenter"):
        if not shutil.which(program):
            return f"{program} is not here"
    probe = subprocess.run(["unshare", "--mount", "--pid", "--net", "--fork", "sh", "-c", ONE_CGROUP, "sh", "true"], capture_output=True, text=True, check=False)
    return None if probe.returncode == 0 else f"no namespaces here: {probe.stderr.strip()}"


def layout(archive, folder):
    """Unpacks an image file as the OCI layout that it is."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder)
    return str(folder)


def json_of(folder, *path):
    with open(os.path.join(folder, *path), encoding="utf-8") as f:
        return json.load(f)


def blob(folder, descriptor):
    return os.path.join(folder, "blobs", *descriptor["digest"].split(":"))


def unpack(folder, tag, bundle):
    """The root file system of an image and what to start in it, as an OCI runtime reads it."""
    subprocess.run(["umoci", "unpack", "--image", f"{folder}:{tag}", str(bundle)], check=True, capture_output=True, timeout=120)
    return str(bundle)


class Container:
    """The image's own command, or `args` behind its entry point; the root file system is read-only, no capability is left."""

    def __init__(self, bundle, folder, name, args=None, env=(), mounts=()):
        self.folder, self.name = str(folder), name
        os.makedirs(self.folder)
        spec = json_of(bundle, "config.json")
        process = spec["process"]
        process["terminal"] = False
        process["env"] += list(env)
        if args is not None:
            process["args"] = process["args"][:1] + list(args)
        process["capabilities"] = {kind: [] for kind in process["capabilities"]}
        spec["root"] = {"path": os.path.join(bundle, "rootfs"), "readonly": True}
        spec["mounts"] = [m for m in spec["mounts"] if m["type"] != "cgroup"]
        spec["mounts"] += [{"destination": inside, "type": "bind", "source": str(outside), "options": ["bind", mode, "nosuid", "nodev"]}
                           for outside, inside, mode in mounts]
        with open(os.path.join(self.folder, "config.json"), "w", encoding="utf-8") as f:
            json.dump(spec, f)
        self.out, self.err = os.path.join(self.folder, "stdout"), os.path.join(self.folder, "stderr")
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen(self.crun("run", "--pid-file", os.path.join(self.folder, "pid"), "--bundle", self.folder, name),
                                            stdin=subprocess.DEVNULL, stdout=out, stderr=err)

    @functools.cached_property
    def pid(self):
        """Of the first process in the container, as this machine counts."""
        return int(e2e.wait_until(self._pid, 60, "the container's process"))

    def crun(self, *args):
        return ["unshare", "--mount", "sh", "-c", ONE_CGROUP, "sh", "crun", "--root", os.path.join(self.folder, "state"), "--cgroup-manager=disabled", *args]

    def _pid(self):
        assert self.process.poll() is None, self.text(self.err)
        path = os.path.join(self.folder, "pid")
        return self.text(path).strip() if os.path.exists(path) else None

    @staticmethod
    def text(path):
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()

    @property
    def stdout(self):
        return self.text(self.out)

    @property
    def stderr(self):
        return self.text(self.err)

    def run(self, *args):
        """Runs a program beside motel in the container, as `docker exec` and health checks do."""
        return subprocess.run(self.crun("exec", "--user", "10001:10001", self.name, *args), capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False)

    def outside(self, *args, **kw):
        """Runs a program of this machine on the container's network."""
        return subprocess.run(["nsenter", f"--net=/proc/{self.pid}/ns/net", *map(str, args)], timeout=180, **kw)

    def on_network(self, make):
        """make() with the container's network namespace: sockets that it opens stay there."""
        return on_network(f"/proc/{self.pid}/ns/net", make)

    def ready(self, ports=PORTS[:3]):
        def all_listen():
            assert self.process.poll() is None, self.stderr
            return self.on_network(lambda: all(e2e.connects(port) for port in ports))
        e2e.wait_until(all_listen, 60, "ports of the container")
        return self

    def stop(self, sig=signal.SIGTERM, limit=60):
        """Sends the signal to the first process of the container, and returns the exit code of the container."""
        if self.process.poll() is None:
            os.kill(self.pid, sig)
        return self.process.wait(limit)

    def remove(self):
        if self.process.poll() is None:
            try:
                self.stop(signal.SIGKILL)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                self.process.kill()
                self.process.wait()


def on_network(path, make):
    """make() in a thread that has entered the network namespace; its result."""
    result, failure = [], []

    def enter():
        try:
            with open(path, "rb") as f:
                libc = ctypes.CDLL(None, use_errno=True)
                if libc.setns(f.fileno(), 0x40000000) != 0:
                    raise OSError(ctypes.get_errno(), f"setns {path}")
            result.append(make())
        except BaseException as e:      # handed to the caller, who is in another thread
            failure.append(e)
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return result[0]


@pytest.fixture
def container(tmp_path):
    """container(bundle, …) starts one; see Container. Killed at the end."""
    made = []

    def start(bundle, **kw):
        c = Container(bundle, tmp_path / f"container{len(made)}", f"motel-test-{os.getpid()}-{len(made)}", **kw)
        made.append(c)
        return c
    yield start
    for c in made:
        c.remove()
