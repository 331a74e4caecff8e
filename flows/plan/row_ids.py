"""The ids that rows of data sets have in their files, as a coordinate of a cube whose data sets name them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from evalcube.flows.plan.plan import Plan
from evalcube.stages.generate import Cell
from evalcube.storage.cube.cube import Coordinate, Cube

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
    return _completed(plan, trials, {})


def lacks_row_ids(cube: Cube, plan: Plan) -> bool:
    """Whether a cube with row ids lacks those of trials that it has: they are damaged, or it has grown since."""
    if not plan.named_points:
        return False
    if cube.label_problem(ROW_ID):
        return True
    stored = cube.read_label(ROW_ID)
    return any(
        (row[: _count(cell, len(row))] == "").any() for row, cell in zip(stored, _cells(plan), strict=True)
    )


def label_rows(cube: Cube, plan: Plan) -> None:
    """Write the row ids of a cube anew where some are lacking; only the holder of the lease may."""
    if lacks_row_ids(cube, plan):
        cube.write_label(ROW_ID, _completed(plan, cube.sizes["trial"], _stored(cube, plan)))


def grown_row_ids(cube: Cube, before: Plan, plan: Plan) -> Coordinate | None:
    """`ROW_ID` of a cube whose sweep has grown; None if it has none.

    Parameters
    ----------
    cube
        The cube as it is.
    before, plan
        Its plan, and what that has become; of data sets, only the files of those that are new are read.
    """
    if not plan.named_points:
        return None
    stored = _stored(cube, before) if before.named_points else {}
    found = _completed(plan, cube.sizes["trial"], stored)
    return Coordinate(ROW_ID, ("dataset", "trial"), found, ROW_ID_ATTRS)


def _stored(cube: Cube, plan: Plan) -> Mapping[tuple[str, str], npt.NDArray[np.object_]]:
    """The ids that a cube has, by the points of its plan; none where they are damaged."""
    if cube.label_problem(ROW_ID):
        return {}
    return dict(zip(_places(plan), cube.read_label(ROW_ID), strict=True))


def _places(plan: Plan) -> list[tuple[str, str]]:
    """What the points that have row ids are known by."""
    points = ((plan.tasks[task], slot) for task, slot in plan.named_points)
    return [(task.label, task.cells[slot].cell.id) for task, slot in points]


def _completed(
    plan: Plan, trials: int, stored: Mapping[tuple[str, str], npt.NDArray[np.object_]]
) -> npt.NDArray[np.object_]:
    """Ids of the rows: those that are stored, and of points that lack some, from their files."""
    found = np.full((len(plan.named_points), trials), "", dtype=object)
    for row, place, cell in zip(found, _places(plan), _cells(plan), strict=True):
        count, known = _count(cell, trials), stored.get(place)
        if known is not None and len(known) == trials and (known[:count] != "").all():
            row[:] = known
        else:
            row[:count] = [cell.row_id(trial) for trial in range(count)]
    return found


def _cells(plan: Plan) -> list[Cell]:
    return [plan.tasks[task].cells[slot].cell for task, slot in plan.named_points]


def _count(cell: Cell, trials: int) -> int:
    """Trials of a point, of so many that a cube has."""
    return trials if cell.size is None else min(trials, cell.size)
