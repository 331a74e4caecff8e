"""A sweep as plain data: evaluations, cells and chunking, all that a worker needs but addresses.

The *spec* is the identity of a sweep as JSON. It is stored in the cube's attributes, and a plan can be built from it
alone, so that whoever opens a cube can regenerate every prompt and every cache key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from evalcube.flows.config.kept_questions import mappings
from evalcube.flows.plan.evaluations import Evaluation, Judge, evaluation_place, labels_of
from evalcube.flows.plan.installed import check_described_reader, installed_task
from evalcube.flows.plan.spec import SPEC_FORMAT, TaskSpec, damage_error, parse_spec
from evalcube.stages.analyze.formulas.design import task_weights, worth_of
from evalcube.stages.generate import TASKS, Cell, Task
from evalcube.stages.generate.absent import AbsentTask, absent_cell
from evalcube.stages.generate.dataset import DatasetParams
from evalcube.stages.generate.dataset.matching import explain_withheld
from evalcube.stages.generate.foreign.rendered import RenderedTask
from evalcube.stages.generate.novelty import points_with_few
from evalcube.stages.generate.plugins import package_of
from evalcube.stages.generate.reader import SecondReader
from evalcube.stages.named_code import folder_code, may_run
from evalcube.stages.process.grading import IMPORTED
from evalcube.stages.reply.status import SECOND
from evalcube.storage.cube.schema import SAID

_TRIAL_CHUNK, _REPEAT_CHUNK = 32, 8
_REGION_CELLS, _MANY_REPEATS = 4096, 512
_UNLIMITED = 2**31 - 1
_LIMITED = 0.9
"""Share of the questions: where they are worth less, the task that costs most of them is named."""
_Kind = TypeVar("_Kind", bound=np.generic)


def carries(cell: Cell, field: str) -> bool:
    """Whether the trials of a cell bring assertions or a rubric of their own: a param of that name says so."""
    return bool(cell.plain_params.get(field))  # a model of params takes long to say that it has no such field


def is_imported(cell: Cell) -> bool:
    """Whether another tool asked and graded the trials of a cell."""
    return carries(cell, IMPORTED)


@dataclass(frozen=True)
class PlannedCell:
    """A point of a task with the tiers that it belongs to."""

    cell: Cell
    tiers: tuple[str, ...]
    base: int
    """Answers (trials times repeats) that the first plan gives the point: its weight, whatever is asked later."""
    older: bool = False
    """Whether another point of the task asks what its data file has become."""

    def spec(self) -> dict[str, object]:
        """The point as JSON."""
        return {
            "cell_id": self.cell.id,
            "params": self.cell.params.canonical(),
            "tiers": list(self.tiers),
            "base": self.base,
            **({"older": True} if self.older else {}),
        }


@dataclass(frozen=True)
class TaskPlan:
    """One place on the task axis."""

    label: str
    """The task's name, or the one that the config gives it: a task may stand in a sweep more than once."""
    task: Task
    cells: tuple[PlannedCell, ...]
    assertions: Sequence[Mapping[str, Any]] = ()
    """What each output must be, as declared; rows of a data set may add to it."""
    rubric: str = ""
    """What judges go by; a row's own comes first."""
    reader: Mapping[str, Any] = field(default_factory=dict)
    """Description of its `SecondReader`; empty without one."""

    @cached_property
    def second(self) -> SecondReader | None:
        """What reads each reply a second time."""
        return SecondReader(self.reader) if self.reader else None

    @cached_property
    def graded(self) -> bool:
        """Whether outputs have layer scores."""
        own = ("assertions", "rubric", IMPORTED)
        return bool(self.assertions or self.rubric) or any(
            carries(entry.cell, field) for entry in self.cells for field in own
        )

    @cached_property
    def judged(self) -> bool:
        """Whether judges rate outputs."""
        return any(self.judged_points)

    @cached_property
    def judged_points(self) -> list[bool]:
        """At which of its points judges rate outputs."""
        return [bool(self.rubric) or carries(entry.cell, "rubric") for entry in self.cells]

    @property
    def graders(self) -> list[str]:
        """Graders that its points name, and folders with code."""
        graders = [getattr(planned.cell.params, "grader", "") for planned in self.cells]
        folders = (getattr(planned.cell.params, "include_path", "") for planned in self.cells)
        graders += [folder_code(path) for path in folders if isinstance(path, str) and path]
        graders += [self.second.grader] if self.second else []
        return list(dict.fromkeys(name for name in graders if isinstance(name, str) and name))

    @property
    def not_run(self) -> list[str]:
        """What of its code is not run or not at hand, and why."""
        if isinstance(self.task, AbsentTask):
            return [self.task.reason]
        return [explain_withheld(name) for name in self.graders if not may_run(name)]

    def spec(self) -> dict[str, object]:
        """The task's points as JSON."""
        criteria = {"assertions": list(self.assertions), "rubric": self.rubric, "reader": dict(self.reader)}
        return {
            "label": self.label,
            "name": self.task.name,
            "version": self.task.version,
            "points": [cell.spec() for cell in self.cells],
            **{name: value for name, value in criteria.items() if value},
        }


