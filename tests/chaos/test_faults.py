"""Faults that no signal makes: a clock that jumps, a cache that cannot be written any more."""

import shutil
import subprocess

import pytest

from tests.chaos import clock, verdict
from tests.chaos.campaign import Campaign, run_calmly
from tests.chaos.processes import fleet, wait_for
from tests.flows.support import own_process, simulator_stats, sweep_config, write_config
from tests.waiting import PATIENCE


# Not hours back: Dask's own timers count in wall-clock time, and wait for as long as it was set back.
@pytest.mark.integration
def test_run__a_clock_that_jumps_changes_nothing(tmp_path):
    campaign = Campaign(seed=0, strikes=0, trials=480, models=2)
    ahead = tmp_path / "ahead"
    ahead.write_text("0")
    # Dask's scheduler looks once in ttl, and between a jump and their next heartbeats takes all workers for dead.
    patient = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "5 minutes"}
    with fleet(tmp_path, settings={clock.VARIABLE: str(ahead), **patient}) as ships:
        ships.serve()
        ships.drive(str(campaign.config(tmp_path, ships.endpoint, "struck")), local=True)
        for seconds, requests in ((7200.0, 100), (7195.0, 250)):  # hours ahead, then some seconds back
            wait_for(lambda least=requests: ships.requests() > least, "some requests")
            ahead.write_text(str(seconds))

        assert ships.driver.wait(PATIENCE) == 0, ships.driver_log()
        assert ships.requests() == campaign.requests
    assert verdict.differences(tmp_path / "struck.zarr", run_calmly(campaign, tmp_path)) == []


@pytest.fixture
def immutable():
    """Makes folders immutable until the test ends, for root too."""
    chattr, struck = shutil.which("chattr"), []

    def make(folder):
        if (
            chattr is None
            or subprocess.run([chattr, "+i", folder], capture_output=True, check=False).returncode
        ):
            pytest.skip("this machine does not let the test make a folder immutable")
        struck.append(folder)

    make.end = lambda: [subprocess.run([chattr, "-i", struck.pop()], check=True) for _ in tuple(struck)]
    yield make
    make.end()


@pytest.mark.integration
def test_run__a_cache_that_turns_read_only_is_one_message_and_the_next_run_goes_on(tmp_path, immutable):
    campaign = Campaign(
        seed=0, strikes=0, trials=480, models=2, latency=0.2
    )  # lasts until folders are changed
    with fleet(tmp_path) as ships:
        ships.serve()
        config = str(campaign.config(tmp_path, ships.endpoint, "struck"))
        ships.drive(config, local=True)
        wait_for(lambda: ships.requests() > 100, "some requests")

        # What a worker has open stays open when a folder changes: the packs themselves have to.
        for place in (
            "packs",
            *(f"packs/{pack.name}" for pack in (tmp_path / "struck-cache").glob("packs/*.pack")),
        ):
            immutable(tmp_path / "struck-cache" / place)

        assert ships.driver.wait(PATIENCE) == 2, ships.driver_log()
        assert "Traceback" not in ships.driver_log()
        assert str(tmp_path / "struck-cache") in ships.driver_log()
        immutable.end()
        ships.drive(config, local=True)
        assert ships.driver.wait(PATIENCE) == 0, ships.driver_log()
        # What was in flight could not be stored, and so was asked again.
        assert ships.requests() <= campaign.requests + 32
    assert verdict.differences(tmp_path / "struck.zarr", run_calmly(campaign, tmp_path)) == []


def test_run__a_read_only_cache_is_refused_before_anything_is_sent(tmp_path, simulator, read_only):
    config = sweep_config(tmp_path, simulator.base_url)
    path = write_config(tmp_path, config)
    (tmp_path / "cache").mkdir()
    read_only(tmp_path / "cache")

    code, _, errors = own_process("run", path, "--workers", 1, "--quiet", cwd=tmp_path)

    assert code == 2, errors
    assert "Traceback" not in errors
    assert "read-only" in errors
    assert str(tmp_path / "cache") in errors
    assert simulator_stats(simulator)["requests"] == 0


@pytest.fixture
def read_only():
    """Mounts folders over themselves, read-only."""
    program, mounted = shutil.which("mount"), []

    def mount(folder):
        for options in (["--bind", folder, folder], ["-o", "remount,bind,ro", folder]):
            if (
                program is None
                or subprocess.run([program, *options], capture_output=True, check=False).returncode
            ):
                pytest.skip("this machine does not let the test mount a file system")
            mounted.append(folder)

    yield mount
    for folder in set(mounted):
        subprocess.run(["umount", "-l", folder], check=True)
