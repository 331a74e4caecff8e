"""What is special about a cube in a bucket: lost answers, stores that ignore conditions, creators and holders."""

import json
import os
import pickle
import subprocess
import sys
import tempfile

import numpy as np
import obstore
import pytest
import zarr
from obstore import exceptions

from evalcube.storage.cube import growing, holder
from evalcube.storage.cube.address import space_of
from evalcube.storage.cube.bucket import conditions, creation
from evalcube.storage.cube.bucket.records import LINES_OF_OBJECT
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.space import LogConflictError, Renewed, When
from evalcube.storage.errors import CubeExistsError, LeaseLostError, StorageError
from tests.storage.support import buckets

URL = "s3://bucket/team/c.zarr"
METADATA = b'{"zarr_format":3}'


@pytest.fixture
def stores(monkeypatch):
    monkeypatch.setattr(conditions, "_PAUSE_SECONDS", 0.0)
    return buckets.in_memory(monkeypatch)


@pytest.fixture
def space(stores):  # noqa: ARG001 - its bucket is there
    return space_of(URL)


def lose_answers(monkeypatch, times=1, stored=True):
    """Have the next puts fail, after they were stored or before; returns how many there were."""
    real, asked = obstore.put, []

    def put(store, path, *args, **kwargs):
        if "probes/" in path:
            return real(store, path, *args, **kwargs)
        asked.append(path)
        if len(asked) > times:
            return real(store, path, *args, **kwargs)
        if stored:
            real(store, path, *args, **kwargs)
        raise exceptions.GenericError("connection closed before message completed")

    monkeypatch.setattr(obstore, "put", put)
    return asked


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("first", [True, False])
def test_put__whose_answer_is_lost_wins_all_the_same(space, monkeypatch, stored, first):
    when = When.ABSENT if first else space.put("key", b"before")
    asked = lose_answers(monkeypatch, stored=stored)

    version = space.put("key", b"mine", when=when)

    assert version is not None
    assert space.get("key")[:2] == (b"mine", version)
    assert len(asked) == 1 if stored else 2


def test_put__that_is_repeated_inside_of_the_client_finds_its_own(space, monkeypatch):
    real, asked = obstore.put, []

    def put(store, path, *args, **kwargs):
        if "probes/" not in path:
            asked.append(real(store, path, *args, **kwargs))  # and the answer was 500
        return real(store, path, *args, **kwargs)

    monkeypatch.setattr(obstore, "put", put)

    assert space.put("key", b"same", when=When.ABSENT) is not None
    assert len(asked) == 1


def test_put__does_not_take_another_ones_equal_object_for_its_own(space, monkeypatch):
    space.put("key", b"same", when=When.ABSENT)
    lose_answers(monkeypatch, stored=False)

    assert space.put("key", b"same", when=When.ABSENT) is None


def test_put__gives_up_on_a_store_that_is_gone(space, monkeypatch):
    asked = lose_answers(monkeypatch, times=99, stored=False)

    with pytest.raises(StorageError, match="connection closed"):
        space.put("key", b"", when=When.ABSENT)
    assert len(asked) == 5


@pytest.mark.parametrize(("mode", "ignored"), [("create", "put-if-absent"), ("update", "put-if-unchanged")])
def test_put__refuses_a_store_that_ignores_a_condition(space, monkeypatch, mode, ignored):
    real = obstore.put

    def put(store, path, data, *, mode=None, **kwargs):
        kind = mode if mode in (None, "create") else "update"
        return real(store, path, data, **kwargs, **({} if kind in (None, ignores) else {"mode": mode}))

    ignores = mode
    monkeypatch.setattr(obstore, "put", put)

    with pytest.raises(StorageError, match=ignored) as caught:
        space.put("key", b"", when=When.ABSENT)
    assert "Use a store that honours it" in str(caught.value)
    assert list(space.list()) == []


