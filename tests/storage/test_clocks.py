"""Clocks: which one is asked, and which files are old by the one of their file system."""

import os
import time
from types import SimpleNamespace

import pytest

from evalcube.storage import clocks
from evalcube.storage.clocks import elapsed_seconds, file_clock, older_files, sweep_old_files


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Files of the ages 5, 10 and 11 seconds, and one that is gone, by a clock that stands still."""
    now = float(int(time.time()))
    monkeypatch.setattr(clocks, "file_clock", lambda folder: now if folder == tmp_path else now - 100.0)
    monkeypatch.setattr(clocks, "time", SimpleNamespace(time=lambda: now + 6.0))
    paths = [tmp_path / name for name in ("5", "10", "gone", "11")]
    for path in paths:
        if path.name != "gone":
            path.touch()
            os.utime(path, (now, now - int(path.name)))
    return paths


def test_elapsed_seconds__is_by_a_clock_that_goes_on_in_sleep_where_there_is_one(monkeypatch):
    clock = {"CLOCK_BOOTTIME": 7, "clock_gettime": lambda number: 100.0 + number}

    monkeypatch.setattr(clocks, "time", SimpleNamespace(**clock, monotonic=lambda: 3.0))
    assert elapsed_seconds() == 107.0
    monkeypatch.setattr(clocks, "time", SimpleNamespace(monotonic=lambda: 3.0))
    assert elapsed_seconds() == 3.0


def test_file_clock__is_the_folders_own_and_leaves_nothing_there(tmp_path, monkeypatch):
    monkeypatch.setattr(clocks, "time", SimpleNamespace(time=lambda: 1.0))

    assert file_clock(tmp_path) > 1e9
    assert list(tmp_path.iterdir()) == []
    assert file_clock(tmp_path / "missing") == 1.0


@pytest.mark.parametrize(("sure", "old"), [(True, ["11"]), (False, ["5", "10", "11"])])
def test_older_files__are_of_more_seconds_by_the_clock_that_is_meant(files, sure, old):
    assert [path.name for path in older_files(files, files[0].parent, 10.0, sure=sure)] == old


def test_older_files__asks_the_time_once_and_only_where_there_is_a_file(files, monkeypatch):
    asked = []
    monkeypatch.setattr(clocks, "file_clock", lambda folder: asked.append(folder) or 1.0)

    assert list(older_files([files[2]], files[0].parent, 10.0, sure=True)) == asked == []
    list(older_files(files, files[0].parent, 10.0, sure=True))
    assert asked == [files[0].parent]


def test_sweep_old_files__counts_or_deletes_them(files):
    folder = files[0].parent

    assert sweep_old_files(files, folder, 10.0, delete=False) == 3  # by the time of day, which says more
    assert len(list(folder.iterdir())) == 3
    assert sweep_old_files(files, folder, 10.0, delete=True) == 1
    assert sorted(path.name for path in folder.iterdir()) == ["10", "5"]
