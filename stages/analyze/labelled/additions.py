"""Additions to a leaderboard: composites, accuracies by people's labels, and readings of a second reader."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evalcube._arrays import Dataset, as_xarray
from evalcube.stages.analyze.formulas.arguments import mean_present
from evalcube.stages.analyze.formulas.corrected import (
    LEAST_PASS_OR_FAIL,
    LEAST_SCORES,
    rogan_gladen,
    worth_of,
)
from evalcube.stages.analyze.formulas.design import task_weights
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.labelled.axes import base_design, names, plain
from evalcube.stages.analyze.labelled.clustering import pair_units
from evalcube.stages.analyze.labelled.leaderboard import row_order
from evalcube.stages.analyze.labelled.pairing import Pair, compare_evaluations
from evalcube.stages.analyze.labelled.remarks import (
    NO_READER,
    ReaderGap,
    first_few,
    label_rows,
    named_readers,
)
from evalcube.stages.analyze.labelled.results import Composite, Estimate, Leaderboard, Row
from evalcube.stages.analyze.verdict.composite import (
    HIGHEST,
    LAYERS,
    LOWEST,
    THRESHOLD,
    check_layers,
    checked_weights,
    composite,
    describe,
    layer_bits,
    layer_means,
)
from evalcube.stages.analyze.verdict.paired import paired_intervals
from evalcube.stages.analyze.verdict.people import corrected_scores
from evalcube.stages.errors import ArgumentError
from evalcube.stages.reply.status import FINISHED, LAST_FINISHED, READER, SECOND, Status

_TRIAL = ("task", "params", "trial", "repeat")
_LEAST_DRAWS = 100
PEOPLE_SCORE = "people_score"
"""Variable (model, task, params, trial) with ratings by people from 1 to 5; NaN where there is none."""


def with_composites(
    board: Leaderboard, ds: Dataset, weights: Mapping[str, float] | None = None
) -> Leaderboard:
    """The board with the composite of each row whose outputs have layer scores.

    It is the same board without any, and where they say no more than right and wrong, but for declared weights.

    A unit is a question, whose repeats are averaged first; the mean is that over tasks of base-weighted means over
    points. The interval is that of the mean over units, or their clusters, by sign flips, at the board's level, within
    the scale from 1 to 5.
    """
    names = [name for name in LAYERS if name in ds]
    people = [PEOPLE_SCORE] if PEOPLE_SCORE in ds else []
    if not names or "status" not in ds:
        return board
    declared = {} if weights is None else {name: float(weights.get(name, 0.0)) for name in LAYERS}
    shares = checked_weights(list(declared.values()) or None, len(LAYERS))
    scores = ds[["status", *names, *people]].drop_vars(list(ds.coords), errors="ignore")
    if weights is None and not people and not _scored_beyond_facts(scores):
        return board  # right and wrong alone are the accuracy, on another scale
    scored, base = [], base_design(ds)
    for row, model in zip(board.rows, row_order(ds, board), strict=True):
        units = _units(scores.isel(model=model).compute(), base[model], pair_units(ds, model))
        scored.append(replace(row, composite=_composite(units, shares, board)))
    board = replace(board, cautions=(*board.cautions, *_people_notes(scored, bool(people))))
    return replace(board, rows=tuple(scored), layer_weights=declared)


def _scored_beyond_facts(scores: Dataset) -> bool:
    """Whether a finished answer has another layer than facts."""
    more = [name for name in LAYERS[1:] if name in scores]
    for evaluation in (scores.isel(model=model).compute() for model in range(scores.sizes["model"]) if more):
        finished = np.isin(evaluation["status"].transpose(*_TRIAL).values, FINISHED)
        if any((finished & ~np.isnan(evaluation[name].transpose(*_TRIAL).values)).any() for name in more):
            return True
    return False


@dataclass(frozen=True)
class _Units:
    layers: Floats
    """Mean over the repeats of each question, shape (unit, layer)."""
    shares: Floats
    clusters: NDArray[np.int64] | None
    people: Floats
    """Ratings by people, shape (unit,), NaN where there is none."""


def _units(evaluation: Dataset, base: Floats, clusters: NDArray[np.int64] | None) -> _Units:
    """The questions with a finished answer; `base` is the first plan of the points, shape (task, params)."""
    finished = np.isin(evaluation["status"].transpose(*_TRIAL).values, FINISHED)
    scores = [evaluation[name].transpose(*_TRIAL).values if name in evaluation else np.nan for name in LAYERS]
    layers = np.stack([np.where(finished, part, np.nan) for part in scores], axis=-1).astype(np.float64)
    means = mean_present(layers, axis=3)
    there = (~np.isnan(means)).any(axis=-1)
    number = there.sum(axis=-1)
    weights = task_weights(base, number > 0) / np.maximum(number, 1)
    drawn = None if clusters is None else clusters.reshape(there.shape)[there]
    rated = np.full(there.shape, np.nan)
    if PEOPLE_SCORE in evaluation:
        rated = evaluation[PEOPLE_SCORE].transpose(*_TRIAL[:3]).values
    share = np.broadcast_to(weights[..., np.newaxis], there.shape)[there]
    return _Units(means[there], share, drawn, rated[there].astype(float))


def _composite(questions: _Units, weights: Floats, board: Leaderboard) -> Composite | None:
    units, shares, clusters = questions.layers, questions.shares, questions.clusters
    if not len(units):
        return None
    if ((units < LOWEST) | (units > HIGHEST)).any():
        raise ArgumentError(
            f"the layers hold scores that are not from {LOWEST:g} to {HIGHEST:g}: the cube is damaged"
        )
    counted = np.where(weights > 0, units, np.nan)  # what has no weight is not behind the composite
    totals = composite(counted, weights)
    measured = ~np.isnan(totals)
    check, number = check_layers(layer_means(units, shares), THRESHOLD), int(measured.sum())
    if not measured.any():
        return Composite(Estimate(math.nan, math.nan, math.nan), "missing", check.means, check.passes, 0)
    (interval,) = paired_intervals(
        totals[:, np.newaxis],
        alpha=1.0 - board.confidence,
        draws=max(board.draws, _LEAST_DRAWS),
        seed=board.seed,
        shares=shares,
        clusters=clusters,
    )
    value, ends = interval.estimate, (interval.low, interval.high)
    people = corrected_scores(counted, questions.people, shares, weights.tolist())
    if people:
        value = people["composite"].estimate
        ends = people["composite"].interval(1.0 - board.confidence, clusters)
        check = check_layers({**layer_means(units, shares), "judge": people["judge"].estimate}, THRESHOLD)
    return Composite(
        Estimate(value, *(float(np.clip(end, LOWEST, HIGHEST)) for end in ends)),
        describe(value, layer_bits(counted)),
        check.means,
        check.passes,
        number,
        people["composite"].labels if people else 0,
    )


def _people_notes(rows: Sequence[Row], asked: bool) -> Iterator[str]:
    """Say which composites people's ratings have corrected, where there are ratings."""
    corrected = [
        f"{label} by {row.composite.rated}"
        for row, label in zip(rows, label_rows(rows), strict=True)
        if row.composite is not None and row.composite.rated
    ]
    if corrected:
        yield f"Composites as people's ratings correct them: {first_few(corrected)}."
    if asked and len(corrected) < len(rows):
        yield f"Composites of other rows are not corrected: that takes {LEAST_SCORES} ratings of a row's answers."


