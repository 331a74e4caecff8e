"""Cubes in a zip file that lies in a bucket or behind a web server are read there, and only as far as is asked for."""

import pickle

import numpy as np
import obstore
import pytest

from evalcube.storage.cube import zipped_remote
from evalcube.storage.cube.address import space_of
from evalcube.storage.cube.bucket import Bucket
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.cube.regions import Region
from evalcube.storage.cube.zipped_remote import RemoteZip
from evalcube.storage.errors import CubeDamagedError, CubeNotFoundError, NotWritableError, StorageError
from tests.storage.cube.test_zipped import made
from tests.storage.support import buckets
from tests.storage.support.file_server import serving

URL = "s3://bucket/team/c.zarr.zip"


@pytest.fixture
def stores(monkeypatch):
    forget()
    return buckets.in_memory(monkeypatch)


def forget():
    zipped_remote._need.cache_clear()
    zipped_remote._opened.cache_clear()


def stored(stores, path):
    made(path)
    data = (path / "c.zarr.zip").read_bytes()
    obstore.put(stores["s3://bucket/team"], "c.zarr.zip", data)
    return data


def asked(monkeypatch):
    """Ranges that are asked for from now on."""
    real, found = obstore.get, []

    def get(store, path, *, options=None):
        found.append((options or {}).get("range"))
        return real(store, path, options=options)

    monkeypatch.setattr(obstore, "get", get)
    return found


def test_zip_in_a_bucket__reads_as_it_was_filled(stores, tmp_path):
    stored(stores, tmp_path)

    cube = Cube.open(URL)

    assert (cube.read_region(Region(0, 0, 0))["status"] == 1).all()
    assert [receipt.trials for receipt in Ledger(cube.records).receipts()] == [4]
    there = pickle.loads(pickle.dumps(cube.space))  # noqa: S301 - our own
    assert there.get("zarr.json") == cube.space.get("zarr.json")
    assert there.at("_evalcube").address == f"{URL}/_evalcube"


def test_zip_in_a_bucket__is_read_as_far_as_is_asked_for(stores, tmp_path, monkeypatch):
    monkeypatch.setattr(zipped_remote, "_BLOCK_BYTES", 512)
    data = stored(stores, tmp_path)
    ranges = asked(monkeypatch)

    (found,) = np.unique(Cube.open(URL).read_region(Region(0, 0, 0), ["status"])["status"])

    assert found == 1
    assert len(data) > 10_000
    assert sum(end - begin for begin, end in ranges) < len(data) / 2


def test_zip_in_a_bucket__is_never_written(stores, tmp_path):
    stored(stores, tmp_path)

    with pytest.raises(NotWritableError, match=f"evalcube pull {URL} DIRECTORY"):
        Cube.open(URL, writable=True)


def test_zip_in_a_bucket__that_is_none(stores):
    obstore.put(stores["s3://bucket/team"], "c.zarr.zip", b"no zip file at all")

    with pytest.raises(CubeDamagedError, match="zip"):
        Cube.open(URL)
    with pytest.raises(CubeNotFoundError):
        Cube.open("s3://bucket/team/none.zip")
    assert isinstance(space_of("s3://bucket/team/none.zip"), Bucket)  # a name like any other


def test_zip_in_a_bucket__that_is_replaced_while_it_is_read(stores, tmp_path, monkeypatch):
    monkeypatch.setattr(zipped_remote, "_BLOCK_BYTES", 512)
    data = stored(stores, tmp_path)
    cube = Cube.open(URL)
    obstore.put(stores["s3://bucket/team"], "c.zarr.zip", data[:-1] + b"x")

    with pytest.raises(StorageError, match="replaced while it was read"):
        cube.read_region(Region(0, 0, 0))


@pytest.mark.parametrize("most", [2**20, 1000])
def test_zip_behind_a_server_that_gives_no_parts(tmp_path, monkeypatch, most):
    forget()
    monkeypatch.setattr(zipped_remote, "MOST_WHOLE_BYTES", most)
    made(tmp_path)
    with serving(tmp_path) as (address, requests):
        space = space_of(f"{address}/c.zarr.zip")
        assert isinstance(space, RemoteZip)
        if most == 1000:
            with pytest.raises(StorageError, match="gives out no parts of files"):
                Cube.open(f"{address}/c.zarr.zip")
            return

        cube = Cube.open(f"{address}/c.zarr.zip")

        assert (cube.read_region(Region(0, 0, 0))["status"] == 1).all()
        assert [method for method, _ in requests].count("GET") == 1  # all of it, whatever part was asked for
