"""Packs the replies of a copy beside it, evaluation by evaluation, and puts packed ones into a cache."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice

from evalcube.flows.events import Announcer
from evalcube.flows.plan.evaluations import judge_keys
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.requests import PlannedRequest, planned_requests
from evalcube.flows.plan.targets import SampleTargets
from evalcube.flows.share.publish.record import REPLIES, Packed
from evalcube.storage.cache.archive import read_archive, write_archive
from evalcube.storage.cache.cache import ManagedCache, open_cache
from evalcube.storage.cache.contract import Contexts, decode
from evalcube.storage.cube.layout import SIDE
from evalcube.storage.cube.space import Space

_ARCHIVE_BYTES = 32 * 2**20
"""Of entries in one archive: so many are in memory at a time."""
_BATCH = 512


@dataclass(frozen=True)
class PackedReplies:
    """What was packed."""

    archives: list[Packed]
    missing: int
    """Requests that no cache answers."""

    @property
    def entries(self) -> int:
        """Replies in all archives."""
        return sum(one.entries for one in self.archives)


def pack_replies(
    space: Space,
    plan: Plan,
    targets: SampleTargets,
    caches: Sequence[ManagedCache],
    look: Callable[[str, bytes], None],
    announcer: Announcer,
) -> PackedReplies:
    """Write the replies to all planned requests of a cube into archives inside of it."""
    archives: list[Packed] = []
    missing = 0
    for model in range(len(plan.evaluations)):
        batch: list[tuple[str, bytes]] = []
        size = number = 0
        for key, content in _contents(plan, targets, model, caches):
            if content is None:
                missing += 1
                continue
            look(key, content[1])
            batch.append((key, content[0]))
            size += len(content[0])
            if size >= _ARCHIVE_BYTES:
                archives.append(_write(space, model, number, batch))
                batch, size, number = [], 0, number + 1
                announcer.count("replies packed", sum(one.entries for one in archives))
        if batch:
            archives.append(_write(space, model, number, batch))
    return PackedReplies(archives, missing)


def _write(space: Space, model: int, number: int, entries: list[tuple[str, bytes]]) -> Packed:
    key = f"{REPLIES}{model:04}-{number:04}.tar.zst"
    file = io.BytesIO()
    count = write_archive(file, entries)
    space.at(SIDE).put(key.removeprefix(f"{SIDE}/"), file.getvalue())
    return Packed(key=key, model=model, entries=count)


def _contents(
    plan: Plan, targets: SampleTargets, model: int, caches: Sequence[ManagedCache]
) -> Iterator[tuple[str, tuple[bytes, bytes] | None]]:
    """Keys of an evaluation's requests, with the entries' content and value; None where no cache has it."""
    contexts = Contexts()
    requests = _distinct(planned_requests(plan, targets, [model]))
    while batch := list(islice(requests, _BATCH)):
        entries = _looked_up([request.digest for request in batch], caches, contexts)
        for request in batch:
            yield request.digest, entries.get(request.digest)
        asked = dict.fromkeys(
            judge_key
            for request in batch
            if request.rubric and request.digest in entries
            for judge_key in judge_keys(
                plan.judges, request.rubric, request.trial, entries[request.digest][1]
            )
        )
        readings = _looked_up(list(asked), caches, contexts)
        for key in asked:
            yield key, readings.get(key)


def _distinct(requests: Iterable[PlannedRequest]) -> Iterator[PlannedRequest]:
    """Yield each request of a cell once: a small cell repeats its questions."""
    cell, seen = "", set[str]()
    for request in requests:
        if request.cell.id != cell:
            cell, seen = request.cell.id, set()
        if request.digest not in seen:
            seen.add(request.digest)
            yield request


def _looked_up(
    keys: list[str], caches: Sequence[ManagedCache], contexts: Contexts
) -> dict[str, tuple[bytes, bytes]]:
    """Content and value of the entries that any of the caches has whole."""
    found: dict[str, tuple[bytes, bytes]] = {}
    for cache in caches:
        lacking = [key for key in keys if key not in found]
        for key, content in zip(lacking, cache.contents(lacking) if lacking else (), strict=True):
            value = None if content is None else decode(key, content, contexts.decompressor)
            if content is not None and value is not None:
                found[key] = (content, value)
    return found


def put_replies(archives: Iterator[tuple[str, bytes]], address: str) -> int:
    """Put the entries of archives into a cache, each one verified; returns their number."""
    count = 0
    with closing(open_cache(address)) as cache:
        for name, data in archives:
            entries = iter(read_archive(io.BytesIO(data), name))
            while batch := list(islice(entries, _BATCH)):
                cache.put_many(batch)
                count += len(batch)
    return count
