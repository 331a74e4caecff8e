"""One simulator for all tests of flows, with a clean slate for each."""

import pytest

from deploy.servers.simulator import Simulator
from tests.flows.support import reset


@pytest.fixture(scope="session")
def _served():
    with Simulator() as server:
        yield server


@pytest.fixture
def simulator(_served):
    reset(_served)
    return _served
