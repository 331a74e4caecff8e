"""A cube that somebody else made: no link in it has files outside of it read, written, made or removed."""

import os
import shutil
from pathlib import Path

import pytest

from evalcube.storage.cube.batch_notes import BatchNotes
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.directory import Directory, objects
from evalcube.storage.cube.holder import read_holder
from evalcube.storage.cube.lease import Lease
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.cube.regions import Region
from evalcube.storage.cube.space import When
from evalcube.storage.errors import CubeDamagedError, StorageError

pytestmark = pytest.mark.long

REGION = Region(0, 0, 0)


@pytest.fixture
def cube(tmp_path, workers):
    """A cube of one region, with records."""
    made = workers.make_cube(str(tmp_path / "cube.zarr"))
    made.write_region(REGION, workers.region_arrays(made, REGION, 0))
    ledger = Ledger(made.records)
    ledger.append(workers.make_receipt(0, REGION))
    ledger.close()
    made.records.put("sweep.json", b"{}")
    return made


@pytest.fixture
def victim(tmp_path):
    """A folder with a file, which stays as it is."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "file").write_bytes(b"private\n")
    (folder / "x.partial").write_bytes(b"private, too")
    os.utime(folder / "x.partial", (0, 0))
    yield folder
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "file": b"private\n",
        "x.partial": b"private, too",
    }


@pytest.mark.parametrize("durable", [True, False])
def test_put__syncs_the_folder_once_the_file_has_its_name(tmp_path, monkeypatch, durable):
    synced = []
    monkeypatch.setattr(objects, "sync_path", lambda path: synced.append((path, (path / "key").read_bytes())))

    Directory(tmp_path).put("key", b"x", durable=durable)

    assert synced == [(tmp_path, b"x")] * durable


@pytest.mark.parametrize("links", [True, False])
def test_put__on_a_condition_is_done_where_it_holds(tmp_path, monkeypatch, links):
    if not links:
        monkeypatch.setattr(objects, "link_new", lambda *_: False)
    space = Directory(tmp_path)

    first = space.put("a/key", b"1", when=When.ABSENT)
    assert first == space.version("a/key")
    assert space.put("a/key", b"2", when=When.ABSENT) is None
    second = space.put("a/key", b"3", when=first)
    assert space.put("a/key", b"4", when=first) is None

    assert space.get("a/key") == (b"3", second, 1)
    assert list(space.list()) == ["a/key"]  # locks are none of its files


def test_list__goes_on_where_a_folder_is_cleared_meanwhile(tmp_path, monkeypatch):
    space, scandir = Directory(tmp_path), os.scandir
    for key in ("a/x", "b/y", "c/d/z", "top"):
        space.put(key, b"")
    for name in (".top.lock", "x.partial"):
        (tmp_path / name).touch()
    assert sorted(space.list()) == ["a/x", "b/y", "c/d/z", "top"]
    assert list(space.list("c/")) == ["c/d/z"]
    assert list(space.list("nowhere/")) == []

    def scan_and_clear(path):
        entries = list(scandir(path))
        for name in ("a/x", "b/y"):
            if (tmp_path / name).exists():
                (tmp_path / name).unlink()
                (tmp_path / name).parent.rmdir()
        return entries

    monkeypatch.setattr(os, "scandir", scan_and_clear)
    assert sorted(space.list()) == ["c/d/z", "top"]


def test_get__reads_no_more_than_is_asked_for(tmp_path):
    space = Directory(tmp_path)
    space.put("key", b"12345")

    assert [(space.get("key", most).data, space.get("key", most).size) for most in (None, 0, 3, 9)] == [
        *((data, 5) for data in (b"12345", b"", b"123", b"12345"))
    ]
    assert (space.get("none"), space.get("key/below"), space.version("none")) == (None, None, None)


@pytest.mark.parametrize("durable", [True, False])
def test_delete__syncs_the_folder_of_what_was_there(tmp_path, monkeypatch, durable):
    synced, space = [], Directory(tmp_path)
    space.put("a/key", b"")
    monkeypatch.setattr(objects, "sync_path", synced.append)

    space.delete("a/none", durable=durable)
    assert synced == []
    space.delete("a/key", durable=durable)
    assert synced == [tmp_path / "a"] * durable
    assert list(space.list()) == []


def test_sync__is_of_files_and_all_folders_that_lead_to_them(tmp_path, monkeypatch):
    synced, space = [], Directory(tmp_path)
    for key in ("a/b/x", "top"):
        space.put(key, b"")
    monkeypatch.setattr(objects, "sync_paths", synced.extend)

    space.sync(["a/b/x", "top", "a/", "none/"])

    assert sorted(synced) == sorted(str(tmp_path / name) for name in ("", "a", "a/b", "a/b/x", "top"))
    Directory(tmp_path, draft=True).sync(["top"])
    assert len(synced) == 5


def link(path, target):
    """Put a link in the place of whatever there is."""
    path = Path(path)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    path.symlink_to(target)


def refused():
    return pytest.raises(CubeDamagedError, match="link that leads out of it")


@pytest.mark.parametrize(
    "key", ["../victim/file", "a/../../victim/new file", "{victim}/file", "a\0", "\ud800"]
)
def test_key__that_leads_out_of_the_cube_is_refused(cube, victim, key):
    key = key.format(victim=victim)
    for doing in (cube.space.get, cube.space.delete, lambda key: cube.space.put(key, b"")):
        with pytest.raises(CubeDamagedError, match=r"a name in"):
            doing(key)


@pytest.mark.parametrize("target", ["file", "new file"])
def test_ledger__that_is_a_link_is_neither_read_nor_appended_to(cube, victim, target, workers):
    link(f"{cube.url}/_evalcube/ledger.jsonl", victim / target)

    with refused():
        list(Ledger(cube.records).receipts())
    with refused():
        Ledger(cube.records).append(workers.make_receipt(1, REGION))


@pytest.mark.parametrize("name", ["lease.json", "lease.json.lock"])
@pytest.mark.parametrize("target", ["file", "new file"])
def test_lease__that_is_a_link_is_not_taken(cube, victim, name, target):
    link(f"{cube.url}/_evalcube/{name}", victim / target)

    with refused(), Lease.acquire(cube.records):
        pass
    with refused():
        read_holder(cube.records)


@pytest.mark.parametrize("target", ["file", "new file"])
def test_records__that_are_links_are_neither_read_nor_written(cube, victim, target):
    link(f"{cube.url}/_evalcube/sweep.json", victim / target)

    with refused():
        cube.records.get("sweep.json")
    with refused():
        cube.records.put("sweep.json", b"{}")
    with refused():
        cube.records.delete("sweep.json")


def test_records__whose_folder_is_a_link_are_refused(cube, victim, workers):
    link(f"{cube.url}/_evalcube", victim)

    with refused():
        cube.records.get("file")
    with refused():
        Ledger(cube.records).append(workers.make_receipt(1, REGION))
    with refused():
        list(cube.records.list())


def test_batch_notes__whose_folder_is_a_link_are_refused(cube, victim):
    link(f"{cube.url}/_evalcube/batches", victim)
    notes = BatchNotes(cube.records)

    with pytest.raises(StorageError, match="link"):
        notes.tokens()
    with pytest.raises(StorageError, match="link"):
        notes.write("0123abcd", b"{}")
    with refused():
        cube.records.clear("batches/")


@pytest.mark.parametrize("part", ["status", "status/c.0.0.0.0.0", "zarr.json"])
def test_cube__with_a_link_in_an_array_is_neither_read_nor_written(cube, victim, part, workers):
    link(f"{cube.url}/{part}", victim if "json" not in part else victim / "file")

    with refused():
        opened = Cube.open(cube.url, writable=True)
        opened.read_region(REGION, ("status",))
        opened.dataset()["status"].load()
    with refused():
        opened = Cube.open(cube.url, writable=True)
        opened.write_region(REGION, workers.region_arrays(opened, REGION, 1))


def test_cube__does_not_grow_through_a_link(cube, victim):
    link(f"{cube.url}/status/zarr.json", victim / "file")

    with refused():
        Cube.open(cube.url, writable=True).grow(trial=1000)


def test_cube__with_a_link_for_a_chunk_is_not_read(cube, victim):
    chunk = next(Path(cube.url, "status").glob("c.*"))
    link(chunk, victim / "file")

    with refused():
        Cube.open(cube.url).read_region(REGION)
    with refused():
        Cube.open(cube.url).dataset()["status"].load()


def test_sweep__removes_nothing_behind_a_link(cube, victim):
    link(f"{cube.url}/status", victim)

    with refused():
        cube.sweep(older_than=0.0)


def test_get__does_not_wait_for_a_pipe(cube):
    pipe = Path(cube.url, "_evalcube", "live.json")
    os.mkfifo(pipe)

    with pytest.raises(CubeDamagedError, match=r"live\.json"):
        cube.records.get("live.json")


def test_cube__itself_may_be_a_link_and_have_links_inside(cube, tmp_path, workers):
    scratch = tmp_path / "scratch.zarr"
    scratch.symlink_to(cube.url)
    Path(cube.url, "_evalcube", "ledger.jsonl").rename(Path(cube.url, "_evalcube", "kept.jsonl"))
    Path(cube.url, "_evalcube", "ledger.jsonl").symlink_to("kept.jsonl")

    opened = Cube.open(scratch, writable=True)
    opened.write_region(REGION, workers.region_arrays(opened, REGION, 1))
    Ledger(opened.records).append(workers.make_receipt(1, REGION))

    assert len(list(Ledger(opened.records).receipts())) == 2
    with Lease.acquire(opened.records):
        assert read_holder(opened.records) is not None


def test_directory__a_part_of_a_part_knows_the_root(tmp_path):
    space = Directory(tmp_path / "cube").at("a").at("b")

    assert space.root == tmp_path / "cube"


@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "device"]
)
def test_get__does_not_wait_for_what_took_a_files_place_after_the_look(tmp_path, make, monkeypatch):
    make(tmp_path / "record")
    monkeypatch.setattr("evalcube.storage.cube.directory.objects.inside", lambda _, path: path)

    with pytest.raises(CubeDamagedError, match="no file"):
        Directory(tmp_path).get("record", 100)
