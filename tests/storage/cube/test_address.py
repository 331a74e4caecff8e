"""What a cube's address means, and copies from one to another."""

import pytest

from evalcube.storage.cube.address import copy_cube, space_of
from evalcube.storage.cube.bucket.objects import Bucket
from evalcube.storage.cube.directory import Directory
from evalcube.storage.cube.served import ServedFiles
from evalcube.storage.cube.space import METADATA
from evalcube.storage.errors import CubeExistsError, StorageError
from tests.cases import with_cases
from tests.storage.support.memory_space import MemorySpace

KEYS = (METADATA, "a/0", "a/1", "log/x")


@pytest.fixture
def source():
    space = MemorySpace("source")
    for key in KEYS:
        space.put(key, key.encode())
    return space


@with_cases(
    ("address", "kind"),
    [("results/a.zarr", Directory), ("s3://bucket/a.zarr", Bucket), ("https://host/a.zarr", ServedFiles)],
)
def test_space_of__is_a_directory_a_bucket_or_a_server(address, kind):
    assert type(space_of(address)) is kind


def test_copy_cube__has_the_metadata_last_and_leaves_out_what_is_not_kept(source, monkeypatch):
    target = MemorySpace("target")
    order = []
    put = MemorySpace.put
    monkeypatch.setattr(
        MemorySpace,
        "put",
        lambda space, key, *rest, **more: (order.append(key), put(space, key, *rest, **more))[1],
    )

    copy_cube(source, target, lambda key: not key.startswith("log/"))

    assert list(dict.fromkeys(order)) == ["a/0", "a/1", METADATA]
    assert {key: target.get(key).data for key in target.list()} == {key: key.encode() for key in order}
    with pytest.raises(CubeExistsError):
        copy_cube(source, target, lambda _: True)


def test_copy_cube__of_what_goes_meanwhile_leaves_nothing(source, monkeypatch):
    target = MemorySpace("target")
    get = source.get
    monkeypatch.setattr(source, "get", lambda key: None if key == "a/1" else get(key))

    with pytest.raises(StorageError, match="a/1 has gone"):
        copy_cube(source, target, lambda _: True)

    assert list(target.list()) == []
