"""Copies a cube as it is, object by object, from any store to any other."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from evalcube.storage.cube.space import Space
from evalcube.storage.errors import StorageError

if TYPE_CHECKING:
    from zarr.abc.store import Store

_THREADS = 16
_AT_ONCE = 64
_METADATA = "zarr.json"


def copy_cube(source: Space, target: Space, keeps: Callable[[str], bool] = lambda _: True) -> None:
    """Make a cube of another one's objects; others see all of it or nothing. Nobody may write to the source meanwhile.

    Parameters
    ----------
    source
        Where the cube is.
    target
        Where nothing is.
    keeps
        Which keys are copied.

    Raises
    ------
    CubeExistsError
        Something is there already.
    StorageError
        The source cannot be listed or read, or the target not be written.
    """

    def build(store: Store) -> None:
        from zarr.core.buffer import default_buffer_prototype
        from zarr.core.sync import sync

        buffer = default_buffer_prototype().buffer
        for key, data in _objects(source, keeps):
            sync(store.set(key, buffer.from_bytes(data)))

    target.assemble(lambda draft: build(draft.zarr()))


def _objects(source: Space, keeps: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """Objects in no order, but for the cube's metadata, which come last; not many in memory at once."""
    keys = iter(sorted(filter(keeps, source.list()), key=lambda key: (key == _METADATA, key)))
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="evalcube-copy") as pool:
        while some := list(itertools.islice(keys, _AT_ONCE)):
            for key, found in zip(some, pool.map(source.get, some), strict=True):
                if found is None:
                    remedy = "Wait until whoever changes the cube has finished, then copy it again."
                    raise StorageError(f"{key} has gone while the cube was copied", source.address, remedy)
                yield key, found.data
