"""Objects of a cube in a bucket: what travels to workers, and writes that arrive after a successor's."""

import pickle
import time

import numpy as np
import pytest

from evalcube.storage.cube import growing
from evalcube.storage.cube.address import space_of
from evalcube.storage.cube.bucket import conditions
from evalcube.storage.cube.cube import Cube
from evalcube.storage.errors import LeaseLostError, StorageError
from tests.storage.support import buckets

URL = "s3://bucket/team/c.zarr"


@pytest.fixture
def stores(monkeypatch):
    monkeypatch.setattr(conditions, "_PAUSE_SECONDS", 0.0)
    return buckets.in_memory(monkeypatch)


@pytest.fixture
def space(stores):  # noqa: ARG001 - its bucket is there
    return space_of(URL)


def test_bucket__is_pickled_without_connection_or_secret(space, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very secret")

    for thing in (space, space.zarr(read_only=True)):
        pickled = pickle.dumps(thing)
        assert b"secret" not in pickled
        assert len(pickled) < 200


@pytest.mark.usefixtures("stores")
def test_write_region__that_arrives_after_a_successors_is_refused(workers):
    cube, successor = workers.make_cube(URL), Cube.open(URL, writable=True)
    region = next(cube.regions())
    arrays = [workers.region_arrays(cube, region, generation) for generation in range(3)]
    cube.write_region(region, arrays[0])

    # The holder is stopped between asking whether the lease is its own and writing.
    with pytest.raises(LeaseLostError, match="another process"):
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

    with pytest.raises(StorageError, match="metadata"):
        cube.grow(trial=50)

    assert Cube.open(URL).sizes["trial"] == 100


def test_bucket__knows_when_objects_were_put_and_clears_what_is_below_a_prefix(space):
    before = time.time() - 1
    for key in ("a/x", "a/y", "ab", "zarr.json"):
        space.put(key, b"1")

    assert before <= space.stored_at("a/x") <= time.time() + 1
    assert space.stored_at("none") is None
    assert (space.version("none"), space.get("none")) == (None, None)
    assert [space.get("ab", most).size for most in (None, 0)] == [1, 1]
    space.clear("a/")
    assert sorted(space.list()) == ["ab", "zarr.json"]
    space.put("a/x", b"1")
    assert list(space.list("a/")) == ["a/x"]
    space.delete_all(but="zarr.json")
    assert list(space.list()) == ["zarr.json"]
