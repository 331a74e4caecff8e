"""Rows of plain values: one for each group that was planned, without what nothing was measured of."""

import numpy as np
import xarray as xr

from evalcube.stages.analyze.formulas.outcomes.table import metric_parts
from evalcube.stages.analyze.labelled.forensics import FrontRow
from evalcube.stages.analyze.render.rows import cost_rows, group_rows, hazard_rows, metric_rows

LABELS = ["alpha", "beta"]


def by_model(**arrays):
    return xr.Dataset({name: (("model", *dims), np.array(values)) for name, (dims, values) in arrays.items()})


def test_group_rows__leave_out_groups_without_planned_points():
    numbers = {name: ((), [0.5, np.nan]) for name in ("point", "lower", "upper")}
    counted = {name: ((), [3, 0]) for name in ("points", "points_planned")}
    table = by_model(
        **numbers,
        **counted,
        counters=(("counter",), [[8, 2], [0, 0]]),
        per_trial=(("counter",), [[0.8, 0.2], [0, 0]]),
    ).assign_coords(counter=["trials", "truncated"])

    (row,) = group_rows(table, LABELS)

    assert (row["model"], row["point"], row["points_planned"]) == ("alpha", 0.5, 3)
    assert (row["truncated"], row["counters"]) == (0.2, {"trials": 8, "truncated": 2})


def test_metric_rows__have_one_of_each_k_and_repeat_what_has_none():
    counted = {name: (("k",), [[4, 3], [0, 0]]) for name in ("questions", "questions_incomplete", "points")}
    table = by_model(
        **counted,
        points_planned=((), [2, 0]),
        **{name: (("k",), [[0.5, 0.75], [np.nan, np.nan]]) for name in metric_parts("pass_at_k")},
        **{name: ((), [0.5, np.nan]) for name in metric_parts("avg")},
    ).assign_coords(k=[1, 2])

    rows = metric_rows(table, ["pass_at_k", "avg"], LABELS)

    assert [(row["model"], row["k"], row["pass_at_k"], row["avg"]) for row in rows] == [
        ("alpha", 1, 0.5, 0.5),
        ("alpha", 2, 0.75, 0.5),
    ]
    assert [row["questions"] for row in rows] == [4, 3]


def test_hazard_rows__end_where_nobody_is_at_risk():
    shares = {name: (("bin",), [[0.1, 0.2], [0.0, 0.3]]) for name in ("hazard", "incidence", "survival")}
    table = by_model(at_risk=(("bin",), [[9, 4], [7, 0]]), ends=(("bin",), [[1, 2], [0, 0]]), **shares)

    rows = hazard_rows(table.assign_coords(tokens=("bin", [100, 200])), LABELS)

    assert [(row["model"], row["tokens"], row["at_risk"]) for row in rows] == [
        ("alpha", 100, 9),
        ("alpha", 200, 4),
        ("beta", 100, 7),
    ]


def test_cost_rows__have_the_front_of_evaluations_and_not_of_their_tasks():
    front = {"alpha": FrontRow("alpha", "plain", "greedy", "0", 700.0, 90.0, 1.0, True, False, True)}
    whole = by_model(total=((), [2.0, np.nan]))
    by_task = by_model(total=(("task",), [[2.0], [np.nan]])).assign_coords(task=["sums"])

    first, second = cost_rows(whole, LABELS, front)

    assert (first["score"], first["tokens"], first["on_cost_front"], first["on_front"]) == (
        700.0,
        90.0,
        False,
        True,
    )
    assert "score" not in second
    assert ["score" in row for row in cost_rows(by_task, LABELS, front)] == [False, False]
