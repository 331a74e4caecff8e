"""A design effect by question, where each was asked several times.

Answers to one question are alike, so that trials are not independent, but questions are: intervals and tests count as
many trials as independent ones would be worth.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evalcube.stages.analyze.formulas.arguments import broadcast, counted, fitting
from evalcube.stages.errors import ArgumentError


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
