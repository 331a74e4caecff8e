"""How two evaluations of a cube differ on the same questions, task by task and overall."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evalcube._arrays import Dataset
from evalcube.stages.analyze.formulas import design
from evalcube.stages.analyze.formulas.arguments import one_of
from evalcube.stages.analyze.formulas.clustering import design_effect, unit_effect, unit_means
from evalcube.stages.analyze.formulas.compare.paired import holm, pair_table, paired_score, paired_test
from evalcube.stages.analyze.formulas.compare.winrates import need_two
from evalcube.stages.analyze.formulas.design import WEIGHING, Weigh
from evalcube.stages.analyze.formulas.detect import Spread, pair_spread
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.formulas.sequential import mean_e_value
from evalcube.stages.analyze.labelled import axes, counters
from evalcube.stages.analyze.labelled.clustering import pair_units
from evalcube.stages.analyze.labelled.results import Estimate
from evalcube.stages.errors import ArgumentError
from evalcube.stages.reply.status import COMPLETED, Status

TRUNCATED = ("wrong", "drop")


@dataclass(frozen=True)
class PairedDifference:
    """Two evaluations on the trials that both finished, in one task or in all."""

    task: str
    """Empty for all tasks together."""
    trials: int
    questions: int
    """Questions of such trials; a question that was asked several times has several."""
    points: int
    """Points with such trials."""
    first_only: int
    """Trials that only the first got right."""
    second_only: int
    first_rate: float
    """Mean of the share that the first got right of these trials, weighed as the difference."""
    second_rate: float
    difference: Estimate
    """Mean over tasks, or of one, of the difference of success rates, first − second; see `Pair.weighing`."""
    p: float
    """That this difference is 0: below 1 − level exactly where its interval leaves 0 out."""
    p_holm: float
    """Adjusted over the tasks of all pairs, or for all tasks together over the pairs."""
    e: float
    """What speaks against this difference being 0 however often one looks: from 20 on, the chance of a false alarm at
    any look is at most 5%. See `evalcube.stages.analyze.formulas.sequential.mean_e_value`."""
    worth: float = np.nan
    """Independent questions of even chances that say as much of the difference as these: its error is
    ((1 − difference²)/worth)^½. NaN without any."""


Codes = tuple[NDArray[np.uint8], NDArray[np.uint8]]
"""Outcomes of two evaluations, each (task, params, trial, repeat)."""
Borders = Callable[[PairedDifference], Sequence[float]]
"""The differences, one or both ends of a range around 0, that a test of what was found is about."""


@dataclass(frozen=True)
class Pair:
    """Two evaluations compared."""

    first: str
    second: str
    tasks: tuple[PairedDifference, ...]
    overall: PairedDifference
    truncated: tuple[int, int]
    """Trials that the first and the second truncated."""
    weigh: Weigh = "tasks"
    """What weighs the same in the mean over all tasks."""
    alike: tuple[str, ...] = ()
    """Tasks in which points weigh alike, as the first plans of the two contradict each other."""
    ends: tuple[PairedDifference, PairedDifference] | None = None
    """Over all tasks with what was lost at its worst and at its best for the first; None if nothing was."""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Differences of `ends`."""
        return self.ends and (self.ends[0].difference.value, self.ends[1].difference.value)

    @property
    def open(self) -> bool:
        """Whether which one is right more often depends on what was lost."""
        return self.bounds is not None and self.bounds[0] <= 0.0 <= self.bounds[1]

    @property
    def weighing(self) -> str:
        """How points and tasks weigh, in words."""
        end = f"; in {', '.join(self.alike)}, points have equal weight, as the two first runs planned them differently"
        return WEIGHING[self.weigh] + (end if self.alike else "")


def compare_evaluations(
    ds: Dataset,
    models: Sequence[int],
    *,
    truncated: str = "wrong",
    weigh: Weigh = "tasks",
    borders: Borders | None = None,
    lost: NDArray[np.bool_] | None = None,
) -> tuple[Pair, ...]:
    """Every pair of some evaluations, compared on the trials that both finished.

    Where questions were asked several times, whole questions are taken as independent, not their trials. A truncated
    trial is "wrong", or its pair is left out ("drop"). The e-value over all tasks speaks against the nearest of
    `borders`, or 0, and its `worth` is such that Wilson's test there is that of the interval. Both
    are to have what was `lost`, (task, params, trial, repeat); by default that is what ended in a transport error.
    """
    need_two(len(models))
    one_of(truncated, "truncated", TRUNCATED)
    axes.need_status(ds)
    pairs = [_compare_two(ds, pair, truncated, weigh, borders, lost) for pair in combinations(models, 2)]
    return _adjust_pairs(pairs)