@dataclass(frozen=True)
class Named:
    """The part of a plan that a config names, where its cube has more."""

    evaluations: tuple[bool, ...]
    points: tuple[tuple[bool, ...], ...]
    """By task."""
    tiers: tuple[tuple[str, str, int], ...] = ()
    """Label of a task, a tier, and how many of the config's points are in it in the cube alone."""


@dataclass(frozen=True)
class Plan:
    """What a sweep measures. Sizes may grow, everything else is the sweep's identity."""

    seed: int
    evaluations: tuple[Evaluation, ...]
    tasks: tuple[TaskPlan, ...]
    trials: int
    repeats: int
    prices: tuple[tuple[float, float], ...] = ()
    """USD per million prompt and completion tokens, by evaluation."""
    facets: tuple[Mapping[str, object], ...] = ()
    """Free labels, by evaluation."""
    judges: tuple[Judge, ...] = ()
    asserted_prices: tuple[tuple[float, float], ...] = ()
    """The prices, if assertions depend on them: they are part of the identity then."""
    named: Named | None = None
    """What the config names of it, which is all that a run asks; None for all."""

    @property
    def files(self) -> dict[str, str]:
        """Paths of the data files that its points name, by SHA-256."""
        params = (planned.cell.plain_params for task in self.tasks for planned in task.cells)
        named = (row for point in params for row in mappings(point) if row.get("file") and "sha256" in row)
        return {str(row["sha256"]): str(row["file"]) for row in named}

    @property
    def packages(self) -> dict[str, str]:
        """Packages of the tasks that are not bundled, as text for people, by the tasks' names."""
        packages = {name: package_of(name) for task in self.tasks if (name := task.task.name) not in TASKS}
        return {name: package for name, package in packages.items() if package}

    @property
    def absent(self) -> list[str]:
        """Why tasks are not at hand whose trials the cube has."""
        return [task.task.reason for task in self.tasks if isinstance(task.task, AbsentTask)]

    @property
    def code(self) -> list[str]:
        """Graders that its points name, and templates that have more than fields."""
        named = [name for task in self.tasks for name in task.graders]
        return list(dict.fromkeys([*named, *(row.code for row in self.evaluations if row.code)]))

    @property
    def not_run(self) -> list[str]:
        """What code of its tasks, graders and templates is not run or not at hand, and why."""
        rows: tuple[TaskPlan | Evaluation, ...] = (*self.tasks, *self.evaluations)
        return list(dict.fromkeys(reason for row in rows for reason in row.not_run))

    @property
    def slots(self) -> int:
        """Length of the params axis: the longest manifold."""
        return max(len(task.cells) for task in self.tasks)

    @property
    def places(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Task and slot of each point, by label of its task and id of its cell."""
        points = ((row, slot) for row, task in enumerate(self.tasks) for slot in range(len(task.cells)))
        return {
            (self.tasks[row].label, self.tasks[row].cells[slot].cell.id): (row, slot) for row, slot in points
        }

    @property
    def cells(self) -> int:
        """Number of cells of one evaluation, padding left out."""
        return sum(len(task.cells) for task in self.tasks)

    def few_problems(self, trials: int) -> dict[str, int]:
        """By task, how many of its easiest points repeat a problem in more than half of so many trials."""
        problems = {task.label: points_with_few([e.cell for e in task.cells], trials) for task in self.tasks}
        return {label: count for label, count in problems.items() if count}

    @property
    def task_names(self) -> tuple[str, ...]:
        """Labels along the task axis."""
        return tuple(task.label for task in self.tasks)

    @property
    def tiers(self) -> tuple[str, ...]:
        """All tiers, in order of first mention."""
        return tuple(dict.fromkeys(t for task in self.tasks for cell in task.cells for t in cell.tiers))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """A name for each evaluation, all different, and no longer than it takes to tell them apart."""
        return labels_of(self.evaluations)

    def evaluation_index(self, name: str | int, parameter: str = "model") -> int:
        """The place of an evaluation, by its model's label, its full label or its number."""
        rows = self.evaluations
        return evaluation_place(
            name, self.labels, [row.model for row in rows], [row.label for row in rows], parameter
        )

    @property
    def sizes(self) -> dict[str, int]:
        """Lengths of the cube's dimensions."""
        return {
            "model": len(self.evaluations),
            "task": len(self.tasks),
            "params": self.slots,
            "trial": self.trials,
            "repeat": self.repeats,
            **self._judge_sizes,
            **({"dataset": len(self.named_points)} if self.named_points else {}),
        }

    @cached_property
    def named_points(self) -> tuple[tuple[int, int], ...]:
        """Task and slot of the points whose rows of a data set have names."""
        return tuple(
            (i, j)
            for i, task in enumerate(self.tasks)
            for j, planned in enumerate(task.cells)
            if isinstance(planned.cell.params, DatasetParams) and planned.cell.params.id
        )

    @cached_property
    def has_imported(self) -> bool:
        """Whether another tool asked and graded some of its trials."""
        return any(is_imported(planned.cell) for task in self.tasks for planned in task.cells)

    @property
    def _judge_sizes(self) -> dict[str, int]:
        if not self.judges:
            return {}
        return {"judge_name": len(self.judges), "judge_repeat": max(judge.repeats for judge in self.judges)}

    @cached_property
    def layers(self) -> Mapping[str, tuple[int, ...]]:
        """Names of the layer arrays, with the sizes of the dims that they have beyond a trial's; mostly none."""
        if not any(task.graded for task in self.tasks):
            return {}
        arrays: dict[str, tuple[int, ...]] = {"fact": (), "behavior": (), "judge": ()}
        return arrays | ({"judge_readings": tuple(self._judge_sizes.values())} if self.judges else {})

    @cached_property
    def more_arrays(self) -> Mapping[str, tuple[int, ...]]:
        """Names of the arrays that not all cubes have, as of `layers`."""
        clustered = any(
            getattr(planned.cell.params, "cluster", "") for task in self.tasks for planned in task.cells
        )
        return {
            **self.layers,
            **({"cluster": ()} if clustered else {}),
            **({SECOND: ()} if self.readers else {}),
            **dict.fromkeys(SAID, ()),
        }

    @property
    def readers(self) -> dict[str, str]:
        """What second readers are called, by the label of the task."""
        return {task.label: task.second.name for task in self.tasks if task.second}

    @property
    def chunks(self) -> dict[str, int]:
        """Chunk lengths that make a region neither tiny nor larger than some megabytes."""
        repeat = min(self.repeats, _REPEAT_CHUNK)
        trial = _TRIAL_CHUNK
        while len(self.tasks) * self.slots * repeat * trial < _REGION_CELLS:
            # Thousands of answers to few questions would be as many regions of a few answers each.
            if self.repeats > _MANY_REPEATS and trial >= self.trials:
                repeat *= 2
            else:
                trial *= 2
        return {"trial": trial, "repeat": repeat}

    @cached_property
    def sources(self) -> npt.NDArray[np.int64]:
        """How many different trials each cell has, shape (task, params); padding has none."""
        return self.by_point(lambda one: _UNLIMITED if one.cell.size is None else one.cell.size, np.int64)

    @cached_property
    def base(self) -> npt.NDArray[np.int64]:
        """Answers that the first plan gave each point, shape (task, params); padding has none."""
        return self.by_point(lambda one: one.base, np.int64)

    def spec(self) -> dict[str, object]:
        """The sweep's identity as JSON, with the points' weights."""
        prices = [list(pair) for pair in self.asserted_prices]
        grading = {"judges": [judge.spec() for judge in self.judges], "asserted_prices": prices}
        return {
            "format": SPEC_FORMAT,
            "seed": self.seed,
            "evaluations": [evaluation.spec() for evaluation in self.evaluations],
            "tasks": [task.spec() for task in self.tasks],
            **{name: value for name, value in grading.items() if value},
        }

    @classmethod
    def from_spec(
        cls,
        spec: object,
        trials: int,
        repeats: int,
        files: Mapping[str, str] | None = None,
        packages: Mapping[str, str] | None = None,
    ) -> Plan:
        """Build the plan of a cube from its attributes.

        A task that is not installed, or in another version, has its cells and no trials; see `absent`.
        """
        parsed = parse_spec(spec)
        tasks = tuple(
            _task_from_spec(item, parsed.seed, i, files or {}, packages or {})
            for i, item in enumerate(parsed.tasks)
        )
        return cls(
            parsed.seed, tuple(parsed.evaluations), tasks, trials, repeats, judges=tuple(parsed.judges)
        )

    def valid(self) -> npt.NDArray[np.bool_]:
        """Which slots of the params axis exist, shape (task, params)."""
        return self.by_point(lambda _: True, np.bool_)

    def by_point(self, of: Callable[[PlannedCell], object], dtype: type[_Kind]) -> npt.NDArray[_Kind]:
        """Something of each point, shape (task, params); 0 for padding."""
        points = np.zeros((len(self.tasks), self.slots), dtype)
        for row, task in zip(points, self.tasks, strict=True):
            row[: len(task.cells)] = list(map(of, task.cells))
        return points

    @cached_property
    def named_cells(self) -> npt.NDArray[np.bool_]:
        """Which cells the config names, shape (model, task, params)."""
        points, named = self.valid(), self.named
        if named is None:
            return np.broadcast_to(points, (len(self.evaluations), *points.shape))
        for row, own in zip(points, named.points, strict=True):
            row[: len(own)] = own
        cells: npt.NDArray[np.bool_] = np.array(named.evaluations)[:, None, None] & points
        return cells

    @cached_property
    def in_tier(self) -> npt.NDArray[np.bool_]:
        """Membership of the points in the tiers, shape (tier, task, params)."""
        tiers = self.tiers
        member = np.zeros((len(tiers), len(self.tasks), self.slots), dtype=bool)
        for i, task in enumerate(self.tasks):
            for j, planned in enumerate(task.cells):
                member[[tiers.index(tier) for tier in planned.tiers], i, j] = True
        return member

    @cached_property
    def ranked(self) -> npt.NDArray[np.bool_]:
        """Membership in the tiers, shape (tier, task, params), of the points that have right answers."""
        return self.in_tier & self.referenced

    def worth(self, questions: npt.ArrayLike) -> tuple[float, str]:
        """Questions of equal weight that so many of each point (task, params) are worth, and the task that limits.

        Weights are those of a comparison, in which tasks weigh the same; the name is empty where none limits much.
        """
        asked = np.asarray(questions) * self.valid()
        inside = self.ranked.any(axis=0) & (asked > 0)
        tasks = inside.any(axis=1, keepdims=True)
        used = np.where(tasks, inside, (asked > 0) & ~tasks.any())
        worth, row = worth_of(asked, task_weights(self.base, used))
        return worth, self.task_names[row] if worth < _LIMITED * asked.sum() else ""

    @cached_property
    def referenced(self) -> npt.NDArray[np.bool_]:
        """Which points have right answers, shape (task, params)."""
        return self.by_point(lambda one: one.cell.task.has_reference(one.cell.params), np.bool_)


def _task_from_spec(
    spec: TaskSpec, seed: int, index: int, files: Mapping[str, str], packages: Mapping[str, str]
) -> TaskPlan:
    task = installed_task(spec, packages.get(spec.name, ""))
    if isinstance(task, RenderedTask):
        task = copy(task)  # which may be told to read the blocks of this plan's cube
    check_described_reader(spec.reader, index)
    cells: list[PlannedCell] = []
    for number, point in enumerate(spec.points):
        if isinstance(task, AbsentTask):
            cell = absent_cell(task, point.params, seed, point.cell_id)
            cells.append(PlannedCell(cell, tuple(point.tiers), point.base))
            continue
        try:
            params = task.Params.model_validate(point.placed(files))
        except ValidationError as error:
            raise damage_error(error, "tasks", index, "points", number, "params") from None
        cells.append(PlannedCell(Cell(task, params, seed), tuple(point.tiers), point.base, point.older))
    return TaskPlan(spec.label, task, tuple(cells), spec.assertions, spec.rubric, spec.reader)
