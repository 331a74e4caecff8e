"""A cube on the second implementation of a space, which shares no file, no lock and no link with the first."""

import numpy as np
import pytest
import xarray as xr

from evalcube.storage.cube import cube as cube_module
from evalcube.storage.cube import holder as holder_module
from evalcube.storage.cube.address import space_of
from evalcube.storage.cube.batch_notes import BatchNotes
from evalcube.storage.cube.bucket.objects import Bucket
from evalcube.storage.cube.cube import Cube, Region, region_digest
from evalcube.storage.cube.holder import read_holder
from evalcube.storage.cube.lease import Lease, check_holder
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.cube.schema import COUNTERS
from evalcube.storage.errors import (
    CubeDamagedError,
    CubeExistsError,
    CubeNotFoundError,
    LeaseHeldError,
    LeaseLostError,
    StorageError,
)
from evalcube.storage.processes import Life
from tests.storage.support import buckets
from tests.storage.support.memory_space import MemorySpace

URL = "the cube in memory"

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("space")]


@pytest.fixture(params=["memory", "bucket"])
def space(tmp_path, monkeypatch, request):
    """The space of `URL`; what takes that for a path leaves a trace in the current directory."""
    buckets.in_memory(monkeypatch)
    made = MemorySpace(URL) if request.param == "memory" else Bucket("s3://bucket/cube")
    monkeypatch.setattr(cube_module, "space_of", lambda url: made if url == URL else space_of(url))
    monkeypatch.chdir(tmp_path)
    yield made
    assert list(tmp_path.iterdir()) == []


def filled(url, workers):
    """A cube with some regions written and recorded, grown, and written again."""
    cube = workers.make_cube(url)
    ledger = Ledger(cube.records)
    for generation, trials in enumerate([cube.sizes["trial"], 40]):
        cube.grow(trial=trials)
        for region in list(cube.regions())[:-1]:
            cube.write_region(region, workers.region_arrays(cube, region, generation))
            ledger.append(workers.make_receipt(generation, region))
    ledger.close()
    shape = [cube.sizes[dim] for dim in COUNTERS.dims[1:]]
    cube.write_counters({1: np.arange(np.prod(shape), dtype=np.float64).reshape(shape)})
    cells = [cube.sizes[dim] for dim in ("model", "task", "params")]
    cube.write_planned("trial", np.full(cells, 7, np.int32))
    cube.write_label("price_prompt", np.array([3.0, 2.0, 1.0]))
    cube.write_duplicates(0, np.ones((cube.sizes["params"], cube.sizes["trial"]), np.uint8))
    return cube


def objects(space):
    return {key: space.get(key).data for key in space.list() if not key.startswith("_evalcube/ledger")}


def test_cube__is_made_of_the_same_objects_in_memory_and_on_disk(space, workers, tmp_path_factory):
    path = tmp_path_factory.mktemp("disk") / "c.zarr"

    ours, theirs = filled(URL, workers), filled(path, workers)

    assert objects(space).keys() >= {"zarr.json", "status/zarr.json", "status/c.0.0.0.0.0"}
    assert objects(space) == objects(space_of(path))
    assert list(Ledger(ours.records).receipts()) == list(Ledger(theirs.records).receipts())
    xr.testing.assert_identical(ours.dataset().load(), theirs.dataset().load())


def test_cube__in_memory_is_opened_again_with_all_that_was_written(workers):
    filled(URL, workers)
    other = Cube.open(URL, writable=True)

    newest = Ledger(other.records).newest()
    assert {receipt.generation for receipt in newest.values()} == {1}
    for region in newest:
        np.testing.assert_equal(other.read_region(region), workers.region_arrays(other, region, 1))
        assert region_digest(other.read_region(region)) == region_digest(
            workers.region_arrays(other, region, 1)
        )
    early = Cube.open(URL, writable=True)
    other.grow(trial=70)
    early.refresh()
    assert early.sizes["trial"] == 70
    assert Cube.exists(URL)
    assert other.sweep() == 0


def test_cube__in_memory_refuses_as_one_on_disk(space, workers):
    with pytest.raises(CubeNotFoundError):
        Cube.open(URL)
    workers.make_cube(URL)
    with pytest.raises(CubeExistsError):
        workers.make_cube(URL)
    space.put("status/c.0.0.0.0.0", b"no chunk")
    with pytest.raises(CubeDamagedError):
        Cube.open(URL).read_region(Region(0, 0, 0))
    space.put("zarr.json", b"{")
    with pytest.raises(CubeDamagedError):
        Cube.open(URL)


def test_ledger__in_memory_has_one_writer(workers):
    records = workers.make_cube(URL).records
    one, two = Ledger(records), Ledger(records)
    for number, ledger in enumerate([one, two]):
        ledger.append(workers.make_receipt(number))
        ledger.flush()

    with pytest.raises(StorageError, match="another process"), one:
        one.append(workers.make_receipt(2))


def test_lease__in_memory_is_held_taken_over_and_released(workers, monkeypatch):
    records = workers.make_cube(URL).records
    first = Lease.acquire(records, ttl=0.2)
    with pytest.raises(LeaseHeldError):
        Lease.acquire(records)
    # As if its holder were on another machine, and could not renew it any more.
    found = records.lease("lease.json").read()
    records.lease("lease.json").take(lambda _: found)
    monkeypatch.setattr(holder_module, "life_of", lambda _: Life.UNKNOWN)

    with Lease.acquire(records) as second:
        check_holder(records, second.holder.token)
        with pytest.raises(LeaseLostError):
            check_holder(records, first.holder.token)
        with pytest.raises(LeaseLostError):
            first.check()
        first.release()
        second.check()

    assert read_holder(records) is None


def test_batch_notes__in_memory(workers):
    notes = BatchNotes(workers.make_cube(URL).records)
    notes.write("aaaaaaaa", b"one")

    assert (list(notes.tokens()), notes.read("aaaaaaaa")) == (["aaaaaaaa"], b"one")
    notes.remove("aaaaaaaa")
    assert list(notes.tokens()) == []
