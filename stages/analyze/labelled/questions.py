"""Metrics of groups of questions that were answered several times, each with its weight, and their intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evalcube.stages.analyze.formulas.clustering import unit_moments, units_of, widening
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.formulas.outcomes import table
from evalcube.stages.analyze.formulas.outcomes.counts import (
    Categories,
    Integers,
    Successes,
    binary_categories,
    distinct_rows,
)
from evalcube.stages.analyze.formulas.stratified import combine
from evalcube.stages.errors import ArgumentError

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class MetricRequest:
    """What to evaluate."""

    names: tuple[str, ...]
    draws: list[int]
    w: object
    options: table.Options | None
    confidence: float = 0.95

    def variables(self) -> Iterator[tuple[str, bool]]:
        """Name of each result, and whether it is along k; a metric's values follow each other."""
        for name in self.names:
            metric = table.METRICS[name]
            for part in metric.parts or ("", "lower", "upper"):
                yield (f"{name}_{part}" if part else name), metric.takes_k


@dataclass(frozen=True)
class Bank:
    """Questions by how often they were answered with each category: their distinct counts, and which each has."""

    rows: Integers
    """Shape (class, category)."""
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

    def reduced(self, classes: Integers, weights: Floats, squares: Floats) -> Successes | Categories:
        """Some of the classes with the sums of their questions' weights, and of the squares of these."""
        rows, sizes = self.rows[classes], self.sizes[classes]
        if rows.shape[1] > 2:
            return Categories(int(sizes.min()), rows, weights, squares)
        return Successes(int(sizes.min()), rows[:, 1], weights, sizes, squares)

    def worth(self, name: str, k: int | None, wanted: MetricRequest, classes: Integers) -> Floats:
        """Values of a metric of single questions, for some of the classes."""
        found = self.known.setdefault((name, k), np.full(len(self.rows), np.nan))
        one = np.ones(1)
        for place in classes[np.isnan(found[classes])].tolist():
            single = self.reduced(np.array([place]), one, one)
            found[place] = _value(name, single, k, wanted)[0]
        return found


