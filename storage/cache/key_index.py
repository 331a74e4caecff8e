"""Places of records in; those of a key out, from memory.

In memory are 16 bytes for each record: the first 8 of its key and its place, in a few sorted arrays; of the
newest records, a dictionary. When several packs have a key, the one whose name sorts first, which is the
oldest, is the one that every reader takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from storage.cache.packs import Handle, salt_of
from storage.cache.sealed_index import heads_of

Heads = npt.NDArray[np.uint64]
Part = tuple[Heads, Heads]
"""Heads of keys, and the places of their records."""

_PLACE_BITS = 40
_PLACE = (1 << _PLACE_BITS) - 1
_RECENT = 8192
_GROWTH = 4


@dataclass(eq=False, slots=True)
class Pack:
    """What is known of a pack."""

    token: str
    number: int
    salt: int
    own: bool = False
    """This object writes it, or has written it."""
    indexed: bool = False
    seen: int = 0
    """Up to where its records are known."""
    judged: int = -1
    """Its size when its owner was last asked after."""
    handle: Handle | None = None


class Place(NamedTuple):
    """Where a record is."""

    pack: Pack
    offset: int


@dataclass(slots=True)
class Catalog:
    """All that is known, until a pack is gone: then it is made anew."""

    packs: list[Pack] = field(default_factory=list)
    tokens: dict[str, Pack] = field(default_factory=dict)
    tables: tuple[Part, ...] = ()
    """Sorted heads of keys with the places of their records."""
    recent: dict[bytes, tuple[int, ...]] = field(default_factory=dict)

    def pack(self, token: str) -> Pack:
        """The pack of a name, new or known."""
        found = self.tokens.get(token)
        if found is None:
            found = self.tokens[token] = Pack(token, len(self.packs), salt_of(token))
            self.packs.append(found)
        return found

    def rows(self, pack: Pack, keys: npt.NDArray[np.uint8], offsets: Heads) -> Part:
        """What to `push` for records of a pack."""
        return heads_of(keys), offsets | self.base(pack)

    def base(self, pack: Pack) -> np.uint64:
        """What places in a pack begin with."""
        return np.uint64(pack.number << _PLACE_BITS)

    def add(self, pack: Pack, key: bytes, offset: int) -> None:
        """Take a record."""
        place = pack.number << _PLACE_BITS | offset
        self.recent[key] = (*self.recent.get(key, ()), place)
        if len(self.recent) > _RECENT:
            rows = [(key, place) for key, places in self.recent.items() for place in places]
            keys = np.frombuffer(b"".join(key for key, _ in rows), np.uint8).reshape(-1, 32)
            self.push([(heads_of(keys), np.array([place for _, place in rows], np.uint64))])
            self.recent = {}

    def push(self, parts: Sequence[Part]) -> None:
        """Take many records; tables of similar size become one, so that there are few."""
        parts, tables = [part for part in parts if len(part[0])], list(self.tables)
        if not parts:
            return
        size = sum(len(part[0]) for part in parts)
        while tables and len(tables[-1][0]) < _GROWTH * size:
            parts.append(tables.pop())
            size += len(parts[-1][0])
        heads, places = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.argsort(heads, kind="stable")
        self.tables = (*tables, (heads[order], places[order]))

    def _sorted(self, places: Iterable[int]) -> list[Place]:
        found = [Place(self.packs[place >> _PLACE_BITS], place & _PLACE) for place in places]
        if len(found) > 1:
            found.sort(key=lambda place: (place.pack.token, place.offset))
        return found

    def find(self, key: bytes) -> list[Place]:
        """Records that may be the key's, the one to take first; of those that are known."""
        # In this order: what leaves the first is in the second by then.
        found = list(self.recent.get(key, ()))
        head = int.from_bytes(key[:8])
        wanted = np.uint64(head)
        for heads, places in self.tables:
            row, rows = int(heads.searchsorted(wanted)), len(heads)
            while row < rows and heads.item(row) == head:
                found.append(places.item(row))
                row += 1
        return self._sorted(found) if found else []

    def find_many(self, keys: bytes) -> dict[int, list[Place]]:
        """`find` for many keys, given one behind another: what is found, by their number."""
        found: dict[int, list[int]] = {}
        recent, count = self.recent, len(keys) // 32
        if recent:
            for number in range(count):
                known = recent.get(keys[32 * number : 32 * number + 32])
                if known:
                    found[number] = list(known)
        wanted = heads_of(np.frombuffer(keys, np.uint8).reshape(-1, 32))
        for heads, places in self.tables:
            rows = np.searchsorted(heads, wanted)
            hits = np.flatnonzero(heads[np.minimum(rows, len(heads) - 1)] == wanted)
            for number in hits.tolist():
                row = int(rows[number])
                while row < len(heads) and heads[row] == wanted[number]:
                    found.setdefault(number, []).append(int(places[row]))
                    row += 1
        return {number: self._sorted(places) for number, places in found.items()}
