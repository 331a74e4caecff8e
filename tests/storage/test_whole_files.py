"""Files that are whole or not there, locks, and paths that stay inside of a directory."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from evalcube.storage import files
from evalcube.storage.errors import CubeDamagedError


@pytest.fixture
def synced(monkeypatch):
    """Names of what was put on disk, in order."""
    names = []
    monkeypatch.setattr(os, "fsync", lambda file: names.append(Path(f"/proc/self/fd/{file}").readlink().name))
    return names


def open_files():
    return len([*Path("/proc/self/fd").iterdir()])


def test_write_all_at__goes_on_after_a_short_write(tmp_path, monkeypatch):
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: pwrite(fd, data[:3], at))
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")

    with path.open("r+b") as file:
        files.write_all_at(file.fileno(), b"abcdefgh", 1)

    assert path.read_bytes() == b"0abcdefgh9"


def test_sync_path__closes_what_it_opens(tmp_path, synced):
    before = open_files()
    files.sync_path(tmp_path)
    files.sync_paths([tmp_path, tmp_path])
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()
    files.sync_tree(tmp_path / "folder")

    assert sorted(synced) == ["file", "folder", *[tmp_path.name] * 3]
    assert open_files() == before


@pytest.mark.parametrize("durable", [True, False])
def test_write_new__is_on_disk_if_it_is_to_be_and_never_over_another(tmp_path, synced, durable):
    before = open_files()

    files.write_new(tmp_path / "new", b"text", 0o600, durable=durable)

    assert (tmp_path / "new").read_bytes() == b"text"
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600
    assert synced == ["new"] * durable
    with pytest.raises(FileExistsError):
        files.write_new(tmp_path / "new", b"other")
    assert (tmp_path / "new").read_bytes() == b"text"
    assert open_files() == before


def test_write_new__that_fails_leaves_no_file(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "full")

    before = open_files()
    monkeypatch.setattr(os, "pwrite", fail)
    with pytest.raises(OSError, match="full"):
        files.write_new(tmp_path / "new", b"text")

    assert list(tmp_path.iterdir()) == []
    assert open_files() == before


def test_replaced__is_the_old_or_the_new_and_leaves_nothing_else(tmp_path, synced):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    files.replace_synced(path, b"new")
    assert path.read_bytes() == b"new"
    assert [name.endswith(".partial") for name in synced] == [True, False]
    assert synced[1] == tmp_path.name
    with pytest.raises(ZeroDivisionError), files.replaced(path) as file:
        file.write(b"half" * (1 // 0))
    assert path.read_bytes() == b"new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("durable", [True, False])
def test_make_directory__has_the_name_of_each_new_one_on_disk(tmp_path, synced, durable):
    files.make_directory(tmp_path / "a" / "b", durable=durable)
    assert synced == [tmp_path.name, "a"] * durable

    files.make_directory(tmp_path / "a" / "b")
    assert len(synced) == 2 * durable


@pytest.mark.parametrize(
    ("number", "answer"), [(errno.EPERM, False), (errno.ENOTSUP, False), (errno.EIO, None)]
)
def test_link_new__is_false_only_where_there_are_no_links(tmp_path, monkeypatch, number, answer):
    (tmp_path / "one").touch()
    assert files.link_new(tmp_path / "one", tmp_path / "two")
    assert (tmp_path / "two").samefile(tmp_path / "one")
    with pytest.raises(FileExistsError):
        files.link_new(tmp_path / "one", tmp_path / "two")

    def fail(*_, **__):
        raise OSError(number, "no")

    monkeypatch.setattr(os, "link", fail)
    if answer is None:
        with pytest.raises(OSError, match="no"):
            files.link_new(tmp_path / "one", tmp_path / "three")
    else:
        assert files.link_new(tmp_path / "one", tmp_path / "three") is answer


def test_locking__is_of_one_at_a_time_and_free_afterwards(tmp_path):
    before = open_files()
    with files.locking(tmp_path / "lock"), (tmp_path / "lock").open() as mine:
        with pytest.raises(BlockingIOError):
            fcntl.flock(mine, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(TimeoutError, match="lock"), files.locking(tmp_path / "lock", -1):
            pass

    with files.locking(tmp_path / "lock", 0):
        pass
    assert open_files() == before
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"), files.locking(tmp_path / "link"):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_inside__lets_no_name_and_no_link_lead_out(tmp_path):
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (root / "folder" / "file").touch()
    (tmp_path / "secret").touch()
    (tmp_path / "same").symlink_to(root)
    links = {"out": tmp_path / "secret", "up": tmp_path, "gone": root / "nothing", "in": root / "folder"}
    for name, target in links.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "pipe")

    for name in ("", "folder", "folder/file", "missing/further", "in/file"):
        assert files.inside(root, root / name) == root / name
    assert files.inside(tmp_path / "same", tmp_path / "same" / "in" / "file")
    for path in (
        *(root / name for name in ("out", "up/secret", "gone", "pipe", "folder/../../secret", "a\0b")),
        tmp_path / "secret",
        tmp_path / "rooted",
    ):
        with pytest.raises(CubeDamagedError):
            files.inside(root, path)
