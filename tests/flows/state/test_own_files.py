"""What belongs to a user and to no cube is closed to others, whatever their umask."""

import os
import stat

import pytest

from evalcube.flows.state.trust import STATE_VARIABLE, own_record, state_folder, write_own


@pytest.fixture
def open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder):
    return {stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.rglob("*")] if path.is_dir()}, {
        stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()
    }


def test_write_own__closes_all_folders_and_files(tmp_path, monkeypatch, open_umask):  # noqa: ARG001
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))

    write_own(state_folder() / "runs" / "abc" / "one.json", {"a": 1})

    assert modes(state_folder()) == ({0o700}, {0o600})
    assert own_record(state_folder() / "runs" / "abc" / "one.json", 100) == {"a": 1}
