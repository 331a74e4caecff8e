"""The data files whose rows a cube asks, kept beside it: one compressed copy of each, under its content's digest.

A file may be edited, renamed or deleted later, and the cube may be read on another machine; what was asked stays.
The digest is the one in the points' params, so that a copy by anybody is as good as the file, or is damaged.
Questions that other packages made for a cube's points are kept block by block: the points' params hold no digest of
them, as more trials add blocks; each block holds its own.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import zstandard

from evalcube.flows.config.kept_questions import MOST_BYTES, key_of, read_copy, unpack_blocks
from evalcube.flows.plan.plan import Plan
from evalcube.stages.generate import Cell
from evalcube.stages.generate.dataset import DatasetParams, rows_of
from evalcube.stages.generate.dataset.files import whole_file
from evalcube.stages.generate.dataset.kept import offer_copy
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
            yield from ((task, entry.cell, count) for entry, count in zip(planned.cells, row, strict=False))


def offer_blocks(records: Space, plan: Plan) -> None:
    """Have the blocks of a plan, which is made from descriptions of cubes, read from a cube; later ones, too."""
    copies = partial(_looked_up, records)
    for task in plan.tasks:
        if isinstance(task.task, RenderedTask):
            task.task.cubes += (copies,)


def _looked_up(records: Space, name: str) -> Iterator[bytes] | None:
    with suppress(StorageError):  # the cube is gone, and another one may have it
        return read_copy(records, name)
    return None


def keep_blocks(records: Space, plan: Plan, trials: npt.NDArray[np.int64]) -> None:
    """Keep the blocks with so many trials (task, params) that are not kept yet; only the holder of the lease may."""
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
            content = records.get(key_of(name), MOST_BYTES)
            if content is None:
                break  # they are kept in order
            yield task, cell, number, name, content.data


def is_whole(packed: bytes) -> bool:
    """Whether a packed block is as its digest says."""
    return rows_of_block(b"".join(unpack_blocks(packed))) is not None


def data_sets(plan: Plan, chosen: npt.NDArray[np.bool_] | None = None) -> dict[str, DatasetParams]:
    """Params of one point for each data file of a plan, or of some of its points (task, params), by SHA-256."""
    return {
        params.digest(): params
        for row, task in zip(plan.valid() if chosen is None else chosen, plan.tasks, strict=True)
        for own, planned in zip(row, task.cells, strict=False)
        if own and isinstance(planned.cell.params, DatasetParams)
        for params in (planned.cell.params.of_examples(), planned.cell.params)
    }


def offer_questions(records: Space, plan: Plan) -> None:
    """Have the questions of a cube's plan read from the cube wherever its data files are not what they were."""
    for sha256 in data_sets(plan):
        offer_copy(sha256, partial(read_copy, records, sha256))
    offer_blocks(records, plan)


def keep_questions(records: Space, plan: Plan, warn: Callable[[str], None] = lambda _: None) -> None:
    """Keep what the config names of a plan and is not kept yet; only the holder of the lease may."""
    keep_blocks(records, plan, np.asarray(plan.named_cells.any(axis=0), dtype=np.int64))
    for sha256, params in data_sets(plan, np.asarray(plan.named_cells.any(axis=0))).items():
        if records.version(key_of(sha256)) is None and not keep_copy(records, params):
            warn(
                f"{params.file} has more than {MOST_BYTES >> 20} MiB, so that the cube keeps no copy of it: to read "
                "its questions later, keep the file as it is"
            )


def keep_copy(records: Space, params: DatasetParams) -> bool:
    """Keep the data file of a point; False if it is too large for that. Raises as `keep_questions`."""
    packed = io.BytesIO()
    with whole_file(params.file, params.digest()) as file:
        if file.seek(0, io.SEEK_END) > MOST_BYTES:
            return False
        file.seek(0)
        zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).copy_stream(file, packed)
    put_block(records, params.digest(), packed.getvalue())
    return True


def copy_questions(source: Space, target: Space, plan: Plan) -> None:
    """Copy what a cube keeps of a plan's questions to another cube.

    What it lacks, and what has not its digest any more, is passed over: another cube may have it.
    """
    for sha256 in data_sets(plan):
        content = source.get(key_of(sha256), MOST_BYTES)
        if content is not None and _digest(content.data) == sha256:
            put_block(target, sha256, content.data)
    for *_, name, packed in kept_blocks(source, plan):
        if is_whole(packed):
            put_block(target, name, packed)


def damaged_questions(records: Space, plan: Plan) -> Iterator[DatasetParams]:
    """Points of a plan whose questions are kept, and are not what the point's digest says."""
    for sha256, params in data_sets(plan).items():
        content = records.get(key_of(sha256), MOST_BYTES)
        if content is not None and _digest(content.data) != sha256:
            yield params


def texts_of(records: Space, plan: Plan) -> Iterator[tuple[str, str]]:
    """All that the kept questions say, by file: each row with every field, asked or not."""
    for params in kept_data_sets(records, plan):
        for row in rows_of(params):
            yield params.file, json.dumps(row, default=str, ensure_ascii=False)
    for task, *_, packed in kept_blocks(records, plan):
        yield task.name, b"".join(unpack_blocks(packed)).decode(errors="replace")


def kept_data_sets(records: Space, plan: Plan) -> list[DatasetParams]:
    """Params of one point for each data file of a plan that the cube keeps."""
    return [
        params for sha256, params in data_sets(plan).items() if records.version(key_of(sha256)) is not None
    ]


def _digest(packed: bytes) -> str:
    digest = hashlib.sha256()
    for block in unpack_blocks(packed):
        digest.update(block)
    return digest.hexdigest()
