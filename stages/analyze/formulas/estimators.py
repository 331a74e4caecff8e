"""The six estimates of success: equality or correctness, under three readings of truncation.

The event is E, equality with the reference answer, or C, correctness: equality less what guessing explains.
A truncated trial would have been right as often as a completed one (I, independence), never (P, pessimism) or
always (O, optimism). With n_e correct, n_u completed, n_t truncated, n finished trials and g summed guess
chances of completed trials, W being Wilson's interval::

    E_I = W(n_e, n_u)          C_I = W(n_e − g, n_u − g)
    E_P = W(n_e, n)            C_P = W(n_e − g, n_u − g) × W(n_u, n)
    E_O = W(n_e + n_t, n)      C_O = 1 − W(n_u − n_e, n_u − g) × W(n_u, n)

Counters add: sum them over a group first and estimate once. These intervals are the reference's. With guessing
they take n_u − g for a number of trials, which leaves out the noise of guesses: nominal 95% cover 46 to 92%, least
for weak models. `evalcube.stages.analyze.formulas.stratified.exact_estimate` counts that noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from evalcube.stages.analyze.formulas.arguments import column, one_of
from evalcube.stages.analyze.formulas.intervals import Floats, quantile, wilson_bounds
from evalcube.stages.errors import ArgumentError
from evalcube.stages.reply.status import COUNTERS

Mode = Literal["E_I", "E_P", "E_O", "C_I", "C_P", "C_O"]
PLAIN: Mode = "E_P"
"""Accuracy: the plain share of right answers, truncated ones being wrong."""
MODES: tuple[Mode, ...] = get_args(Mode)

Joint = Literal["none", "bonferroni"]

Bounds = tuple[Floats, Floats, Floats]
"""Point value, lower and upper bound, of one shape."""


@dataclass(frozen=True)
class TrialCounts:
    """The counters that the estimators use; arrays of one shape (...)."""

    trials: Floats
    completed: Floats
    correct: Floats
    truncated: Floats
    guesses: Floats
    """Summed guess chances of the completed trials."""

    @property
    def wrong(self) -> Floats:
        """Completed and not correct."""
        return self.completed - self.correct


def counts(counters: ArrayLike, *, labels: Sequence[str] = COUNTERS) -> TrialCounts:
    """The counters that the estimators use, after a check that they do not contradict each other.

    Parameters
    ----------
    counters
        Array (..., counter).
    labels
        Names along the last axis.

    Raises
    ------
    ValueError
        If a label is absent; if completed + truncated differs from trials, correct or guess_sum exceeds
        completed, or one of them is negative. NaN is undefined, not contradictory.
    """
    names = ("trials", "completed", "correct", "truncated", "guess_sum")
    tally = TrialCounts(*(column(counters, name, labels) for name in names))
    slack = 1e-9 * (1.0 + np.abs(tally.completed))
    broken = {
        # Sums that were scaled to an effective number are no whole numbers any more.
        "completed + truncated must equal trials": np.abs(tally.completed + tally.truncated - tally.trials)
        > slack,
        "correct must not exceed completed": tally.correct > tally.completed + slack,
        "guess_sum must not exceed completed": tally.guesses > tally.completed + slack,
        "none may be negative": np.minimum.reduce([column(counters, name, labels) for name in names]) < 0,
    }
    undefined = np.isnan(tally.trials + tally.completed + tally.correct + tally.truncated + tally.guesses)
    for rule, wrong in broken.items():
        if np.any(wrong & ~undefined):
            where = tuple(int(location) for location in np.argwhere(wrong & ~undefined)[0])
            values = ", ".join(f"{name} {column(counters, name, labels)[where]:g}" for name in names)
            location = f" at index {where}" if where else ""
            raise ArgumentError(
                f"the `counters`{location} contradict each other: {rule}, got {values}; recompute the counters "
                "from the trials"
            )
    return tally


def checked_mode(mode: object) -> Mode:
    """The name of an estimator.

    Raises
    ------
    ValueError
        If it is none of `MODES`; the message lists the six.
    """
    if not isinstance(mode, str) or mode not in MODES:
        raise ArgumentError(
            f"`mode` must be one of {', '.join(MODES)}, got {mode!r}: E for equality, C for correctness "
            "(guess-corrected); truncated trials as the others (I), as wrong (P) or as right (O)"
        )
    return mode


def estimate(
    counters: ArrayLike,
    *,
    labels: Sequence[str] = COUNTERS,
    mode: str = "C_P",
    confidence: float | None = None,
    joint: str = "none",
) -> Bounds:
    """Point value, lower and upper bound of one estimator, elementwise.

    Parameters
    ----------
    counters
        Array (..., counter) of counters, summed over the cells of each group.
    labels
        Names of the counters along the last axis; default: those of a cube.
    mode
        Estimator: "E_I", "E_P", "E_O" (share right) or "C_I", "C_P", "C_O" (corrected for guessing). Truncated trials
        are left out (I), wrong (P) or right (O).
    confidence
        Confidence level of each Wilson interval, between 0 and 1; None means z = 1.96 exactly.
    joint
        "none" keeps that level for each factor of the products C_P and C_O, as the reference does; the
        product of two 95% intervals is then not a 95% interval by construction. "bonferroni" gives each
        factor half of the error. The other four have a single factor and do not change.

    Returns
    -------
    point, lower, upper
        Arrays (...) in [0, 1]. NaN without finished trials; for E_I and C_I also without completed ones; for
        the C family also where every completed trial had a single option. Where every trial was truncated,
        C_P is 0 and C_O is 1, with the bound that the share of completed trials sets.

    Raises
    ------
    ValueError
        If an argument is out of range or counters contradict each other, see `counts`.

    References
    ----------
    E. B. Wilson (1927), Probable inference, the law of succession, and statistical inference, Journal of the American
    Statistical Association 22, 209-212. https://doi.org/10.1080/01621459.1927.10502953

    Examples
    --------
    >>> names = ["trials", "completed", "correct", "truncated", "guess_sum"]
    >>> [round(float(value), 4) for value in estimate_success([128, 112, 84, 16, 56], labels=names, mode="C_P")]
    [0.4375, 0.3011, 0.5775]
    """
    chosen = checked_mode(mode)
    tally = counts(counters, labels=labels)
    n, done, right = tally.trials, tally.completed, tally.correct
    if chosen == "E_I":
        return wilson_bounds(right, done, confidence=confidence)
    if chosen == "E_P":
        return wilson_bounds(right, n, confidence=confidence)
    if chosen == "E_O":
        return wilson_bounds(right + tally.truncated, n, confidence=confidence)
    if chosen == "C_I":
        return wilson_bounds(right - tally.guesses, done - tally.guesses, confidence=confidence)
    level = factor_confidence(confidence, joint)
    if chosen == "C_P":
        return _times_completed(tally, right - tally.guesses, level)
    point, lower, upper = _times_completed(tally, tally.wrong, level)
    return 1.0 - point, 1.0 - upper, 1.0 - lower


def factor_confidence(confidence: float | None, joint: str) -> float | None:
    """Level of each of two factors, so that their product has the level asked for; see `estimate`.

    Raises
    ------
    ValueError
        If `joint` is neither "none" nor "bonferroni".

    Examples
    --------
    >>> factor_confidence(None, "bonferroni")
    0.975
    """
    one_of(joint, "joint", get_args(Joint))
    if joint == "none":
        return confidence
    return (1.0 + (0.95 if confidence is None else confidence)) / 2.0


def _times_completed(tally: TrialCounts, successes: Floats, confidence: float | None) -> Bounds:
    """Interval product of a guess-corrected share of the completed trials and the share of completed ones."""
    share = wilson_bounds(successes, tally.completed - tally.guesses, confidence=confidence)
    completed = wilson_bounds(tally.completed, tally.trials, confidence=confidence)
    # Without a completed trial the first factor is anything in [0, 1], but the product is still bounded.
    unknown = tally.completed == 0
    point, lower, upper = (
        np.where(unknown, anything, factor) * finished
        for anything, factor, finished in zip((0.0, 0.0, 1.0), share, completed, strict=True)
    )
    return point, lower, upper


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
    squares = spent**2 / np.maximum(n, 1.0)
    if "tokens_sumsq" in labels:
        squares = column(counters, "tokens_sumsq", labels)
    share = np.where(n > 0, np.asarray(weights, dtype=float), 0.0)
    with np.errstate(all="ignore"):
        mean = spent / np.maximum(n, 1.0)
        overall = (share * mean).sum(axis=-1) / share.sum(axis=-1)
        spread = np.maximum(squares / np.maximum(n, 1.0) - mean**2, 0.0) / np.maximum(n - 1.0, 1.0)
        variance = np.where(n > 1, spread * np.asarray(effect, float), (mean - overall[..., np.newaxis]) ** 2)
        return np.asarray(np.sqrt((share**2 * variance).sum(axis=-1)) / share.sum(axis=-1) / overall)


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