def _compare_two(
    ds: Dataset,
    pair: tuple[int, int],
    truncated: str,
    weigh: Weigh,
    borders: Borders | None,
    lost: NDArray[np.bool_] | None,
) -> Pair:
    """`compare_evaluations` of two, its p values not adjusted."""
    labels, tasks, units = axes.evaluation_labels(ds), axes.names(ds, "task"), pair_units(ds, *pair)
    names, asked = [labels[model] for model in pair], counters.planned_questions(ds)[list(pair)].min(axis=0)
    codes = (_codes(ds, pair[0]), _codes(ds, pair[1]))

    def total(sides: Codes) -> PairedDifference:
        cells, weights, rests, _ = _weigh_points(ds, pair, sides, truncated, weigh)
        cells = cells * rests[..., np.newaxis, np.newaxis]
        return _difference(cells, weights * rests, "", units, asked, borders)

    cells, weights, _, apart = _weigh_points(ds, pair, codes, truncated, weigh)
    if not cells[..., 0].any():
        raise ArgumentError(
            f"{names[0]!r} and {names[1]!r} have finished no trial in common; run the sweep further or select "
            "what both have"
        )
    single = tuple(
        _difference(cells[row], weights[row], name, None if units is None else units[row], asked[row])
        for row, name in enumerate(tasks)
    )
    alike = tuple(axes.plain(tasks[row]) for row in np.flatnonzero(apart))
    cut = [int((side == int(Status.TRUNCATED)).sum()) for side in codes]
    ends = [total(sides) for sides in _ends_of_lost(codes, truncated, lost)]
    both_ends = (ends[0], ends[1]) if ends else None
    return Pair(names[0], names[1], single, total(codes), (cut[0], cut[1]), weigh, alike, both_ends)


def _ends_of_lost(codes: Codes, truncated: str, lost: NDArray[np.bool_] | None) -> list[Codes]:
    """Outcomes of both with what was lost at its worst and at its best for the first; nothing if nothing was lost."""
    done = [is_counted(side, truncated) for side in codes]
    if lost is None:
        failed = [side == int(Status.TRANSPORT) for side in codes]
        lost = (failed[0] | done[0]) & (failed[1] | done[1])
    lacks = [lost & ~part for part in done]
    if not np.any(lacks):
        return []
    wrong, right = (
        [np.where(part, np.uint8(end), side) for part, side in zip(lacks, codes, strict=True)]
        for end in (Status.INCORRECT, Status.CORRECT)
    )
    return [(wrong[0], right[1]), (right[0], wrong[1])]


def spread_of(ds: Dataset, first: int, second: int) -> Spread:
    """Return the variance of the difference of two evaluations, weighted as in a comparison."""
    codes = (_codes(ds, first), _codes(ds, second))
    cells, weights, rests, _ = _weigh_points(ds, (first, second), codes, "wrong", "tasks")
    cells, units = cells * rests[..., np.newaxis, np.newaxis], pair_units(ds, first, second)
    shape = (-1, cells.shape[2])
    trials, won, lost = (cells[..., column].reshape(shape) for column in range(3))
    return pair_spread(trials, won, lost, weights.ravel(), None if units is None else units.reshape(shape))


