"""A test and a design effect by question, where each was asked several times.

Answers to one question are alike, so that trials are not independent, but questions are: the test turns the sign
of whole questions, and intervals count as many trials as independent ones would be worth.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evalcube.stages.analyze.formulas.arguments import broadcast, counted, fitting, one_of, reals
from evalcube.stages.analyze.formulas.compare.paired import METHODS, mcnemar
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.errors import ArgumentError

_DIRECT = 20_000
"""Longest distribution that is convolved term by term."""
_MOST = 10**8
"""Trials whose distribution fits into memory."""


def sign_flip(differences: ArrayLike, *, method: str = "midp") -> float:
    """Two-sided p value that each question's difference is as likely with the other sign; 1 without any.

    The exact distribution of the sum over all 2^n signs, without drawing. With one trial for each question it is
    `mcnemar`.

    Parameters
    ----------
    differences
        Whole numbers, one for each question: how many of its trials only the first got right, less those that
        only the second did.
    method
        "exact" or "midp", as in `mcnemar`.

    Returns
    -------
    The p value, in [0, 1].

    Raises
    ------
    ValueError
        If `method` is unknown, a difference is not whole, or they are too many.

    References
    ----------
    R. A. Fisher (1935), The Design of Experiments, section 21: the randomisation test of paired differences.

    Examples
    --------
    >>> sign_flip([1, 1, 1, 1, 1, 1, 1, -1]) == float(mcnemar(7, 1))
    True
    >>> round(sign_flip([4, 2, -1], method="exact"), 6)
    0.5
    """
    one_of(method, "method", METHODS)
    values = reals(differences, "differences").ravel()
    if np.any(values != np.floor(values)) or not np.abs(values).sum() <= _MOST:
        raise ArgumentError(
            f"`differences` are counts of trials: whole numbers, no NaN, together at most {_MOST:,}"
        )
    first, second = values[values > 0], -values[values < 0]
    steps, counts = np.unique(np.concatenate([first, second]).astype(np.int64), return_counts=True)
    if not len(steps) or steps[-1] == 1:
        return float(mcnemar(len(first), len(second), method=method))
    chances = _sums(steps.tolist(), counts.tolist())
    least = int(min(first.sum(), second.sum()))
    tail = 2.0 * chances[: least + 1].sum() - (chances[least] if method == "midp" else 0.0)
    return float(np.clip(tail, 0.0, 1.0))


def _sums(steps: list[int], counts: list[int]) -> Floats:
    """Chances of 0, 1, 2, ... if each step is taken or not with chance ½, as often as it is there."""
    # imported here: `scipy.stats` takes longer to import than most cubes to read, and few ask questions twice
    from scipy.signal import fftconvolve
    from scipy.stats import binom

    chances = np.ones(1)
    for step, count in zip(steps, counts, strict=True):
        taken = np.zeros(step * count + 1)
        taken[::step] = binom.pmf(np.arange(count + 1), count, 0.5)
        convolve = np.convolve if len(chances) + len(taken) < _DIRECT else fftconvolve
        chances = np.maximum(convolve(chances, taken), 0.0)
    return chances


def design_effect(
    first_only: ArrayLike, second_only: ArrayLike, trials: ArrayLike, weights: ArrayLike = 1.0
) -> float:
    """How many trials are worth one independent trial: variance by question over variance by trial.

    Parameters
    ----------
    first_only, second_only, trials
        Whole numbers by stratum and question, shape (stratum, question).
    weights
        Of the strata, broadcasts to (stratum,).

    Returns
    -------
    From 1, trials of a question are independent, to the most trials of a question, they say the same; that is
    also taken where nothing can be said.

    Raises
    ------
    ValueError
        If a count is negative or infinite, or shapes do not fit.

    References
    ----------
    J. N. K. Rao, A. J. Scott (1992), A simple method for the analysis of clustered binary data, Biometrics 48,
    577-585. https://doi.org/10.2307/2532311

    Examples
    --------
    >>> design_effect([[4, 0, 4, 0, 0]], [[0, 4, 0, 0, 0]], [[4, 4, 4, 4, 4]])
    4.0
    """
    b, c, asked = np.broadcast_arrays(*fitting(first_only=first_only, second_only=second_only, trials=trials))
    if asked.ndim == 0:
        raise ArgumentError("`trials` must be (stratum, question), got a single number")
    for name, part in (("first_only", b), ("second_only", c), ("trials", asked)):
        counted(part, name)
    most = float(asked.max(initial=0.0))
    if most <= 1.0:
        return 1.0
    questions, n = (asked > 0).sum(axis=-1), asked.sum(axis=-1)
    used = questions > 1
    share = broadcast(weights, "weights", used.shape)[used].astype(np.float64) ** 2
    b, c, asked, questions, n = b[used], c[used], asked[used], questions[used], n[used]
    mean = (b - c).sum(axis=-1) / n
    spread = ((b - c - mean[:, np.newaxis] * asked) ** 2).sum(axis=-1)
    by_question = questions / (questions - 1) * spread / n**2
    by_trial = ((b + c).sum(axis=-1) - n * mean**2) / (n * (n - 1))
    if (share * by_trial).sum() <= 0.0:
        return most
    return float(np.clip((share * by_question).sum() / (share * by_trial).sum(), 1.0, most))
