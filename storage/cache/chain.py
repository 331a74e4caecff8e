"""Several caches read as one: a user's own, and those that came along with somebody else's cube."""

from __future__ import annotations

from collections.abc import Sequence

from evalcube.storage.cache.contract import Cache


class ChainedCache:
    """A `storage.cache.contract.Cache`: the first one that has a key counts. What is put goes into the first one.

    Parameters
    ----------
    caches
        At least one.
    """

    def __init__(self, caches: Sequence[Cache]) -> None:
        self.caches = tuple(caches)
        """In the order in which they are asked."""
        self._first = self.caches[0]

    @property
    def damaged(self) -> int:
        """Entries that were found damaged."""
        return sum(cache.damaged for cache in self.caches)

    def get(self, key: str) -> bytes | None:
        """Value of a key; None if it is absent or damaged everywhere."""
        return self.get_many([key])[0]

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """`get` for many keys."""
        found: dict[str, bytes] = {}
        for cache in self.caches:
            lacking = [key for key in keys if key not in found]
            values = cache.get_many(lacking) if lacking else []
            found.update(
                {key: value for key, value in zip(lacking, values, strict=True) if value is not None}
            )
        return [found.get(key) for key in keys]

    def put(self, key: str, value: bytes) -> bool:
        """Take a value if its key is absent."""
        return self._first.put(key, value)

    def commit(self) -> None:
        """Make durable what was put."""
        self._first.commit()

    def put_many(self, items: Sequence[tuple[str, bytes]]) -> list[bool]:
        """Put all values and commit."""
        return self._first.put_many(items)

    def close(self) -> None:
        """Close all of them."""
        for cache in self.caches:
            cache.close()
