"""Zarr's store of a space that is only read, a zip file or a web server's files, with its bounds and errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING

from zarr.abc.store import (
    ByteRequest,
    OffsetByteRequest,
    RangeByteRequest,
    Store,
)

from evalcube.storage.cube.bounds import most_of, refuse_bomb, refuse_larger

if TYPE_CHECKING:
    from zarr.core.buffer import Buffer, BufferPrototype

    from evalcube.storage.cube.served import ServedFiles
    from evalcube.storage.cube.zipped import ZippedFiles


class ReadStore(Store):
    """The objects of a space, for reading."""

    supports_writes = False
    supports_deletes = False
    supports_listing = True

    def __init__(self, space: ZippedFiles | ServedFiles) -> None:
        super().__init__(read_only=True)
        self._space = space

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReadStore) and other._space == self._space

    def __hash__(self) -> int:
        return hash(self._space)

    def __reduce__(self) -> tuple[object, ...]:
        return ReadStore, (self._space,)

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """An object, or a part of it."""
        # In a thread: it may wait for a server, and zarr's loop asks for others meanwhile.
        found = await asyncio.to_thread(self._space.get, key, most_of(key) + 1)
        if found is None:
            return None
        refuse_larger(max(found.size, len(found.data)), most_of(key), f"{self._space.address}/{key}")
        refuse_bomb(key, found.data, self._space.address)
        return prototype.buffer.from_bytes(found.data[_part(byte_range, found.size)])

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Parts of objects."""
        return [await self.get(key, prototype, part) for key, part in key_ranges]

    async def exists(self, key: str) -> bool:
        """Whether there is such an object."""
        return await asyncio.to_thread(self._space.version, key) is not None

    async def set(self, key: str, value: Buffer) -> None:  # noqa: ARG002
        """Refuse."""
        raise self._space.refusal()

    async def delete(self, key: str) -> None:  # noqa: ARG002
        """Refuse."""
        raise self._space.refusal()

    async def list(self) -> AsyncIterator[str]:
        """All keys."""
        for key in self._space.list():
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Keys that begin with a prefix."""
        for key in self._space.list(prefix):
            yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Names directly below a folder."""
        begin = f"{prefix.rstrip('/')}/" if prefix.rstrip("/") else ""
        names = {key.removeprefix(begin).partition("/")[0] for key in self._space.list(begin)}
        for name in sorted(names):
            yield name


def _part(byte_range: ByteRequest | None, size: int) -> slice:
    if byte_range is None:
        return slice(None)
    if isinstance(byte_range, RangeByteRequest):
        return slice(byte_range.start, byte_range.end)
    if isinstance(byte_range, OffsetByteRequest):
        return slice(byte_range.offset, None)
    return slice(max(0, size - byte_range.suffix), None)
