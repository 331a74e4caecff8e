"""Sweeps whose cube and cache are in a bucket: real processes, killed, against a real server that misbehaves."""

import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from evalcube.flows.run.sweep import run
from tests.flows.shared_cluster import SHARED
from tests.flows.support import (
    assert_same_cube,
    command,
    own_process,
    simulator_stats,
    subprocess_of,
    sweep_config,
    write_config,
)
from tests.storage.support import buckets
from tests.waiting import wait_until

TRIALS = 24
IN_FLIGHT = 2 * 8
MODELS = ("alpha", "beta")
REQUESTS = len(MODELS) * 5 * TRIALS


@pytest.fixture(scope="module", params=["moto", pytest.param("localstack", marks=pytest.mark.integration)])
def served(request):
    with buckets.proxied(request.param) as found:
        yield found


@pytest.fixture
def store(served, monkeypatch):
    """The bucket behind its proxy, which behaves at first."""
    for name, value in served.environment.items():
        monkeypatch.setenv(name, value)
    served.settings()
    served.reset()
    return served


@pytest.fixture
def config(store, tmp_path, simulator):
    """A sweep of four regions, whose cube is in the bucket; what caches do there is tested beside them."""
    made = sweep_config(tmp_path, simulator.base_url, trials=TRIALS, models=MODELS)
    for model in made["models"]:
        model["simulate"]["latency"] = 0.02
    return {**made, "cube": f"{store.url}/{tmp_path.name}/cube.zarr"}


@pytest.fixture
def undisturbed(config, tmp_path):
    """The same sweep in a directory."""

    def made():
        local = {**config, "cube": str(tmp_path / "local.zarr")}
        summary = run(local, cluster=SHARED)
        assert (summary.reason, summary.sent) == ("complete", 0)  # the cache has all that the other one asked
        return local["cube"]

    return made


@pytest.mark.chaos
def test_run__through_every_fault_of_a_store_is_as_undisturbed(store, config, simulator, undisturbed):
    store.settings(slow=0.005, busy=11, broken=13, lost=7)

    summary = run(config, cluster=SHARED)

    counts = store.counts()
    store.settings()
    assert (summary.reason, summary.done) == ("complete", REQUESTS)
    assert min(counts["busy"], counts["broken"], counts["lost"]) > 3
    stats = simulator_stats(simulator)
    assert stats["requests"] == stats["distinct"] == REQUESTS
    assert_same_cube(config["cube"], undisturbed())


def held(store, pattern, process):
    """Wait until the store has got a writing request that fits, which it keeps to itself."""
    store.settings(held=pattern)

    def found():
        assert process.poll() is None, process.communicate()
        return store.counts().get("held")

    wait_until(found)


def kill(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.integration
@pytest.mark.parametrize(
    "pattern",
    ["zarr.json", "/status/c.", "/ledger/0", "/counters/c."],
    ids=["make", "write", "record", "count"],
)
def test_run__killed_before_the_store_has_its_answer_is_resumed(
    store, config, tmp_path, simulator, undisturbed, pattern
):
    path = write_config(tmp_path, config)
    store.settings(held=pattern)
    process = command("run", path, "--workers", 1, "--quiet", cwd=tmp_path)
    held(store, pattern, process)
    kill(process)
    store.settings()
    store.release()  # what was on its way arrives after its sender's end

    code, _, errors = own_process("run", path, "--workers", 1, "--quiet", cwd=tmp_path)

    assert code == 0, errors
    stats = simulator_stats(simulator)
    assert stats["distinct"] == REQUESTS
    assert stats["requests"] <= REQUESTS + IN_FLIGHT
    assert_same_cube(config["cube"], undisturbed())


@pytest.mark.integration
def test_run__goes_on_when_the_store_comes_back(store, config, tmp_path, undisturbed):
    store.settings(held="/ledger/0")
    process = command("run", write_config(tmp_path, config), "--workers", 1, "--quiet", cwd=tmp_path)
    held(store, "/ledger/0", process)
    store.settings(down=True)
    store.release()
    time.sleep(6.0)
    store.settings()

    _, errors = process.communicate()

    assert process.returncode == 0, errors
    assert_same_cube(config["cube"], undisturbed())


def elsewhere(name, *words, cwd, lease=2):
    """The command line as if on another machine, with a lease of a few seconds."""
    program = Path(__file__).parents[2] / "chaos" / "elsewhere.py"
    return subprocess_of([sys.executable, str(program), name, str(lease), *map(str, words)], cwd=cwd)


@pytest.mark.integration
@pytest.mark.parametrize("late", ["/status/c.", "/ledger/0"], ids=["write", "record"])
def test_run__that_was_stopped_for_too_long_changes_nothing(store, config, tmp_path, undisturbed, late):
    path = write_config(tmp_path, config)
    store.settings(held=late)
    first = elsewhere("one", "run", path, "--workers", 1, "--quiet", cwd=tmp_path)
    held(store, late, first)
    os.killpg(first.pid, signal.SIGSTOP)
    store.settings()
    second = elsewhere("two", "run", path, "--workers", 1, cwd=tmp_path)
    _, errors = second.communicate()
    assert second.returncode == 0, errors
    assert "taken over" in errors

    store.release()
    os.killpg(first.pid, signal.SIGCONT)
    _, lost = first.communicate()

    assert first.returncode == 2, lost
    assert_same_cube(config["cube"], undisturbed())
    assert own_process("cube", "verify", config["cube"], cwd=tmp_path)[0] == 0


@pytest.mark.integration
def test_run__refuses_a_cube_that_another_machine_works_on(store, config, tmp_path):
    path = write_config(tmp_path, config)
    store.settings(held="/ledger/0")
    # A lease that is renewed in time also where the machine stands still for some seconds.
    first = elsewhere("one", "run", path, "--workers", 1, "--quiet", cwd=tmp_path, lease=15)
    held(store, "/ledger/0", first)
    store.settings()

    second = elsewhere("two", "run", path, "--workers", 1, "--quiet", cwd=tmp_path, lease=15)
    _, refused = second.communicate()
    store.release()
    _, errors = first.communicate()

    assert second.returncode == 2
    assert re.search(r"process \d+ on one ", refused)
    assert first.returncode == 0, errors
