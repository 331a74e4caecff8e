"""Add the tasks of installed packages to the bundled ones."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from evalcube.stages.generate.base import Task, TaskParams
from evalcube.stages.generate.errors import TaskError

GROUP = "evalcube.tasks"
"""Entry point group; a plugin's object is a `Task` subclass or an instance of one."""

_DECLARED = ("name", "version", "summary", "guess_rule", "Params")


def installed() -> tuple[EntryPoint, ...]:
    """The entry points of `GROUP` that installed packages declare.

    All packages' files are read for them, which costs as much as planning a small sweep: once only, as long as none
    is installed or removed.
    """
    return _read(tuple((path, _changed(path)) for path in sys.path))


@lru_cache(maxsize=4)
def _read(_places: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP))


def _changed(path: str) -> int:
    """When something came into a directory or left it, in nanoseconds; 0 where there is none."""
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return 0


def with_plugins(builtin: Mapping[str, Task], points: Iterable[EntryPoint]) -> dict[str, Task]:
    """The built-in tasks and those of `points`, by name.

    Parameters
    ----------
    builtin
        By name.
    points
        Of the group `GROUP`.

    Raises
    ------
    TaskError
        A plugin cannot be loaded, is not a complete task, or takes a name that is in use.
    """
    tasks = dict(builtin)
    # Sorted: which of two plugins with one name is refused must not depend on the order in which they were installed.
    for point in sorted(points, key=lambda point: (point.name, point.value)):
        task = _load(point)
        if task.name in tasks:
            # Never replaced: a name is part of a cell's identity, and the bundled task's cells are in users' cubes.
            taken = type(tasks[task.name])
            raise TaskError(
                f"{_label(point)} declares the name '{task.name}', which "
                f"{taken.__module__}.{taken.__qualname__} already has; "
                "rename the task or uninstall one of the two",
                value=task.name,
            )
        tasks[task.name] = task
    return tasks


def _load(point: EntryPoint) -> Task:
    try:
        loaded = point.load()
        task = loaded() if isinstance(loaded, type) and issubclass(loaded, Task) else loaded
    except Exception as error:  # whatever a stranger's module raises when it is imported
        raise TaskError(
            f"{_label(point)} cannot be loaded ({type(error).__name__}: {error}); repair or uninstall it",
            value=point.value,
        ) from error
    if not isinstance(task, Task):
        raise TaskError(
            f"{_label(point)} gives a {type(task).__name__}, not a Task; point it at a subclass of Task",
            value=point.value,
        )
    missing = [name for name in _DECLARED if not hasattr(task, name)]
    if missing or not issubclass(task.Params, TaskParams):
        lack = f"does not declare {', '.join(missing)}" if missing else "has Params that are no TaskParams"
        raise TaskError(f"{_label(point)} {lack}; complete its class", value=point.value)
    return task


def _label(point: EntryPoint) -> str:
    package = point.dist.name if point.dist is not None else None
    return f"task plugin '{point.name}' ({point.value}{f', package {package}' if package else ''})"
