"""How many trials each cell needs next for the precision that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evalcube.stages.analyze.formulas.columns import column
from evalcube.stages.analyze.formulas.intervals import exact_bounds
from evalcube.stages.analyze.formulas.stratified import effective_trials, moments
from evalcube.stages.reply.status import COUNTERS


@dataclass(frozen=True)
class Precision:
    """When a cell has been measured well enough."""

    base: int
    """Trials of the first round, and of each further one."""
    target: float
    """Half-width of the 95 % interval to reach, as a fraction."""
    maximum: int
    """Trials after which a cell is left as it is."""


def half_width(
    counters: npt.ArrayLike, *, labels: Sequence[str] = COUNTERS, effect: npt.ArrayLike = 1.0
) -> npt.NDArray[np.float64]:
    """Half the width of each cell's 95 % interval of C_P, its success rate with guesses taken out.

    That of `evalcube.stages.analyze.formulas.stratified.exact_estimate` before it is cut off at 0 and 1: a weak model's
    interval would look narrow where only half of it is shown. The noise of guesses counts, so that a task with options
    needs more trials.

    Parameters
    ----------
    counters
        Shape (..., counter).
    effect
        Trials that are worth one independent trial, broadcasts to (...).

    Returns
    -------
    ndarray of shape (...)
        Infinite where there is no trial, and where guessing leaves nothing to measure.

    Examples
    --------
    >>> names = ["trials", "completed", "correct", "truncated", "guess_sum"]
    >>> half_width([[32, 32, 16, 0, 0], [200, 200, 100, 0, 100]], labels=names).round(3).tolist()
    [0.181, 0.143]
    """
    worth = np.asarray(counters, dtype=float) / np.asarray(effect, dtype=float)[..., np.newaxis]
    rate, trials, chance = effective_trials(moments(worth, labels=labels, mode="C_P"))
    _, lower, upper = exact_bounds(rate * trials, trials)
    with np.errstate(all="ignore"):
        width = (upper - lower) / 2.0 / (1.0 - chance)
    return np.asarray(np.where(np.isfinite(width), width, np.inf))


def next_trials(
    counters: npt.ArrayLike,
    planned: npt.ArrayLike,
    precision: Precision,
    *,
    repeats: npt.ArrayLike = 1,
) -> npt.NDArray[np.int64]:
    """How many trials each cell needs next. A function of counters: who resumes or repeats decides the same.

    Repeats of a question are taken to say the same: they are no trials of their own for the precision.

    A cell is examined when all its planned trials are finished, alone, after each `base` trials; so its final number
    does not depend on when it was examined, or on other cells.

    Parameters
    ----------
    counters
        Shape (..., counter); they may be older than the plan.
    planned
        Trials planned so far, shape (...); 0 is a cell that was never planned.
    repeats
        Times that each of them is asked.

    Returns
    -------
    ndarray of shape (...)
        Trials of the cell, never fewer than planned.
    """
    now = np.asarray(planned, dtype=np.int64)
    finished = column(counters, "trials") == now * np.asarray(repeats)
    width = half_width(counters, effect=np.maximum(repeats, 1))
    wide = finished & (width > precision.target) & (now < precision.maximum)
    more = np.minimum(now + precision.base, precision.maximum)
    return np.where(now == 0, precision.base, np.where(wide, more, now))
