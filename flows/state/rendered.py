"""The questions that other packages made for a cube's points, kept beside it block by block.

The points' params hold no digest of them, as more trials add blocks; each block holds its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import zstandard

from evalcube.flows.config.kept_questions import MOST_BYTES, copied, key_of, unpacked
from evalcube.flows.plan.plan import Plan
from evalcube.stages.generate import Cell
from evalcube.stages.generate.foreign.rendered import BLOCK, RenderedTask, block_names, rows_of_block
from evalcube.storage.cube.space import Space, When
from evalcube.storage.errors import StorageError, guarded

_LEVEL = 9


def rendered_cells(
    plan: Plan, trials: npt.NDArray[np.int64]
) -> Iterator[tuple[RenderedTask[Any], Cell, int]]:
    """The points that other packages made, with how many trials each has of (task, params)."""
    for row, planned in zip(trials.tolist(), plan.tasks, strict=True):
        task = planned.task
        if isinstance(task, RenderedTask):
            yield from ((task, one.cell, count) for one, count in zip(planned.cells, row, strict=False))


def offer_blocks(records: Space, plan: Plan) -> None:
    """Have the blocks of a plan, which is made from descriptions of cubes, read from a cube; later ones, too."""
    copies = partial(_looked_up, records)
    for task in plan.tasks:
        if isinstance(task.task, RenderedTask):
            task.task.cubes += (copies,)


def _looked_up(records: Space, name: str) -> Iterator[bytes] | None:
    with suppress(StorageError):  # the cube is gone, and another one may have it
        return copied(records, name)
    return None


def keep_blocks(records: Space, plan: Plan, trials: npt.NDArray[np.int64]) -> None:
    """Keep the blocks with so many trials (task, params) that are not kept yet; only the holder of the lease may.

    Raises
    ------
    TaskError
        The package that makes and grades them is missing, or makes none with these params.
    StorageError
        The cube cannot be written.
    """
    for task, cell, count in rendered_cells(plan, trials):
        if count:
            task.check_package()  # all blocks may be here, and replies could not be graded
        for number, name in enumerate(block_names(cell, count)):
            if records.version(key_of(name)) is None:
                keep_block(records, task, cell, number)


def keep_block(records: Space, task: RenderedTask[Any], cell: Cell, number: int) -> bool:
    """Keep a block as it is rendered here; raises as `keep_blocks`."""
    packed = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(task.block(cell, number))
    put_block(records, block_names(cell, (number + 1) * BLOCK)[-1], packed)
    return True


def put_block(records: Space, name: str, packed: bytes) -> None:
    """Keep a packed block."""
    with guarded(records.address, "keep the questions of the sweep"):
        records.put(key_of(name), packed, when=When.ABSENT)


def kept_blocks(records: Space, plan: Plan) -> Iterator[tuple[RenderedTask[Any], Cell, int, str, bytes]]:
    """The blocks that a cube has: task, cell, number, name, and what is kept."""
    for task, cell, count in rendered_cells(plan, np.full((len(plan.tasks), plan.slots), plan.trials)):
        for number, name in enumerate(block_names(cell, count)):
            found = records.get(key_of(name), MOST_BYTES)
            if found is None:
                break  # they are kept in order
            yield task, cell, number, name, found.data


def is_whole(packed: bytes) -> bool:
    """Whether a packed block is as its digest says."""
    return rows_of_block(b"".join(unpacked(packed))) is not None
