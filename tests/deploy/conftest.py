"""Fixtures of the tests of deploy/. MOTEL names the program of the default build, MOTEL_DIST the folder of the static programs."""
import os
import shutil
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from machine import APT, Machine, Root, debian_package  # noqa: E402
from support import DIST, e2e, static_program  # noqa: E402

start, reference, http_sink, grpc_sink = e2e.start, e2e.reference, e2e.http_sink, e2e.grpc_sink


@pytest.fixture(scope="session")
def motel():
    return e2e.MOTEL


@pytest.fixture(scope="session")
def static_motel():
    return static_program()


@pytest.fixture(scope="session")
def dist(static_motel):
    return DIST


@pytest.fixture
def needs_root():
    if os.geteuid() != 0:
        pytest.skip("only root may do this")


@pytest.fixture(scope="session")
def deb(tmp_path_factory):
    """The Debian package, built here."""
    return debian_package(tmp_path_factory.mktemp("debian"))


@pytest.fixture(scope="session")
def machine(deb, tmp_path_factory):
    """A booted Debian machine on which the package was installed a moment ago; see machine.py."""
    root = Root(tmp_path_factory.mktemp("machine") / "root")
    booted = None
    try:
        root.run("apt-get", "-qq", "update")
        root.run(*APT, "install", "systemd", "systemd-sysv", "dbus", "libpam-systemd")
        shutil.copy(deb, root.path("/root/motel.deb"))
        root.run(*APT, "install", "--download-only", "/root/motel.deb")     # there is no network in there
        os.unlink(root.path("/usr/sbin/policy-rc.d"))
        booted = Machine(root, tmp_path_factory.mktemp("log") / "log")
        booted.run(*APT, "install", "/root/motel.deb", timeout=600)
        yield booted
    finally:
        if booted:
            booted.stop()
        root.remove()
