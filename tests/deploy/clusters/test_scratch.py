import os
import tempfile
import time

import pytest

from evalcube.deploy.clusters.scratch import scratch_folder


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def aged(folder):
    folder.mkdir(exist_ok=True)
    (folder / "file").write_text("left")
    os.utime(folder, (time.time() - 3600,) * 2)
    return folder


def test_scratch_folder__removes_what_killed_drivers_left(temporary):
    left, young, other = (
        aged(temporary / "evalcube-cluster-left"),
        temporary / "evalcube-cluster-young",
        aged(temporary / "mine"),
    )
    young.mkdir()

    with scratch_folder() as folder:
        assert folder.is_dir()
        assert not left.exists()
        assert young.exists()
        assert (other / "file").exists()

    assert not folder.exists()


@pytest.mark.usefixtures("temporary")
def test_scratch_folder__leaves_one_that_is_in_use():
    with scratch_folder() as used:
        os.utime(used, (time.time() - 3600,) * 2)
        with scratch_folder() as folder:
            assert folder != used
            assert used.is_dir()


@pytest.mark.parametrize("skew", [2 * 86400.0, -2 * 86400.0])
def test_scratch_folder__takes_the_time_from_the_file_system(temporary, monkeypatch, skew):
    real, left, young = (
        time.time,
        aged(temporary / "evalcube-cluster-left"),
        temporary / "evalcube-cluster-young",
    )
    young.mkdir()
    monkeypatch.setattr(time, "time", lambda: real() + skew)

    with scratch_folder():
        assert young.exists()
        assert not left.exists()
