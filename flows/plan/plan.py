"""A config in; the sweep as plain data out: evaluations, cells and chunking, all that a worker needs but addresses.

The *spec* is the identity of a sweep as JSON. It is stored in the cube's attributes, and a plan can be built from it
alone, so that whoever opens a cube can regenerate every prompt and every cache key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from pydantic import ValidationError

from flows.config.models import ModelConfig, SweepConfig
from flows.errors import SweepError
from flows.plan.coordinates import coordinates
from flows.plan.criteria import carries, check_criteria
from flows.plan.evaluations import Evaluation
from flows.plan.judges import Judge
from flows.plan.spec import SPEC_FORMAT, TaskSpec, damaged, parse_spec
from stages.generate import Cell, Task, all_tasks, expand
from stages.generate.stream import canonical_params
from storage.cube.cube import Coordinate

_TRIAL_CHUNK = 32
_REPEAT_CHUNK = 8
_REGION_CELLS = 4096
_UNLIMITED = 2**31 - 1


@dataclass(frozen=True)
class PlannedCell:
    """A point of a task with the tiers that it belongs to."""

    cell: Cell
    tiers: tuple[str, ...]

    def spec(self) -> dict[str, object]:
        """The point as JSON."""
        return {
            "cell_id": self.cell.id,
            "params": self.cell.params.canonical(),
            "tiers": list(self.tiers),
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

    @cached_property
    def graded(self) -> bool:
        """Whether outputs have layer scores."""
        own = ("assertions", "rubric")
        return bool(self.assertions or self.rubric) or any(
            carries(entry.cell, field) for entry in self.cells for field in own
        )

    def spec(self) -> dict[str, object]:
        """The task's points as JSON."""
        criteria = {"assertions": list(self.assertions), "rubric": self.rubric}
        return {
            "label": self.label,
            "name": self.task.name,
            "version": self.task.version,
            "points": [cell.spec() for cell in self.cells],
            **{name: value for name, value in criteria.items() if value},
        }


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

    @property
    def files(self) -> dict[str, str]:
        """Paths of the data files that its points name, by SHA-256."""
        params = (planned.cell.plain_params for task in self.tasks for planned in task.cells)
        return {str(one["sha256"]): str(one["file"]) for one in params if "sha256" in one and "file" in one}

    @property
    def slots(self) -> int:
        """Length of the params axis: the longest manifold."""
        return max(len(task.cells) for task in self.tasks)

    @property
    def cells(self) -> int:
        """Number of cells of one evaluation, padding left out."""
        return sum(len(task.cells) for task in self.tasks)

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
        """A name for each evaluation, no longer than it takes to tell them apart."""
        rows = self.evaluations
        optional = ([row.template_name for row in rows], [row.sampler_name for row in rows])
        parts = [[row.model for row in rows], *(names for names in optional if len(set(names)) > 1)]
        return tuple(" / ".join(columns) for columns in zip(*parts, strict=True))

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
        }

    @property
    def _judge_sizes(self) -> dict[str, int]:
        if not self.judges:
            return {}
        return {
            "judge_name": len(self.judges),
            "judge_repeat": max(judge.repeats for judge in self.judges),
        }

    @cached_property
    def layers(self) -> Mapping[str, tuple[int, ...]]:
        """Names of the layer arrays, with the sizes of the dims that they have beyond a trial's; mostly none."""
        if not any(task.graded for task in self.tasks):
            return {}
        arrays: dict[str, tuple[int, ...]] = {"fact": (), "behavior": (), "judge": ()}
        return arrays | ({"judge_readings": tuple(self._judge_sizes.values())} if self.judges else {})

    @property
    def chunks(self) -> dict[str, int]:
        """Chunk lengths that make a region neither tiny nor larger than some megabytes."""
        repeat = min(self.repeats, _REPEAT_CHUNK)
        trial = _TRIAL_CHUNK
        while len(self.tasks) * self.slots * repeat * trial < _REGION_CELLS:
            trial *= 2
        return {"trial": trial, "repeat": repeat}

    @cached_property
    def sources(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """How many different trials each cell has, shape (task, params); padding has none."""
        counts = np.zeros((len(self.tasks), self.slots), dtype=np.int64)
        for row, task in zip(counts, self.tasks, strict=True):
            sizes = (planned.cell.size for planned in task.cells)
            row[: len(task.cells)] = [_UNLIMITED if size is None else size for size in sizes]
        return counts

    def spec(self) -> dict[str, object]:
        """The sweep's identity as JSON."""
        grading = {
            "judges": [judge.spec() for judge in self.judges],
            "asserted_prices": [list(pair) for pair in self.asserted_prices],
        }
        return {
            "format": SPEC_FORMAT,
            "seed": self.seed,
            "evaluations": [evaluation.spec() for evaluation in self.evaluations],
            "tasks": [task.spec() for task in self.tasks],
            **{name: value for name, value in grading.items() if value},
        }

    @classmethod
    def from_spec(
        cls, spec: object, trials: int, repeats: int, files: Mapping[str, str] | None = None
    ) -> Plan:
        """Build the plan of a cube from its attributes.

        `files` has the paths, by SHA-256, of data files that lie somewhere else now.

        Raises
        ------
        SweepError
            If the spec is of a newer format, is damaged, or names a task or a generator version that is not
            installed.
        """
        parsed = parse_spec(spec)
        tasks = tuple(
            _task_from_spec(item, parsed.seed, i, files or {}) for i, item in enumerate(parsed.tasks)
        )
        evaluations = tuple(Evaluation.from_spec(item) for item in parsed.evaluations)
        judges = tuple(Judge.from_spec(item) for item in parsed.judges)
        return cls(parsed.seed, evaluations, tasks, trials, repeats, judges=judges)

    def valid(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which slots of the params axis exist, shape (task, params)."""
        mask = np.zeros((len(self.tasks), self.slots), dtype=bool)
        for row, task in zip(mask, self.tasks, strict=True):
            row[: len(task.cells)] = True
        return mask

    @cached_property
    def in_tier(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Membership of the points in the tiers, shape (tier, task, params)."""
        tiers = self.tiers
        member = np.zeros((len(tiers), len(self.tasks), self.slots), dtype=bool)
        for i, task in enumerate(self.tasks):
            for j, planned in enumerate(task.cells):
                member[[tiers.index(tier) for tier in planned.tiers], i, j] = True
        return member

    @cached_property
    def ranked(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Membership in the tiers, shape (tier, task, params), of the points that have right answers."""
        known = np.zeros((len(self.tasks), self.slots), dtype=bool)
        for row, task in zip(known, self.tasks, strict=True):
            row[: len(task.cells)] = [one.cell.task.has_reference(one.cell.params) for one in task.cells]
        return self.in_tier & known

    def coordinates(self) -> list[Coordinate]:
        """The cube's coordinates."""
        return coordinates(self)


def build_plan(config: SweepConfig) -> Plan:
    """The plan of a config.

    Raises
    ------
    SweepError
        If two evaluations or two judges would send the very same requests, or what is asked of outputs is wrong.
    """
    evaluations, prices, facets = [], [], []
    for model, template, sampler in config.combinations():
        source = config.templates[template]
        evaluations.append(
            Evaluation(
                model.name,
                request_model(model),
                template,
                source if isinstance(source, str) else [dict(message) for message in source],
                sampler,
                # 0 and 0.0 are one request.
                canonical_params(config.samplers[sampler]),
                model.api,
            )
        )
        prices.append((model.prices.prompt, model.prices.completion))
        facets.append(dict(model.facets))
    _refuse_twins(evaluations)
    known = all_tasks()
    tasks = tuple(_plan_task(known, config, label) for label in config.tasks)
    plan = Plan(
        config.seed,
        tuple(evaluations),
        tasks,
        config.trials,
        config.repeats,
        tuple(prices),
        tuple(facets),
        _judges(config),
    )
    if check_criteria(plan):
        return replace(plan, asserted_prices=plan.prices)
    return plan


def _judges(config: SweepConfig) -> tuple[Judge, ...]:
    models = {model.name: model for model in config.models}
    judges, seen = [], dict[str, Judge]()
    for row in config.judges:
        sampler = config.samplers[row.sampler] if isinstance(row.sampler, str) else row.sampler
        model = models[row.model]
        judge = Judge(
            row.name, row.model, request_model(model), canonical_params(sampler), row.repeats, model.api
        )
        twin = seen.setdefault(judge.identity, judge)
        if twin is not judge:
            raise SweepError(
                f"judges '{twin.name}' and '{judge.name}' send the same requests, so that they would always agree",
                "Raise `repeats` of one and remove the other, or give them different models or samplers",
            )
        judges.append(judge)
    return tuple(judges)


def request_model(model: ModelConfig) -> str:
    """The name sent to the endpoint; a simulated model's profile is part of it, and so of every cache key."""
    if model.simulate is not None:
        return model.simulate.profile().model_name(model.name)
    return model.model


def _refuse_twins(evaluations: Sequence[Evaluation]) -> None:
    seen: dict[str, Evaluation] = {}
    for evaluation in evaluations:
        twin = seen.setdefault(evaluation.eval_id, evaluation)
        if twin is not evaluation:
            raise SweepError(
                f"evaluations '{twin.label}' and '{evaluation.label}' send the same requests, so that one would be "
                f"answered from the other's cache. Give the models different `model` names, or remove one of them."
            )


def _plan_task(known: Mapping[str, Task], config: SweepConfig, label: str) -> TaskPlan:
    name, entries = config.manifold(label)
    points = expand(known[name], entries)
    cells = tuple(PlannedCell(Cell(known[name], p.params, config.seed), p.tiers) for p in points)
    section = config.tasks[label]
    return TaskPlan(label, known[name], cells, section.assertions or (), section.rubric or "")


def _task_from_spec(spec: TaskSpec, seed: int, index: int, files: Mapping[str, str]) -> TaskPlan:
    task = all_tasks().get(spec.name)
    if task is None or task.version != spec.version:
        found = "is not installed" if task is None else f"is installed in version {task.version}"
        raise SweepError(
            f"task '{spec.name}' version {spec.version} of this cube {found}; its prompts cannot be made again. "
            f"Install the version of evalcube (or of the plugin) that wrote the cube."
        )
    cells = []
    for number, point in enumerate(spec.points):
        try:
            params = task.Params.model_validate(point.placed(files))
        except ValidationError as error:
            raise damaged(error, "tasks", index, "points", number, "params") from None
        cells.append(PlannedCell(Cell(task, params, seed), tuple(point.tiers)))
    return TaskPlan(spec.label, task, tuple(cells), spec.assertions, spec.rubric)
