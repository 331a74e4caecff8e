"""The locations of all known records, found by key.

For each record there are 16 bytes: the first 8 of its key and its location, in a few sorted arrays; the newest records
are in a dictionary. Large arrays are in files without a name that are mapped, so that a cache of a hundred million
replies takes no memory that the system cannot have back. When several packs have a key, the one whose name sorts first,
which is the oldest, is the one that every reader takes.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evalcube.storage.cache.packs import OpenFile, heads_of, salt_of

Heads = npt.NDArray[np.uint64]
Part = tuple[Heads, Heads]
"""Heads of keys, and the locations of their records."""

_OFFSET_BITS = 40
_OFFSET_MASK = (1 << _OFFSET_BITS) - 1
_RECENT = 8192
"""Records in the dictionary that become a table."""
_GROWTH = 4
"""Times as large as what comes a table may be to be joined with it, so that each record is copied a few times only."""
MOST_ROWS = 1 << 22
"""Of a table in memory, 64 MB; one that has as many is mapped, and does not grow any more."""


@dataclass(eq=False, slots=True)
class Pack:
    """What is known of a pack."""

    token: str
    number: int
    salt: int
    own: bool = False
    """This object writes it, or has written it."""
    indexed: bool = False
    """It has an index that covers all of it, so that nothing more comes."""
    seen: int = 0
    """Up to where its records are known."""
    checked_size: int = -1
    """Its size when it was last asked whether its writer is gone."""
    handle: OpenFile | None = None


class Location(NamedTuple):
    """Where a record is."""

    pack: Pack
    offset: int


@dataclass(slots=True)
class KeyIndex:
    """All that is known, until a pack is gone: then it is made anew."""

    packs: list[Pack] = field(default_factory=list)
    tokens: dict[str, Pack] = field(default_factory=dict)
    tables: tuple[Part, ...] = ()
    """Sorted heads of keys with the locations of their records."""
    recent: dict[bytes, tuple[int, ...]] = field(default_factory=dict)

    def pack(self, token: str) -> Pack:
        """The pack of a name, new or known."""
        known_pack = self.tokens.get(token)
        if known_pack is None:
            known_pack = self.tokens[token] = Pack(token, len(self.packs), salt_of(token))
            self.packs.append(known_pack)
        return known_pack

    def rows(self, pack: Pack, keys: npt.NDArray[np.uint8], offsets: Heads) -> Part:
        """What to `push` for records of a pack."""
        return heads_of(keys), offsets | self.base(pack)

    def base(self, pack: Pack) -> np.uint64:
        """What locations in a pack begin with."""
        return np.uint64(pack.number << _OFFSET_BITS)

    def add(self, pack: Pack, key: bytes, offset: int) -> None:
        """Take a record."""
        location = pack.number << _OFFSET_BITS | offset
        self.recent[key] = (*self.recent.get(key, ()), location)
        if len(self.recent) > _RECENT:
            rows = [(key, location) for key, locations in self.recent.items() for location in locations]
            keys = np.frombuffer(b"".join(key for key, _ in rows), np.uint8).reshape(-1, 32)
            self.push([(heads_of(keys), np.array([location for _, location in rows], np.uint64))])
            # After the push, and a new one: who reads at this moment finds a record twice rather than not at all.
            self.recent = {}

    def push(self, parts: Sequence[Part]) -> None:
        """Take many records; tables of similar size become one, so that there are few."""
        parts, tables = [part for part in parts if len(part[0])], list(self.tables)
        if not parts:
            return
        size = sum(len(part[0]) for part in parts)
        while tables and len(tables[-1][0]) < min(_GROWTH * size, MOST_ROWS):
            parts.append(tables.pop())
            size += len(parts[-1][0])
        heads, locations = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.argsort(heads, kind="stable")
        # One assignment of a new tuple: a reader in another thread goes on with the tables that it has.
        table = heads[order], locations[order]
        self.tables = (*tables, table if size < MOST_ROWS else _map_table(table))

    def _sort_locations(self, locations: Iterable[int]) -> list[Location]:
        records = [
            Location(self.packs[location >> _OFFSET_BITS], location & _OFFSET_MASK) for location in locations
        ]
        if len(records) > 1:
            records.sort(key=lambda location: (location.pack.token, location.offset))
        return records

    def find(self, key: bytes) -> list[Location]:
        """Records that may be the key's, the one to take first; of those that are known."""
        # In this order, since no lock is taken: a record moves from the dictionary to the tables, never back.
        matches = list(self.recent.get(key, ()))
        head = int.from_bytes(key[:8])
        for heads, locations in self.tables:
            rows = len(heads)
            # Numpy lets other threads go on meanwhile, and whoever stores replies would wait for them each time; at
            # what is mapped they should, as that may wait for the disk.
            mapped = rows >= MOST_ROWS
            row = int(heads.searchsorted(np.uint64(head))) if mapped else bisect_left(heads.data, head)
            while row < rows and heads.item(row) == head:
                matches.append(locations.item(row))
                row += 1
        return self._sort_locations(matches) if matches else []

    def find_many(self, keys: bytes) -> dict[int, list[Location]]:
        """`find` for many keys, given one behind another: what is found, by their number."""
        matches: dict[int, list[int]] = {}
        recent, count = self.recent, len(keys) // 32
        if recent:
            for number in range(count):
                recent_locations = recent.get(keys[32 * number : 32 * number + 32])
                if recent_locations:
                    matches[number] = list(recent_locations)
        wanted = heads_of(np.frombuffer(keys, np.uint8).reshape(-1, 32))
        for heads, locations in self.tables:
            rows = np.searchsorted(heads, wanted)
            hits = np.flatnonzero(heads[np.minimum(rows, len(heads) - 1)] == wanted)
            for number in hits.tolist():
                row = int(rows[number])
                while row < len(heads) and heads[row] == wanted[number]:
                    matches.setdefault(number, []).append(int(locations[row]))
                    row += 1
        return {number: self._sort_locations(locations) for number, locations in matches.items()}


def _map_table(table: Part) -> Part:
    """The same in a file without a name; as it is, where no file can be written."""
    # A file of this process alone: nobody can cut short what is mapped.
    with suppress(OSError), tempfile.TemporaryFile(prefix="evalcube-index-") as file:
        for column in table:
            file.write(column.data)
        file.flush()
        rows = len(table[0])
        heads, locations = (np.memmap(file, np.uint64, "r", 8 * rows * at, (rows,)) for at in (0, 1))
        return heads, locations
    return table