PEOPLE_RIGHT = "people_right"
"""Variable (model, task, params, trial) with 1 where people call an answer right, 0 where wrong, else NaN."""
_QUESTION = ("task", "params", "trial")


def with_accuracy_by_people(board: Leaderboard, ds: Dataset) -> Leaderboard:
    """The board with accuracies as people's labels correct them; the same board without any.

    How often the grader passes right answers and fails wrong ones is that of the row's own labels, or with fewer than
    `LEAST_PASS_OR_FAIL` that of all labels together.
    """
    if PEOPLE_RIGHT not in ds or not (~np.isnan(ds[PEOPLE_RIGHT].values)).any():
        return board
    counts = [_label_counts(ds.isel(model=model)) for model in row_order(ds, board)]
    pooled, rows, changes = np.sum(counts, axis=0), [], []
    if pooled.sum() < LEAST_PASS_OR_FAIL:
        few = (
            f"People called {pooled.sum():.0f} answers right or wrong; from {LEAST_PASS_OR_FAIL} on that corrects "
            "the accuracy."
        )
        return replace(board, cautions=(*board.cautions, few))
    for row, own, label in zip(board.rows, counts, label_rows(board.rows), strict=True):
        accuracy, enough = row.accuracy, own.sum() >= LEAST_PASS_OR_FAIL
        wrong, right = own if enough else pooled  # each failed and passed
        worth = worth_of(accuracy.value, accuracy.upper - accuracy.lower, board.confidence, row.trials)
        amounts = (worth, right[1], right.sum(), wrong[0], wrong.sum())
        level = None if board.confidence == 0.95 else board.confidence  # the default itself
        corrected = rogan_gladen(accuracy.value * worth, *amounts, confidence=level)
        rows.append(replace(row, accuracy=Estimate.of(corrected)))
        whose = "its own" if enough else "all rows'"
        changes.append(f"{label}, {100 * accuracy.value:.1f}% before, by {whose}")
    hits, rejected = pooled[1, 1] / max(pooled[1].sum(), 1), pooled[0, 0] / max(pooled[0].sum(), 1)
    summary = (
        f"Accuracy as {pooled.sum():.0f} labels of people correct it, other columns not: the grader passes "
        f"{100 * hits:.0f}% of what they call right and fails {100 * rejected:.0f}% of what they call wrong. "
        f"{first_few(changes)}."
    )
    return replace(board, rows=tuple(rows), cautions=(*board.cautions, summary))


