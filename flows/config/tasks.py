"""The raw ``tasks`` of a config -> findings about unknown tasks and wrong params, through each task's own rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from pydantic import TypeAdapter, ValidationError

from flows.config.findings import Finding, Path, did_you_mean
from flows.config.manifold import TaskConfig
from flows.config.raw import items, mapping
from flows.config.secrecy import mask, show
from flows.config.section import Degree, Density
from stages.generate import Entry, Task, TaskError, all_tasks, expand, find_problems

MOST_POINTS = 100_000
"""Points of one task, before equal ones are joined."""

_DEGREE: TypeAdapter[int] = TypeAdapter(Degree)


class CheckedTasks:
    """The config's tasks, each checked through its own generator."""

    def __init__(self, raw: Mapping[str, object]) -> None:
        self.findings: list[Finding] = []
        self.samples: dict[str, Mapping[str, object]] = {}
        """Label of each good task -> params of its first point."""
        self.tasks: dict[str, Task] = {}
        """Label -> task, where it is known."""
        self._degree, self._density = _degree(raw.get("degree")), _density(raw.get("density"))
        section = mapping(raw.get("tasks"))
        if not section:
            return
        try:
            known = all_tasks()
        except TaskError as error:
            self.findings.append(Finding(("tasks",), _rule(error)))
            return
        for label, value in section.items():
            self._check(label, value, known)

    def _check(self, label: str, value: object, known: Mapping[str, Task]) -> None:
        written = mapping(value).get("task")
        name = written if isinstance(written, str) else label
        if name not in known:
            self._unknown(label, name, sorted(known), at_key=name is not written)
            return
        self.tasks[label] = task = known[name]
        parts = dict(self._parts(mapping(value)))
        found = _too_many(label, [entry for part in parts.values() for entry in part])
        if not found:
            told: dict[Path, Finding] = {}
            for index, entries in parts.items():
                for error in find_problems(task, entries):
                    finding = _finding(("tasks", label), index, mapping(value), error)
                    told.setdefault(finding.path, finding)
            found = list(told.values())
        self.findings += found
        if parts and not found:
            first = next(iter(parts.values()))
            self.samples[label] = expand(task, first[:1])[0].params.canonical()

    def _unknown(self, label: str, name: str, known: list[str], *, at_key: bool) -> None:
        remedy = did_you_mean(name, known, "Tasks")
        path: Path = ("tasks", label) if at_key else ("tasks", label, "task")
        self.findings.append(Finding(path, f"unknown task {show(name)}", remedy=remedy, at_key=at_key))

    def _parts(self, task: Mapping[str, object]) -> Iterator[tuple[int | None, list[Entry]]]:
        """The entries of the right form, by index; the models tell what is wrong with the others."""
        fixed = {"params": task["params"]} if isinstance(task.get("params"), Mapping) else {}
        own = {name: task[name] for name in ("degree", "density") if name in task}
        parts: list[tuple[int | None, dict[str, object]]] = [
            (index, {"manifold": [item]}) for index, item in enumerate(items(task.get("manifold")))
        ]
        for index, part in parts if task.get("manifold") is not None else [(None, {})]:
            try:
                config = TaskConfig.model_validate({**fixed, **own, **part})
            except ValidationError:
                continue
            yield index, config.entries(degree=self._degree, density=self._density)


def _degree(value: object) -> int:
    """The sweep's degree, or 0 if it has none that is valid."""
    try:
        return _DEGREE.validate_python(value)
    except ValidationError:
        return 0


def _density(value: object) -> Density:
    return next((density for density in get_args(Density) if density == value), "normal")


def _too_many(label: str, entries: Sequence[Entry]) -> list[Finding]:
    total = sum(entry.size() for entry in entries)
    if total <= MOST_POINTS:
        return []
    rule = f"has {total:,} points, at most {MOST_POINTS:,} are allowed"
    return [Finding(("tasks", label, "manifold"), rule, remedy="Use fewer values")]


def _finding(path: Path, index: int | None, task: Mapping[str, object], error: TaskError) -> Finding:
    where = error.where
    if index is None or where[:1] == ("params",):
        path = (*path, "params", *where[1:])
    else:
        path = (*path, "manifold", index, *_written(where, items(task.get("manifold"))[index]))
    return Finding(path, _rule(error), at_key=error.message.startswith("unknown"))


def _written(where: Path, entry: object) -> Path:
    """Where a value of an axis stands: below `range`, if the axis is written so."""
    if len(where) == 3 and where[0] == "grid" and isinstance(where[2], int):
        axis = mapping(mapping(entry).get("grid")).get(str(where[1]))
        if isinstance(axis, Mapping):
            return (*where[:2], "range", where[2])
    return where


def _rule(error: TaskError) -> str:
    return mask(" ".join(error.message.split())[:400].removesuffix("."))
