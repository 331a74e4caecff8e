"""The tasks that there are: what each asks, its parameters, and sample trials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evalcube.flows.config.near_names import did_you_mean
from evalcube.flows.config.secrecy import show
from evalcube.flows.errors import SweepError
from evalcube.stages.generate import Cell, Entry, Task, Trial, all_tasks, expand


@dataclass(frozen=True)
class ParamInfo:
    """One parameter of a task."""

    name: str
    default: object
    allowed: str
    """Range or listed values."""
    description: str
    """Unit, and what it makes harder."""


def tasks() -> dict[str, Task]:
    """The tasks that configs can name, bundled and of installed plugins.

    Returns
    -------
    dict
        Name -> task.
    """
    return {task.name: task for task in all_tasks().sound()[0]}


def find_task(name: str) -> Task:
    """The task of that name, bundled or from a plugin."""
    tasks = all_tasks()
    if name in tasks:
        return tasks[name]
    raise SweepError(f"there is no task {show(name)}", did_you_mean(name, list(tasks), "Give one of"))


def task_params(task: Task) -> list[ParamInfo]:
    """The parameters of a task, in the order of their declaration."""
    return [
        ParamInfo(name, field.get("default"), _allowed_values(field), field.get("description", ""))
        for name, field in task.Params.model_json_schema()["properties"].items()
    ]


def sample_trials(task: Task, params: Mapping[str, Any], count: int, seed: int) -> Iterator[Trial]:
    """The first trials of a cell."""
    chosen = dict(params) or task.example().canonical()
    (point,) = expand(task, [Entry(grid=None, points=[chosen], tiers=("sample",))])
    cell = Cell(task, point.params, seed)
    return (cell.trial(index) for index in range(count if cell.size is None else min(count, cell.size)))


def _allowed_values(field: Mapping[str, Any]) -> str:
    """Range or values of a field, from its JSON schema."""
    if "enum" in field:
        return ", ".join(map(str, field["enum"]))
    if "anyOf" in field:
        return " or ".join(
            _allowed_values(option) for option in field["anyOf"] if option.get("type") != "null"
        )
    if "const" in field:
        return str(field["const"])
    low, high = field.get("minimum"), field.get("maximum")
    if low is not None and high is not None:
        return f"{low:g} to {high:g}"
    if low is not None or high is not None:
        return f"from {low:g}" if high is None else f"to {high:g}"
    return str(field.get("type", "any"))
