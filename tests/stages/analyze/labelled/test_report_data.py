"""What a report shows of a model in one task."""

import math

import pytest

from evalcube.stages.analyze.labelled.report_data import TaskView
from evalcube.stages.analyze.labelled.results import Estimate


@pytest.mark.parametrize(
    ("points", "trials", "partial"),
    [(0, 0, False), (1, 32, True), (2, 64, False), (2, 50, True)],
)
def test_task_view__is_partial_where_something_and_not_enough_is_there(points, trials, partial):
    nothing = Estimate(math.nan, math.nan, math.nan)

    view = TaskView(nothing, trials, 0.0, 9.0, points, points_planned=2, planned=64)

    assert view.partial is partial
