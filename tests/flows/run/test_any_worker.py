"""Workers without evalcube that die and join in mid-sweep, runs that share a cluster, and drivers that are killed."""

import os
import signal
import threading
from contextlib import suppress

import pytest

from evalcube.flows.events import BlockDone, Noted
from evalcube.flows.run import health
from evalcube.flows.run.sweep import run
from tests.flows.bare_cluster import assert_nothing_is_left, bare_cluster
from tests.flows.shared_cluster import SHARED
from tests.flows.support import assert_same_cube, command, simulator_stats, sweep_config, write_config
from tests.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with bare_cluster(tmp_path_factory.mktemp("bare") / "cluster") as cluster:
        yield cluster


def slow_config(tmp_path, simulator, **changes):
    config = sweep_config(tmp_path, simulator.base_url, **changes)
    for model in config["models"]:
        model["simulate"]["latency"] = 0.1
    return config


def wait_for_workers(cluster, number):
    def there():
        with suppress(OSError):  # one that goes while it is asked
            return len(cluster.run(os.getpid)) >= number
        return False

    wait_until(there, told=cluster.logs, pause=0.5)


def test_run__goes_on_where_workers_die_and_join(tmp_path, simulator, cluster):
    config = slow_config(tmp_path, simulator, trials=80)
    struck = []

    def strike(event):
        if isinstance(event, BlockDone) and not struck:
            struck.append(event)
            threading.Thread(target=change_workers).start()

    def change_workers():
        pids = cluster.run(os.getpid)
        cluster.add_worker("--name", "late")
        os.kill(next(iter(pids.values())), signal.SIGKILL)

    summary = run(config, scheduler=cluster.address, subscribers=[strike])

    assert (summary.reason, summary.done) == ("complete", 400)
    # What was in flight on the one that died, and no more, is asked again; its other answers come from the cache.
    assert simulator_stats(simulator)["requests"] <= 400 + 8
    assert summary.cached < 400
    # The late one and the restarted one, too, are there and can be asked: neither failed to start.
    wait_for_workers(cluster, 3)
    assert_nothing_is_left(cluster)
    calm = {**config, "cube": str(tmp_path / "calm.zarr"), "cache": str(tmp_path / "calm-cache")}
    run(calm, cluster=SHARED)
    assert_same_cube(config["cube"], calm["cube"])


def test_run__is_not_held_up_by_a_worker_that_hangs(tmp_path, simulator, cluster):
    config = slow_config(tmp_path, simulator, trials=16)
    pids = cluster.run(os.getpid)
    victim = next(iter(pids.values()))
    os.kill(victim, signal.SIGSTOP)
    notes = []
    try:
        summary = run(
            config,
            scheduler=cluster.address,
            subscribers=[lambda event: notes.append(event.message) if isinstance(event, Noted) else None],
        )
    finally:
        os.kill(victim, signal.SIGCONT)

    assert (summary.reason, summary.done) == ("complete", 80)
    assert any("do not answer" in note for note in notes)


def test_run__goes_on_where_a_worker_hangs_in_mid_run(tmp_path, simulator, cluster, monkeypatch):
    # Sooner than it is, so that nobody has to wait for it here.
    monkeypatch.setattr(health, "MOVED_SECONDS", 15.0)
    config = slow_config(tmp_path, simulator, trials=80)
    victim = list(cluster.run(os.getpid).values())[-1]
    notes = []

    def follow(event):
        if isinstance(event, BlockDone):
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGSTOP)
        if isinstance(event, Noted):
            notes.append(event.message)

    try:
        summary = run(config, scheduler=cluster.address, subscribers=[follow])
    finally:
        os.kill(victim, signal.SIGCONT)

    assert (summary.reason, summary.done, summary.transport) == ("complete", 400, 0)
    assert any("for 10 s" in note for note in notes), notes
    assert any("take its blocks" in note for note in notes), notes
    assert simulator_stats(simulator)["requests"] <= 400 + 8
    assert_nothing_is_left(cluster)


def test_run__two_drivers_at_once_share_the_limits_of_an_endpoint(tmp_path, simulator, cluster):
    first, second = (
        slow_config(
            tmp_path, simulator, trials=60, cube=f"{name}.zarr", cache=str(tmp_path / f"{name}-cache")
        )
        for name in ("first", "second")
    )
    path = write_config(tmp_path, second)
    shared, told, started = threading.Event(), [], []

    def read(process):
        with process.stderr:
            for line in process.stderr:
                told.append(line)
                if "2 runs on" in line:
                    shared.set()
        shared.set()

    def hold(event):
        # The first one goes on once the second has learned of it: however slowly that starts, they are there together.
        if isinstance(event, BlockDone) and not started:
            process = command("run", path, "--scheduler", cluster.address, cwd=tmp_path)
            reader = threading.Thread(target=read, args=[process])
            started.extend((process, reader))
            reader.start()
            shared.wait(PATIENCE)

    summary = run(first, scheduler=cluster.address, subscribers=[hold])
    process, reader = started
    with process.stdout:
        output = process.stdout.read()
    reader.join()

    assert (summary.reason, process.wait()) == ("complete", 0), (output, told)
    assert any("2 runs on" in line for line in told), told
    # The moment in which the first learns of the second is the only one in which there are more than 8.
    assert simulator_stats(simulator)["requests"] == 600
    assert_nothing_is_left(cluster)


def test_run__a_killed_driver_leaves_nothing_on_the_cluster(tmp_path, simulator, cluster):
    config = slow_config(tmp_path, simulator, trials=200)
    process = command("run", write_config(tmp_path, config), "--scheduler", cluster.address, cwd=tmp_path)
    wait_until(lambda: simulator_stats(simulator)["requests"] >= 20)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()

    assert_nothing_is_left(cluster)
