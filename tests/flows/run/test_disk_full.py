"""A disk that fills in mid-sweep: one clear message, nothing lost, and the next run goes on. On a real file system."""

import shutil
import subprocess

import pytest

from evalcube.storage.cube.cube import Cube
from tests.flows.support import evalcube, simulator_stats, sweep_config, write_config


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own that can be made larger."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    options = ["-t", "tmpfs", "-o", "size=100k", "evalcube-test", str(place)]
    if mount is None or subprocess.run([mount, *options], capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let the test mount a file system")
    yield place, lambda: subprocess.run([mount, "-o", "remount,size=64m", str(place)], check=True)
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("what", ["cache", "cube"])
def test_run__disk_full_is_one_message_and_the_next_run_goes_on(what, tmp_path, simulator, small_disk):
    place, enlarge = small_disk
    config = sweep_config(tmp_path, simulator.base_url, trials=60)
    if what == "cube":
        (place / "filler").write_bytes(bytes(50_000))
    config[what] = str(place / what)
    path = write_config(tmp_path, config)

    code, _, errors = evalcube("run", path, "--workers", 1, "--quiet", cwd=tmp_path)

    assert code == 2, errors
    assert "Traceback" not in errors
    assert str(place) in errors
    assert "space" in errors
    enlarge()
    code, output, errors = evalcube("run", path, "--workers", 1, "--quiet", cwd=tmp_path)
    assert code == 0, errors
    assert "300 of 300" in output
    assert Cube.open(config["cube"]).dataset()["counters"].sel(counter="trials").sum().compute().item() == 300
    # What was in the cache is not paid for twice; what could not be stored has to be asked again.
    assert simulator_stats(simulator)["distinct"] == 300
