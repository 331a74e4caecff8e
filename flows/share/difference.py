"""How two cubes differ: what they ask, how far they are planned, and how each trial that both have ended."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from evalcube import known_as
from evalcube.flows.nouns import OneCube, need_address
from evalcube.flows.plan.evaluations import Evaluation
from evalcube.flows.plan.spec import Spec
from evalcube.flows.read.merged.inputs import Input
from evalcube.flows.read.merged.joined import planned_of
from evalcube.flows.read.merged.layers import Array, Layer, Layers, UnionPart, differing
from evalcube.flows.read.merged.union import Place
from evalcube.stages.reply.status import LAST_FINISHED, Status
from evalcube.storage.cube.schema import LAYERS, VARIABLES

_MOST_SAID = 100
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
    """How two cubes differ."""

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
            (one.only_first, one.only_second, one.differing) == (0, 0, 0) for one in (self.cells, self.trials)
        ]
        return not self.identity and not self.plan["cells"] and all(same)

    def to_dict(self) -> dict[str, Any]:
        """The difference as JSON values."""
        return {"equal": self.equal, **asdict(self)}


def diff_cubes(first: OneCube, second: OneCube) -> Difference:
    """Compare two cubes by the identity of evaluations, points, trials and repeats; the order of axes is no difference.

    Latencies, prices and facets are no difference either. Holds some regions in memory at a time.

    Parameters
    ----------
    first, second
        The cubes, all of them.

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
        self._planned = [
            planned_of(one, place, shape) for one, place in zip(self._inputs, self._places, strict=True)
        ]
        # Of each cell whether it has trials in one cube only, and whether any differ.
        self._only = np.zeros((2, shape[0], shape[1] * shape[2]), dtype=bool)
        self._differs = np.zeros((shape[0], shape[1] * shape[2]), dtype=bool)
        self._trials = np.zeros(4, dtype=np.int64)
        self._changes: dict[tuple[int, int], Array] = {}

    def run(self) -> Difference:
        """Compare everything."""
        layers = Layers(self._inputs, self._places, self._shape[1:], self._variables())
        steps = [max(one.chunks[dim] for one in self._inputs) for dim in ("trial", "repeat")]
        sizes = [max(one.sizes[dim] for one in self._inputs) for dim in ("trial", "repeat")]
        for model in range(self._shape[0]):
            for trial in range(0, sizes[0], steps[0]):
                for repeat in range(0, sizes[1], steps[1]):
                    ends = min(trial + steps[0], sizes[0]), min(repeat + steps[1], sizes[1])
                    self._compare(layers, UnionPart(model, (trial, ends[0]), (repeat, ends[1])))
        labels = [row.label for row in self._evaluations]
        tasks = [label for label, _ in self._tasks]
        return Difference(
            self._inputs[0].url,
            self._inputs[1].url,
            identity_differences(self._inputs[0].spec, self._inputs[1].spec),
            self._plan(),
            self._cells(),
            self._all_trials(),
            self._status_changes(labels, tasks),
        )

    def _variables(self) -> dict[str, Any]:
        """The arrays that both cubes have in the same sense: readings of other judges are no readings of the same."""
        one, other = self._inputs
        found: dict[str, Any] = {name: (variable, ()) for name, variable in VARIABLES.items()}
        same = one.spec.judges == other.spec.judges
        for name, variable in LAYERS.items():
            if (
                name in one.cube.trial_arrays
                and name in other.cube.trial_arrays
                and (same or name != "judge_readings")
            ):
                dims = variable.dims[5:]
                found[name] = (variable, tuple(max(each.sizes[dim] for each in self._inputs) for dim in dims))
        if not same:
            found.pop("judge", None)
        return found

    def _compare(self, layers: Layers, part: UnionPart) -> None:
        pair = [layers.one(source, part, []) for source in (0, 1)]
        done = [None if layer is None else layer.arrays["status"] <= LAST_FINISHED for layer in pair]
        for source, other in ((0, 1), (1, 0)):
            here, there = done[source], done[other]
            if here is not None:
                only = here if there is None else here & ~there
                self._trials[source] += int(only.sum())
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
        self._trials[2] += int((~differ).sum())
        self._trials[3] += int(differ.sum())
        cells = where // (both.shape[1] * both.shape[2])
        self._differs[model, cells[differ]] = True
        status = [side["status"].astype(np.int64) for side in sides]
        changed = status[0] != status[1]
        task = cells // self._slots
        for one in np.unique(task[changed]):
            rows = changed & (task == one)
            codes = np.bincount(status[0][rows] * _STATUSES + status[1][rows], minlength=_STATUSES**2)
            key = (model, int(one))
            self._changes[key] = self._changes.get(key, np.zeros(_STATUSES**2, dtype=np.int64)) + codes

    def _plan(self) -> dict[str, int]:
        (trials_a, repeats_a), (trials_b, repeats_b) = self._planned
        both = (trials_a > 0) & (trials_b > 0)
        other = both & ((trials_a != trials_b) | (repeats_a != repeats_b))
        first, second = (sum(one.planned.counts) for one in self._inputs)
        return {"cells": int(other.sum()), "first": first, "second": second}

    def _cells(self) -> SideCounts:
        """A cell that only one cube plans is only there, whether it has trials yet or not."""
        here, there = (trials > 0 for trials, _ in self._planned)
        both = here & there
        differing_cells = both & (self._differs | self._only[0] | self._only[1])
        totals = [int((one.planned.trials > 0).sum()) for one in self._inputs]
        shared = int(both.sum())
        return SideCounts(
            totals[0] - shared,
            totals[1] - shared,
            shared - int(differing_cells.sum()),
            int(differing_cells.sum()),
        )

    def _all_trials(self) -> SideCounts:
        """Trials of evaluations and points that one cube lacks are only in the other."""
        only = [
            sum(max(0, receipt.finished) for receipt in one.receipts.values()) - int(self._trials[2:].sum())
            for one in self._inputs
        ]
        return SideCounts(only[0], only[1], int(self._trials[2]), int(self._trials[3]))

    def _status_changes(self, labels: Sequence[str], tasks: Sequence[str]) -> list[StatusChange]:
        found = []
        for (model, task), codes in self._changes.items():
            for code in np.flatnonzero(codes):
                first, second = (Status(int(one)).name.lower() for one in divmod(int(code), _STATUSES))
                found.append(StatusChange(labels[model], tasks[task], first, second, int(codes[code])))
        return sorted(found, key=lambda one: (-one.trials, one.model, one.task, one.first, one.second))


