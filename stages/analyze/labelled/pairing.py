"""How two evaluations of a cube differ on the same questions, task by task and overall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evalcube._arrays import Dataset
from evalcube.stages.analyze.formulas import design
from evalcube.stages.analyze.formulas.arguments import one_of
from evalcube.stages.analyze.formulas.clustering import unit_effect, unit_means
from evalcube.stages.analyze.formulas.compare.paired import (
    difference_p,
    difference_worth,
    holm,
    pair_table,
    paired_difference,
)
from evalcube.stages.analyze.formulas.compare.repeated import design_effect
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
    any look is at most 5 %. See `evalcube.stages.analyze.formulas.sequential.mean_e_value`."""
    worth: float = np.nan
    """Independent questions of even chances that say as much of the difference as these: its error is
    ((1 − difference²)/worth)^½. NaN without any."""


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
    bounds: tuple[float, float] | None = None
    """Difference over all tasks with what was lost at its worst and at its best for the first; None if nothing was."""

    @property
    def open(self) -> bool:
        """Whether which one is right more often depends on what was lost."""
        return self.bounds is not None and self.bounds[0] <= 0.0 <= self.bounds[1]

    @property
    def weighing(self) -> str:
        """How points and tasks weigh, in words."""
        also = (
            f"; in {', '.join(self.alike)}, where the first plans of the two contradict, points weigh alike"
        )
        return WEIGHING[self.weigh] + (also if self.alike else "")


def compare_evaluations(
    ds: Dataset,
    models: Sequence[int],
    *,
    truncated: str = "wrong",
    weigh: Weigh = "tasks",
    border: float = 0.0,
) -> tuple[Pair, ...]:
    """Every pair of some evaluations, compared on the trials that both finished.

    Where questions were asked several times, whole questions are taken as independent, not their trials.
    """
    need_two(len(models))
    one_of(truncated, "truncated", TRUNCATED)
    axes.need_status(ds)
    labels, tasks = axes.evaluation_labels(ds), axes.names(ds, "task")
    base, rated, planned = axes.base_design(ds), _rated(ds), counters.planned_questions(ds)
    found = []
    for place, first in enumerate(models[:-1]):
        codes = _codes(ds, first)
        for second in models[place + 1 :]:
            others = _codes(ds, second)
            asked = np.minimum(planned[first], planned[second])
            cells, counts = _ranked(_cells(codes, others, truncated), rated)
            if not cells[..., 0].any():
                raise ArgumentError(
                    f"{labels[first]!r} and {labels[second]!r} have finished no trial in common; run the sweep "
                    "further or select what both have"
                )
            weights, apart = _weights(cells, base[first], base[second], weigh)
            units = pair_units(ds, first, second)
            single = tuple(
                _difference(
                    cells[task],
                    weights[task],
                    name,
                    None if units is None else units[task],
                    planned=asked[task],
                )
                for task, name in enumerate(tasks)
            )
            overall = _difference(
                cells * counts[..., np.newaxis, np.newaxis],
                weights * counts,
                "",
                units,
                border,
                planned=asked,
            )
            ends = []
            for mine, theirs in _ends_of_lost(codes, others):
                filled, counts = _ranked(_cells(mine, theirs, truncated), rated)
                share = _weights(filled, base[first], base[second], weigh)[0] * counts
                ends.append(_difference(filled, share, "", planned=asked).difference.value)
            alike = tuple(axes.plain(tasks[task]) for task in np.flatnonzero(apart))
            cut = tuple(int((one == int(Status.TRUNCATED)).sum()) for one in (codes, others))
            found.append(
                Pair(
                    *(labels[first], labels[second], single, overall, (cut[0], cut[1]), weigh, alike),
                    (ends[0], ends[1]) if ends else None,
                )
            )
    return _adjusted(found)


def _ends_of_lost(*sides: NDArray[np.uint8]) -> list[list[NDArray[np.uint8]]]:
    """Outcomes of both with what was lost at its worst and at its best for the first; nothing if nothing was lost."""
    ends = (Status.INCORRECT, Status.CORRECT)
    lost = [codes == int(Status.TRANSPORT) for codes in sides]
    if not any(part.any() for part in lost):
        return []
    return [
        [np.where(part, np.uint8(end), codes) for part, codes, end in zip(lost, sides, order, strict=True)]
        for order in (ends, ends[::-1])
    ]


