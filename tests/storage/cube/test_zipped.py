"""Cubes in a zip file: read where they lie, made in one step, and never written; hostile files are refused."""

import pickle
import stat
import struct
import zipfile

import numpy as np
import pytest
import xarray as xr

from evalcube.storage.cube import zipped
from evalcube.storage.cube.address import space_of
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger, Receipt
from evalcube.storage.cube.regions import Region
from evalcube.storage.cube.schema import VARIABLES
from evalcube.storage.errors import (
    CubeDamagedError,
    CubeExistsError,
    CubeNotFoundError,
    NotWritableError,
    UnsupportedUrlError,
)

SIZES = {"model": 1, "task": 1, "params": 1, "trial": 4, "repeat": 1}


def region():
    return {name: np.full((1, 1, 4, 1), 1, dtype=variable.dtype) for name, variable in VARIABLES.items()}


def fill(cube):
    digest = cube.write_region(Region(0, 0, 0), region())
    with Ledger(cube.records) as ledger:
        ledger.append(Receipt(Region(0, 0, 0), 1, 4, 1, 4, True, 0, 0, {}, digest))


def made(path, name="c.zarr.zip"):
    return Cube.create(
        path / name,
        sizes={**SIZES, "tier": 1},
        chunks={"trial": 4, "repeat": 1},
        coordinates=[],
        counters=["trials"],
        attrs={"title": "x"},
        fill=fill,
    )


def test_zipped_cube__reads_as_it_was_filled(tmp_path):
    made(tmp_path)

    cube = Cube.open(tmp_path / "c.zarr.zip")

    assert (cube.read_region(Region(0, 0, 0))["status"] == 1).all()
    assert [receipt.trials for receipt in Ledger(cube.records).receipts()] == [4]
    assert cube.dataset()["tokens"].sum().compute().item() == 4
    assert [path.name for path in tmp_path.iterdir()] == ["c.zarr.zip"]
    with xr.open_zarr(pickle.loads(pickle.dumps(cube.space)).zarr()) as dataset:  # noqa: S301 - our own
        assert dataset["status"].shape == (1, 1, 1, 4, 1)


def test_zipped_cube__is_the_same_file_each_time(tmp_path):
    made(tmp_path, "a.zip")
    made(tmp_path, "b.zip")

    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_zipped_cube__is_never_written(tmp_path):
    made(tmp_path)

    with pytest.raises(NotWritableError, match="evalcube pull"):
        Cube.open(tmp_path / "c.zarr.zip", writable=True)
    with pytest.raises(NotWritableError):
        space_of(tmp_path / "c.zarr.zip").put("key", b"")
    with pytest.raises(CubeExistsError):
        made(tmp_path)
    with pytest.raises(CubeNotFoundError):
        Cube.open(tmp_path / "none.zip")


def test_zipped_cube__whose_making_fails_leaves_nothing(tmp_path, monkeypatch):
    def fails(cube):  # noqa: ARG001
        raise OSError("no")

    monkeypatch.setattr("tests.storage.cube.test_zipped.fill", fails, raising=False)
    with pytest.raises(Exception, match="no"):
        space_of(tmp_path / "c.zip").assemble(fails)

    assert not list(tmp_path.iterdir())


def test_zipped_cube__that_another_one_made_meanwhile_stays(tmp_path, monkeypatch):
    real = zipped.link_new

    def late(temporary, path):
        path.write_bytes(b"another one's")
        return real(temporary, path)

    monkeypatch.setattr(zipped, "link_new", late)
    with pytest.raises(CubeExistsError):
        made(tmp_path, "c.zip")

    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"another one's"]


def test_zip__whose_member_is_a_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(zipped, "MOST_OBJECT", 1000)
    with zipfile.ZipFile(tmp_path / "c.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("zarr.json", bytes(1001))

    with pytest.raises(CubeDamagedError, match="1,001 bytes"):
        space_of(tmp_path / "c.zip").get("zarr.json")


def test_zip__that_lies_about_a_size_gives_no_more_than_it_says(tmp_path):
    path = tmp_path / "c.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("zarr.json", bytes(100_000))
    data = path.read_bytes()
    path.write_bytes(data.replace(struct.pack("<I", 100_000), struct.pack("<I", 10)))

    with pytest.raises(CubeDamagedError):
        space_of(path).get("zarr.json")


@pytest.mark.parametrize("name", ["../zarr.json", "/zarr.json"])
def test_zip__whose_names_lead_elsewhere_writes_nothing(tmp_path, name):
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as file:
        link = zipfile.ZipInfo(name)
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        file.writestr(link, "/etc/passwd")

    with pytest.raises(CubeNotFoundError):
        Cube.open(tmp_path / "c.zip")


@pytest.mark.parametrize("content", [b"", b"PK\x05\x06", b"no zip file at all"])
def test_file__that_is_no_zip_file_is_damaged(tmp_path, content):
    (tmp_path / "c.zip").write_bytes(content)

    with pytest.raises(CubeDamagedError, match="zip"):
        Cube.open(tmp_path / "c.zip")


def test_published_cube__is_never_written(tmp_path):
    Cube.create(
        tmp_path / "c.zarr",
        sizes={**SIZES, "tier": 1},
        chunks={"trial": 4, "repeat": 1, "model": 1},
        coordinates=[],
        counters=["trials"],
        attrs={"published": {"tag": "v1"}},
        fill=fill,
    )

    assert Cube.open(tmp_path / "c.zarr").sizes["trial"] == 4
    with pytest.raises(NotWritableError, match="published"):
        Cube.open(tmp_path / "c.zarr", writable=True)


@pytest.mark.parametrize("address", ["s3://bucket/c.zip", "https://host/c.zip"])
def test_zip__on_a_store_or_server_is_refused(address):
    with pytest.raises(UnsupportedUrlError, match="this machine only"):
        space_of(address)
