"""What one process learns of the packs that others write."""

import time

import pytest
from packed import KEY, OTHER, indexes, packs

from evalcube.storage.cache.cache import DirectoryCache
from evalcube.storage.cache.folders import Folders
from evalcube.storage.cache.pack_index import Listing, PackIndex


def test_listing__believes_the_time_of_a_folder_once_it_is_older_than_a_tick(tmp_path, monkeypatch):
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    listing = Listing(tmp_path)

    assert listing.names_if_changed() == set()
    now += 2.0
    assert listing.names_if_changed() == set()  # two changes may have left one time
    now += 0.1
    assert listing.names_if_changed() == set()
    assert listing.names_if_changed() is None
    (tmp_path / "x").touch()
    assert listing.names_if_changed() == listing.names() == {"x"}
    listing.forget()
    assert listing.names_if_changed() == {"x"}
    assert Listing(tmp_path / "nowhere").names_if_changed() == set()


@pytest.mark.parametrize("sealed", [False, True])
def test_refresh__takes_up_what_another_wrote_once(tmp_path, sealed):
    writer = DirectoryCache(tmp_path)
    index = PackIndex(Folders(tmp_path))
    assert not index.refresh()

    for key, number in ((KEY, 1), (OTHER, 2)):
        writer.put(key, b"x")
        if sealed:
            writer.close()
        assert index.refresh()
        assert not index.refresh()
        assert [len(index.find(bytes.fromhex(name))) for name in (KEY, OTHER)] == [1, number - 1]
    assert len(packs(tmp_path)) == 1 + sealed
    assert len(indexes(tmp_path)) == 2 * sealed


def test_refresh__of_a_pack_that_is_sealed_after_it_was_read_finds_each_record_once(tmp_path):
    writer = DirectoryCache(tmp_path)
    writer.put(KEY, b"x")
    index = PackIndex(Folders(tmp_path))
    writer.put(OTHER, b"y")
    writer.close()

    assert index.refresh()

    for key in (KEY, OTHER):
        (location,) = index.find(bytes.fromhex(key))
        assert index.content(location, bytes.fromhex(key))
        assert index.content(location, bytes(32)) is None
        assert [index.mark_corrupt(location) for _ in range(2)] == [True, False]
    assert index.corrupt == 2
