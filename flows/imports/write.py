"""Writes what was imported: data files, replies in the cache, and a cube with all that a run writes into one.

Regions are made from the cache by the code that heals a cube, so that what is imported is what would be healed.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from flows.errors import SweepError
from flows.imports.collect import REPLIED, Collection, TaskKey
from flows.imports.plan import data_params
from flows.plan.blocks import Window, window_of
from flows.plan.evaluations import Evaluation
from flows.plan.plan import Plan
from flows.plan.recording import count_model, grader_of, receipt_of
from flows.plan.regrade import regrade
from flows.plan.requests import trial_request
from flows.plan.store import SweepStore
from flows.plan.targets import SampleTargets
from stages.generate.dataset import DatasetParams
from stages.generate.novelty import repeated
from stages.reply.status import Status
from storage.cache.cache import Cache
from storage.cube.ledger import Ledger, Receipt
from storage.cube.regions import Region
from storage.cube.schema import DUPLICATE
from storage.errors import guarded

Array = npt.NDArray[Any]

_BATCH = 512
"""Replies that are in memory at once."""
_MOST_CAUSES = 4
"""Causes that a receipt names: its line has a limit."""


def write_data(collection: Collection, folder: Path) -> list[DatasetParams]:
    """Write the questions of each task into a file of its own; params of their cells.

    A file's name has its digest, so that no other content is ever replaced.
    """
    found = []
    for place, key in enumerate(collection.tasks):
        digest, rows = hashlib.sha256(), 0
        for line in collection.rows(place):
            digest.update(line + b"\n")
            rows += 1
        path = folder / file_name(key, digest.hexdigest())
        if not path.exists():
            with guarded(path, "write the questions"):
                folder.mkdir(parents=True, exist_ok=True)
                beside = path.with_suffix(".tmp")
                with beside.open("wb") as file:
                    file.writelines(line + b"\n" for line in collection.rows(place))
                beside.replace(path)
        found.append(data_params(key, str(path), digest.hexdigest(), rows))
    return found


def file_name(key: TaskKey, digest: str) -> str:
    """The name of a task's data file; nothing in it is a path, whatever the log calls the task.

    Examples
    --------
    >>> file_name(TaskKey("inspect_ai", "../etc/x", "match"), "ab" * 32)
    'etc-x-abababab.jsonl'
    """
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", key.task).strip("-")[:60]
    return f"{plain or 'task'}-{digest[:8]}.jsonl"


def store_replies(plan: Plan, collection: Collection, table: npt.NDArray[np.int64], cache: Cache) -> int:
    """Put the replies into the cache; the number of those that it did not have.

    Raises
    ------
    SweepError
        If the cache has another reply in the place of one: another import of the same model and task.
    """
    added, batch = 0, list[tuple[str, bytes]]()
    for number, digest in _digests(plan, table):
        record = collection.record(number)
        if record is None:  # `_digests` names replies only
            continue
        batch.append((digest, record))
        if len(batch) >= _BATCH:
            added += _put(cache, batch)
            batch.clear()
    return added + _put(cache, batch)


def _digests(plan: Plan, table: npt.NDArray[np.int64]) -> Iterator[tuple[int, str]]:
    """The numbers of replies in the table, with the digests that they have in the cache, question by question."""
    order = np.lexsort((table[:, 3], table[:, 0], table[:, 2], table[:, 1]))
    last, trial = (-1, -1), None
    for number in order[table[order, 4] == REPLIED].tolist():
        asked, task, row, repeat, _ = table[number].tolist()
        cell = plan.tasks[task].cells[0].cell
        if trial is None or last != (task, row):
            last, trial = (task, row), cell.trial(row)
        yield number, trial_request(plan.evaluations[asked], cell, trial, repeat).digest


def _put(cache: Cache, batch: Sequence[tuple[str, bytes]]) -> int:
    new = cache.put_many(batch)
    there = [item for item, fresh in zip(batch, new, strict=True) if not fresh]
    for (_, ours), theirs in zip(there, cache.get_many([key for key, _ in there]), strict=True):
        if ours != theirs:
            raise SweepError(
                "the cache has other replies of the same model to the same questions, from another import",
                "Give this import a cache of its own with `cache`, or import both logs at once with `as_repeats`",
            )
    return sum(new)


class Writer:
    """Brings a cube to what was imported; for the holder of its lease.

    Parameters
    ----------
    store
        The cube, open for writing, with the targets of what was imported.
    table
        See `Collection.table`.
    cache
        Where the replies are.
    causes
        Why there are no answers, by the number that the table has.
    """

    def __init__(
        self, store: SweepStore, table: npt.NDArray[np.int64], cache: Cache, causes: Sequence[str]
    ) -> None:
        self._store, self._cube, self._plan = store, store.cube, store.plan
        self._table, self._cache, self._causes = table, cache, causes
        self._ledger = Ledger(self._cube.records)
        self._newest = self._ledger.newest()

    def write(self) -> int:
        """Write what is new, with receipts, flags of repeated prompts and counters; the number of regions written."""
        self._store.grow()
        self._store.relabel()
        self._compare_prompts()
        written = set[int]()
        regions = 0
        for model in range(len(self._plan.evaluations)):
            for region in self._store.regions(model):
                if self._write(region):
                    written.add(model)
                    regions += 1
        stale = written | set(self._store.stale())
        if stale:
            self._cube.write_counters({model: self._counters(model) for model in sorted(stale)})
        self._ledger.close()
        return regions

    @property
    def _planned(self) -> SampleTargets:
        return self._store.planned

    def _write(self, region: Region) -> bool:
        """Write one region, unless it is there already."""
        window = window_of(self._cube.sizes, region, self._cube.chunks)
        planned = self._planned.mask(window)
        if not planned.any():
            return False
        before = self._newest.get(region)
        generation = 0 if before is None else before.generation + 1
        stored, causes = self._unanswered(window, before)
        # As a receipt of a region of which any trial may be missing, or have failed: what is stored says which.
        pretended = receipt_of(window, generation, planned, np.full(window.shape, Status.MISSING), "", {})
        pretended = replace(pretended, transport=1)
        made = regrade(self._plan, window, planned, pretended, self._cache, (0.0, 0.0), stored)
        status = made.arrays["status"]
        if before is not None and self._is_same(before, window, made.arrays, int(planned.sum())):
            return False
        digest = self._cube.write_region(region, made.arrays)
        evaluation: Evaluation = self._plan.evaluations[region.model]
        receipt = receipt_of(
            window,
            generation,
            planned,
            status,
            digest,
            causes,
            self._cube.shape_number,
            grader_of(evaluation),
        )
        self._ledger.append(receipt)
        self._newest[region] = receipt
        return True

    def _unanswered(
        self, window: Window, before: Receipt | None
    ) -> tuple[npt.NDArray[np.uint8], dict[str, int]]:
        """The status of trials without a reply, failed where a log or the cube says so, else missing; and causes."""
        status = np.full(window.shape, Status.MISSING, dtype=np.uint8)
        if before is not None:
            known = self._cube.read_region(window.region, ["status"])["status"]
            status[known == Status.TRANSPORT] = Status.TRANSPORT
        table = self._table[(self._table[:, 0] == window.region.model) & (self._table[:, 4] != REPLIED)]
        trial, repeat = table[:, 2] - window.first_trial, table[:, 3] - window.first_repeat
        inside = (trial >= 0) & (trial < window.shape[2]) & (repeat >= 0) & (repeat < window.shape[3])
        status[table[inside, 1], 0, trial[inside], repeat[inside]] = Status.TRANSPORT
        counts = Counter(self._causes[cause] for cause in table[inside, 4].tolist())
        return status, dict(counts.most_common(_MOST_CAUSES))

    def _is_same(self, before: Receipt, window: Window, arrays: Mapping[str, Array], planned: int) -> bool:
        """Whether the cube has just this region already, as its receipt says and in each bit."""
        size = (before.trials, before.repeats) == window.shape[2:]
        if not size or before.planned != planned or self._cube.chunk_problems(window.region):
            return False
        stored = self._cube.read_region(window.region)
        return all(stored[name].tobytes() == array.tobytes() for name, array in arrays.items())

    def _compare_prompts(self) -> None:
        """Find out which questions occurred before in their cell."""
        sizes = self._cube.sizes
        planned = self._planned.trials.max(axis=0)
        known = self._cube.read_duplicates()
        for row, task in enumerate(self._plan.tasks):
            flags = np.full((sizes["params"], sizes["trial"]), DUPLICATE.fill, dtype=DUPLICATE.dtype)
            for slot, entry in enumerate(task.cells):
                count = int(planned[row, slot])
                flags[slot, :count] = repeated(entry.cell.trial(i).prompt for i in range(count))
            if (flags != known[row]).any():
                self._cube.write_duplicates(row, flags)

    def _counters(self, model: int) -> npt.NDArray[np.float64]:
        regions = [region for region in self._newest if region.model == model]
        return count_model(self._cube, regions, self._planned, self._plan.prices[model])
