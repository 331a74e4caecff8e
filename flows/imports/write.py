"""Writes what was imported: data files, replies in the cache, and a cube with all that a run writes into one.

Regions are made from the cache by the code that heals a cube, so that what is imported is what would be healed.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.flows.errors import SweepError
from evalcube.flows.imports.collect import REPLIED, Collection, TaskKey
from evalcube.flows.imports.plan import data_params
from evalcube.flows.plan.blocks import Window, window_of
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.recording import count_model, grader_of, receipt_of
from evalcube.flows.plan.regrade import regrade
from evalcube.flows.plan.requests import trial_request
from evalcube.flows.plan.store import SweepStore
from evalcube.flows.plan.targets import SampleTargets
from evalcube.stages.generate.dataset import DatasetParams
from evalcube.stages.generate.novelty import repeated
from evalcube.stages.reply.status import LAST_FINISHED, Status
from evalcube.storage.cache.cache import Cache
from evalcube.storage.cube.ledger import Ledger, Receipt
from evalcube.storage.cube.regions import Region
from evalcube.storage.cube.schema import DUPLICATE
from evalcube.storage.errors import guarded
from evalcube.storage.files import make_directory, share

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
                make_directory(folder)
                beside = path.with_suffix(".tmp")
                with beside.open("wb") as file:
                    share(beside, file.fileno())
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
                "Give this import a cache of its own with `cache`, or its model another name with `model`",
            )
    return sum(new)


@dataclass(frozen=True)
class Answers:
    """Where in a cube the answers of logs belong: whatever else it has, evaluations and cells are found by identity."""

    table: npt.NDArray[np.int64]
    """One line for each: evaluation, task, slot, trial, repeat, and `REPLIED` or the number of the cause."""
    causes: Sequence[str]

    @classmethod
    def of(cls, collection: Collection, table: npt.NDArray[np.int64], own: Plan, cube: Plan) -> Answers:
        """The answers of a table whose places are those of its own plan.

        Parameters
        ----------
        collection
            What was collected.
        table
            See `Collection.table`.
        own
            Plan of what was collected.
        cube
            Plan of the cube, which has all of that, and may have more.
        """
        rows = {evaluation.eval_id: place for place, evaluation in enumerate(cube.evaluations)}
        cells = {
            (task.label, planned.cell.id): (place, slot)
            for place, task in enumerate(cube.tasks)
            for slot, planned in enumerate(task.cells)
        }
        models = np.array([rows[evaluation.eval_id] for evaluation in own.evaluations])
        places = np.array([cells[task.label, task.cells[0].cell.id] for task in own.tasks])
        found = np.column_stack([models[table[:, 0]], places[table[:, 1]], table[:, 2:]])
        return cls(found, list(collection.causes))

    @cached_property
    def _by_model(self) -> dict[int, npt.NDArray[np.int64]]:
        models = self.table[:, 0]
        return {int(model): self.table[models == model] for model in np.unique(models)}

    def targets(self, plan: Plan) -> SampleTargets:
        """How far each cell is measured, in the shape of the cube's plan."""
        reach = np.zeros((2, len(plan.evaluations), *plan.sources.shape), dtype=np.int32)
        cells = tuple(self.table[:, :3].T)
        np.maximum.at(reach[0], cells, self.table[:, 3] + 1)
        np.maximum.at(reach[1], cells, self.table[:, 4] + 1)
        return SampleTargets(reach[0], reach[1])

    def within(self, window: Window) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, int]]:
        """Which trials of a window have replies, which have failed, each in the window's shape, and the causes.

        Tasks and points that the cube has not grown to have no place in a window of it.
        """
        table = self._by_model[window.region.model]
        places = table[:, 1:5] - (0, 0, window.first_trial, window.first_repeat)
        inside = ((places >= 0) & (places < window.shape)).all(axis=1)
        places = places[inside]
        causes = table[inside, 5]
        found = np.zeros((2, *window.shape), dtype=bool)
        for kind, which in enumerate((causes == REPLIED, causes != REPLIED)):
            found[(kind, *places[which].T)] = True
        counts = Counter(self.causes[cause] for cause in causes[causes != REPLIED].tolist())
        return found[0], found[1], dict(counts.most_common(_MOST_CAUSES))