def _label_counts(evaluation: Dataset) -> Floats:
    """Labels of one evaluation, shape (people: wrong, right; grader: failed, passed)."""
    status = evaluation["status"].transpose(*_QUESTION, "repeat").values[..., 0]
    verdicts = evaluation[PEOPLE_RIGHT].transpose(*_QUESTION).values
    there = np.isin(status, FINISHED) & ~np.isnan(verdicts)
    places = 2 * verdicts[there].astype(int) + (status[there] == int(Status.CORRECT))
    return np.bincount(places, minlength=4).reshape(2, 2).astype(float)


def reader_names(ds: Dataset) -> dict[str, str]:
    """Return the names of second readers by task; tasks without one are left out."""
    if READER not in ds.coords or SECOND not in ds:
        return {}
    return {task: name for task, name in zip(names(ds, "task"), names(ds, READER), strict=True) if name}


def read_by_second(ds: Dataset) -> tuple[Dataset, str, list[str]]:
    """The tasks that have a second reader, with its outcomes in the place of ours; who that is; what to know of it.

    Replies that it never read are missing. The counters are as they were.
    """
    readers, tasks = reader_names(ds), names(ds, "task")
    if not readers:
        raise ArgumentError(
            f"`reader`: no task here has a second reader; {NO_READER[0].lower()}{NO_READER[1:]}"
        )
    part = as_xarray(ds).isel(task=np.array([task in readers for task in tasks]))
    status, second = part["status"], part[SECOND]
    finished = status <= LAST_FINISHED
    notes = []
    if without := [task for task in tasks if task not in readers]:
        notes.append(f"Left out, as they have no second reader: {', '.join(map(plain, without))}.")
    if unread := int((finished & (second == int(Status.MISSING))).sum()):
        notes.append(
            f"{unread:,} replies were never read by a second reader, and are missing here: a run of a config "
            "with `reader:` into a new cube reads them from the cache."
        )
    words = f"read by {named_readers(readers, tasks)}"
    return part.drop_vars(SECOND).assign(status=second.where(finished, status)), words, notes


def with_gaps(board: Leaderboard, ds: Dataset) -> Leaderboard:
    """The board with how the second reader and ours differ in each row; the same board where nothing was read twice."""
    readers = reader_names(ds)
    if not readers or "status" not in ds:
        return board
    part = as_xarray(ds).isel(task=np.array([task in readers for task in names(ds, "task")]))
    rows = []
    for row, model in zip(board.rows, row_order(ds, board), strict=True):
        pair = _compare_readers(part, model)
        rows.append(row if pair is None else replace(row, gap=ReaderGap.of(pair.overall)))
    return replace(board, rows=tuple(rows), readers=readers)


def _compare_readers(ds: Dataset, model: int) -> Pair | None:
    """An evaluation as ours reads it against the same as theirs does; None without a reply that both have read."""
    twice = ds.isel(model=[model, model])
    codes = np.stack([ds[name].isel(model=model).values for name in ("status", SECOND)])
    dims = ("model", *(dim for dim in ds["status"].dims if dim != "model"))
    if not (codes <= LAST_FINISHED).all(axis=0).any():
        return None
    return compare_evaluations(twice.assign(status=(dims, codes)), [0, 1])[0]
