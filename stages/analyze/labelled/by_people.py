"""Accuracies on a leaderboard as people's labels of right and wrong answers correct them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from evalcube.stages.analyze.formulas.corrected import LEAST_PASS_OR_FAIL, rogan_gladen, worth_of
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.labelled.leaderboard import row_order
from evalcube.stages.analyze.labelled.remarks import first_few, label_rows
from evalcube.stages.analyze.labelled.results import Estimate, Leaderboard
from evalcube.stages.reply.status import FINISHED, Status

if TYPE_CHECKING:
    import xarray as xr

PEOPLE_RIGHT = "people_right"
"""Variable (model, task, params, trial) with 1 where people call an answer right, 0 where wrong, else NaN."""
_QUESTION = ("task", "params", "trial")


def with_accuracy_by_people(board: Leaderboard, ds: xr.Dataset) -> Leaderboard:
    """The board with accuracies as people's labels correct them; the same board without any.

    How often the grader passes right answers and fails wrong ones is that of the row's own labels, or with fewer than
    `LEAST_PASS_OR_FAIL` that of all labels together.

    Parameters
    ----------
    board, ds
        As of `with_composites`; with `PEOPLE_RIGHT`, which is of the first answer to a question.
    """
    if PEOPLE_RIGHT not in ds or not (~np.isnan(ds[PEOPLE_RIGHT].values)).any():
        return board
    counts = [_judged_and_said(ds.isel(model=place)) for place in row_order(ds, board)]
    pooled, found, told = np.sum(counts, axis=0), [], []
    if pooled.sum() < LEAST_PASS_OR_FAIL:
        few = (
            f"People called {pooled.sum():.0f} answers right or wrong; from {LEAST_PASS_OR_FAIL} on that corrects "
            "the accuracy."
        )
        return replace(board, cautions=(*board.cautions, few))
    for row, own, label in zip(board.rows, counts, label_rows(board.rows), strict=True):
        (wrong_failed, wrong_passed), (right_failed, right_passed) = (
            own if own.sum() >= LEAST_PASS_OR_FAIL else pooled
        )
        worth = worth_of(
            row.accuracy.value, row.accuracy.upper - row.accuracy.lower, board.confidence, row.trials
        )
        corrected = rogan_gladen(
            row.accuracy.value * worth,
            worth,
            right_passed,
            right_passed + right_failed,
            wrong_failed,
            wrong_failed + wrong_passed,
            confidence=None if board.confidence == 0.95 else board.confidence,  # the default itself
        )
        found.append(replace(row, accuracy=Estimate.of(corrected)))
        whose = "its own" if own.sum() >= LEAST_PASS_OR_FAIL else "all rows'"
        told.append(f"{label}, {100 * row.accuracy.value:.1f} % before, by {whose}")
    hits, rejected = pooled[1, 1] / max(pooled[1].sum(), 1), pooled[0, 0] / max(pooled[0].sum(), 1)
    said = (
        f"Accuracy as {pooled.sum():.0f} labels of people correct it, other columns not: the grader passes "
        f"{100 * hits:.0f} % of what they call right and fails {100 * rejected:.0f} % of what they call wrong. "
        f"{first_few(told)}."
    )
    return replace(board, rows=tuple(found), cautions=(*board.cautions, said))


def _judged_and_said(one: xr.Dataset) -> Floats:
    """Labels of one evaluation, shape (people: wrong, right; grader: failed, passed)."""
    status = one["status"].transpose(*_QUESTION, "repeat").values[..., 0]
    said = one[PEOPLE_RIGHT].transpose(*_QUESTION).values
    there = np.isin(status, FINISHED) & ~np.isnan(said)
    places = 2 * said[there].astype(int) + (status[there] == int(Status.CORRECT))
    return np.bincount(places, minlength=4).reshape(2, 2).astype(float)
