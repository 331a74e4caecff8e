"""One simulator for all tests of flows, with a clean slate for each."""

import pytest

from tests.flows.judging import judged_config
from tests.flows.shared_cluster import PROCESSES
from tests.flows.support import evalcube, one_simulator, reset, sweep_config, write_config
from tests.simulator.managed import Simulator


@pytest.fixture(scope="module", autouse=True)
def _shared_cluster_ends():
    """Few modules need worker processes, and those that wait for tasks cost as much as a test in a few seconds."""
    yield
    PROCESSES.close()


@pytest.fixture(scope="session")
def _served():
    with Simulator() as server:
        yield server


@pytest.fixture
def simulator(_served):
    reset(_served)
    return _served


@pytest.fixture(scope="module")
def simulated():
    """For modules whose runs ask ``sim:``: they start no server each."""
    with one_simulator():
        yield


@pytest.fixture(scope="session")
def small_sweep(tmp_path_factory, _served):
    """A folder with a finished small sweep of one model, which tests read or copy."""
    reset(_served)
    folder = tmp_path_factory.mktemp("finished")
    path = write_config(folder, sweep_config(folder, _served.base_url, trials=2))
    code, _, errors = evalcube("run", path, "--workers", 1, "--quiet", cwd=folder)
    assert code == 0, errors
    return folder


@pytest.fixture(scope="session")
def judged(tmp_path_factory, _served):
    """A folder with a finished sweep of a data set that judges rated, which tests read or copy."""
    reset(_served)
    folder = tmp_path_factory.mktemp("judged")
    path = write_config(folder, judged_config(folder, _served.base_url))
    code, _, errors = evalcube("run", path, "--workers", 1, "--quiet", cwd=folder)
    assert code == 0, errors
    return folder
