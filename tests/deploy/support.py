"""What the tests of deploy/ share: the helpers of the end-to-end tests, the repository's root, the files that were built."""
import importlib.util
import os
import re
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DIST = os.environ.get("MOTEL_DIST", os.path.join(ROOT, "dist"))

_spec = importlib.util.spec_from_file_location("e2e_conftest", os.path.join(ROOT, "tests", "e2e", "conftest.py"))
e2e = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(e2e)


def version():
    with open(os.path.join(ROOT, "meson.build"), encoding="utf-8") as f:
        return re.search(r"version: '([^']+)'", f.read()).group(1)


def static_program(arch="x86_64"):
    """Path of the static program of that processor, built when it is not there."""
    path = os.path.join(DIST, f"motel-{version()}-linux-{arch}")
    if not os.path.exists(path):
        subprocess.run([os.path.join(ROOT, "deploy", "static", "build"), arch], check=True, timeout=3000)
    return path


def debian_root(suite, folder=None):
    """Path of the shared, read-only root of a Debian release, or of a copy of it in `folder` (made here)."""
    script = os.path.join(ROOT, "tests", "deploy", "debootstrap_root")
    done = subprocess.run([script, suite] + ([str(folder)] if folder else []), capture_output=True, text=True, timeout=1200)
    if done.returncode == 77:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def needs_own_mounts():
    """Skips the test where nobody can have mounts of his own, such as in a chroot."""
    probe = subprocess.run(["unshare", "--mount", "true"], capture_output=True, text=True, check=False)
    if probe.returncode:
        pytest.skip(f"no mounts of our own: {probe.stderr.strip()}")
