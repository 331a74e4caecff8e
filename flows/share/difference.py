"""How two cubes differ: what they ask, how far they are planned, and how each trial that both have ended."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from evalcube import known_as
from evalcube.flows.cube_like import OneCube, need_address
from evalcube.flows.plan.evaluations import Evaluation
from evalcube.flows.plan.spec import Spec
from evalcube.flows.read.merged.inputs import Input
from evalcube.flows.read.merged.joined import planned_of
from evalcube.flows.read.merged.layers import Array, Layer, Layers, UnionPart, differing
from evalcube.flows.read.merged.union import Place
from evalcube.stages.reply.status import LAST_FINISHED, Status
from evalcube.storage.cube.schema import LAYERS, VARIABLES

_MOST_SAID = 100
_LONGEST_SAID = 100
"""Characters of two things that are said for comparison."""
_STATUSES = 256


@dataclass(frozen=True)
class StatusChange:
    """Trials of a model and a task that ended in one way in the first cube and in another in the second."""

    model: str
    task: str
    first: str
    second: str
    trials: int


@dataclass(frozen=True)
class SideCounts:
    """Of cells or of trials, how many there are where."""

    only_first: int = 0
    only_second: int = 0
    equal: int = 0
    differing: int = 0


@known_as("evalcube.results")
@dataclass(frozen=True)
class Difference:
    """Differences of two cubes."""

    first: str
    """Address."""
    second: str
    identity: Sequence[str] = ()
    """What they ask differently, in words."""
    plan: Mapping[str, int] = field(default_factory=dict)
    """Cells of both whose plans differ, and trials that each cube plans in all."""
    cells: SideCounts = field(default_factory=SideCounts)
    """Cells (an evaluation at a point) that a cube plans; equal if all of their trials are."""
    trials: SideCounts = field(default_factory=SideCounts)
    """Finished trials, repeats included."""
    status_changes: Sequence[StatusChange] = ()

    @property
    def equal(self) -> bool:
        """Whether they ask the same and hold the same, latencies aside."""
        same = [
            (row.only_first, row.only_second, row.differing) == (0, 0, 0) for row in (self.cells, self.trials)
        ]
        return not self.identity and not self.plan["cells"] and all(same)

    def to_dict(self) -> dict[str, Any]:
        """The difference as JSON values."""
        return {"equal": self.equal, **asdict(self)}


def diff_cubes(first: OneCube, second: OneCube) -> Difference:
    """Compare two cubes by the identity of evaluations, points, trials and repeats.

    Differences in latencies, prices and facets are ignored. Holds some regions in memory at a time.

    Parameters
    ----------
    first, second
        The two cubes.

    Returns
    -------
    Difference
        What is equal, what differs, and what only one has.

    Raises
    ------
    StorageError
        If a cube cannot be read or is damaged.
    SweepError
        If one is not a sweep's.

    Examples
    --------
    >>> import evalcube as ec
    >>> ec.diff("results/sweep.zarr", "results/theirs.zarr").equal
    False
    """
    addresses = need_address(first, "first"), need_address(second, "second")
    return _Comparison(*(Input(str(address)) for address in addresses)).run()


class _Comparison:
    def __init__(self, first: Input, second: Input) -> None:
        self._inputs = (first, second)
        specs = first.spec, second.spec
        theirs = {row.eval_id for row in second.spec.evaluations}
        self._evaluations = [row for row in first.spec.evaluations if row.eval_id in theirs]
        self._tasks = _common_tasks(*specs)
        self._slots = max([len(cells) for _, cells in self._tasks], default=0)
        self._places = [_place(spec, self._evaluations, self._tasks) for spec in specs]
        shape = (len(self._evaluations), len(self._tasks), self._slots)
        self._shape = shape
        self._planned = [planned_of(*pair, shape) for pair in zip(self._inputs, self._places, strict=True)]
        # Of each cell whether it has trials in one cube only, and whether any differ.
        self._only = np.zeros((2, shape[0], shape[1] * shape[2]), dtype=bool)
        self._differs = np.zeros((shape[0], shape[1] * shape[2]), dtype=bool)
        self._trials = np.zeros(2, dtype=np.int64)  # equal ones, and others
        self._changes: dict[tuple[int, int], Array] = {}

    def run(self) -> Difference:
        """Compare everything."""
        layers = Layers(self._inputs, self._places, self._shape[1:], self._variables())
        steps = [max(source.chunks[dim] for source in self._inputs) for dim in ("trial", "repeat")]
        sizes = [max(source.sizes[dim] for source in self._inputs) for dim in ("trial", "repeat")]
        for model in range(self._shape[0]):
            for trial in range(0, sizes[0], steps[0]):
                for repeat in range(0, sizes[1], steps[1]):
                    ends = min(trial + steps[0], sizes[0]), min(repeat + steps[1], sizes[1])
                    self._compare(layers, UnionPart(model, (trial, ends[0]), (repeat, ends[1])))
        labels = [row.label for row in self._evaluations]
        return Difference(
            self._inputs[0].url,
            self._inputs[1].url,
            identity_differences(self._inputs[0].spec, self._inputs[1].spec),
            self._plan(),
            self._cells(),
            self._all_trials(),
            self._status_changes(labels, [label for label, _ in self._tasks]),
        )

    def _variables(self) -> dict[str, Any]:
        """The arrays that both cubes have in the same sense: readings of other judges are no readings of the same."""
        first, second = self._inputs
        arrays: dict[str, Any] = {name: (variable, ()) for name, variable in VARIABLES.items()}
        same = first.spec.judges == second.spec.judges
        for name, variable in LAYERS.items():
            if (
                name in first.cube.trial_arrays
                and name in second.cube.trial_arrays
                and (same or name != "judge_readings")
            ):
                arrays[name] = (
                    variable,
                    tuple(max(each.sizes[dim] for each in self._inputs) for dim in variable.dims[5:]),
                )
        if not same:
            arrays.pop("judge", None)
        return arrays

    def _compare(self, layers: Layers, part: UnionPart) -> None:
        pair = [layers.one(source, part, []) for source in (0, 1)]
        done = [None if layer is None else layer.arrays["status"] <= LAST_FINISHED for layer in pair]
        for source, opposite in ((0, 1), (1, 0)):
            here, there = done[source], done[opposite]
            if here is not None:
                only = here if there is None else here & ~there
                self._only[source, part.model] |= only.any(axis=(1, 2))
        first, second = pair
        if first is not None and second is not None and done[0] is not None and done[1] is not None:
            self._compare_finished(part.model, first, second, done[0] & done[1])

    def _compare_finished(self, model: int, first: Layer, second: Layer, both: Array) -> None:
        where = np.flatnonzero(both)
        sides = [
            {name: values.reshape(-1, *values.shape[3:])[where] for name, values in layer.arrays.items()}
            for layer in (first, second)
        ]
        differ = differing(sides[0], sides[1])
        self._trials[0] += int((~differ).sum())
        self._trials[1] += int(differ.sum())
        cells = where // (both.shape[1] * both.shape[2])
        self._differs[model, cells[differ]] = True
        status = [side["status"].astype(np.int64) for side in sides]
        changed = status[0] != status[1]
        task = cells // self._slots
        for index in np.unique(task[changed]):
            rows = changed & (task == index)
            codes = np.bincount(status[0][rows] * _STATUSES + status[1][rows], minlength=_STATUSES**2)
            key = (model, int(index))
            self._changes[key] = self._changes.get(key, np.zeros(_STATUSES**2, dtype=np.int64)) + codes

    def _plan(self) -> dict[str, int]:
        (trials_a, repeats_a), (trials_b, repeats_b) = self._planned
        both = (trials_a > 0) & (trials_b > 0)
        changed = both & ((trials_a != trials_b) | (repeats_a != repeats_b))
        first, second = (sum(source.planned.counts) for source in self._inputs)
        return {"cells": int(changed.sum()), "first": first, "second": second}

    def _cells(self) -> SideCounts:
        """A cell that only one cube plans is only there, whether it has trials yet or not."""
        here, there = (trials > 0 for trials, _ in self._planned)
        both = here & there
        differ = int((both & (self._differs | self._only[0] | self._only[1])).sum())
        totals = [int((source.planned.trials > 0).sum()) for source in self._inputs]
        shared = int(both.sum())
        return SideCounts(totals[0] - shared, totals[1] - shared, shared - differ, differ)

    def _all_trials(self) -> SideCounts:
        """Trials of evaluations and points that one cube lacks are only in the other."""
        only = [
            sum(receipt.finished for receipt in source.receipts.values()) - int(self._trials.sum())
            for source in self._inputs
        ]
        return SideCounts(only[0], only[1], *self._trials.tolist())

    def _status_changes(self, labels: Sequence[str], tasks: Sequence[str]) -> list[StatusChange]:
        rows = []
        for (model, task), codes in self._changes.items():
            for code in np.flatnonzero(codes):
                first, second = (Status(int(status)).name.lower() for status in divmod(int(code), _STATUSES))
                rows.append(StatusChange(labels[model], tasks[task], first, second, int(codes[code])))
        return sorted(rows, key=lambda row: (-row.trials, row.model, row.task, row.first, row.second))


def identity_differences(first: Spec, second: Spec) -> list[str]:
    """What two sweeps ask differently, in words; empty if they are the same one, in whatever order."""
    common = {label for label, _ in _common_tasks(first, second)}
    sides = [{key: (name, fact) for key, name, fact in _facts(spec, common)} for spec in (first, second)]
    lines = []
    for key, (name, _) in {**sides[1], **sides[0]}.items():
        here, there = (side[key][1] if key in side else None for side in sides)
        if here is None or there is None:
            lines.append(f"{name} is only in the {'second' if here is None else 'first'}")
        elif here != there and len(here) + len(there) > _LONGEST_SAID:
            lines.append(f"{name} is another one in the second")
        elif here != there:
            lines.append(f"{name} is {here} in the first and {there} in the second")
    return lines if len(lines) <= _MOST_SAID else [*lines[:_MOST_SAID], f"and {len(lines) - _MOST_SAID} more"]


def _facts(spec: Spec, common: Collection[str]) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """What a sweep asks: the identity of each thing, what it is called, and what there is to compare of it."""

    def as_json(value: object) -> str:
        return json.dumps(value, sort_keys=True)

    yield ("seed",), "the seed", str(spec.seed)
    for row in spec.evaluations:
        yield ("evaluation", row.eval_id), f"evaluation {row.label}", row.label
    for task in spec.tasks:
        yield (
            ("task", task.label),
            f"the generator of task {task.label}",
            f"{task.name} version {task.version}",
        )
        if task.label in common:
            for point in task.points:
                # Params may name a file, which lies elsewhere on another machine.
                name, tiers = f"point {as_json(point.params)} of task {task.label}", sorted(set(point.tiers))
                yield ("point", task.label, point.cell_id), name, f"in tiers {', '.join(tiers)}"
            judged = as_json([task.assertions, task.rubric])
            yield ("judged", task.label), f"what task {task.label} is judged by", judged
    yield ("jury",), "the jury", as_json({judge.name: judge.model_dump(mode="json") for judge in spec.judges})


_Cells = tuple[str, list[str]]
"""A task's label, and the cell ids of points that both have."""


def _common_tasks(first: Spec, second: Spec) -> list[_Cells]:
    there = {(task.label, task.name, task.version): task for task in second.tasks}
    common = []
    for task in first.tasks:
        match = there.get((task.label, task.name, task.version))
        if match is not None:
            cells = {point.cell_id for point in match.points}
            common.append((task.label, [point.cell_id for point in task.points if point.cell_id in cells]))
    return common


def _place(spec: Spec, evaluations: Sequence[Evaluation], tasks: Sequence[_Cells]) -> Place:
    """Where what one cube holds stands among what both have; -1 for what only it has."""
    rows = {evaluation.eval_id: index for index, evaluation in enumerate(evaluations)}
    labels = {label: index for index, (label, _) in enumerate(tasks)}
    slots = []
    for task in spec.tasks:
        cells = tasks[labels[task.label]][1] if task.label in labels else []
        numbers = {cell: slot for slot, cell in enumerate(cells)}
        slots.append(tuple(numbers.get(point.cell_id, -1) for point in task.points))
    return Place(
        tuple(rows.get(row.eval_id, -1) for row in spec.evaluations),
        tuple(labels.get(task.label, -1) for task in spec.tasks),
        tuple(slots),
        tuple(range(len(spec.judges))),
    )
