"""Packs written anew: indexed after a crash, merged into fewer, or without some of their entries.

A pack never changes: it is written anew, and deleted once its successor is on disk. All but `recover` want to be
alone: see `Folders.exclusive`. Packs that other processes write are left alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from evalcube.storage.cache.folders import STALE_SECONDS, Folders, sweep_files
from evalcube.storage.cache.packs import (
    PACK_MAGIC,
    Columns,
    OpenFile,
    SealedIndex,
    first_record,
    intact_records,
    make_record,
    new_token,
    records_of,
    salt_of,
    tokens_in,
    write_index,
)
from evalcube.storage.clocks import file_clock, sweep_old_files
from evalcube.storage.files import sync_path, write_all_at
from evalcube.storage.processes import heading, is_abandoned, this_owner

_MERGED_BYTES = 2**30
_MERGED_RECORDS = 2**20
_SMALL_BYTES = 2**28
"""From which on a pack stays as it is: to copy it costs more than to open it."""
_BUFFER = 1 << 22
_MANY = 8
"""Packs of a few runs, from which on they become one: a process opens and reads each."""

Part = tuple[str, Columns]
"""Name of a pack, and the records of it that stay."""


def recover_all(folders: Folders) -> None:
    """Index the packs whose writers are gone."""
    names = folders.names()
    for token in tokens_in(names):
        if f"{token}.idx" not in names:
            recover(folders, token)


def recover(folders: Folders, token: str, *, was_sealed: bool = False) -> None:
    """Index a pack whose process is gone, or delete it if there is nothing in it."""
    try:
        handle = OpenFile(folders.pack(token), os.O_RDWR)
    except (FileNotFoundError, PermissionError):  # done by another process, or another user's
        return
    descriptor = handle.descriptor
    # The lock is kept until the handle goes: of several processes that open the cache after a crash one recovers the
    # pack, and the others take its lock for a writer's and leave it.
    clock = partial(file_clock, folders.temporaries)
    if not was_sealed and not is_abandoned(descriptor, PACK_MAGIC, clock=clock, take=True):
        return
    size = os.fstat(descriptor).st_size
    records = intact_records(descriptor, first_record(descriptor), size, salt_of(token))
    if records:
        # Its writer may have been killed before its last sync: the index must not promise what a power cut takes.
        os.fsync(descriptor)
        write_index(folders.index(token), Columns.of(records), size, folders.temporaries)
    else:
        folders.pack(token).unlink(missing_ok=True)


def remove(folders: Folders, keys: Iterable[bytes], is_corrupt: Callable[[str, int], bool]) -> int:
    """Delete all entries of some keys, and records that are known to be damaged."""
    wanted = set(keys)
    heads = np.array(sorted({int.from_bytes(key[:8]) for key in wanted}), np.uint64)
    left: set[bytes] = set()
    for token, index in _packs(folders, tokens_in(folders.names())):
        if index is None:
            # Its writer would go on appending to a file without a name: the keys are reported instead.
            with suppress(FileNotFoundError):
                left |= wanted.intersection(record.key for record in records_of(folders.pack(token), token))
            continue
        rows = np.flatnonzero(np.isin(index.heads(), heads))
        if not len(rows):
            continue
        columns = index.columns()
        stays = np.ones(len(columns), bool)
        for row in rows.tolist():
            stays[row] = columns.keys[row].tobytes() not in wanted
        if not stays.all():
            _replace(folders, [(token, columns.take(stays).without(partial(is_corrupt, token)))])
    return len(left)


def unindex(folders: Folders, token: str, offset: int) -> None:
    """Have no record at an offset in a pack's index, if it has one."""
    index = SealedIndex.open(folders.index(token))
    if index is not None:
        columns = index.columns()
        stays = columns.offsets != offset
        if not stays.all():
            write_index(folders.index(token), columns.take(stays), index.covered, folders.temporaries)


def join_newest(folders: Folders) -> None:
    """Merge the newest packs once they are many, and with them older ones that are not much larger.

    So each entry is copied a few times at most, however many runs there are.
    """
    tokens, size = list[str](), 0
    for token in reversed(tokens_in(folders.names())):
        more = folders.pack(token).stat().st_size
        if tokens and more > 2 * size:
            break
        tokens, size = [token, *tokens], size + more
    if len(tokens) >= _MANY:
        merge(folders, tokens)


