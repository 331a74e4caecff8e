"""Zarr's store of a directory, which follows no link out of it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from zarr.storage import LocalStore

from evalcube.storage.cube.bounds import most_of, refuse_bomb, refuse_larger
from evalcube.storage.files import inside, make_directory, share

if TYPE_CHECKING:
    from zarr.abc.store import ByteRequest
    from zarr.core.buffer import Buffer, BufferPrototype


class InsideStore(LocalStore):
    """Checks the path of each key before zarr opens, writes or deletes it."""

    def _checked(self, key: str) -> str:
        inside(self.root, self.root / key)
        return key

    def _prepare(self, key: str) -> None:
        """Make a key's folder, which zarr would make without a look at whose it is."""
        make_directory((self.root / self._checked(key)).parent, durable=False)

    def _read(self, key: str) -> str:
        """`_checked`, for a file that is no longer than any may be."""
        with suppress(FileNotFoundError, NotADirectoryError):
            refuse_larger((self.root / self._checked(key)).stat().st_size, most_of(key), self.root / key)
        return key

    def _bounded(self, key: str, value: Buffer | None) -> Buffer | None:
        if value is not None:
            refuse_bomb(key, value.as_numpy_array()[:32].tobytes(), str(self.root))
        return value

    def get_sync(
        self, key: str, *, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """A value, as `LocalStore.get_sync` gives it."""
        return self._bounded(
            key, super().get_sync(self._read(key), prototype=prototype, byte_range=byte_range)
        )

    def set_sync(self, key: str, value: Buffer) -> None:
        """Store a value, as `LocalStore.set_sync` does."""
        self._prepare(key)
        super().set_sync(key, value)
        share(self.root / key)

    def delete_sync(self, key: str) -> None:
        """Delete a value, as `LocalStore.delete_sync` does."""
        super().delete_sync(self._checked(key))

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """A value, as `LocalStore.get` gives it."""
        return self._bounded(key, await super().get(self._read(key), prototype, byte_range))

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Parts of values, as `LocalStore.get_partial_values` gives them."""
        return await super().get_partial_values(
            prototype, [(self._checked(key), part) for key, part in key_ranges]
        )

    async def set(self, key: str, value: Buffer) -> None:
        """Store a value as `LocalStore.set` does, but in this thread: files are small, and another costs more."""
        self.set_sync(key, value)

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        """Store a value where there is none, as `LocalStore.set_if_not_exists` does."""
        self._prepare(key)
        await super().set_if_not_exists(key, value)
        share(self.root / key)

    async def delete(self, key: str) -> None:
        """Delete a value, as `LocalStore.delete` does."""
        await super().delete(self._checked(key))

    async def delete_dir(self, prefix: str) -> None:
        """Delete all below a prefix, as `LocalStore.delete_dir` does."""
        await super().delete_dir(self._checked(prefix))