def identity_differences(first: Spec, second: Spec) -> list[str]:
    """What two sweeps ask differently, in words; empty if they are the same one, in whatever order."""
    found = []
    if first.seed != second.seed:
        found.append(f"seed is {first.seed} in the first and {second.seed} in the second")
    rows = [{row.eval_id: row.label for row in spec.evaluations} for spec in (first, second)]
    found += _only("evaluation", *rows)
    found += [
        f"evaluation {rows[0][key]} is called {rows[1][key]} in the second"
        for key in rows[0]
        if key in rows[1] and rows[0][key] != rows[1][key]
    ]
    tasks = [{task.label: task for task in spec.tasks} for spec in (first, second)]
    found += _only("task", *({label: label for label in each} for each in tasks))
    for label in (label for label in tasks[0] if label in tasks[1]):
        one, other = tasks[0][label], tasks[1][label]
        makers = [f"{task.name} version {task.version}" for task in (one, other)]
        if makers[0] != makers[1]:
            found.append(
                f"generator of task {label} is {makers[0]} in the first and {makers[1]} in the second"
            )
            continue
        points = [{point.cell_id: point for point in task.points} for task in (one, other)]
        found += _only(
            f"point of task {label}",
            *(
                {key: json.dumps(point.params, sort_keys=True) for key, point in each.items()}
                for each in points
            ),
        )
        moved = sum(
            set(point.tiers) != set(points[1][key].tiers)
            for key, point in points[0].items()
            if key in points[1]
        )
        if moved:
            found.append(f"{moved} points of task {label} are in other tiers")
        found += [
            f"{what} of task {label} differ"
            for what in ("assertions", "rubric")
            if getattr(one, what) != getattr(other, what)
        ]
    judges = [{judge.name: judge for judge in spec.judges} for spec in (first, second)]
    if judges[0] != judges[1]:
        found.append("judges differ")
    return found if len(found) <= _MOST_SAID else [*found[:_MOST_SAID], f"and {len(found) - _MOST_SAID} more"]


def _only(kind: str, first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    found = [f"{kind} {name} is only in the first" for key, name in first.items() if key not in second]
    return found + [
        f"{kind} {name} is only in the second" for key, name in second.items() if key not in first
    ]


_Cells = tuple[str, list[str]]
"""A task's label, and the cell ids of points that both have."""


def _common_tasks(first: Spec, second: Spec) -> list[_Cells]:
    there = {(task.label, task.name, task.version): task for task in second.tasks}
    found = []
    for task in first.tasks:
        other = there.get((task.label, task.name, task.version))
        if other is not None:
            known = {point.cell_id for point in other.points}
            found.append((task.label, [point.cell_id for point in task.points if point.cell_id in known]))
    return found


def _place(spec: Spec, evaluations: Sequence[Evaluation], tasks: Sequence[_Cells]) -> Place:
    """Where what one cube holds stands among what both have; -1 for what only it has."""
    rows = {one.eval_id: index for index, one in enumerate(evaluations)}
    labels = {label: index for index, (label, _) in enumerate(tasks)}
    slots = []
    for task in spec.tasks:
        cells = tasks[labels[task.label]][1] if task.label in labels else []
        known = {cell: slot for slot, cell in enumerate(cells)}
        slots.append(tuple(known.get(point.cell_id, -1) for point in task.points))
    return Place(
        tuple(rows.get(row.eval_id, -1) for row in spec.evaluations),
        tuple(labels.get(task.label, -1) for task in spec.tasks),
        tuple(slots),
        tuple(range(len(spec.judges))),
    )
