"""What answers bring for what they spend: a ratio of two measured means, with the error of both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from evalcube.stages.analyze.formulas.columns import column
from evalcube.stages.analyze.formulas.estimators import Bounds
from evalcube.stages.analyze.formulas.intervals import Floats, quantile
from evalcube.stages.reply.status import COUNTERS


def token_error(
    counters: ArrayLike, weights: ArrayLike, *, labels: Sequence[str] = COUNTERS, effect: ArrayLike = 1.0
) -> Floats:
    """Standard error of a weighted mean over points of their tokens per trial, as a share of that mean.

    A point of one trial shows nothing of its variance: its distance from the mean stands for it.

    Parameters
    ----------
    counters
        Array (..., point, counter).
    weights
        Of the points' means, shape (..., point); they need not sum to 1.
    labels
        Names along the last axis; without ``tokens_sumsq`` nothing is known of the error, which is 0 then.
    effect
        Trials that are worth one independent trial, broadcasts to (..., point).

    Returns
    -------
    Array (...); NaN where no token was counted.

    Examples
    --------
    >>> cells = [[4.0, 400.0, 42_000.0], [1.0, 100.0, 10_000.0]]
    >>> float(token_error(cells, [1, 1], labels=["trials", "tokens_sum", "tokens_sumsq"]).round(4))
    0.0645
    """
    n, spent = column(counters, "trials", labels), column(counters, "tokens_sum", labels)
    squares = (
        column(counters, "tokens_sumsq", labels)
        if "tokens_sumsq" in labels
        else spent**2 / np.maximum(n, 1.0)
    )
    share = np.where(n > 0, np.asarray(weights, dtype=float), 0.0)
    with np.errstate(all="ignore"):
        mean = spent / np.maximum(n, 1.0)
        overall = (share * mean).sum(axis=-1) / share.sum(axis=-1)
        spread = np.maximum(squares / np.maximum(n, 1.0) - mean**2, 0.0) / np.maximum(n - 1.0, 1.0)
        variance = np.where(
            n > 1, spread * np.asarray(effect, dtype=float), (mean - overall[..., np.newaxis]) ** 2
        )
        error = np.sqrt((share**2 * variance).sum(axis=-1)) / share.sum(axis=-1) / overall
        return np.asarray(np.where(overall > 0, error, np.nan))


def brought(gain: Bounds, spent: ArrayLike, error: ArrayLike, *, confidence: float | None = None) -> Bounds:
    """A measured gain over measured spending, whose interval holds however the two go together.

    Wrong answers are often the long ones, and counters do not say how often: each end is that of the gain over the
    opposite end of what is spent, taken as log-normal.

    Parameters
    ----------
    gain
        Value, lower and upper bound.
    spent
        Mean spending, positive; NaN for none.
    error
        Its standard error as a share of it.
    confidence
        Level of the bounds of `gain`; None means z = 1.96.

    Examples
    --------
    >>> [round(float(part), 3) for part in brought((0.5, 0.4, 0.6), 100.0, 0.05)]
    [0.005, 0.004, 0.007]
    """
    value, lower, upper = gain
    paid = np.asarray(spent, dtype=float)
    reach = np.exp(quantile(confidence) * np.asarray(error, dtype=float))
    with np.errstate(all="ignore"):
        return value / paid, lower / paid / reach, upper / paid * reach
