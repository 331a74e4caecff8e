"""Metrics of groups of questions that were answered several times, each with its weight, and their intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalcube.stages.analyze.formulas.clustering import unit_moments, units_of, widening
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.formulas.outcomes import table
from evalcube.stages.analyze.formulas.outcomes.counts import Categories, Integers, Successes, distinct_rows
from evalcube.stages.analyze.formulas.stratified import combine, parts_of


@dataclass(frozen=True)
class MetricRequest:
    """What to evaluate."""

    names: tuple[str, ...]
    draws: list[int]
    w: object
    options: table.Options | None
    confidence: float = 0.95


@dataclass(frozen=True)
class Bank:
    """Questions by how often they were answered with each category: their distinct counts, and which each has."""

    rows: Integers
    """Shape (class, category); of a cube wrong and right."""
    codes: Integers
    """Class of each question, shape (..., question)."""
    known: dict[tuple[str, int | None], Floats] = field(default_factory=dict)
    """What a question of each class is worth, by metric and k."""

    @classmethod
    def of(cls, counts: Integers) -> Bank:
        """Of counts (..., question, category)."""
        rows, codes = distinct_rows(counts.reshape(-1, counts.shape[-1]))
        return cls(rows, codes.reshape(counts.shape[:-1]))

    @property
    def sizes(self) -> Integers:
        """Samples of a question of each class."""
        return np.asarray(self.rows.sum(axis=1))

    def reduce(self, classes: Integers, weights: Floats, squares: Floats) -> Successes | Categories:
        """Some of the classes with the sums of their questions' weights, and of the squares of these."""
        rows, sizes = self.rows[classes], self.sizes[classes]
        if rows.shape[1] > 2:
            return Categories(int(sizes.min()), rows, weights, squares)
        return Successes(int(sizes.min()), rows[:, 1], weights, sizes, squares)

    def worth(self, name: str, k: int | None, wanted: MetricRequest, classes: Integers) -> Floats:
        """Values of a metric of single questions, for some of the classes."""
        values = self.known.setdefault((name, k), np.full(len(self.rows), np.nan))
        unit = np.ones(1)
        for code in classes[np.isnan(values[classes])].tolist():
            single = self.reduce(np.array([code]), unit, unit)
            values[code] = np.ravel(table.evaluate(name, single, k, wanted.w, wanted.options))[0]
        return values


@dataclass(frozen=True)
class Group:
    """The questions of a group, with the cells (points of models) that they belong to."""

    codes: Integers
    cells: Integers
    units: Integers
    """Numbers of the questions; several models that were asked one share it."""
    strata: Integers
    """Point of each of these numbers."""
    planned: Integers
    """Questions, or clusters of them, that each point was planned with."""
    base: Floats
    """Weight of each cell within its task."""
    tasks: Integers
    """Number of each cell's task and model."""
    models: Integers
    """Number of the model of each of these tasks."""
    clustered: bool = False
    """Whether units are clusters of questions, and their strata tasks."""

    @classmethod
    def of(
        cls,
        codes: Integers,
        base: Floats,
        task: Integers,
        clusters: Integers | None = None,
        planned: NDArray[np.bool_] | None = None,
    ) -> Group:
        """Questions of points of models, codes (model, point, question), with the weights of points (model, point).

        `task` is the number of each point's task; `clusters` are those of the questions (point, question), if they
        have any; `planned` tells which of these were planned, all by default.
        """
        cells = np.arange(base.size).reshape(base.shape)
        clustered = clusters is not None and bool(clusters.any())
        if clusters is not None and clustered:
            units, strata = units_of(clusters, task)
        else:
            units = np.arange(codes[0].size).reshape(codes.shape[1:])
            strata = np.repeat(np.arange(codes.shape[1]), codes.shape[2])
        asked = np.unique(units if planned is None else units[planned])
        tasks = int(task.max(initial=-1)) + 1
        return cls(
            codes.ravel(),
            np.broadcast_to(cells[..., np.newaxis], codes.shape).ravel(),
            np.broadcast_to(units, codes.shape).ravel(),
            strata,
            np.bincount(strata[asked], minlength=int(strata.max(initial=0)) + 1),
            base.ravel(),
            (np.arange(len(base))[:, np.newaxis] * tasks + task).ravel(),
            np.repeat(np.arange(len(base)), tasks),
            clustered,
        )

    def shares(self, questions: Integers) -> Floats:
        """Weight of each cell by its number of questions: tasks of a model, and models, weigh alike."""
        base = np.where(questions > 0, self.base, 0.0)
        by_task = np.bincount(self.tasks, base, len(self.models))
        number = np.bincount(self.models, by_task > 0)
        inside = by_task[self.tasks] > 0
        worth = by_task * number[self.models] * max(int((number > 0).sum()), 1)
        return base * inside / np.where(inside, worth[self.tasks], 1.0)


