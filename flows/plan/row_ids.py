"""The ids that rows of data sets have in their files, as a coordinate of a cube whose data sets name them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flows.plan.plan import Plan
from stages.generate import Cell
from storage.cube.cube import Coordinate, Cube

ROW_ID = "row_id"
"""Coordinate (dataset, trial); ``dataset`` counts the points whose rows have ids: few of a cube's."""

ROW_ID_ATTRS = {
    "long_name": "id of the row that the trial asks",
    "comment": "Empty beyond the rows of the data set.",
}


def row_id_coordinate(plan: Plan) -> Coordinate:
    """`ROW_ID` of a plan's cube; raises as `row_ids`."""
    return Coordinate(ROW_ID, ("dataset", "trial"), row_ids(plan, plan.trials), ROW_ID_ATTRS)


def row_ids(plan: Plan, trials: int) -> npt.NDArray[np.object_]:
    """Ids of the rows that the first trials of each named point ask, shape (dataset, trial); empty beyond the rows.

    Raises
    ------
    TaskError
        A file is not there, or not the one that it was.
    """
    found = np.full((len(plan.named_points), trials), "", dtype=object)
    for row, cell in zip(found, _cells(plan), strict=True):
        count = _count(cell, trials)
        row[:count] = [cell.row_id(trial) for trial in range(count)]
    return found


def lacks_row_ids(cube: Cube, plan: Plan) -> bool:
    """Whether a cube with row ids lacks those of trials that it has: they are damaged, or it has grown since."""
    if not cube.has_label(ROW_ID):
        return False  # of an earlier version, or without any
    if cube.label_problem(ROW_ID):
        return True
    stored = cube.read_label(ROW_ID)
    return any(
        (row[: _count(cell, len(row))] == "").any() for row, cell in zip(stored, _cells(plan), strict=True)
    )


def label_rows(cube: Cube, plan: Plan) -> None:
    """Write the row ids of a cube anew where some are lacking; only the holder of the lease may."""
    if lacks_row_ids(cube, plan):
        cube.write_label(ROW_ID, row_ids(plan, cube.sizes["trial"]))


def _cells(plan: Plan) -> list[Cell]:
    return [plan.tasks[task].cells[slot].cell for task, slot in plan.named_points]


def _count(cell: Cell, trials: int) -> int:
    """Trials of a point, of so many that a cube has."""
    return trials if cell.size is None else min(trials, cell.size)