class Writer:
    """Brings a cube to what was imported; for the holder of its lease.

    Parameters
    ----------
    store
        The cube, open for writing, with the targets of what was imported.
    answers
        Where in it the answers belong.
    cache
        Where the replies are.
    """

    def __init__(self, store: SweepStore, answers: Answers, cache: Cache) -> None:
        self._store, self._cube, self._plan = store, store.cube, store.plan
        self._answers, self._cache = answers, cache
        self._ledger = Ledger(self._cube.records)
        self._newest = self._ledger.newest()

    def write(self) -> int:
        """Write what is new, with receipts, flags of repeated prompts and counters; the number of regions written.

        Raises
        ------
        SweepError
            If the cube has other answers, before anything is written.
        """
        models = sorted(set(self._answers.table[:, 0].tolist()))
        regions = [region for model in models for region in self._store.regions(model)]
        for region in regions:
            if region in self._newest:
                self._refuse_others(region)
        self._store.grow()
        self._store.relabel()
        self._compare_prompts()
        written = [region for region in regions if self._write(region)]
        stale = {region.model for region in written} | set(self._store.stale())
        if stale:
            self._cube.write_counters({model: self._counters(model) for model in sorted(stale)})
        self._ledger.close()
        return len(written)

    @property
    def _planned(self) -> SampleTargets:
        return self._store.planned

    def _refuse_others(self, region: Region) -> None:
        """Refuse answers that are not those which the cube has; for a region that it has."""
        window = window_of(self._cube.sizes, region, self._cube.chunks)
        ours, _, _ = self._answers.within(window)
        stored = self._cube.read_region(region)
        both = ours & (stored["status"] <= LAST_FINISHED)
        made = self._made(window, both)
        for name, array in made.items():
            if name != "latency" and not np.array_equal(array[both], stored[name][both], equal_nan=True):
                raise SweepError(
                    f"cube '{self._cube.url}' has other answers of "
                    f"{self._plan.evaluations[region.model].model} to the same questions",
                    "Give the model of this import another name with `model`",
                )

    def _made(self, window: Window, which: npt.NDArray[np.bool_]) -> dict[str, Array]:
        """Some trials of a region from the replies in the cache."""
        pretended = receipt_of(window, 0, which, np.full(window.shape, Status.MISSING), "", {})
        return regrade(self._plan, window, which, pretended, self._cache, (0.0, 0.0), None).arrays

    def _write(self, region: Region) -> bool:
        """Write one region, unless it is there already; what the cube has stays."""
        window = window_of(self._cube.sizes, region, self._cube.chunks)
        ours, failed, causes = self._answers.within(window)
        planned = self._planned.mask(window)
        before = self._newest.get(region)
        if not planned.any() or (before is None and not (ours | failed).any()):
            return False
        arrays = self._made(window, ours)
        if before is not None:
            stored = self._cube.read_region(region)
            keep = ~ours | (stored["status"] <= LAST_FINISHED)
            for name, values in stored.items():
                arrays[name][keep] = values[keep]
        status = arrays["status"]
        status[failed & (status > LAST_FINISHED)] = Status.TRANSPORT
        if before is not None and self._is_same(before, window, arrays, int(planned.sum())):
            return False
        digest = self._cube.write_region(region, arrays)
        receipt = receipt_of(
            window,
            0 if before is None else before.generation + 1,
            planned,
            status,
            digest,
            causes if before is None else {**before.causes, **causes},
            self._cube.shape_number,
            grader_of(self._plan.evaluations[region.model]),
        )
        self._ledger.append(receipt)
        self._newest[region] = receipt
        return True

    def _is_same(self, before: Receipt, window: Window, arrays: Mapping[str, Array], planned: int) -> bool:
        """Whether the cube has just this region already, as its receipt says and in each bit."""
        size = (before.trials, before.repeats) == window.shape[2:]
        if not size or before.planned != planned or self._cube.chunk_problems(window.region):
            return False
        stored = self._cube.read_region(window.region)
        return all(stored[name].tobytes() == array.tobytes() for name, array in arrays.items())

    def _compare_prompts(self) -> None:
        """Find out which questions of the tasks of the logs occurred before in their cell."""
        sizes = self._cube.sizes
        planned = self._planned.trials.max(axis=0)
        known = self._cube.read_duplicates()
        for row in sorted(set(self._answers.table[:, 1].tolist())):
            flags = np.full((sizes["params"], sizes["trial"]), DUPLICATE.fill, dtype=DUPLICATE.dtype)
            for slot, entry in enumerate(self._plan.tasks[row].cells):
                count = int(planned[row, slot])
                flags[slot, :count] = repeated(entry.cell.trial(i).prompt for i in range(count))
            if (flags != known[row]).any():
                self._cube.write_duplicates(row, flags)

    def _counters(self, model: int) -> npt.NDArray[np.float64]:
        regions = [region for region in self._newest if region.model == model]
        return count_model(self._cube, regions, self._planned, self._plan.prices[model])
