"""Which directories are a cache's, and who may delete in one."""

import os

import pytest

from evalcube.storage.cache import folders, packs
from evalcube.storage.cache.folders import Folders, is_cache, is_cache_without_links, sweep_files


@pytest.fixture
def root(tmp_path):
    for name in ("packs", "tmp", "damaged"):
        (tmp_path / "cache" / name).mkdir(parents=True)
    return tmp_path / "cache"


@pytest.mark.parametrize("name", ["packs", "tmp", "damaged", ""])
def test_is_cache__needs_every_folder_and_may_refuse_links(root, name):
    assert is_cache(root)
    assert is_cache_without_links(root)

    (root / name).rename(root.parent / "moved")
    assert not is_cache(root)
    assert not is_cache_without_links(root)
    (root / name).symlink_to(root.parent / "moved")
    assert is_cache(root)
    assert not is_cache_without_links(root)


def test_names__of_a_cache_that_was_deleted_are_none(root, tmp_path):
    (root / "packs" / "x.pack").touch()

    assert Folders(root).names() == {"x.pack"}
    assert Folders(tmp_path / "nowhere").names() == set()
    assert [path.name for path in (Folders(root).pack("x"), Folders(root).index("x"))] == ["x.pack", "x.idx"]


def test_exclusive__waits_for_the_lock_and_goes_on_where_there_are_none(root, monkeypatch):
    with Folders(root).exclusive(), pytest.raises(TimeoutError), Folders(root).exclusive(-1):
        pass

    def no_locks(*_):
        raise OSError("no locks here")

    monkeypatch.setattr(folders, "locking", no_locks)
    with Folders(root).exclusive():
        pass
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(OSError, match="no locks"), Folders(root).exclusive():
        pass


def test_sweep_files__leaves_the_lock_new_files_and_what_a_link_leads_to(root):
    for name in ("lock", "old", "new"):
        (root / "tmp" / name).touch()
    for name in ("lock", "old"):
        os.utime(root / "tmp" / name, (0, 0))
    (root.parent / "link").symlink_to(root / "tmp")

    assert sweep_files(root.parent / "link", delete=True) == 0
    assert sweep_files(root / "tmp", delete=False) == 1
    assert sweep_files(root / "tmp", delete=True) == 1
    assert sorted(path.name for path in (root / "tmp").iterdir()) == ["lock", "new"]


def test_open_file__is_the_groups_if_it_is_new(root, monkeypatch):
    shared = []
    monkeypatch.setattr(packs, "share", lambda path, _: shared.append(path.name))

    packs.OpenFile(root / "packs" / "x", os.O_RDWR | os.O_CREAT)
    assert shared == ["x"]
    packs.OpenFile(root / "packs" / "x")
    assert shared == ["x"]
