"""The chance that one model is truly better than another, task by task, and the ratings that follow from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from evalcube.stages.analyze.formulas.arguments import one_of, real, reals, whole
from evalcube.stages.analyze.formulas.intervals import Z_95, Floats, wilson
from evalcube.stages.errors import ArgumentError

METHODS = ("exact", "reference")

DRAWS = 10_000
"""Draws per model and task of the reference method."""

_PANEL_NODES = 16
_HELD = 2**20
"""Values that are held at once where all models meet: models times nodes."""


@dataclass(frozen=True)
class WinRates:
    """Pairwise chances of being better, averaged over tasks."""

    rates: Floats
    """Shape (model, model): the row's chance to beat the column; NaN on the diagonal and without common tasks."""
    tasks: NDArray[np.int64]
    """Shape (model, model): tasks in which both have trials, the ones averaged over."""


def win_rates(successes: ArrayLike, trials: ArrayLike, *, method: str = "exact", seed: int = 0) -> WinRates:
    """Chance that model A's rate exceeds model B's, averaged over the tasks common to both.

    Parameters
    ----------
    successes, trials
        Numbers s of successes and m of trials, also fractional (as after correction for guessing), shape (model, task);
        s is clipped to [0, m], and m <= 0 means that there are no trials.
    method
        "exact": posteriors Beta(s + ½, m − s + ½), integrated numerically to 1e-10; deterministic.
        "reference": Beta with the mean and variance of Wilson's interval, 10 000 draws per model and task; it
        repeats with the seed and errs by about 0.005 per task.
    seed
        Seed of the random draws, at least 0; "exact" does not use it.

    Returns
    -------
    The rates, shape (model, model), and how many tasks each rests on.

    Raises
    ------
    ValueError
        If there are fewer than two models, shapes do not fit, or `method` is unknown.

    Examples
    --------
    >>> float(win_rates([[100], [92]], [[128], [128]]).rates[0, 1].round(6))
    0.875948
    """
    one_of(method, "method", METHODS)
    m, s = reals(trials, "trials"), reals(successes, "successes")
    whole(seed, "seed")
    if m.ndim != 2 or s.shape != m.shape:
        raise ArgumentError(f"`successes` {s.shape} and `trials` {m.shape} must both be (model, task)")
    need_two(len(m), "trials")
    m = np.where(m > 0, m, np.nan)
    s = np.clip(s, 0.0, m)
    total, tasks = np.zeros(m.shape[:1] * 2), np.zeros(m.shape[:1] * 2, dtype=np.int64)
    for task in range(m.shape[1]):
        there = np.flatnonzero(~np.isnan(m[:, task]))
        if method == "exact":
            chance = _superior(s[there, task], m[there, task])
        else:
            draws = _draw(s[:, task], m[:, task], [seed, task])
            chance = np.array(
                [[np.mean(ours > theirs) for theirs in draws.values()] for ours in draws.values()]
            )
        met = np.ix_(there, there)
        total[met] += np.triu(chance, 1) + np.tril(1.0 - chance.T, -1)
        tasks[met] += ~np.eye(len(there), dtype=bool)
    with np.errstate(invalid="ignore"):
        return WinRates(total / np.where(tasks > 0, tasks, np.nan), tasks)


def _superior(successes: Floats, trials: Floats) -> Floats:
    """P(row > column) for the posteriors of all models in one task, shape (model, model).

    Quadrature of ∫ f(x) F(x) dx with x = sin²θ, where no density has a pole, at nodes that all pairs share: each
    distribution is looked at once and not once for each pair. A density's deviation in θ is at most 1/(2√(m + 1)), and
    no panel is wider than six of them.
    """
    a, b = (part[:, np.newaxis] + 0.5 for part in (successes, trials - successes))
    points, weights = np.polynomial.legendre.leggauss(_PANEL_NODES)
    panels = math.ceil(math.sqrt(trials.max(initial=0.0) + 1.0)) + 16
    u = (np.arange(panels)[:, np.newaxis] + (points + 1.0) / 2.0).ravel() / panels
    slope = 30.0 * u**2 * (1.0 - u) ** 2 * np.tile(weights, panels)
    # Of u and of 1 − u: that of the complement loses no digits near the end.
    sine, cosine = (np.sin(np.pi / 2 * v**3 * (10.0 - 15.0 * v + 6.0 * v**2)) ** 2 for v in (u, (1.0 - u)))
    won, mass = np.zeros((len(a),) * 2), np.zeros((len(a), 1))
    for start in range(0, len(u), step := max(1, _HELD // max(len(a), 1))):
        held = slice(start, start + step)
        logs = (a - 0.5) * np.log(sine[held]) + (b - 0.5) * np.log(cosine[held]) - scipy.special.betaln(a, b)
        density = np.exp(logs) * slope[held]
        won += density @ scipy.special.betainc(a, b, sine[held]).T
        mass += density.sum(axis=1, keepdims=True)
    return np.asarray(np.clip(won / mass, 0.0, 1.0))


def need_two(models: int, name: str = "") -> None:
    """Refuse a comparison of fewer than two models.

    Parameters
    ----------
    name
        Of the argument that has them along its first axis, if it is one.

    Raises
    ------
    ValueError
        If `models` < 2.
    """
    where = f" in `{name}`" if name else ""
    if models < 2:
        raise ArgumentError(
            f"a comparison needs at least two models, got {models}{where}; select or evaluate more"
        )


def moment_matched(successes: ArrayLike, trials: ArrayLike) -> tuple[Any, Any]:
    """Parameters (a, b) of the Beta with Wilson's centre as its mean and margin/1.96 as its deviation.

    Examples
    --------
    >>> a, b = moment_matched(100, 128)
    >>> float(a.round(3)), float(b.round(3))
    (102.465, 30.08)
    """
    centre, margin = wilson(successes, trials)
    size = centre * (1.0 - centre) / (margin / Z_95) ** 2 - 1.0
    return centre * size, (1.0 - centre) * size


def _draw(successes: Floats, trials: Floats, key: list[int]) -> dict[int, Floats]:
    """Draws of every model with trials, each from its own stream."""
    a, b = moment_matched(successes, trials)
    return {
        model: np.random.default_rng([*key, model]).beta(a[model], b[model], DRAWS)
        for model in np.flatnonzero(~np.isnan(trials)).tolist()
    }


_STEPS = 200
_FIRM = 0.01
"""Drawn games of the prior from which no curvature is near 0."""


def expected_wins(rates: ArrayLike) -> Floats:
    """Expected wins if each model meets each other once: row sums of win rates.

    Parameters
    ----------
    rates
        Chance of the row's model to beat the column's, shape (model, model); the diagonal is not used, NaN means that
        the two did not meet.

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
        Wins of the row's model over the column's, also fractional, shape (model, model); the diagonal is not used, NaN
        means that the two did not meet.
    prior
        Number of drawn games, at least 0, that each model is assumed to have played against one with the mean log
        rating. With 0, there is a maximum only if no group of models won, or lost, all its games against the others.

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
        chance = scipy.special.expit(theta[:, np.newaxis] - theta)
        drawn = scipy.special.expit(theta)
        gradient = won - (games * chance).sum(axis=1) - prior * drawn
        curve = games * chance * (1.0 - chance)
        hessian = np.diag(curve.sum(axis=1) + prior * drawn * (1.0 - drawn)) - curve
        # A thousand models would take half a minute by singular values, which a firm prior makes no need of.
        if prior >= _FIRM:
            step = np.linalg.solve(hessian, gradient)
        else:
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