def _adjust_pairs(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """The same with p values adjusted by Holm, over the tasks of all pairs and over the pairs."""
    single = iter(holm([item.p for pair in pairs for item in pair.tasks]).tolist())
    return tuple(
        replace(
            pair,
            tasks=tuple(replace(item, p_holm=next(single)) for item in pair.tasks),
            overall=replace(pair.overall, p_holm=p),
        )
        for pair, p in zip(pairs, holm([pair.overall.p for pair in pairs]).tolist(), strict=True)
    )


def _codes(ds: Dataset, model: int) -> NDArray[np.uint8]:
    """Outcomes of an evaluation, shape (task, params, trial, repeat)."""
    status = ds["status"].variable.isel(model=model).transpose("task", "params", "trial", "repeat")
    return np.asarray(status.compute().values)


def _cells(codes: Codes, truncated: str) -> Floats:
    """Trials of both, only the first right, only the second right, both right: shape (task, params, trial, 4)."""
    right = [code == int(Status.CORRECT) for code in codes]
    done = [is_counted(code, truncated) for code in codes]
    both = (done[0] & done[1] & right[0] & right[1]).sum(axis=-1)
    return np.concatenate([pair_table(right[0], done[0], right[1], done[1]), both[..., np.newaxis]], axis=-1)


def is_counted(codes: NDArray[np.uint8], truncated: str) -> NDArray[np.bool_]:
    """Which outcomes a comparison counts."""
    over = [int(code) for code in (*COMPLETED, *([Status.TRUNCATED] if truncated == "wrong" else []))]
    return np.isin(codes, over)


def _points_in_tiers(ds: Dataset) -> NDArray[np.bool_]:
    """Points in any tier, shape (task, params)."""
    if "in_tier" not in ds.coords:
        return np.ones((ds.sizes["task"], ds.sizes["params"]), dtype=bool)
    return np.asarray(counters.members(ds).any(axis=0))


def _weigh_points(
    ds: Dataset, pair: tuple[int, int], codes: Codes, truncated: str, weigh: Weigh
) -> tuple[Floats, Floats, NDArray[np.bool_], NDArray[np.bool_]]:
    """Counts as of `_cells`, weights of points (task, params), and which tasks (task, 1) means over tasks rest on.

    Points in no tier have no trials here, but in tasks that have no others; means rest on the other tasks, or on all
    where none has a point in a tier. Last, in which tasks the two base designs contradict.
    """
    cells = _cells(codes, truncated)
    inside = _points_in_tiers(ds) & (cells[..., 0].sum(axis=-1) > 0)
    tasks = inside.any(axis=-1, keepdims=True)
    cells *= np.where(tasks, inside, True)[..., np.newaxis, np.newaxis]
    trials = cells[..., 0].sum(axis=-1)
    used, (first, second) = trials > 0, axes.base_design(ds)[list(pair)]
    apart = (design.ratios(first, used) != design.ratios(second, used)).any(axis=-1)
    if weigh == "tasks":
        weights = design.task_weights(np.where(apart[:, np.newaxis], 1, first), used)
    else:
        weights, apart = np.where(used, 1.0 if weigh == "points" else trials, 0.0), np.zeros_like(apart)
    return cells, weights, tasks | ~tasks.any(), apart


def _e_value(
    trials: Floats,
    first: Floats,
    second: Floats,
    weights: Floats,
    units: NDArray[np.int64] | None,
    border: float,
) -> float:
    """Of counts (point, question), against `border`; a point's weight is shared by its questions. NaN without any.

    Where questions have clusters, one of these is a step, with the mean of its questions.
    """
    asked = trials > 0
    share = weights[:, np.newaxis] / np.maximum(asked.sum(axis=-1, keepdims=True), 1)
    steps = (first - second)[asked] / trials[asked]
    worth = np.broadcast_to(share, asked.shape)[asked]
    if units is not None:
        steps, worth = unit_means(steps, worth, units.reshape(asked.shape)[asked])
    # Less the border, differences still have to lie between -1 and 1, as bets on them do.
    return mean_e_value((steps - border) / (1.0 + abs(border)), worth) if asked.any() else np.nan


def _difference(
    cells: Floats,
    weights: Floats,
    task: str,
    units: NDArray[np.int64] | None,
    planned: Floats,
    borders: Borders | None = None,
) -> PairedDifference:
    """Of trials (..., question, 4) of points with weights (...) and planned questions; `p_holm` is to be adjusted."""
    by_point, share = cells.reshape(-1, *cells.shape[-2:]), weights.ravel()
    counts, there = by_point.sum(axis=(0, 1)).astype(int).tolist(), by_point[..., 0] > 0
    # A question counts once within its point: as if each had the mean of their answers.
    answers = by_point[..., :1]
    even = answers.sum(axis=1, keepdims=True) / np.maximum(there.sum(axis=1), 1)[:, np.newaxis, np.newaxis]
    trials, first, second, both = np.moveaxis(by_point * (even / np.maximum(answers, 1.0)), -1, 0)
    if units is None or not there.any():
        effect = design_effect(first, second, trials, share)
    else:
        b, c, m = first[there], second[there], trials[there]
        own = units.reshape(trials.shape)[there]
        effect = unit_effect(b - c, b + c, m, share, own, cells=np.nonzero(there)[0], prior=0.0)
    right, wrong, size = (part.sum(axis=-1) / effect for part in (first, second, trials))
    bounds, p, worth = paired_test(right, wrong, size, share, units=planned.ravel())
    with np.errstate(all="ignore"):  # NaN without trials
        hits = [alone + both.sum(axis=-1) / effect for alone in (right, wrong)]
        ours, theirs = (float(np.nansum(share * part / size) / share.sum()) for part in hits)
    amounts = counts[0], int(there.sum()), int(there.any(axis=-1).sum()), counts[1], counts[2]
    difference = PairedDifference(task, *amounts, ours, theirs, Estimate.of(bounds), p, p, np.nan, worth)
    against = 0.0
    if borders is not None and there.any():
        scores = {
            border: paired_score(right, wrong, size, share, border=border, units=planned.ravel())
            for border in borders(difference)
        }
        # The end of a range that lies nearest, or is passed furthest.
        against = min(scores, key=lambda border: -scores[border] * math.copysign(1.0, border))
        gap = difference.difference.value - against
        if gap and abs(against) < 1.0:
            worth = scores[against] ** 2 * (1.0 - against**2) / gap**2
    return replace(difference, worth=worth, e=_e_value(trials, first, second, share, units, against))
