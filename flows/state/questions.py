"""The data files whose rows a cube asks, kept beside it: one compressed copy of each, under the digest of its content.

A file may be edited, renamed or deleted later, and the cube may be read on another machine; what was asked stays.
The digest is the one in the points' params, so that a copy by anybody is as good as the file, or is damaged.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import numpy.typing as npt
import zstandard

from evalcube.flows.config.kept_questions import MOST_BYTES, copied, key_of, unpacked
from evalcube.flows.plan.plan import Plan
from evalcube.flows.state.rendered import (
    is_whole,
    keep_blocks,
    kept_blocks,
    offer_blocks,
    put_block,
    rendered_cells,
)
from evalcube.stages.generate.dataset import DatasetParams, rows_of
from evalcube.stages.generate.dataset.files import whole_file
from evalcube.stages.generate.dataset.kept import offer_copy
from evalcube.storage.cube.space import Space

_LEVEL = 9


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
        offer_copy(sha256, partial(copied, records, sha256))
    offer_blocks(records, plan)


def keep_questions(records: Space, plan: Plan, warn: Callable[[str], None] = lambda _: None) -> None:
    """Keep what the config names of a plan and is not kept yet; only the holder of the lease may.

    Parameters
    ----------
    records
        Of the cube.
    plan
        Of the cube and the config.
    warn
        Called with a sentence for each file that is too large to be kept.

    Raises
    ------
    TaskError
        A file has changed since the plan was made; or a package that makes questions is missing, which is found out
        by the first ones of each point.
    StorageError
        The cube cannot be written.
    """
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
        found = source.get(key_of(sha256), MOST_BYTES)
        if found is not None and _digest(found.data) == sha256:
            put_block(target, sha256, found.data)
    for *_, name, packed in kept_blocks(source, plan):
        if is_whole(packed):
            put_block(target, name, packed)


def forget_questions(records: Space, plan: Plan, asked: npt.NDArray[np.bool_]) -> None:
    """Delete the copies of data files that none of these points (task, params) asks."""
    for sha256 in data_sets(plan).keys() - data_sets(plan, asked).keys():
        records.delete(key_of(sha256))
    gone = {
        cell.id for _, cell, count in rendered_cells(plan, np.asarray(asked, dtype=np.int64)) if not count
    }
    for name in [name for _, cell, _, name, _ in kept_blocks(records, plan) if cell.id in gone]:
        records.delete(key_of(name))


def damaged_questions(records: Space, plan: Plan) -> Iterator[DatasetParams]:
    """Points of a plan whose questions are kept, and are not what the point's digest says."""
    for sha256, params in data_sets(plan).items():
        found = records.get(key_of(sha256), MOST_BYTES)
        if found is not None and _digest(found.data) != sha256:
            yield params


def texts_of(records: Space, plan: Plan) -> Iterator[tuple[str, str]]:
    """All that the kept questions say, by file: each row with every field, asked or not."""
    for params in kept_data_sets(records, plan):
        for row in rows_of(params):
            yield params.file, json.dumps(row, default=str, ensure_ascii=False)
    for task, *_, packed in kept_blocks(records, plan):
        yield task.name, b"".join(unpacked(packed)).decode(errors="replace")


def kept_data_sets(records: Space, plan: Plan) -> list[DatasetParams]:
    """Params of one point for each data file of a plan that the cube keeps."""
    found = data_sets(plan).items()
    return [params for sha256, params in found if records.version(key_of(sha256)) is not None]


def _digest(packed: bytes) -> str:
    digest = hashlib.sha256()
    for block in unpacked(packed):
        digest.update(block)
    return digest.hexdigest()
