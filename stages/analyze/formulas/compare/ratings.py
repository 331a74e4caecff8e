"""Expected wins and Bradley–Terry ratings from pairwise win rates."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from evalcube.stages.analyze.formulas.arguments import real, reals
from evalcube.stages.analyze.formulas.compare.winrates import need_two
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.errors import ArgumentError

_STEPS = 200


def expected_wins(rates: ArrayLike) -> Floats:
    """Wins to be expected when each model meets each other once: row sums of win rates.

    Parameters
    ----------
    rates
        Shape (model, model), the row's chance to beat the column; the diagonal is not used, NaN is no match.

    Returns
    -------
    Shape (model,); NaN for a model without a match. Rows that lack matches are not comparable with others.

    Raises
    ------
    ValueError
        If there are fewer than two models, `rates` is not square, or a rate is outside [0, 1].

    Examples
    --------
    >>> expected_wins([[0, 0.7, 0.9], [0.3, 0, 0.6], [0.1, 0.4, 0]]).round(3).tolist()
    [1.6, 0.9, 0.5]
    """
    wins, played = _matches(rates)
    return np.where(played.any(axis=1), wins.sum(axis=1), np.nan)


def bradley_terry(rates: ArrayLike, *, prior: float = 0.0) -> Floats:
    """Ratings r, summing to 1, such that r_A/(r_A + r_B) fits the win rates best.

    The likelihood of fractional wins has one maximum, the one that iterative scaling approaches; Newton's
    method with halved steps reaches it also where scaling would take millions of rounds. On a full round robin
    the order is that of `expected_wins`; what the ratings add is spacing and a probability scale.

    Parameters
    ----------
    rates
        Shape (model, model), the row's wins over the column, fractional; the diagonal is not used, NaN is no
        match.
    prior
        Drawn games that each model is taken to have played against one of mean log rating, >= 0. With 0 the
        maximum exists only if no group of models won, or lost, all its games against the others.

    Returns
    -------
    Shape (model,), positive, with a sum of 1.

    Raises
    ------
    ValueError
        If there are fewer than two models, a rate is outside [0, 1], or no maximum exists.

    References
    ----------
    R. A. Bradley, M. E. Terry (1952), Rank analysis of incomplete block designs, Biometrika 39, 324-345.
    https://doi.org/10.2307/2334029
    L. R. Ford (1957), Solution of a ranking problem from binary comparisons, American Mathematical Monthly 64,
    28-33. https://doi.org/10.2307/2308513

    Examples
    --------
    >>> bradley_terry([[0, 0.7, 0.9], [0.3, 0, 0.6], [0.1, 0.4, 0]]).round(6).tolist()
    [0.662503, 0.219699, 0.117798]
    """
    wins, _ = _matches(rates)
    if not 0.0 <= real(prior, "prior") < np.inf:
        raise ArgumentError(
            f"`prior` is a number of virtual games and must be finite and at least 0, got {prior!r}"
        )
    if prior == 0.0:
        _need_connection(wins)
    games = wins + wins.T
    won = wins.sum(axis=1) + prior / 2.0
    theta = np.zeros(len(wins))
    value = _likelihood(theta, wins, prior)
    for _ in range(_STEPS):
        chance = expit(theta[:, np.newaxis] - theta)
        drawn = expit(theta)
        gradient = won - (games * chance).sum(axis=1) - prior * drawn
        curve = games * chance * (1.0 - chance)
        hessian = np.diag(curve.sum(axis=1) + prior * drawn * (1.0 - drawn)) - curve
        step = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        size = 1.0
        while (better := _likelihood(theta + size * step, wins, prior)) < value and size > 1e-12:
            size /= 2.0
        theta, value = theta + size * step, better
        theta -= theta.mean() if prior == 0.0 else 0.0
        if np.abs(size * step).max() < 1e-12 * (1.0 + np.abs(theta).max()):
            break
    ratings = np.exp(theta - theta.max())
    return np.asarray(ratings / ratings.sum())


def _matches(rates: ArrayLike) -> tuple[Floats, np.ndarray]:
    """Wins with 0 for no match and on the diagonal, and which matches there are."""
    wins = reals(rates, "rates").copy()
    if wins.ndim != 2 or wins.shape[0] != wins.shape[1]:
        raise ArgumentError(f"`rates` must be a square matrix (model, model), got shape {wins.shape}")
    need_two(len(wins), "rates")
    np.fill_diagonal(wins, np.nan)
    played = ~np.isnan(wins)
    if np.any(wins[played] < 0.0) or np.any(wins[played] > 1.0):
        raise ArgumentError("`rates` must lie in [0, 1]: they are the row's chances to beat the column")
    return np.where(played, wins, 0.0), played


def _need_connection(wins: Floats) -> None:
    from scipy.sparse.csgraph import connected_components  # only without a prior; costs a tenth of a second

    groups, member = connected_components(wins > 0.0, connection="strong")
    if groups == 1:
        return
    for group in range(groups):
        inside = member == group
        if not np.any(wins[np.ix_(~inside, inside)] > 0.0):
            raise ArgumentError(
                f"ratings do not exist: no other model ever beat those of rows {np.flatnonzero(inside).tolist()}, "
                "so that their ratings have no upper limit; give `prior`, such as prior=1"
            )


def _likelihood(theta: Floats, wins: Floats, prior: float) -> float:
    """Log-likelihood of the wins and of the prior's drawn games."""
    matches = wins * -np.logaddexp(0.0, theta - theta[:, np.newaxis])
    drawn = -(np.logaddexp(0.0, theta) + np.logaddexp(0.0, -theta))
    return float(matches.sum() + prior / 2.0 * drawn.sum())
