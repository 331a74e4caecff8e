"""How many trials each cell needs next for the precision that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stages.analyze.formulas.intervals import wilson
from stages.analyze.formulas.reasonscore import adjusted, column
from stages.reply.status import COUNTERS


@dataclass(frozen=True)
class Precision:
    """When a cell has been measured well enough."""

    base: int
    """Trials of the first round, and of each further one."""
    target: float
    """Half-width of the 95 % interval to reach, as a fraction."""
    maximum: int
    """Trials after which a cell is left as it is."""


def half_width(counters: npt.ArrayLike, *, labels: Sequence[str] = COUNTERS) -> npt.NDArray[np.float64]:
    """Half the width of each cell's 95 % Wilson interval of its success rate, a truncated trial being a failure.

    With guesses taken out there are s = n_e − g successes in m = n_u − g trials; truncation stretches these to
    m·n/n_u trials, so that the rate is C_P. It is one interval, narrower than the product of two that C_P has as an
    estimate: without truncation it is that of C_I, without guessing that of E_P.

    Parameters
    ----------
    counters
        Shape (..., counter).

    Returns
    -------
    ndarray of shape (...)
        Infinite where there is no trial, and where guessing leaves nothing to measure.

    Examples
    --------
    >>> half_width([32, 32, 16, 0], labels=["trials", "completed", "correct", "guess_sum"]).round(3).item()
    0.164
    """
    trials, completed = column(counters, "trials", labels), column(counters, "completed", labels)
    successes, total = adjusted(counters, labels=labels)
    stretched = np.where(completed > 0, total * trials / np.maximum(completed, 1), trials)
    _, margin = wilson(successes, stretched)
    return np.asarray(np.where(np.isnan(margin), np.inf, margin))


def next_trials(
    counters: npt.ArrayLike,
    planned: npt.ArrayLike,
    precision: Precision,
    *,
    repeats: npt.ArrayLike = 1,
    labels: Sequence[str] = COUNTERS,
) -> npt.NDArray[np.int64]:
    """How many trials each cell needs next. A function of counters: who resumes or repeats decides the same.

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
    finished = column(counters, "trials", labels) == now * np.asarray(repeats)
    wide = finished & (half_width(counters, labels=labels) > precision.target) & (now < precision.maximum)
    more = np.minimum(now + precision.base, precision.maximum)
    return np.where(now == 0, precision.base, np.where(wide, more, now))
