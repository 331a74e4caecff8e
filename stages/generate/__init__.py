"""Make trials: questions with their reference answers, from a task and its params, by random access."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module

from evalcube.stages.generate.base import Cell, Task, TaskParams, Trial
from evalcube.stages.generate.errors import TaskError
from evalcube.stages.generate.manifold import Axis, Density, Entry, Point, RangeWindow, expand, find_problems
from evalcube.stages.generate.plugins import KnownTasks, installed_plugins

__all__ = [
    "TASKS",
    "Axis",
    "Cell",
    "Density",
    "Entry",
    "Point",
    "RangeWindow",
    "Task",
    "TaskError",
    "TaskParams",
    "Trial",
    "all_tasks",
    "expand",
    "find_problems",
]

_BUNDLED = (
    "arithmetic boolean brackets cars constraints dates haystack jsonpath letters movies objects sequence shapes "
    "shuffle sort tables tools dataset"
).split()


DOORS = {
    "gym": "what a generator of reasoning-gym makes (extra gym); `evalcube tasks gym:` names them",
    "lm-eval": "the questions of a task of lm-eval, such as lm-eval:gsm8k or lm-eval:lettered:arc_easy (extra lm-eval)",
}
"""Packages whose tasks are named with a prefix and not listed -> what they ask; modules of `foreign` have them."""


@cache
def _load(name: str) -> Task:
    door, colon, own_name = name.partition(":")
    path = f"foreign.{door.replace('-', '_')}" if colon else name if name == "dataset" else f"tasks.{name}"
    module = import_module(f"{__name__}.{path}")
    task: Task = module.task(own_name) if colon else getattr(module, name.capitalize())()
    return task


class _Bundled(Mapping[str, Task]):
    """Each is loaded when it is asked for: a config names a few, and a tenth of a small run's start is all of them."""

    def __getitem__(self, name: str) -> Task:
        if name not in self:
            raise KeyError(name)
        return _load(name)

    def __contains__(self, name: object) -> bool:
        return name in _BUNDLED or (isinstance(name, str) and ":" in name and name.partition(":")[0] in DOORS)

    def __iter__(self) -> Iterator[str]:
        return iter(_BUNDLED)

    def __len__(self) -> int:
        return len(_BUNDLED)


TASKS: Mapping[str, Task] = _Bundled()
"""The bundled tasks by name."""


def all_tasks() -> KnownTasks:
    """The bundled tasks and those of installed plugins, by name; asking for a broken one raises a `TaskError`."""
    return KnownTasks(TASKS, installed_plugins)
