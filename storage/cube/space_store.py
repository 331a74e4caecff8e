"""Zarr's store of a space, with its bounds and errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Self

from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, Store

from evalcube.storage.cube.bounds import MOST_METADATA, MOST_OBJECT, refuse_bomb, refuse_larger
from evalcube.storage.cube.space import METADATA, Space, Version, When
from evalcube.storage.errors import LeaseLostError

if TYPE_CHECKING:
    from zarr.core.buffer import Buffer, BufferPrototype


class SpaceStore(Store):
    """The objects of a space, as zarr reads and writes them; it is pickled without any connection.

    Parameters
    ----------
    space
        The space.
    read_only
        Whether zarr may not write.
    """

    supports_writes = True
    supports_deletes = True
    supports_listing = True

    def __init__(self, space: Space, *, read_only: bool = False) -> None:
        super().__init__(read_only=read_only)
        self._space = space
        self._expected: dict[str, Version | None] = {}
        self.texts: frozenset[str] = frozenset()  # names of the arrays whose chunks are texts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SpaceStore) and other._space == self._space

    def __hash__(self) -> int:
        return hash(self._space)

    def __reduce__(self) -> tuple[object, ...]:
        return _store, (self._space, self.read_only)

    def with_read_only(self, read_only: bool = False) -> Self:
        """The same store, to be read only or written, too."""
        same = type(self)(self._space, read_only=read_only)
        same.texts = self.texts
        return same

    def expect(self, versions: Mapping[str, Version | None]) -> None:
        """Put each of these objects, the next time, only over its version, or where there is none."""
        self._expected.update(versions)

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """An object, or a part of it."""
        # In a thread: it may wait for a server, and zarr's loop asks for others meanwhile.
        # A space refuses by itself, before it reads any of it, what is larger than any object.
        most = MOST_METADATA if key.endswith(METADATA) else None
        stored = await asyncio.to_thread(self._space.get, key, most)
        if stored is None:
            return None
        refuse_larger(max(stored.size, len(stored.data)), most or MOST_OBJECT, f"{self._space.address}/{key}")
        refuse_bomb(key, stored.data, self._space.address, texts=key.partition("/")[0] in self.texts)
        return prototype.buffer.from_bytes(stored.data[_part(byte_range, stored.size)])

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Parts of objects."""
        return [await self.get(key, prototype, part) for key, part in key_ranges]

    async def exists(self, key: str) -> bool:
        """Whether there is such an object."""
        return await asyncio.to_thread(self._space.version, key) is not None

    async def set(self, key: str, value: Buffer) -> None:
        """Store an object, unless somebody else has done so since `expect`."""
        self._check_writable()
        when = (self._expected.pop(key) or When.ABSENT) if key in self._expected else When.ALWAYS
        put = partial(self._space.put, key, value.to_bytes(), when=when, durable=False)
        # In this thread where a file is written: those are small, and another thread costs more.
        if (await asyncio.to_thread(put) if self._space.is_trusted else put()) is None:
            problem = f"another process has written {key} since the lease was asked for"
            raise LeaseLostError(problem, self._space.address, "Let it finish, then run again.")

    async def delete(self, key: str) -> None:
        """Delete an object, if it is there."""
        self._check_writable()
        await asyncio.to_thread(self._space.delete, key, durable=False)

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


def _store(space: Space, read_only: bool) -> SpaceStore:
    return SpaceStore(space, read_only=read_only)


def _part(byte_range: ByteRequest | None, size: int) -> slice:
    if byte_range is None:
        return slice(None)
    if isinstance(byte_range, RangeByteRequest):
        return slice(byte_range.start, byte_range.end)
    if isinstance(byte_range, OffsetByteRequest):
        return slice(byte_range.offset, None)
    return slice(max(0, size - byte_range.suffix), None)