def spread_of(ds: Dataset, first: int, second: int) -> Spread:
    """What the difference of two evaluations varies by, points and tasks weighing as in a comparison."""
    base = axes.base_design(ds)
    cells, counts = _ranked(_cells(_codes(ds, first), _codes(ds, second), "wrong"), _rated(ds))
    cells *= counts[..., np.newaxis, np.newaxis]
    weights, _ = _weights(cells, base[first], base[second], "tasks")
    units = pair_units(ds, first, second)
    shape = (-1, cells.shape[2])
    trials, alone, other = (cells[..., place].reshape(shape) for place in range(3))
    return pair_spread(trials, alone, other, weights.ravel(), None if units is None else units.reshape(shape))


def _adjusted(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """The same with p values adjusted by Holm, over the tasks of all pairs and over the pairs."""
    single = iter(holm([item.p for pair in pairs for item in pair.tasks]).tolist())
    total = holm([pair.overall.p for pair in pairs]).tolist()
    return tuple(
        replace(
            pair,
            tasks=tuple(replace(item, p_holm=next(single)) for item in pair.tasks),
            overall=replace(pair.overall, p_holm=p),
        )
        for pair, p in zip(pairs, total, strict=True)
    )


def _codes(ds: Dataset, model: int) -> NDArray[np.uint8]:
    """Outcomes of an evaluation, shape (task, params, trial, repeat)."""
    status = ds["status"].variable.isel(model=model).transpose("task", "params", "trial", "repeat")
    return np.asarray(status.compute().values)


def _cells(first: NDArray[np.uint8], second: NDArray[np.uint8], truncated: str) -> Floats:
    """Trials of both, only the first right, only the second right, both right: shape (task, params, trial, 4)."""
    codes = (first, second)
    right, done = (
        [code == int(Status.CORRECT) for code in codes],
        [counted(code, truncated) for code in codes],
    )
    both = (done[0] & done[1] & right[0] & right[1]).sum(axis=-1)
    return np.concatenate([pair_table(right[0], done[0], right[1], done[1]), both[..., np.newaxis]], axis=-1)


def counted(codes: NDArray[np.uint8], truncated: str) -> NDArray[np.bool_]:
    """Which outcomes a comparison counts."""
    over = [int(code) for code in (*COMPLETED, *([Status.TRUNCATED] if truncated == "wrong" else []))]
    return np.isin(codes, over)


def _rated(ds: Dataset) -> NDArray[np.bool_]:
    """Points in any tier, shape (task, params)."""
    if "in_tier" not in ds.coords:
        return np.ones((ds.sizes["task"], ds.sizes["params"]), dtype=bool)
    return np.asarray(counters.members(ds).any(axis=0))


def _ranked(cells: Floats, rated: NDArray[np.bool_]) -> tuple[Floats, NDArray[np.bool_]]:
    """The same without trials of points in no tier, but for tasks that have no others, and which tasks means rest on.

    Tasks are (task, 1): those with points in a tier; all where none has any.
    """
    inside = rated & (cells[..., 0].sum(axis=-1) > 0)
    tasks = inside.any(axis=-1, keepdims=True)
    kept = cells * np.where(tasks, inside, True)[..., np.newaxis, np.newaxis]
    return kept, tasks | ~tasks.any()


def _weights(cells: Floats, first: Floats, second: Floats, weigh: Weigh) -> tuple[Floats, NDArray[np.bool_]]:
    """Weight of each point, shape (task, params), and in which tasks the two base designs (task, params) contradict."""
    trials = cells[..., 0].sum(axis=-1)
    used = trials > 0
    apart = (design.ratios(first, used) != design.ratios(second, used)).any(axis=-1)
    if weigh == "tasks":
        return design.task_weights(np.where(apart[:, np.newaxis], 1, first), used), apart
    return np.where(used, 1.0 if weigh == "points" else trials, 0.0), np.zeros_like(apart)


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
    units: NDArray[np.int64] | None = None,
    border: float = 0.0,
    *,
    planned: Floats,
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
    asked = planned.ravel()
    bounds = paired_difference(right, wrong, size, share, units=asked)
    p = difference_p(right, wrong, size, share, units=asked)
    first_rate, second_rate = (
        float(paired_difference(alone + both.sum(axis=-1) / effect, 0, size, share)[0])
        for alone in (right, wrong)
    )
    return PairedDifference(
        task,
        counts[0],
        int(there.sum()),
        int(there.any(axis=-1).sum()),
        counts[1],
        counts[2],
        first_rate,
        second_rate,
        Estimate.of(bounds),
        p,
        p,
        _e_value(trials, first, second, share, units, border),
        difference_worth(right, wrong, size, share, units=asked),
    )
