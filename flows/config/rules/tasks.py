"""Rules about tasks, known and with valid points, the templates that render their params, and views of all of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from evalcube.flows.config.findings import Finding, Path, unknown_name
from evalcube.flows.config.manifold import DEFAULT_TIERS
from evalcube.flows.config.rules.models import names_of
from evalcube.flows.config.secrecy import mask
from evalcube.flows.config.templates import Template
from evalcube.flows.config.views import unknown_names
from evalcube.flows.errors import TemplateError
from evalcube.stages.generate import Axis, Entry, Task, TaskError, all_tasks, expand, find_problems

if TYPE_CHECKING:
    from evalcube.flows.config.models import Sweep

_Parts = dict[int | None, list[Entry]]
"""Index of each valid entry of a manifold -> its records."""

MOST_POINTS = 100_000
"""Points of one task, before equal ones are joined."""


class CheckedTasks:
    """The config's tasks, each checked through its own generator."""

    def __init__(self, config: Sweep) -> None:
        self.findings: list[Finding] = []
        self.samples: dict[str, Mapping[str, object]] = {}
        """Label of each good task -> params of its first point."""
        self.tasks: dict[str, Task] = {}
        """Label -> task, where it is known."""
        generators = all_tasks()
        for label, task in config.tasks.items():
            name = task.task or label
            path: Path = ("tasks", label) if task.task is None else ("tasks", label, "task")
            if name not in generators:
                self.findings.append(
                    unknown_name(path, "task", name, sorted(generators), "Tasks", at_key=task.task is None)
                )
                continue
            try:
                self.tasks[label] = generators[name]
            except TaskError as error:
                self.findings.append(Finding(path, _rule(error), at_key=task.task is None))
                continue
            parts = dict(task.parts(degree=config.degree, density=config.density))
            self._check(label, self.tasks[label], parts)

    def _check(self, label: str, task: Task, parts: _Parts) -> None:
        excess = _too_many(label, [entry for part in parts.values() for entry in part])
        if not excess:
            once: dict[Path, Finding] = {}
            for index, entries in parts.items():
                for error in find_problems(task, entries):
                    finding = _finding(("tasks", label), index, entries, error)
                    once.setdefault(finding.path, finding)
            excess = list(once.values())
        self.findings += excess
        if parts and not excess:
            self.samples[label] = expand(task, next(iter(parts.values()))[:1])[0].params.canonical()


def _too_many(label: str, entries: Sequence[Entry]) -> list[Finding]:
    total = sum(entry.size() for entry in entries)
    if total <= MOST_POINTS:
        return []
    rule = f"has {total:,} points, at most {MOST_POINTS:,} are allowed"
    return [Finding(("tasks", label, "manifold"), rule, remedy="Use fewer values")]


def _finding(path: Path, index: int | None, entries: Sequence[Entry], error: TaskError) -> Finding:
    where = error.where
    if index is None or where[:1] == ("params",):
        path = (*path, "params", *where[1:])
    else:
        path = (*path, "manifold", index, *_with_range(where, entries[0]))
    return Finding(path, _rule(error), at_key=error.message.startswith("unknown"))


def _with_range(where: Path, entry: Entry) -> Path:
    """Where a value of an axis stands: below `range`, if the axis is written so."""
    if len(where) == 3 and where[0] == "grid" and isinstance(where[2], int):
        axis = (entry.grid or {}).get(str(where[1]))
        return (*where[:2], "range", where[2]) if isinstance(axis, Axis) else where
    return where


def _rule(error: TaskError) -> str:
    return mask(" ".join(error.message.split())[:400].removesuffix("."))


def renders(config: Sweep, samples: Mapping[str, Mapping[str, object]]) -> Iterator[Finding]:
    """Each template renders, and uses the prompt."""
    for name, source in config.templates.items():
        finding = _error(name, Template(source), samples)
        if finding is not None:
            yield finding


def _error(name: str, template: Template, samples: Mapping[str, Mapping[str, object]]) -> Finding | None:
    """What fails when the template is rendered with one prompt per task."""
    guesses: dict[str, Mapping[str, object]] = {} if "params" in template.uses else {"task": {}}
    for task, params in (samples or guesses).items():
        try:
            template.render(prompt="What is 2 + 3?", task=task, params=params)
        except TemplateError as error:
            at = f" (with task {task})" if "params" in template.uses else ""
            return Finding(("templates", name, *error.where), mask(error.message) + at, remedy=error.remedy)
    if "prompt" not in template.uses:
        rule = "never uses the prompt: every question would be the same"
        return Finding(("templates", name), rule, remedy="Write {{ prompt }} into it")
    return None


def coordinates(config: Sweep, tasks: Mapping[str, Task]) -> Iterator[Finding]:
    """What views and the policy ask for is there."""
    labels: dict[str, list[str]] = {
        "task": list(config.tasks),
        "tier": list(dict.fromkeys(_tiers(config))),
        "model_name": names_of(config),
        "template": list(config.templates),
        "sampler": list(config.samplers),
    }
    if config.policy is not None:
        for finding in unknown_names(config.policy, labels["task"], labels["tier"]):
            yield replace(finding, path=("policy", *finding.path))
    facets = {name for model in config.models for name in model.facets}
    facets |= {name for task in tasks.values() for name in _numbers(task)}
    for name, view in config.views.items():
        path: Path = ("views", name, "where")
        for coordinate, value in view.where.items():
            if coordinate in labels:
                yield from _label(path, coordinate, value, labels[coordinate])
            elif coordinate not in facets and not (
                coordinate.startswith("param_") and len(tasks) < len(config.tasks)
            ):
                # it may be of a task that is not known
                names = [*labels, *sorted(facets)]
                at = (*path, coordinate)
                yield unknown_name(at, "coordinate", coordinate, names, "Coordinates", at_key=True)


def _label(path: Path, coordinate: str, value: object, names: list[str]) -> Iterator[Finding]:
    """What is wrong with a criterion of a label."""
    if isinstance(value, Mapping) or (isinstance(value, list) and None in value):
        rule = f"{coordinate} is a label, so that it has no range"
        yield Finding((*path, coordinate), rule, remedy="List its values")
        return
    items: list[tuple[Path, object]] = [((coordinate,), value)]
    if isinstance(value, list):
        items = [((coordinate, index), item) for index, item in enumerate(value)]
    for position, item in items:
        if item not in names:
            yield unknown_name((*path, *position), coordinate, item, names, "Known")


def _tiers(config: Sweep) -> Iterator[str]:
    for task in config.tasks.values():
        if task.manifold is None:
            yield from DEFAULT_TIERS
        for entry in task.manifold or ():
            yield from entry.tiers


def _numbers(task: Task) -> Iterator[str]:
    """The coordinates that a task's params become; a param that is a text becomes none."""
    fields = task.Params.model_fields.items()
    yield from (f"param_{name}" for name, info in fields if _holds_number(info.annotation))


def _holds_number(annotation: Any) -> bool:  # noqa: ANN401 - any type
    if annotation in (int, float, bool) or isinstance(annotation, (int, float)):
        return True
    return any(map(_holds_number, get_args(annotation)))
