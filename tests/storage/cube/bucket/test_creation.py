"""A cube in a bucket appears whole or not at all: creators that fail, are killed, or are taken over from."""

import json
import os
import subprocess
import sys
import tempfile

import obstore
import pytest
import zarr

from evalcube.storage.cube import holder
from evalcube.storage.cube.address import space_of
from evalcube.storage.cube.bucket import conditions, creation
from evalcube.storage.errors import CubeExistsError
from tests.storage.support import buckets

URL = "s3://bucket/team/c.zarr"


@pytest.fixture
def stores(monkeypatch):
    monkeypatch.setattr(conditions, "_PAUSE_SECONDS", 0.0)
    return buckets.in_memory(monkeypatch)


@pytest.fixture
def space(stores):  # noqa: ARG001 - its bucket is there
    return space_of(URL)


def build(draft):
    group = zarr.create_group(draft.zarr())
    group.create_array("a", data=zarr.ones(3)[...])


def test_assemble__metadata_come_last(space, monkeypatch):
    real, order = obstore.put, []

    def put(store, path, *args, **kwargs):
        order.extend([path] * ("probes/" not in path))
        assert space.get("zarr.json") is None
        return real(store, path, *args, **kwargs)

    monkeypatch.setattr(obstore, "put", put)
    space.assemble(build)

    assert (order[0], order[-1]) == ("zarr.json", "zarr.json")  # the place is taken first, and filled last
    assert sorted(space.list()) == ["a/c/0", "a/zarr.json", "zarr.json"]
    assert zarr.open_group(space.zarr(read_only=True), mode="r")["a"][...].tolist() == [1, 1, 1]


def test_assemble__only_where_nothing_is(space):
    space.put("notes.txt", b"somebody's")
    with pytest.raises(CubeExistsError, match="something else"):
        space.assemble(build)
    space.delete("notes.txt")
    space.assemble(build)
    with pytest.raises(CubeExistsError, match="already there"):
        space.assemble(build)


def test_assemble__that_fails_leaves_nothing(space):
    def fail(draft):
        build(draft)
        raise OSError("no more memory")

    with pytest.raises(OSError, match="no more"):
        space.assemble(fail)

    assert not space.is_there()
    assert list(space.list()) == []


@pytest.mark.cluster
def test_assemble__clears_away_what_a_killed_process_drafted(space, monkeypatch, tmp_path):
    killed = (
        "import os; from evalcube.storage.cube.bucket.creation import _folder\nwith _folder(): os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", killed], env={**os.environ, "TMPDIR": str(tmp_path)}, check=True)
    (left,) = tmp_path.iterdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def look(draft):
        build(draft)
        (mine,) = tmp_path.iterdir()
        assert mine != left
        assert mine.stat().st_mode & 0o777 == 0o700

    space.assemble(look)
    assert list(tmp_path.iterdir()) == []


def test_assemble__of_no_cube_leaves_nothing_in_the_place_of_its_metadata(space):
    space.assemble(lambda draft: draft.put("check", b""))

    assert list(space.list()) == ["check"]


def begun(space, process, ttl=60.0):
    """What a creator left that was killed."""
    who = {"token": "x", "process": process, "since": 0.0, "ttl": ttl, "machine": "", "at": 0.0}
    space.put("zarr.json", creation._CLAIM + json.dumps(who).encode() + b"}")
    space.put("b/zarr.json", b"half")


ENDED = {"host": "here", "boot": "", "pid": 2**22 + 1, "start": 1}


def test_assemble__begins_anew_where_a_creator_was_killed(space, monkeypatch):
    monkeypatch.setattr(holder, "life_of", lambda _: holder.Life.ENDED)
    begun(space, ENDED)
    assert space.get("zarr.json") is None
    assert not space.is_there()

    space.assemble(build)

    assert sorted(space.list()) == ["a/c/0", "a/zarr.json", "zarr.json"]


def test_assemble__watches_a_creator_on_another_machine(space, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(holder, "life_of", lambda _: holder.Life.UNKNOWN)
    monkeypatch.setattr(creation.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(creation.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    begun(space, ENDED, ttl=3600.0)

    space.assemble(build)

    assert now[0] == creation._STALE_SECONDS == 60.0
    assert "b/zarr.json" not in list(space.list())


def test_assemble__stays_away_from_a_creator_that_lives(space, monkeypatch):
    begun(space, ENDED)
    monkeypatch.setattr(holder, "life_of", lambda _: holder.Life.UNKNOWN)
    monkeypatch.setattr(creation.time, "sleep", lambda _: begun(space, {**ENDED, "pid": 7}))

    with pytest.raises(CubeExistsError, match="process 7 on"):
        space.assemble(build)
    assert "b/zarr.json" in list(space.list())


def test_assemble__of_one_that_was_taken_over_from_changes_nothing(space, monkeypatch):
    def slow(draft):
        build(draft)
        # Stopped for so long that another one has taken over, and made the cube.
        monkeypatch.setattr(holder, "life_of", lambda _: holder.Life.ENDED)
        space_of(URL).assemble(lambda draft: zarr.create_group(draft.zarr()))

    with pytest.raises(CubeExistsError):
        space.assemble(slow)

    assert list(zarr.open_group(space.zarr(), mode="r").arrays()) == []
    assert "zarr.json" in list(space.list())


def test_remove__leaves_nothing(space):
    assert not space.remove()
    space.assemble(build)

    assert space.remove()
    assert list(space.list()) == []
