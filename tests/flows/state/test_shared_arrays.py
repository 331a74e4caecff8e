"""What is known of repeats where a comparison of prompts was cut short."""

from itertools import count

import numpy as np

from evalcube.flows.plan.plan import PlannedCell, TaskPlan
from evalcube.flows.state.shared_arrays import repeat_flags
from evalcube.stages.generate import TASKS, Cell

UNKNOWN = 255


def test_repeat_flags__leaves_whole_cells_unknown_when_stopped_and_goes_on_with_these():
    task = TASKS["arithmetic"]
    cells = tuple(PlannedCell(Cell(task, task.Params(length=n), 42), (), 10) for n in (3, 4))
    plan, planned = TaskPlan("arithmetic", task, cells), np.array([10, 10])
    asked = count()

    cut = repeat_flags(plan, planned, np.full((2, 10), UNKNOWN, np.uint8), lambda: next(asked) >= 15)
    known = (cut != UNKNOWN).tolist()
    whole = repeat_flags(plan, planned, cut)

    assert known == [[True] * 10, [False] * 10]
    assert (whole == repeat_flags(plan, planned, np.full((2, 10), UNKNOWN, np.uint8))).all()
    assert (whole != UNKNOWN).all()