def test_bucket__is_pickled_without_connection_or_secret(space, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very secret")

    for thing in (space, space.zarr(read_only=True)):
        pickled = pickle.dumps(thing)
        assert b"secret" not in pickled
        assert len(pickled) < 200


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
    with pytest.raises(CubeExistsError, match="a cube is already there"):
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

    with pytest.raises(CubeExistsError, match="process 7 on here makes"):
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


def test_log__puts_many_lines_as_one_object(space, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("evalcube.storage.cube.bucket.records.elapsed_seconds", lambda: now[0])
    log = space.log("ledger.jsonl")
    lines = [b"%d\n" % number for number in range(LINES_OF_OBJECT + 3)]
    for line in lines:
        log.append(line)

    assert list(space.list()) == ["ledger/00000000.jsonl"]
    log.flush(older_than=2.0)
    assert len(list(space.list())) == 1
    now[0] += 2.0
    log.append(b"last\n")
    assert len(list(space.list())) == 2
    assert list(space.log("ledger.jsonl").lines()) == [*lines, b"last\n"]


@pytest.mark.parametrize("objects", [0, 1, 2, 3, 7, 8, 70])
def test_log__is_read_and_continued_without_a_list(space, monkeypatch, objects):
    log = space.log("ledger.jsonl")
    for number in range(objects):
        log.append(b"%d\n" % number)
        log.flush()
    monkeypatch.setattr(obstore, "list", None)

    other = space.log("ledger.jsonl")
    other.append(b"last\n")
    other.close()

    assert list(space.log("ledger.jsonl").lines()) == [*(b"%d\n" % n for n in range(objects)), b"last\n"]


def test_log__cannot_be_continued_by_whoever_was_taken_over_from(space):
    stale = space.log("ledger.jsonl")
    assert list(stale.lines()) == []

    successor = space.log("ledger.jsonl")
    successor.claim()
    assert list(successor.lines()) == []
    stale.append(b"late\n")
    with pytest.raises(LogConflictError):
        stale.flush()
    successor.append(b"right\n")
    successor.flush()

    assert list(space.log("ledger.jsonl").lines()) == [b"right\n"]


def test_lease__renewal_whose_answer_was_lost_is_the_holders(space, monkeypatch):
    held = space.lease("lease.json").take(lambda _: Renewed(b"me", 1.0))
    with monkeypatch.context() as patch:
        real = obstore.put

        def fail(*_, **__):
            raise exceptions.GenericError("connection reset")

        def put(*args, **kwargs):
            real(*args, **kwargs)
            fail()

        patch.setattr(obstore, "put", put)
        patch.setattr(obstore, "get", fail)
        with pytest.raises(StorageError):
            held.renew(2.0)

    assert space.lease("lease.json").read().at == 2.0
    assert held.is_mine()
    assert held.renew(3.0)
    held.withdraw()
    assert space.lease("lease.json").read() is None


def test_lease__counts_its_takers(space):
    for _ in range(3):
        space.lease("lease.json").take(lambda _: Renewed(b"me", 1.0)).withdraw()

    assert json.loads(space.get("lease.json").data)["epoch"] == 3
    assert space.lease("lease.json").read() is None


@pytest.mark.parametrize("data", [b"\xff not a lease", b'{"epoch": 1e999, "at": 0}\n', b"[" * 50_000])
def test_lease__that_is_not_ours_is_somebodys(space, data):
    space.put("lease.json", data)

    assert space.lease("lease.json").read().data == data


@pytest.mark.usefixtures("stores")
def test_write_region__that_arrives_after_a_successors_is_refused(workers):
    cube, successor = workers.make_cube(URL), Cube.open(URL, writable=True)
    region = next(cube.regions())
    arrays = [workers.region_arrays(cube, region, generation) for generation in range(3)]
    cube.write_region(region, arrays[0])

    # The holder is stopped between asking whether the lease is its own and writing.
    with pytest.raises(LeaseLostError, match="another process has written"):
        cube.write_region(region, arrays[1], check=lambda: successor.write_region(region, arrays[2]))

    np.testing.assert_equal(successor.read_region(region), arrays[2])
    cube.write_region(region, arrays[1])
    np.testing.assert_equal(successor.read_region(region), arrays[1])


@pytest.mark.usefixtures("stores")
def test_grow__of_whoever_lost_the_cube_is_refused(workers, monkeypatch):
    cube, other = workers.make_cube(URL), Cube.open(URL, writable=True)
    real = growing.commit

    def late(*arguments):
        monkeypatch.setattr(growing, "commit", real)
        other.grow(trial=100)
        real(*arguments)

    monkeypatch.setattr(growing, "commit", late)

    with pytest.raises(StorageError, match="changed the cube's metadata"):
        cube.grow(trial=50)

    assert Cube.open(URL).sizes["trial"] == 100


@pytest.mark.parametrize(("address", "mark"), [("gs://b/c", "7"), ("s3://b/c", "e"), ("az://b/c", "e")])
def test_version_of__is_a_generation_at_gcs_alone(address, mark):
    assert conditions.version_of(address, {"version": "7", "e_tag": "e"}).mark == mark
