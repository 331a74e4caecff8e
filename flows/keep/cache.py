"""Looks after a cache: what it holds, whether it is sound, and how to shrink, copy or fill it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.flows.errors import SweepError
from evalcube.flows.events import Announcer, Subscriber
from evalcube.flows.plan.evaluations import judge_keys
from evalcube.flows.plan.requests import planned_requests
from evalcube.flows.plan.targets import SampleTargets
from evalcube.flows.read.outputs import check_output
from evalcube.flows.read.reader import Reader
from evalcube.storage.cache.archive import open_archive, read_archive, write_archive
from evalcube.storage.cache.cache import Cache, EntryInfo, ManagedCache, open_cache
from evalcube.storage.cache.contract import Contexts, batches, decode
from evalcube.storage.cube.cube import Cube
from evalcube.storage.errors import guarded
from evalcube.storage.files import replaced

_REMOVED_AT_ONCE = 100_000
"""A directory writes all packs anew each time."""
_SHOWN = 20


@dataclass(frozen=True)
class CacheCheck:
    """What reading every entry found."""

    entries: int
    """Entries that were read."""
    bytes: int
    damaged: int
    """Entries that do not pass their check."""
    repaired: int
    """Damaged ones that were moved away; the next sweep asks for them again."""
    keys: Sequence[str]
    """The first damaged ones."""


@dataclass(frozen=True)
class CollectedEntries:
    """What no cube references."""

    entries: int
    """All entries."""
    unreferenced: int
    bytes: int
    """Size of the unreferenced ones."""
    temporaries: int
    """Files that killed writers left in the cache and in the cubes."""
    referenced: int
    """Different requests of the cubes that were to be kept."""
    missing: int
    """Those of them that the cache does not answer."""
    in_use: int
    """Unreferenced entries that stay, since other processes write the packs that they are in."""
    deleted: bool


@dataclass(frozen=True)
class Transfer:
    """What went into a file, or came out of one."""

    entries: int
    new: int
    """Entries that the cache did not have before; of an export, 0."""
    skipped: int
    """Damaged entries that were left out of an export."""
    missing: int
    """Requests of the chosen cube that the cache does not answer."""


def stats(url: str) -> dict[str, Any]:
    """What a cache holds, as JSON values."""
    with closing(open_cache(url, writable=False)) as cache:
        return {"cache": url, **asdict(cache.stats())}


def verify(url: str, *, repair: bool = False, subscribers: Sequence[Subscriber] = ()) -> CacheCheck:
    """Read every entry and check it."""
    announcer, entries, size, damaged, repaired = Announcer(subscribers), 0, 0, 0, 0
    bad: list[str] = []
    with closing(open_cache(url, writable=repair)) as cache:
        contents = _read_entries(cache, cache.entries())
        for key, content, sound in announcer.count_each(contents, "entries read"):
            entries, size = entries + 1, size + len(content)
            if not sound:
                damaged += 1
                repaired += repair and cache.quarantine(key)
                if len(bad) < _SHOWN:
                    bad.append(key)
    return CacheCheck(entries, size, damaged, repaired, tuple(bad))


def collect(
    url: str, cubes: Sequence[str], *, delete: bool = False, subscribers: Sequence[Subscriber] = ()
) -> CollectedEntries:
    """Find, or delete, the entries that none of the cubes references, and what killed writers left.

    Entries that were stored after the call began are never touched, where the store knows which these are.
    """
    if not cubes:
        raise SweepError(
            "no cube is to be kept, so that all entries would go", "Name each cube to keep with `cubes`"
        )
    announcer, entries, unreferenced, size, in_use = Announcer(subscribers), 0, 0, 0, 0
    gone: list[str] = []
    with closing(open_cache(url, writable=delete)) as cache:
        # Before the cubes are read: what a sweep stores from now on is no part of it, whatever its clock says.
        listing = cache.entries(there_now=delete)
        references = References.of(cubes, announcer, cache)
        for batch in batches(listing, lambda info: info.size):
            for info, keep in zip(batch, references.mark([info.key for info in batch]), strict=True):
                if not keep:
                    unreferenced, size = unreferenced + 1, size + info.size
                    gone += [info.key] if delete else []
            if len(gone) >= _REMOVED_AT_ONCE:
                in_use += cache.remove(gone)
                gone.clear()
            entries += len(batch)
            announcer.count("entries looked at", entries)
        in_use += cache.remove(gone) if gone else 0
        temporaries = cache.sweep(delete=delete) + sum(_sweep_cube(cube, delete=delete) for cube in cubes)
    requests = (references.total, references.unseen)
    return CollectedEntries(entries, unreferenced, size, temporaries, *requests, in_use, delete)


def export(
    url: str, path: Path, *, cube: str | None = None, subscribers: Sequence[Subscriber] = ()
) -> Transfer:
    """Write all entries of a cache, or those that a cube references, into one file."""
    announcer, target = Announcer(subscribers), check_output(path, "path")
    chosen: References | None = None
    skipped = 0

    def whole(cache: ManagedCache) -> Iterator[tuple[str, bytes]]:
        nonlocal skipped
        contents = _read_entries(cache, _chosen(cache.entries(), chosen))
        for key, content, sound in announcer.count_each(contents, "entries written"):
            if sound:
                yield key, content
            skipped += not sound

    with closing(open_cache(url, writable=False)) as cache, guarded(path, "write the archive"):
        if cube is not None:
            chosen = References.of([cube], announcer, cache)
        target.parent.mkdir(parents=True, exist_ok=True)
        with replaced(target) as file:
            entries = write_archive(file, whole(cache))
    return Transfer(entries, 0, skipped, chosen.unseen if chosen is not None else 0)


def load(url: str, path: Path, *, subscribers: Sequence[Subscriber] = ()) -> Transfer:
    """Add the entries of a file to a cache, except those that it already has."""
    announcer, entries, new = Announcer(subscribers), 0, 0
    with open_archive(path) as file, closing(open_cache(url)) as cache:
        for batch in batches(read_archive(file, path), lambda entry: len(entry[1])):
            new += sum(cache.put_many(batch))
            entries += len(batch)
            announcer.count("entries stored", entries)
    return Transfer(entries, new, 0, 0)


def _sweep_cube(url: str, *, delete: bool) -> int:
    """Count or delete what killed writers left in a cube; one without any may be read-only."""
    leftovers = Cube.open(url).sweep(delete=False)
    return Cube.open(url, writable=True).sweep() if leftovers and delete else leftovers


def _chosen(entries: Iterator[EntryInfo], chosen: References | None) -> Iterator[EntryInfo]:
    if chosen is None:
        yield from entries
        return
    for batch in batches(entries, lambda info: info.size):
        marks = chosen.mark([info.key for info in batch])
        yield from (info for info, wanted in zip(batch, marks, strict=True) if wanted)


def _read_entries(cache: ManagedCache, entries: Iterable[EntryInfo]) -> Iterator[tuple[str, bytes, bool]]:
    """Keys and contents of entries that were not deleted meanwhile, and whether each is sound."""
    contexts = Contexts()
    for batch in batches(entries, lambda info: info.size):
        keys = [info.key for info in batch]
        for key, content in zip(keys, cache.contents(keys), strict=True):
            if content is not None:
                yield key, content, decode(key, content, contexts.decompressor) is not None


class References:
    """The requests of some cubes: whether a key is one of them.

    Keeps 8 bytes of each key, so that ten million take 80 MB. That two keys agree in them happens once in 10¹² or
    more; then an entry too many is kept.
    """

    def __init__(self, heads: Iterable[int]) -> None:
        self._heads: npt.NDArray[np.uint64] = np.unique(np.fromiter(heads, dtype=np.uint64))
        self._seen = np.zeros(len(self._heads), dtype=bool)

    @classmethod
    def of(cls, cubes: Sequence[str], announcer: Announcer, cache: Cache | None = None) -> References:
        """Make the requests of cubes again; see `request_keys`."""
        readers = [Reader(cube) for cube in cubes]  # all are there, before the long part begins
        return cls(_heads(readers, announcer, cache))

    @property
    def total(self) -> int:
        """Different requests."""
        return len(self._heads)

    @property
    def unseen(self) -> int:
        """Requests that no key stood for so far."""
        return int((~self._seen).sum())

    def mark(self, keys: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Tell for each key whether it is a request's, and note that it was seen."""
        if not self.total:
            return np.zeros(len(keys), dtype=bool)
        heads = np.array([_head(key) for key in keys], dtype=np.uint64)
        places = np.minimum(np.searchsorted(self._heads, heads), self.total - 1)
        member: npt.NDArray[np.bool_] = self._heads[places] == heads
        self._seen[places[member]] = True
        return member


def request_keys(reader: Reader, cache: Cache | None = None) -> Iterator[str]:
    """The key of every request that a cube's plan holds, made again from its description.

    What judges were asked depends on the answers, which are looked up in `cache`, by default the sweep's own; about
    an answer that is not there, there are no keys.
    """
    plan, targets = reader.plan, SampleTargets(*reader.cube.read_targets())
    answers = (cache or reader.cache()) if plan.judges else None
    for request in planned_requests(plan, targets, range(len(plan.evaluations))):
        yield request.digest
        if answers is not None and request.rubric:
            yield from judge_keys(plan.judges, request.rubric, request.trial, answers.get(request.digest))


def _heads(readers: Sequence[Reader], announcer: Announcer, cache: Cache | None) -> Iterator[int]:
    keys = (key for reader in readers for key in request_keys(reader, cache))
    return map(_head, announcer.count_each(keys, "requests made again"))


def _head(key: str) -> int:
    return int(key[:16], 16)
