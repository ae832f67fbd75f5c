"""Fixtures of the tests of deploy/. MOTEL names the program of the default build, MOTEL_DIST the folder of the static programs."""
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

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
