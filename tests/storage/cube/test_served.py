"""A cube behind a web server of files: all that is read is as in its directory, and nothing can be written."""

import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

from evalcube.storage.cube.address import space_of
from evalcube.storage.cube.batch_notes import BatchNotes
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.holder import read_holder
from evalcube.storage.cube.lease import Lease
from evalcube.storage.cube.ledger import NAME, Ledger
from evalcube.storage.errors import CubeNotFoundError, NotWritableError, StorageError, UnsupportedUrlError
from tests.storage.support.file_server import serving

pytestmark = pytest.mark.long


@pytest.fixture
def site(tmp_path):
    with serving(tmp_path) as found:
        yield found


@pytest.fixture
def cube(tmp_path, workers):
    """A cube with two regions written and recorded."""
    made = workers.make_cube(tmp_path / "c.zarr")
    with Ledger(made.records) as ledger:
        for number, region in enumerate(list(made.regions())[:2]):
            made.write_region(region, workers.region_arrays(made, region, 0))
            ledger.append(workers.make_receipt(number, region))
    return made


def test_served__is_read_as_from_its_directory(cube, site):
    url, asked = site

    there = Cube.open(f"{url}/c.zarr")

    assert (there.sizes, there.attrs) == (cube.sizes, cube.attrs)
    for region in cube.regions():
        np.testing.assert_equal(there.read_region(region), cube.read_region(region))
    assert list(Ledger(there.records).receipts()) == list(Ledger(cube.records).receipts())
    assert list(BatchNotes(there.records).tokens()) == []
    xr.testing.assert_identical(there.dataset().load(), cube.dataset().load())
    assert {method for method, _ in asked} == {"GET", "HEAD"}


@pytest.mark.usefixtures("cube")
def test_served__is_read_lazily(site):
    url, asked = site
    dataset = Cube.open(f"{url}/c.zarr").dataset()
    asked.clear()

    dataset["status"].isel(model=0, trial=0).load()

    chunks = [path for _, path in asked if not path.endswith("zarr.json")]
    assert all(path.startswith("/c.zarr/status/c.0.") for path in chunks)
    assert len(chunks) == len(set(chunks))


@pytest.mark.cluster
@pytest.mark.usefixtures("cube")
def test_served__is_read_without_the_package_of_object_stores(site):
    code = f"""
import sys
sys.modules["obstore"] = None  # importing it fails
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.holder import apparent_holder
from evalcube.storage.cube.ledger import Ledger
cube = Cube.open({site[0]!r} + "/c.zarr")
print(len(Ledger(cube.records).newest()), apparent_holder(cube.records), cube.dataset()["status"].ndim)
"""

    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert found.stdout.split() == ["2", "None", "5"]


def test_served__ledger_in_numbered_objects_is_that_of_a_bucket(cube, site, tmp_path):
    records = tmp_path / "c.zarr" / "_evalcube"
    expected = list(Ledger(cube.records).receipts())
    lines = (records / NAME).read_bytes().splitlines(keepends=True)
    (records / NAME).unlink()
    (records / "ledger").mkdir()
    for number, line in enumerate(lines):
        (records / f"ledger/{number:08}.jsonl").write_bytes(line)

    assert list(Ledger(space_of(f"{site[0]}/c.zarr").at("_evalcube")).receipts()) == expected


def test_served__lease_is_seen(cube, site):
    records = space_of(f"{site[0]}/c.zarr").at("_evalcube")
    assert read_holder(records) is None

    with Lease.acquire(cube.records) as lease:
        holder, at = read_holder(records)

    assert holder == lease.holder
    assert abs(at - lease.holder.since) < 60


def test_served__refuses_to_be_written(cube, site):
    url = f"{site[0]}/c.zarr"
    space = space_of(url)

    with pytest.raises(NotWritableError, match="read-only"):
        Cube.open(url, writable=True)
    for refused in (
        lambda: space.put("key", b""),
        lambda: space.delete("zarr.json"),
        lambda: space.clear("status/"),
        lambda: space.assemble(lambda _: None),
        lambda: space.at("_evalcube").log(NAME).append(b""),
        lambda: Lease.acquire(space.at("_evalcube")),
    ):
        with pytest.raises(NotWritableError):
            refused()
    assert not space.remove()
    assert Cube.open(cube.url).sizes == cube.sizes


def test_served__nothing_there(site):
    with pytest.raises(CubeNotFoundError, match=r"none\.zarr"):
        Cube.open(f"{site[0]}/none.zarr")
    assert not Cube.exists(f"{site[0]}/none.zarr")


def test_served__no_server(monkeypatch):
    monkeypatch.setattr("evalcube.storage.cube.served.RETRIES", 0)
    with pytest.raises(StorageError, match="the server"):
        Cube.open("http://127.0.0.1:9/none.zarr")


@pytest.mark.parametrize(
    "url", ["https://user:secret@host/c.zarr", "https://host/c.zarr?token=secret", "https:///c.zarr"]
)
def test_served__addresses_hold_no_secrets(url):
    with pytest.raises(UnsupportedUrlError) as caught:
        space_of(url)
    assert "secret" not in str(caught.value)


def test_get__the_first_bytes_also_from_servers_that_know_no_ranges(cube, site):
    space = space_of(f"{site[0]}/c.zarr")
    expected = space_of(cube.url).get("zarr.json")

    found = space.get("zarr.json", 16)

    assert (found.data, found.size) == (expected.data[:16], expected.size)
    assert cube.chunk_problems(next(cube.regions())) == {}
    assert Cube.open(f"{site[0]}/c.zarr").chunk_problems(next(cube.regions())) == {}