def merge(folders: Folders, tokens: Sequence[str] | None = None) -> None:
    """Make few packs of many small ones, which are among those of some names."""
    group: list[Part] = []
    size = 0
    packs = _packs(folders, tokens_in(folders.names()) if tokens is None else tokens)
    for token, index in chain(packs, [("", None)]):  # one open at a time, however many there are
        covered = index.covered if index is not None else _SMALL_BYTES
        rows = sum(len(columns) for _, columns in group) + (index.count if index is not None else 0)
        ends = covered >= _SMALL_BYTES or size + covered > _MERGED_BYTES or rows > _MERGED_RECORDS
        # A pack that stays where it is must not come between those that become one: the order decides.
        if ends and len(group) > 1:
            _replace(folders, _without_doubles(group))
        if ends:
            group, size = [], 0
        if index is not None and covered < _SMALL_BYTES:
            group.append((token, index.columns()))
            size += covered


def sweep(folders: Folders, *, delete: bool) -> int:
    """Count, or delete, temporary files, and indexes without a pack, that killed writers left."""
    orphans = sweep_old_files(_orphans(folders), folders.temporaries, STALE_SECONDS, delete=delete)
    return orphans + sweep_files(folders.temporaries, delete=delete)


def _orphans(folders: Folders) -> Iterator[Path]:
    names = folders.names()
    for name in sorted(names):
        if name.endswith(".idx") and f"{name[:-4]}.pack" not in names:
            yield folders.packs / name


def _packs(folders: Folders, tokens: Sequence[str]) -> Iterator[tuple[str, SealedIndex | None]]:
    """Packs, with the indexes of those that nobody writes."""
    for token in tokens:
        index = SealedIndex.open(folders.index(token))
        # One that was taken for abandoned may be written all the same: on a mount without locks, or after a week.
        grows = index is not None and folders.pack(token).stat().st_size > index.covered
        yield token, None if grows else index


def first_rows(parts: Sequence[Columns]) -> npt.NDArray[np.intp]:
    """Rows of joined columns by key; of equal keys the first in the order of the parts, and of their offsets."""
    joined = Columns.concatenate(parts)
    ranks = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    whole = np.ascontiguousarray(joined.keys).view("S32")[:, 0]
    order = np.lexsort((joined.offsets, ranks, whole))
    first = np.ones(len(order), bool)
    first[1:] = whole[order][1:] != whole[order][:-1]
    return order[first]


def _without_doubles(parts: list[Part]) -> list[Part]:
    """Of records with equal keys, the one that readers take: the first."""
    columns = [part for _, part in parts]
    stays = np.zeros(sum(map(len, columns)), bool)
    stays[first_rows(columns)] = True
    each = np.split(stays, np.cumsum([len(part) for part in columns])[:-1])
    return [(token, part.take(rows)) for (token, part), rows in zip(parts, each, strict=True)]


def _replace(folders: Folders, parts: list[Part]) -> None:
    """Write the records that stay into one new pack, which sorts where the first one did; delete the others.

    Killed at any point, it leaves all records in at least one pack that has an index. Where both packs are left, they
    hold equal records, and the next merge drops the doubles.
    """
    if any(len(columns) for _, columns in parts):
        token = new_token(like=parts[0][0])
        temporary = folders.temporaries / f"{token}.pack"
        try:
            columns, size = _copy(folders, parts, token, temporary)
            # The index first: a pack without one would be taken for one that a process writes, or has left.
            write_index(folders.index(token), columns, size, folders.temporaries)
            temporary.replace(folders.pack(token))
        except BaseException:
            for path in (temporary, folders.index(token)):
                with suppress(OSError):
                    path.unlink()
            raise
        # The new names are on disk before the old ones go.
        sync_path(folders.packs)
    for token, _ in parts:
        # In this order: a pack without an index would be taken for one that a killed process left.
        folders.pack(token).unlink(missing_ok=True)
        folders.index(token).unlink(missing_ok=True)


def _copy(folders: Folders, parts: list[Part], token: str, to: Path) -> tuple[Columns, int]:
    """Write a pack and return its records and its size."""
    salt, out = salt_of(token), OpenFile(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    buffer = bytearray(heading(PACK_MAGIC, this_owner()))
    size, offsets, taken = len(buffer), [], []
    for source, unordered in parts:
        handle = OpenFile(folders.pack(source))
        columns = unordered.take(np.argsort(unordered.offsets))  # in the order of the file
        for key, content, when in columns.contents(handle.descriptor):
            record = make_record(key, content, when, salt)
            offsets.append(size)
            size += len(record)
            buffer += record
            if len(buffer) > _BUFFER:
                write_all_at(out.descriptor, bytes(buffer), size - len(buffer))
                buffer.clear()
        taken.append(columns)
    write_all_at(out.descriptor, bytes(buffer), size - len(buffer))
    # Damaged contents are copied as they are: whoever reads them finds out.
    os.fsync(out.descriptor)
    return replace(Columns.concatenate(taken), offsets=np.array(offsets, np.uint64)), size
