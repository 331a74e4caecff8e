"""Writes a part of a cube as a cube of its own, in other chunks: what its receipts and counters say is true of it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.flows.errors import SweepError
from evalcube.flows.plan.blocks import Window, window_of
from evalcube.flows.plan.coordinates import OF_CODE, labels
from evalcube.flows.plan.grading import trial_variables
from evalcube.flows.plan.recording import count_model, receipt_of
from evalcube.flows.plan.row_ids import ROW_ID
from evalcube.flows.plan.spec import description
from evalcube.flows.publish.part import CopiedPart
from evalcube.stages.generate.absent import AbsentTask
from evalcube.stages.reply.status import COUNTERS, QUESTION_COUNTERS
from evalcube.storage.cube.cube import Coordinate, Cube
from evalcube.storage.cube.integrity import recorded_part, stored_problems
from evalcube.storage.cube.ledger import Ledger, Receipt, most_fingerprints
from evalcube.storage.cube.regions import Region
from evalcube.storage.errors import CubeDamagedError

Array = npt.NDArray[Any]

CHUNK_BYTES = 4 * 2**20
"""Of the largest array of a region: few objects for readers, and few megabytes for whoever writes a region anew."""
COUNTER_BYTES = 16 * 2**20
_ITEM_BYTES = 4
_MOST_CAUSES = 8
_LONGEST_CHUNK = 10**7


def reading_chunks(part: CopiedPart, source: Mapping[str, int], wanted: Mapping[str, int]) -> dict[str, int]:
    """Chunk lengths of a copy: whole regions of the source, as many together as make some megabytes.

    Parameters
    ----------
    part
        What is copied.
    source
        Chunk lengths of the source along trial and repeat.
    wanted
        Lengths along model, trial or repeat that somebody asked for.
    """
    plan = part.plan
    most = max(1, CHUNK_BYTES // (_ITEM_BYTES * len(plan.tasks) * plan.slots))
    chunks: dict[str, int] = {}
    for dim, size in (("repeat", plan.repeats), ("trial", plan.trials)):
        step = source[dim]
        room = most // chunks.get("repeat", 1)
        chunks[dim] = step * max(1, min(-(-size // step), room // step))
    cell_bytes = 8 * len(COUNTERS + QUESTION_COUNTERS) * len(plan.tasks) * plan.slots
    together = max(1, min(len(plan.evaluations), COUNTER_BYTES // cell_bytes))
    return {"model": together, **chunks, **wanted}


def read_chunks(texts: Sequence[str]) -> dict[str, int]:
    """Chunk lengths as they are given on the command line.

    Raises
    ------
    SweepError
        If one is no ``NAME=LENGTH``.

    Examples
    --------
    >>> read_chunks(["trial=4096,repeat=1"])
    {'trial': 4096, 'repeat': 1}
    """
    found = {}
    for text in ",".join(texts).split(",") if texts else ():
        name, _, length = text.strip().partition("=")
        known = name in ("model", "trial", "repeat") and length.isdecimal()
        if not known or not 0 < int(length) <= _LONGEST_CHUNK:
            raise SweepError(
                f"`chunks`: '{text}' is no length of a chunk", "Write it like trial=4096,repeat=1,model=25"
            )
        found[name] = int(length)
    return found


def create_copy(
    source: Cube,
    part: CopiedPart,
    url: str,
    chunks: Mapping[str, int],
    attrs: Mapping[str, Any],
    more: Callable[[Cube, list[Receipt]], None],
) -> Cube:
    """Make a cube of a part of another one; others see all of it or nothing.

    Parameters
    ----------
    source
        The cube, which is only read; each region is compared with its receipt.
    part
        What of it.
    url
        Where the copy is made.
    chunks
        Its chunk lengths along model, trial and repeat.
    attrs
        Attributes beside those of the source.
    more
        Writes what else belongs into the copy; gets the copy and its receipts.

    Raises
    ------
    CubeDamagedError
        A region is not what was recorded.
    StorageError
        The source cannot be read, or the copy not be written.
    """
    own = {name: value for name, value in source.attrs.items() if name != "published"}
    coordinates = [*recorded_labels(source, part), *_row_ids(source, part)]
    named = any(coordinate.name == ROW_ID for coordinate in coordinates)
    sizes = {name: size for name, size in part.plan.sizes.items() if named or name != "dataset"}

    def fill(draft: Cube) -> None:
        more(draft, _Copy(source, part, draft).write())

    return Cube.create(
        url,
        sizes=sizes,
        chunks=chunks,
        coordinates=[one for one in coordinates if named or "dataset" not in one.dims],
        counters=(*COUNTERS, *QUESTION_COUNTERS),
        attrs={**own, **description(dict(part.spec)), **attrs},
        layers=list(part.plan.layers),
        fill=fill,
    )


def recorded_labels(source: Cube, part: CopiedPart) -> list[Coordinate]:
    """The labels of a part; of tasks that are not at hand, what only their code tells is as the source has it."""
    found = labels(part.plan)
    absent = [row for row, task in enumerate(part.plan.tasks) if isinstance(task.task, AbsentTask)]
    if not absent:
        return found
    tiers = [str(tier) for tier in source.read_label("tier")]
    kept = [tiers.index(tier) for tier in part.plan.tiers]
    for one in found:
        if one.name not in OF_CODE:
            continue
        stored = source.read_label(one.name)
        stored = stored[kept] if one.name == "in_tier" else stored
        for row in absent:
            slots = part.slots[row]
            one.values[..., row, : len(slots)] = stored[..., part.tasks[row], list(slots)]
    return found


def _row_ids(source: Cube, part: CopiedPart) -> list[Coordinate]:
    """Ids of rows as the source has them: the data set may not be at hand."""
    if not source.has_label(ROW_ID) or not part.plan.named_points:
        return []
    stored = source.read_label(ROW_ID)
    tasks, slots = source.read_label("dataset_task"), source.read_label("dataset_params")
    rows = {(str(task), int(slot)): row for row, (task, slot) in enumerate(zip(tasks, slots, strict=True))}
    places = [
        rows[part.plan.task_names[task], part.slots[task][slot]] for task, slot in part.plan.named_points
    ]
    attrs = {
        "long_name": "id of the row that the trial asks",
        "comment": "Empty beyond the rows of the data set.",
    }
    values = np.array(stored[places][:, : part.plan.trials], dtype=object)
    return [Coordinate(ROW_ID, ("dataset", "trial"), values, attrs)]


@dataclass(frozen=True, eq=False)
class _Gathered:
    """What the source knows of a region of the copy."""

    arrays: dict[str, Array]
    parts: list[Receipt]


class _Copy:
    """Writes the arrays and the ledger of one copy."""

    def __init__(self, source: Cube, part: CopiedPart, target: Cube) -> None:
        self._source, self._part, self._target = source, part, target
        self._sizes, self._chunks = source.sizes, source.chunks
        with Ledger(source.records) as ledger:
            self._newest = ledger.newest()
        self._cells = part.cells(self._sizes["params"])
        self._variables = trial_variables(part.plan)

    def write(self) -> list[Receipt]:
        """Write everything; returns the receipts, which are in the ledger."""
        part, target = self._part, self._target
        target.write_planned("trial", part.targets.trials)
        target.write_planned("repeat", part.targets.repeats)
        flags = self._source.read_duplicates()
        for row, (task, slots) in enumerate(zip(part.tasks, part.slots, strict=True)):
            kept = np.full((part.plan.slots, part.plan.trials), 255, dtype=np.uint8)
            kept[: len(slots)] = flags[task, list(slots), : part.plan.trials]
            target.write_duplicates(row, kept)
        models = range(len(part.models))
        receipts: list[Receipt] = []
        with ThreadPoolExecutor(_threads()) as pool:
            for begin in range(0, len(models), target.chunks_of_counters):
                some = models[begin : begin + target.chunks_of_counters]
                counters = {}
                for model, (written, counted) in zip(some, pool.map(self._model, some), strict=True):
                    receipts += written
                    if written:
                        counters[model] = counted
                if counters:
                    target.write_counters(counters)
        with Ledger(target.records) as ledger:
            for receipt in receipts:
                ledger.append(receipt)
        return receipts

    def _model(self, model: int) -> tuple[list[Receipt], Array]:
        sizes, chunks = self._part.plan.sizes, self._target.chunks
        receipts = []
        for trial in range(-(-sizes["trial"] // chunks["trial"])):
            for repeat in range(-(-sizes["repeat"] // chunks["repeat"])):
                window = window_of(sizes, Region(model, trial, repeat), chunks)
                gathered = self._gathered(window)
                if gathered is not None:
                    digest = self._target.write_region(window.region, gathered.arrays)
                    receipts.append(self._receipt(window, gathered, digest))
        regions = [receipt.region for receipt in receipts]
        prices = self._part.plan.prices[model]
        return receipts, count_model(self._target, regions, self._part.targets, prices)

    def _gathered(self, window: Window) -> _Gathered | None:
        """A region of the copy, from all of the source's that it reaches into; None if none is recorded."""
        found: _Gathered | None = None
        for region in self._overlapping(window):
            receipt = self._newest.get(region)
            if receipt is None:
                continue
            if found is None:
                found = _Gathered(
                    {
                        name: np.full((*window.shape, *more), variable.fill, dtype=variable.dtype)
                        for name, (variable, more) in self._variables.items()
                    },
                    [],
                )
            self._lay(window, region, self._read(receipt), found.arrays)
            found.parts.append(receipt)
        return found

    def _overlapping(self, window: Window) -> list[Region]:
        model = self._part.models[window.region.model]
        spans = []
        for dim, first, length in (
            ("trial", window.first_trial, window.shape[2]),
            ("repeat", window.first_repeat, window.shape[3]),
        ):
            step = self._chunks[dim]
            spans.append(range(first // step, -(-(first + length) // step)))
        return [Region(model, trial, repeat) for trial in spans[0] for repeat in spans[1]]

    def _read(self, receipt: Receipt) -> dict[str, Array]:
        problems, arrays = stored_problems(self._source, receipt)
        if problems:
            name, problem = next(iter(problems.items()))
            raise CubeDamagedError(
                f"{receipt.region}: {name or 'one of its arrays'} {problem}",
                self._source.url,
                f"Heal it with `evalcube cube verify --heal {self._source.url}`.",
            )
        # What the receipt speaks of, in the cube's present shape: fills where the cube has grown since.
        known = recorded_part(arrays, receipt, self._source.shape_of(receipt))
        found = {}
        for name, variable in self._source.trial_arrays.items():
            shape = arrays[name][:, :, : receipt.trials, : receipt.repeats].shape
            found[name] = np.full(shape, variable.fill, dtype=variable.dtype)
            if name in known:
                found[name][tuple(slice(size) for size in known[name].shape)] = known[name]
        return found

    def _lay(
        self, window: Window, region: Region, arrays: Mapping[str, Array], into: dict[str, Array]
    ) -> None:
        """Put what the source has of a region where it belongs in one of the copy."""
        mine, theirs = self._cells
        some = arrays["status"]
        here, there = [], []
        for first, begin, length, size in (
            (region.trial * self._chunks["trial"], window.first_trial, window.shape[2], some.shape[2]),
            (region.repeat * self._chunks["repeat"], window.first_repeat, window.shape[3], some.shape[3]),
        ):
            low, high = max(first, begin), min(first + size, begin + length)
            here.append(slice(low - first, max(low, high) - first))
            there.append(slice(low - begin, max(low, high) - begin))
        for name, target in into.items():
            if name not in arrays:
                continue  # no task of the source is graded in layers
            values = arrays[name].reshape(-1, *arrays[name].shape[2:])
            flat = target.reshape(-1, *target.shape[2:])
            flat[theirs, there[0], there[1]] = values[mine, here[0], here[1]]

    def _receipt(self, window: Window, gathered: _Gathered, digest: str) -> Receipt:
        parts, planned = gathered.parts, self._part.targets.mask(window)
        generation = max(one.generation for one in parts)
        made = receipt_of(window, generation, planned, gathered.arrays["status"], digest, {})
        causes: Counter[str] = Counter()
        for one in parts:
            causes.update(one.causes)
        return replace(
            made,
            causes=dict(causes.most_common(_MOST_CAUSES)) if made.transport else {},
            grader="+".join(sorted({grader for one in parts for grader in one.grader.split("+")})),
            at=max(one.at for one in parts),
            fingerprints=most_fingerprints(one.fingerprints for one in parts),
        )


def _threads() -> int:
    return max(1, min(8, len(os.sched_getaffinity(0))))