@dataclass(frozen=True)
class Group:
    """The questions of a group, with the cells (points of models) that they belong to."""

    codes: Integers
    cells: Integers
    units: Integers
    """Numbers of the questions; several models that were asked one share it."""
    strata: Integers
    """Point of each of these numbers."""
    base: Floats
    """Weight of each cell within its task."""
    tasks: Integers
    """Number of each cell's task and model."""
    models: Integers
    """Number of the model of each of these tasks."""
    clustered: bool = False
    """Whether units are clusters of questions, and their strata tasks."""

    @classmethod
    def plain(cls, codes: Integers) -> Group:
        """Questions of one cell."""
        nothing, one = np.zeros(len(codes), dtype=np.int64), np.zeros(1, dtype=np.int64)
        return cls(codes, nothing, np.arange(len(codes)), nothing, np.ones(1), one, one)

    @classmethod
    def of_cells(
        cls,
        bank: Bank,
        models: Integers,
        points: Integers,
        base: Floats,
        per_task: int,
        clusters: Integers | None = None,
    ) -> Group:
        """Questions of points of models; `base` has the weights of all points by model, each task having so many.

        `clusters` are those of the questions of all points, shape (point, trial), if they have any.
        """
        codes = bank.codes[np.ix_(models, points)]
        cells = np.arange(codes.shape[0] * codes.shape[1]).reshape(codes.shape[:2])
        _, task = np.unique(points // per_task, return_inverse=True)
        clustered = clusters is not None and bool(clusters[points].any())
        if clusters is not None and clustered:
            units, strata = units_of(clusters[points], task)
        else:
            units = np.arange(codes.shape[1] * codes.shape[2]).reshape(codes.shape[1:])
            strata = np.repeat(np.arange(codes.shape[1]), codes.shape[2])
        tasks = int(task.max(initial=-1)) + 1
        return cls(
            codes.ravel(),
            np.broadcast_to(cells[..., np.newaxis], codes.shape).ravel(),
            np.broadcast_to(units, codes.shape).ravel(),
            strata,
            base[np.ix_(models, points)].ravel(),
            (np.arange(len(models))[:, np.newaxis] * tasks + task).ravel(),
            np.repeat(np.arange(len(models)), tasks),
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
) -> xr.Dataset:
    """The metrics of each group of questions, given with its place."""
    import xarray as xr

    along = (*shape, len(wanted.draws))
    found = {key: np.full(along if by_k else shape, np.nan) for key, by_k in wanted.variables()}
    numbers = {
        name: np.zeros(along, dtype=np.int64) for name in ("questions", "questions_incomplete", "points")
    }
    planned = np.zeros(shape, dtype=np.int64)
    for place, group in groups:
        answered = bank.sizes[group.codes] > 0
        planned[place] = np.count_nonzero(np.bincount(group.cells[answered]))
        for index, k in [(None, None), *enumerate(wanted.draws)]:
            names = [name for name in wanted.names if table.METRICS[name].takes_k == (k is not None)]
            used = bank.sizes[group.codes] >= min(k or 1, int(bank.sizes.max()))
            used &= answered
            asked = np.bincount(group.cells[used], minlength=len(group.base))
            at = place if index is None else (*place, index)
            if index is not None:
                counted = used.sum(), (answered & ~used).sum(), np.count_nonzero(asked)
                for name, number in zip(numbers, counted, strict=True):
                    numbers[name][at] = number
            if used.any() and names:
                _fill(found, at, names, k, bank, _part(bank, group, used, asked), wanted)
    by_k = (*dims, "k")
    variables: dict[str, Any] = {
        key: (by_k if along_k else tuple(dims), found[key]) for key, along_k in wanted.variables()
    }
    variables |= {name: (by_k, values) for name, values in numbers.items()}
    return xr.Dataset(variables | {"points_planned": (tuple(dims), planned)}, coords={"k": wanted.draws})


@dataclass(frozen=True)
class _AnsweredQuestions:
    """Questions of a group that have enough answers, with their weights, whose sum is their number."""

    reduced: Successes | Categories
    classes: Integers
    group: Group
    used: NDArray[np.bool_]
    weights: Floats


def _part(bank: Bank, group: Group, used: NDArray[np.bool_], asked: Integers) -> _AnsweredQuestions:
    """The questions used, of which there are so many in each cell."""
    weights = (group.shares(asked) * (asked.sum() / np.maximum(asked, 1)))[group.cells[used]]
    codes = group.codes[used]
    sums, squares = (
        np.bincount(codes, part, len(bank.rows)).astype(np.float64) for part in (weights, weights**2)
    )
    classes = np.flatnonzero(sums > 0)
    return _AnsweredQuestions(
        bank.reduced(classes, sums[classes], squares[classes]), classes, group, used, weights
    )


def _fill(
    found: dict[str, NDArray[np.float64]],
    place: tuple[int, ...],
    names: Sequence[str],
    k: int | None,
    bank: Bank,
    part: _AnsweredQuestions,
    wanted: MetricRequest,
) -> None:
    """Values of metrics of one k, or of those without."""
    for name in names:
        values = _value(name, part.reduced, k, wanted)
        parts = table.METRICS[name].parts
        if parts:
            for key, number in zip(parts, values, strict=True):
                found[f"{name}_{key}" if key else name][place] = number
            continue
        found[name][place] = values[0]
        if name not in table.OF_MEANS:
            lower, upper = _bounds(bank.worth(name, k, wanted, part.classes), part, wanted.confidence)
            found[f"{name}_lower"][place], found[f"{name}_upper"][place] = lower, upper


def _value(name: str, reduced: Successes | Categories, k: int | None, wanted: MetricRequest) -> list[float]:
    metric = table.METRICS[name]
    if not metric.categorical and isinstance(reduced, Categories):
        raise ArgumentError(
            f"{name} is for binary outcomes, but `w` has weights for {reduced.counts.shape[1]} categories"
        )
    source = binary_categories(reduced) if metric.categorical and isinstance(reduced, Successes) else reduced
    return [float(value) for value in np.ravel(table.evaluate(name, source, k, wanted.w, wanted.options))]


def _bounds(worth: Floats, part: _AnsweredQuestions, confidence: float) -> tuple[float, float]:
    """Interval of the weighted mean of what questions are worth; NaN where that is not in [0, 1]."""
    group, used = part.group, part.used
    values = worth[group.codes[used]]
    if values.min() < -1e-12 or values.max() > 1 + 1e-12:
        return np.nan, np.nan
    sums = unit_moments(values, part.weights, group.cells[used], group.units[used], group.strata)
    if group.clustered:
        sums[-3:] *= widening(len(np.unique(group.units[used])))
    _, lower, upper = combine(sums, confidence=None if confidence == 0.95 else confidence, exact=True)
    return float(lower), float(upper)
