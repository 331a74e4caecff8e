"""Makes the arrays that all models share again where they are damaged: counters, flags of repeats, plans."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evalcube.flows.plan.targets import IntArray, SampleTargets, window_of
from evalcube.stages.reply.status import COUNTERS as STATUS_COUNTERS
from evalcube.stages.reply.status import Status
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.cube.regions import Region
from evalcube.storage.cube.schema import COUNTERS, DUPLICATE, PLANNED
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import CubeDamagedError, StorageError

if TYPE_CHECKING:
    from evalcube.flows.plan.plan import TaskPlan
    from evalcube.stages.generate import Cell, Trial
    from evalcube.stages.generate.novelty import Digests

_PROBLEMS = "problems"
_MOST_BYTES, _CHECK = 2**29, 16
_FEW = 1024
"""Problems of a task that are made again sooner than they are worth an object."""


def repair_shared(cube: Cube) -> list[str]:
    """Clear or make again whichever of these arrays cannot be read, so that a run can go on; their names.

    Counters and flags become what they are in a cube where nobody has counted or compared yet: a run sees that they are
    behind, and counts and compares. Plans are read off what was measured. For the holder of the lease only.
    """
    repaired = []
    for name, read in ((COUNTERS.name, cube.read_counters), (DUPLICATE.name, cube.read_duplicates)):
        try:
            read()
        except CubeDamagedError:
            cube.drop_chunks(name)
            repaired.append(name)
    try:
        cube.read_targets()
    except CubeDamagedError:
        with Ledger(cube.records) as ledger:
            write_planned(cube, measured_plan(cube, ledger.newest()))
        repaired += PLANNED
    return repaired


def repeat_flags(
    task: TaskPlan,
    planned: IntArray,
    flags: npt.NDArray[np.uint8],
    stopped: Callable[[], bool] = lambda: False,
    trial: Callable[[Cell, int], Trial] = lambda cell, index: cell.trial(index),
    compared: dict[str, Digests] | None = None,
) -> npt.NDArray[np.uint8]:
    """The flags of a task with those that lack: which of its planned problems occurred before in their cell.

    Digests of the first problems of cells, by id, are in `compared`, and in the end those of all that were compared.
    """
    from evalcube.stages.generate import novelty  # with all tasks, and a status asks for none

    compared = {} if compared is None else compared
    for slot, (entry, count) in enumerate(zip(task.cells, planned.tolist(), strict=False)):
        if (flags[slot, :count] > 1).any():
            first = compared.get(entry.cell.id, np.zeros(0, "<u8"))
            problems = (entry.cell.task.problem(trial(entry.cell, i)) for i in range(len(first), count))
            more = novelty.digest_texts(takewhile(lambda _: not stopped(), problems))
            digests = np.concatenate([first, more])
            if len(digests) < count:
                break
            flags[slot, :count] = novelty.repeats_in(digests)[:count]
            compared[entry.cell.id] = digests
    return flags


def read_compared(records: Space, task: int) -> dict[str, Digests]:
    """Digests of a task's problems that were compared before, by the cells' ids; none where that is not whole."""
    with suppress(OSError, StorageError, ValueError, TypeError, AttributeError, RecursionError):
        stored = records.get(f"{_PROBLEMS}/{task}", _MOST_BYTES)
        data = b"" if stored is None else stored.data
        if data[:_CHECK] == _check(data[_CHECK:]):
            head, _, body = data[_CHECK:].partition(b"\n")
            counts = json.loads(head)
            parts = np.split(np.frombuffer(body, "<u8"), np.cumsum(list(counts.values()))[:-1])
            return dict(zip(counts, parts, strict=True))
    return {}


def keep_compared(records: Space, task: int, compared: Mapping[str, Digests]) -> None:
    """Keep what `read_compared` reads, so that a growth makes no problem again; it is no loss where that fails."""
    counts = {cell: len(digests) for cell, digests in compared.items()}
    if sum(counts.values()) >= _FEW:
        data = b"".join([json.dumps(counts).encode(), b"\n", *(part.tobytes() for part in compared.values())])
        with suppress(OSError, StorageError):
            records.put(f"{_PROBLEMS}/{task}", _check(data) + data, durable=False)


def _check(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_CHECK).digest()


def planned_of(cube: Cube, regions: Iterable[Region]) -> SampleTargets:
    """How far each cell is to be measured: as the cube says, or as far as it is measured where that cannot be read."""
    try:
        return SampleTargets(*cube.read_targets())
    except CubeDamagedError:
        return measured_plan(cube, regions)


def measured_plan(cube: Cube, regions: Iterable[Region]) -> SampleTargets:
    """How far each cell is measured, from the status of its trials."""
    shape = (cube.sizes["model"], cube.sizes["task"], cube.sizes["params"])
    trials, repeats = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    for region in regions:
        window = window_of(cube.sizes, region, cube.chunks)
        try:
            there = cube.read_region(region, ["status"])["status"] != Status.MISSING
        except CubeDamagedError:
            continue
        for sums, axis, first in ((trials, 3, window.first_trial), (repeats, 2, window.first_repeat)):
            along = there.any(axis=axis)
            count = np.where(along.any(axis=2), first + along.shape[2] - along[..., ::-1].argmax(axis=2), 0)
            np.maximum(sums[region.model], count, out=sums[region.model], casting="unsafe")
    return SampleTargets(trials, repeats)


def write_planned(cube: Cube, planned: SampleTargets) -> None:
    """Write the plans anew."""
    for name in PLANNED:
        # A plan never shrinks, and what is there cannot be compared.
        cube.drop_chunks(name)
    cube.write_planned("trial", planned.trials)
    cube.write_planned("repeat", planned.repeats)


def refuse_unrecorded(cube: Cube, recorded: Collection[Region]) -> None:
    """Refuse a cube of which only the counters are left; see `unrecorded_trials`."""
    if counted := unrecorded_trials(cube, recorded):
        raise CubeDamagedError(
            f"its counters count {counted:,} trials of which its ledger has no receipt",
            cube.url,
            "Take the ledger from a copy, or run its sweep, which does them again from the cache.",
        )


def unrecorded_trials(cube: Cube, recorded: Collection[Region]) -> int:
    """How many trials the counters of a cube count whose ledger has no receipt at all; 0 where it has some."""
    if recorded:
        return 0
    counted = cube.read_counters()[..., STATUS_COUNTERS.index("trials")]
    return int(np.nan_to_num(counted, posinf=0.0, neginf=0.0).sum())  # nobody counts what is not finite
