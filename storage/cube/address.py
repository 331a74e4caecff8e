"""The space that a cube's address means, and copies from one to another: here alone a `Space` is chosen."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from evalcube.storage.cube.directory import Directory
from evalcube.storage.cube.space import METADATA, Space
from evalcube.storage.errors import StorageError, need_package
from evalcube.storage.urls import (
    Address,
    Kind,
    directory_of,
    http_address,
    kind_of,
    object_prefix,
    plain_address,
)


def space_of(url: Address) -> Space:
    """The space that an address means: a directory, a bucket, or a web server."""
    url = plain_address(url)
    kind = kind_of(url)
    if kind is Kind.BUCKET:
        address = object_prefix(str(url))
        need_package("obstore", "objects", "a cube", address)
        # Imported here: cubes in directories, which most are, start without it.
        from evalcube.storage.cube.bucket.objects import Bucket

        return Bucket(address)
    if kind is Kind.WEB:
        from evalcube.storage.cube.served import ServedFiles

        return ServedFiles(http_address(str(url)))
    return Directory(directory_of(url))


_THREADS = 16
_AT_ONCE = 64


def copy_cube(source: Space, target: Space, keeps: Callable[[str], bool]) -> None:
    """Copy a cube's objects; others see all of it or nothing. The source must not be written meanwhile."""

    def fill(draft: Space) -> None:
        for key, data in _objects(source, keeps):
            draft.put(key, data, durable=False)

    target.assemble(fill)


def _objects(source: Space, keeps: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """Objects in no order, but for the cube's metadata, which come last; not many in memory at once."""
    keys = iter(sorted(filter(keeps, source.list()), key=lambda key: (key == METADATA, key)))
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="evalcube-copy") as pool:
        while some := list(itertools.islice(keys, _AT_ONCE)):
            for key, stored in zip(some, pool.map(source.get, some), strict=True):
                if stored is None:
                    remedy = "Wait until whoever changes the cube has finished, then copy it again."
                    raise StorageError(f"{key} has gone while the cube was copied", source.address, remedy)
                yield key, stored.data