def evaluate(
    bank: Bank,
    groups: Iterable[tuple[tuple[int, ...], Group]],
    shape: tuple[int, ...],
    dims: Sequence[Any],
    wanted: MetricRequest,
) -> dict[str, Any]:
    """The metrics of each group of questions, given with its place: dims and values by name, as datasets take them."""
    along, takes_k = (*shape, len(wanted.draws)), {name: table.METRICS[name].takes_k for name in wanted.names}
    metrics = {
        key: np.full(along if takes_k[name] else shape, np.nan)
        for name in wanted.names
        for key in table.metric_parts(name)
    }
    counted = ("questions", "questions_incomplete", "points")
    numbers = {name: np.zeros(along, dtype=np.int64) for name in counted}
    planned = np.zeros(shape, dtype=np.int64)
    for cell, group in groups:
        sizes = bank.sizes[group.codes]
        answered = sizes > 0
        planned[cell] = np.count_nonzero(np.bincount(group.cells[answered]))
        for index, k in [(None, None), *enumerate(wanted.draws)]:
            used = answered & (sizes >= min(k or 1, int(bank.sizes.max())))
            asked = np.bincount(group.cells[used], minlength=len(group.base))
            at = cell if index is None else (*cell, index)
            if index is not None:
                each = used.sum(), (answered & ~used).sum(), np.count_nonzero(asked)
                for name, number in zip(counted, each, strict=True):
                    numbers[name][at] = number
            names = [name for name in wanted.names if takes_k[name] == (k is not None)]
            if used.any() and names:
                part = _part(bank, group, used, asked)
                for name in names:
                    values = part.values(bank, name, k, wanted)
                    for key, value in zip(table.metric_parts(name), values, strict=True):
                        metrics[key][at] = value
    by_k = (*dims, "k")
    variables: dict[str, Any] = {
        key: (by_k if values.shape == along else tuple(dims), values)
        for key, values in (metrics | numbers).items()
    }
    return variables | {"points_planned": (tuple(dims), planned)}


@dataclass(frozen=True)
class _AnsweredQuestions:
    """Questions of a group that have enough answers, with their weights, whose sum is their number."""

    reduced: Successes | Categories
    classes: Integers
    group: Group
    used: NDArray[np.bool_]
    weights: Floats

    def values(self, bank: Bank, name: str, k: int | None, wanted: MetricRequest) -> list[float]:
        """Values of a metric as of `metric_parts`; NaN for the bounds of what is no mean in [0, 1]."""
        metric = table.evaluate(name, self.reduced, k, wanted.w, wanted.options)
        estimate: list[float] = np.ravel(metric).tolist()
        if table.METRICS[name].parts:
            return estimate
        group, codes = self.group, self.group.codes[self.used]
        values = (
            np.full(1, np.nan) if name in table.OF_MEANS else bank.worth(name, k, wanted, self.classes)[codes]
        )
        if not (values.min() >= -1e-12 and values.max() <= 1 + 1e-12):
            return [*estimate, np.nan, np.nan]
        units = group.units[self.used]
        sums = unit_moments(values, self.weights, group.cells[self.used], units, group.strata)
        if group.clustered:
            sums[:, -3:] *= widening(len(np.unique(units)))
        level = None if wanted.confidence == 0.95 else wanted.confidence
        _, lower, upper = combine(parts_of(sums, group.planned), confidence=level, exact=True)
        return [*estimate, float(lower), float(upper)]


def _part(bank: Bank, group: Group, used: NDArray[np.bool_], asked: Integers) -> _AnsweredQuestions:
    """The questions used, of which there are so many in each cell."""
    weights = (group.shares(asked) * (asked.sum() / np.maximum(asked, 1)))[group.cells[used]]
    codes = group.codes[used]
    sums, squares = (
        np.bincount(codes, part, len(bank.rows)).astype(np.float64) for part in (weights, weights**2)
    )
    classes = np.flatnonzero(sums > 0)
    reduced = bank.reduce(classes, sums[classes], squares[classes])
    return _AnsweredQuestions(reduced, classes, group, used, weights)
