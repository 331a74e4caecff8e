"""Leaderboards, estimates, comparisons and metrics of a cube, or of a part of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from evalcube._arrays import Dataset, variable
from evalcube.flows.config.near_names import checked_option
from evalcube.flows.cube_like import CubeLike, listed
from evalcube.flows.errors import (
    SweepError,
    WrongTypeError,
    need_number,
    need_text,
    no_bare_text,
    refused,
    told,
)
from evalcube.flows.plan.evaluations import evaluation_place
from evalcube.flows.plan.filters import checked_names
from evalcube.flows.read.results import (
    ComparisonResult,
    LeaderboardResult,
    MetricsResult,
    RankingResult,
    TableResult,
)
from evalcube.flows.read.selection import OpenPart, Part, open_part
from evalcube.flows.read.sides import check_repeats, full_labels, warn_of_joined
from evalcube.stages.analyze.formulas.design import Weigh
from evalcube.stages.analyze.formulas.estimators import MODES, Mode
from evalcube.stages.analyze.formulas.outcomes.table import METRICS
from evalcube.stages.analyze.labelled import axes, pairing, ranking
from evalcube.stages.analyze.labelled.additions import with_accuracy_by_people, with_composites, with_gaps
from evalcube.stages.analyze.labelled.aggregate import aggregate as estimate_groups
from evalcube.stages.analyze.labelled.columns import sorted_by
from evalcube.stages.analyze.labelled.leaderboard import BoardWeigh
from evalcube.stages.analyze.labelled.leaderboard import leaderboard as rank_evaluations
from evalcube.stages.analyze.labelled.outcomes import cube_outcome_metrics, lost_sentences
from evalcube.stages.analyze.labelled.points import told_of_points
from evalcube.stages.analyze.labelled.scores import VERSIONS, Version
from evalcube.stages.analyze.labelled.selection import keys

_EXAMPLES = {"tau": "0.5", "weights": "0.2,0.3,0.5"}
"""Of settings without which a metric means nothing."""


def leaderboard(
    cube: CubeLike,
    part: Part | None = None,
    *,
    version: Version = "auto",
    mode: Mode | Literal["auto"] = "auto",
    seed: int = 0,
    draws: int = 2000,
    confidence: float = 0.95,
    sort: str = "",
    gold: str | Path | None = None,
    weigh: BoardWeigh = "tasks",
) -> LeaderboardResult:
    """Rank the evaluations of a cube by ReasonScore, or by accuracy if trials are few.

    Parameters
    ----------
    cube
        A cube, or several in a list, read as if merged.
    part
        Which part of it to read, an `evalcube.Part`; default: all of it.
    version
        What ranks the rows. "auto": a score drawn from the likely success rates, with an interval; or the rate of
        `mode`, if a task has few trials in a tier or all tasks are data sets. "v1": the score from upper bounds; "v2":
        from measured rates.
    mode
        Estimator of the column ``rate``, as for `table`; "auto" is C_P, or E_P if all tasks are data sets.
    seed, draws
        Seed and number of the random draws behind the intervals.
    confidence
        Confidence level of the intervals, between 0 and 1.
    sort
        Column to order the rows by, the best value first, such as "score/token"; default: what ranks the rows.
    gold
        Path of a file of ratings by people: with 50 or more scores of an evaluation they correct its composite, with
        100 or more right-or-wrong labels its accuracy. For one cube only. Default: none.
    weigh
        "tasks": tasks have equal weight; within a task, points weigh by the trials that the cube's first run planned
        for them, however many were added. "trials": all trials have equal weight, as in papers.

    Returns
    -------
    LeaderboardResult
        Rows, the best first, and notes for their reader.

    Raises
    ------
    StorageError, SweepError
        If a cube cannot be read, the part is empty, counters contradict each other, or an option is unknown.

    Examples
    --------
    >>> import evalcube as ec
    >>> ec.leaderboard("results/sweep.zarr", ec.Part(["task=sort"])).to_dataframe()["model_name"].tolist()
    ['large', 'small']
    """
    return leaderboard_of(
        rated_part(cube, part, gold),
        version=version,
        mode=mode,
        seed=seed,
        draws=draws,
        confidence=confidence,
        sort=sort,
        weigh=weigh,
    )


def rated_part(cube: CubeLike, part: Part | None, gold: str | Path | None) -> OpenPart:
    """The part that is meant, with ratings by people if there are any."""
    opened = open_part(cube, part, trials=gold is not None)
    if gold is None:
        return opened
    from evalcube.flows.read.gold import rated_by_people  # with plans, which take a while

    return rated_by_people(opened, cube, gold)


def leaderboard_of(
    opened: OpenPart,
    *,
    version: Version = "auto",
    mode: Mode | Literal["auto"] = "auto",
    seed: int = 0,
    draws: int = 2000,
    confidence: float = 0.95,
    sort: str = "",
    weigh: BoardWeigh = "tasks",
) -> LeaderboardResult:
    """`leaderboard` of a part that is open already."""
    checked_option("version", version, VERSIONS)
    checked_option("mode", mode, ("auto", *MODES))
    checked_option("weigh", weigh, get_args(BoardWeigh))
    need_number("seed", seed, whole=True)
    need_number("draws", draws, whole=True)
    need_number("confidence", confidence)
    with refused():
        board = rank_evaluations(
            opened.arrays,
            version=version,
            mode=mode,
            seed=seed,
            draws=draws,
            confidence=confidence,
            selection=opened.selection,
            weigh=weigh,
        )
        board = with_composites(with_accuracy_by_people(board, opened.arrays), opened.arrays, opened.weights)
        board = with_gaps(board, opened.arrays)
        return LeaderboardResult.of(sorted_by(board, need_text("sort", sort)) if sort else board)


def table(
    cube: CubeLike,
    part: Part | None = None,
    *,
    by: Sequence[str] = ("model",),
    mode: Mode = "C_P",
    weigh: Weigh = "tasks",
    confidence: float = 0.95,
) -> TableResult:
    """Success rates with intervals, of any groups.

    Parameters
    ----------
    cube
        A cube, or several in a list, read as if merged.
    part
        Which part of it to read, an `evalcube.Part`; default: all of it.
    by
        Names to group by: model, task, tier, a facet, or a parameter such as param_length; ``param_`` may be left out.
    mode
        Estimator: E_I, E_P, E_O (share right) or C_I, C_P, C_O (corrected for guessing). Truncated trials are left out
        (I), wrong (P) or right (O).
    weigh
        As for `leaderboard`, or "points": all points have equal weight.
    confidence
        Confidence level of the intervals, between 0 and 1.

    Returns
    -------
    TableResult
        The `part` that was read, and its `estimates`; it unpacks into these two.

    Raises
    ------
    StorageError, SweepError
        As `leaderboard`.

    Examples
    --------
    >>> import evalcube as ec
    >>> ec.table("results/sweep.zarr", by=["task"]).to_dataframe()["task"].tolist()
    ['sort', 'arithmetic']
    """
    checked_option("mode", mode, MODES)
    checked_option("weigh", weigh, get_args(Weigh))
    need_number("confidence", confidence)
    no_bare_text(by=by)
    # Models answer the same questions: how much alike, trials tell.
    by = [name.strip() for name in by]
    opened = open_part(cube, part, trials="model" not in by, by=by)
    names = checked_names(by, keys(opened.arrays), "by")
    with refused():
        estimates = estimate_groups(
            opened.arrays, by=names, mode=mode, weigh=weigh, confidence=confidence
        ).compute()
    return TableResult(opened, _with_labels(estimates, opened))


def rank(
    cube: CubeLike, part: Part | None = None, *, version: Version = "auto", seed: int = 0, draws: int = 2000
) -> RankingResult:
    """Rank evaluations with rank intervals, clusters, expected wins and ratings.

    Parameters
    ----------
    cube
        A cube, or several in a list, read as if merged.
    part
        Which part of it to read, an `evalcube.Part`; default: all of it.
    version
        What ranks the rows: "auto", "v1" or "v2", as for `leaderboard`.
    seed, draws
        Seed and number of the random draws behind the rank intervals.

    Returns
    -------
    RankingResult
        The `part` that was read, its `ranking` (ranks, groups, expected wins, ratings), and `board`, the leaderboard
        that is ranked; it unpacks into these three.

    Raises
    ------
    StorageError, SweepError
        As `leaderboard`; also if there are fewer than two evaluations.

    Examples
    --------
    >>> import evalcube as ec
    >>> ec.rank("results/sweep.zarr").records()[0]["model_name"]
    'large'
    """
    opened = open_part(cube, part, trials=False)
    _need_two(opened, opened.arrays.sizes["model"])
    board = leaderboard_of(opened, version=version, seed=seed, draws=draws)
    with refused():
        return RankingResult(opened, ranking.rank_rows(opened.arrays, board), board)


def compare(
    cube: CubeLike,
    models: Sequence[str | int] = (),
    part: Part | None = None,
    *,
    repeats: int | None = None,
    truncated: str = "wrong",
    weigh: Weigh = "tasks",
) -> ComparisonResult:
    """Compare evaluations in pairs, on the trials that both finished.

    Parameters
    ----------
    cube
        A cube, or several in a list, read as if merged.
    part
        Which part of it to read, an `evalcube.Part`; default: all of it.
    models
        Evaluations to compare in pairs, by label, model name or number (from 0); default: all.
    repeats
        Use only this many answers to each question, from the first; default: all.
    truncated
        "wrong": a truncated answer counts as wrong; "drop": trials with one are left out.
    weigh
        As for `leaderboard`, or "points": all points have equal weight.

    Returns
    -------
    ComparisonResult
        The `part` that was read, and `pairs`, one for each two evaluations; it unpacks into these two.

    Raises
    ------
    StorageError, SweepError
        If a cube cannot be read, the part is empty, a model is unknown, or two models have no trial in common.

    Examples
    --------
    >>> import evalcube as ec
    >>> ec.compare("results/sweep.zarr", ["large", "small"]).to_dataframe()["task"].tolist()  # '': of all
    ['sort', 'arithmetic', '']
    """
    checked_option("truncated", truncated, pairing.TRUNCATED)
    checked_option("weigh", weigh, get_args(Weigh))
    no_bare_text(models=models)
    check_repeats(repeats)
    cubes = listed(cube)
    opened = open_part(cubes, part)
    labels = axes.evaluation_labels(opened.arrays)
    spellings = labels, axes.names(opened.arrays, "model_name"), full_labels(opened.arrays)
    chosen = [evaluation_place(name, *spellings) for name in models or ()] or list(range(len(labels)))
    if len(set(chosen)) < len(chosen):
        raise SweepError("a model is named twice", "Name two different ones")
    _need_two(opened, len(chosen))
    with refused():
        pairs = pairing.compare_evaluations(
            opened.arrays.isel(repeat=slice(repeats)), chosen, truncated=truncated, weigh=weigh
        )
    return ComparisonResult(warn_of_joined(opened, cubes, chosen), pairs)


def metrics(
    cube: CubeLike,
    part: Part | None = None,
    *,
    names: Sequence[str] = ("pass_at_k", "pass_hat_k"),
    k: Sequence[int] = (),
    by: Sequence[str] = ("model",),
    settings: Mapping[str, object] | None = None,
) -> MetricsResult:
    """Compute pass@k and other metrics of repeated answers, with intervals.

    Each is the mean over tasks of the means over points, weighted by the trials that the first run planned, of
    the means over questions with at least k answers.

    Parameters
    ----------
    cube
        A cube, or several in a list, read as if merged.
    part
        Which part of it to read, an `evalcube.Part`; default: all of it.
    names
        Names of metrics, such as pass_at_k, pass_hat_k, bayes or pass_at_k_ci (a Bayesian estimate with its interval).
    k
        Numbers of answers drawn from those to a question; default: the powers of two up to the number of repeats.
    by
        Names to group by: model, task, tier, a facet, or a parameter such as param_length; ``param_`` may be left out.
    settings
        Arguments of the metrics by name, such as ``{"tau": 0.5, "confidence": 0.9, "weights": [0.5, 0.5]}``; each goes
        to all metrics that take it, and ``confidence`` is the confidence level of all intervals. Default: those of the
        functions in `evalcube.stats`.

    Returns
    -------
    MetricsResult
        The `part` that was read, and its `estimates`; it unpacks into these two.

    Raises
    ------
    StorageError, SweepError
        If a cube cannot be read, the part is empty, a metric or a setting is unknown, or k exceeds the repeats.

    Examples
    --------
    >>> import evalcube as ec
    >>> len(ec.metrics("results/sweep.zarr", names=["pass_at_k"], k=[1]).to_dataframe())
    2
    """
    no_bare_text(names=names, by=by, k=k)
    if not isinstance(settings, Mapping | None):
        raise WrongTypeError(
            f"`settings`: {told(settings)} is no mapping", "Give one, such as {'threshold': 0.5}"
        )
    if not names:
        raise SweepError("`names`: nothing is named", "Give names such as pass_at_k,pass_hat_k")
    for name in names:
        checked_option("names", name, list(METRICS))
    options = _metric_options(names, settings or {})
    level: Any = (settings or {}).get("confidence", 0.95)
    need_number("confidence", level)
    opened = open_part(cube, part, by=by)
    groups = checked_names(by, keys(opened.arrays), "by")
    samples = opened.arrays.sizes["repeat"]
    for number in k:
        need_number("k", number, whole=True)
    draws = list(k) or [2**power for power in range(samples.bit_length())]
    over = [number for number in draws if number > samples or number < 1]
    if over:
        raise SweepError(
            f"`k`: {over[0]} is not from 1 to {samples}, the number of repeats of each question",
            f"Give whole numbers from 1 to {samples}, or ask more often: `evalcube upsample CUBE --repeats N`",
        )
    with refused():
        estimates = cube_outcome_metrics(
            opened.arrays, list(names), draws, by=groups, options=options, confidence=level
        )
        labels = axes.evaluation_labels(opened.arrays)
        lost = lost_sentences(opened.arrays, names[0], draws[0], labels, by=groups, options=options)
    estimates = _with_labels(
        estimates.assign_attrs(metrics=list(names), settings=dict(settings or {})), opened
    )
    estimates.attrs["points_told"] += lost
    return MetricsResult(opened, estimates)


def _with_labels(estimates: Dataset, opened: OpenPart) -> Dataset:
    """Estimates whose evaluations go by their labels and not by their numbers, and what to say of their points."""
    every = axes.evaluation_labels(opened.arrays)
    sentences = told_of_points({name: estimates.attrs.pop(name) for name in ("left_out", "lacking")}, every)
    estimates = estimates.assign_attrs(points_told=sentences)
    if "model" not in estimates.sizes:
        return estimates
    return estimates.assign_coords(model=variable(("model",), np.array(every)[estimates["model"].values]))


def _metric_options(names: Sequence[str], settings: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """The settings that each metric takes, by metric; every setting is taken by one, and none lacks what it needs."""
    takes = {name: METRICS[name].settings for name in names}
    for setting in settings:
        if setting != "confidence" and not any(setting in accepted for accepted in takes.values()):
            own = ", ".join(sorted(set().union(*takes.values()))) or "nothing"
            raise SweepError(
                f"`settings`: no metric asked for takes '{setting}'", f"Those asked for take: {own}"
            )
    options = {
        name: {setting: value for setting, value in settings.items() if setting in accepted}
        for name, accepted in takes.items()
    }
    for name in names:
        needed = METRICS[name].required
        if needed and needed not in settings:
            raise SweepError(
                f"`names`: {name} needs the setting `{needed}`",
                f"Give it, as in {needed}={_EXAMPLES[needed]}",
            )
    return {name: arguments for name, arguments in options.items() if arguments}


def _need_two(opened: OpenPart, count: int) -> None:
    """Refuse a comparison of fewer evaluations than two."""
    if count < 2:
        names = ", ".join(axes.evaluation_labels(opened.arrays))
        raise SweepError(
            f"a comparison needs at least two evaluations, got {count}; here are: {names}",
            "Name two, widen `where`, or measure another model",
        )
