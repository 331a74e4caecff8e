"""Intervals of success rates, Wilson's and the exact one, with real-valued counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from evalcube.stages.analyze.formulas.arguments import confidence_level, fitting

Floats = NDArray[np.float64]

Z_95 = 1.96
"""The default quantile: the published reference data reproduces bit for bit with 1.96, not with 1.959964."""


def quantile(confidence: float | None) -> float:
    """Two-sided standard normal quantile of a confidence level.

    Parameters
    ----------
    confidence
        Level in (0, 1); None means 95% with z = 1.96 exactly.

    Raises
    ------
    ValueError
        If the level is not inside (0, 1).

    Examples
    --------
    >>> quantile(None)
    1.96
    >>> round(quantile(0.99), 4)
    2.5758
    """
    if confidence is None:
        return Z_95
    return float(scipy.special.ndtri((1.0 + confidence_level(confidence)) / 2.0))


def wilson(successes: ArrayLike, trials: ArrayLike, *, confidence: float | None = None) -> tuple[Any, Any]:
    """Centre and margin of Wilson's score interval, elementwise.

    With p = s/m the centre is (p + z²/2m)/(1 + z²/m) and the margin is z·sqrt(p(1−p)/m + z²/4m²)/(1 + z²/m).
    Both counts may be real-valued, as guess-corrected counts are.

    Parameters
    ----------
    successes
        Number s of successes, any shape; clipped to [0, m]. Sum counts first: clip only after pooling.
    trials
        Number m of trials; must broadcast with `successes`.
    confidence
        Confidence level of the interval, between 0 and 1; None means z = 1.96 exactly.

    Returns
    -------
    centre, margin
        float64 arrays of the broadcast shape (scalars for scalars). NaN where m <= 0 or an input is NaN.
        centre − margin and centre + margin lie in [0, 1]; they are exactly 0 for s = 0 and 1 for s = m.

    Raises
    ------
    ValueError
        If `confidence` is not inside (0, 1), or the counts are not numbers or do not broadcast.

    References
    ----------
    E. B. Wilson (1927), Probable inference, the law of succession, and statistical inference, Journal of the
    American Statistical Association 22, 209-212. https://doi.org/10.1080/01621459.1927.10502953

    Examples
    --------
    >>> centre, margin = wilson(100, 100)
    >>> round(float(centre), 9), round(float(margin), 9), float(centre + margin)
    (0.981502596, 0.018497404, 1.0)
    """
    z = quantile(confidence)
    s, m = np.broadcast_arrays(*fitting(successes=successes, trials=trials))
    with np.errstate(all="ignore"):
        m = np.where(m > 0, m, np.nan)
        s = np.clip(s, 0.0, m)
        p = s / m
        growth = 1.0 + z * z / m
        centre = (p + z * z / (2.0 * m)) / growth
        margin = z * np.sqrt(p * (1.0 - p) / m + z * z / (4.0 * m * m)) / growth
        margin = np.where(s == m, 1.0 - centre, np.where(s == 0.0, centre, margin))
        margin = np.minimum(margin, np.minimum(centre, 1.0 - centre))
    return centre[()], margin[()]


def wilson_bounds(
    successes: ArrayLike, trials: ArrayLike, *, confidence: float | None = None
) -> tuple[Any, Any, Any]:
    """Point value s/m with the lower and upper bound of Wilson's score interval, elementwise.

    Parameters
    ----------
    successes
        Number s of successes, any shape; clipped to [0, m].
    trials
        Number m of trials; must broadcast with `successes`.
    confidence
        Confidence level of the interval, between 0 and 1; None means z = 1.96 exactly.

    Returns
    -------
    point, lower, upper
        float64 arrays of the broadcast shape in [0, 1]; NaN where m <= 0 or an input is NaN.

    Raises
    ------
    ValueError
        If `confidence` is not inside (0, 1), or the counts are not numbers or do not broadcast.

    References
    ----------
    E. B. Wilson (1927), Probable inference, the law of succession, and statistical inference, Journal of the
    American Statistical Association 22, 209-212. https://doi.org/10.1080/01621459.1927.10502953

    Examples
    --------
    >>> [round(float(value), 6) for value in wilson_bounds(0, 32)]
    [0.0, 0.0, 0.107183]
    """
    centre, margin = wilson(successes, trials, confidence=confidence)
    s, m = np.asarray(successes, dtype=float), np.asarray(trials, dtype=float)
    with np.errstate(all="ignore"):
        m = np.where(m > 0, m, np.nan)
        point = np.clip(s, 0.0, m) / m
    return point[()], centre - margin, centre + margin


def exact_bounds(
    successes: ArrayLike, trials: ArrayLike, *, confidence: float | None = None
) -> tuple[Any, Any, Any]:
    """Point value s/m with the lower and upper bound of the exact interval of Clopper and Pearson, elementwise.

    Quantiles of Beta(s, m − s + 1) and Beta(s + 1, m − s), which real-valued counts have as well. It covers at any
    number of trials, where Wilson's falls to 85% for few trials and rates near 0 or 1.

    Parameters
    ----------
    successes
        s, any shape; clipped to [0, m].
    trials
        m, any shape that broadcasts with `successes`.
    confidence
        Level in (0, 1); None means 95%.

    Returns
    -------
    point, lower, upper
        float64 arrays of the broadcast shape in [0, 1]; NaN where m <= 0 or an input is NaN.

    Raises
    ------
    ValueError
        If `confidence` is not inside (0, 1), or the counts are not numbers or do not broadcast.

    References
    ----------
    C. J. Clopper, E. S. Pearson (1934), The use of confidence or fiducial limits illustrated in the case of the
    binomial, Biometrika 26, 404-413. https://doi.org/10.1093/biomet/26.4.404

    Examples
    --------
    >>> [round(float(value), 6) for value in exact_bounds([0, 4], 8)[2]]
    [0.369417, 0.842987]
    """
    quantile(confidence)
    tail = (1.0 - (0.95 if confidence is None else confidence)) / 2.0
    s, m = np.broadcast_arrays(*fitting(successes=successes, trials=trials))
    with np.errstate(all="ignore"):
        m = np.where(m > 0, m, np.nan)
        s = np.clip(s, 0.0, m)
        wrong = m - s
        lower = np.where(s > 0, scipy.special.betaincinv(np.where(s > 0, s, 1.0), wrong + 1.0, tail), 0.0)
        upper = scipy.special.betaincinv(s + 1.0, np.where(wrong > 0, wrong, 1.0), 1.0 - tail)
        upper = np.where(wrong > 0, upper, 1.0)
        undefined = np.isnan(m + s)
        point, lower, upper = (np.where(undefined, np.nan, part) for part in (s / m, lower, upper))
    return point[()], lower[()], upper[()]
