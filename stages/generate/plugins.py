"""The tasks that a process knows: the bundled ones, and those of installed packages, loaded by their names."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from evalcube.stages.generate.base import Task, TaskParams
from evalcube.stages.generate.errors import TaskError

GROUP = "evalcube.tasks"
"""Entry point group; a plugin's object is a `Task` subclass or an instance of one, and has the entry point's name."""

_DECLARED = ("name", "version", "summary", "guess_rule", "Params")


def installed_plugins() -> tuple[EntryPoint, ...]:
    """The entry points of `GROUP` that installed packages declare.

    All packages' files are read for them, which costs as much as planning a small sweep: once only, as long as none
    is installed or removed.
    """
    return _read_points(tuple((path, _change_time(path)) for path in sys.path))


@lru_cache(maxsize=4)
def _read_points(_places: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP))


def _change_time(path: str) -> int:
    """When something came into a directory or left it, in nanoseconds; 0 where there is none."""
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return 0


class KnownTasks(Mapping[str, Task]):
    """Tasks by name. A plugin is loaded when its own name is asked for: a broken one is in nobody else's way.

    Parameters
    ----------
    builtin
        By name; no plugin replaces one of them, as a name is part of the identity of cells in users' cubes.
    points
        Gives those of the group `GROUP`; not called for a bundled task.
    """

    def __init__(self, builtin: Mapping[str, Task], points: Callable[[], Iterable[EntryPoint]]) -> None:
        self._builtin, self._given = builtin, points

    @cached_property
    def _points(self) -> list[EntryPoint]:
        # Sorted: what is said of two plugins with one name must not depend on which was installed first.
        return sorted(self._given(), key=lambda point: (point.name, point.value))

    def __getitem__(self, name: str) -> Task:
        """A task; `KeyError` if there is none of the name, `TaskError` if its plugin is broken."""
        if name in self._builtin:
            return self._builtin[name]
        named = [point for point in self._points if point.name == name]
        if not named:
            raise KeyError(name)
        if len(named) > 1:
            raise TaskError(
                f"{_label(named[0])} and {_label(named[1])} have one name; uninstall one of the two",
                value=name,
            )
        return _load(named[0])

    def __contains__(self, name: object) -> bool:
        return name in self._builtin or any(point.name == name for point in self._points)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._builtin, *(point.name for point in self._points)]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def sound(self) -> tuple[list[Task], list[str]]:
        """All tasks that can be loaded, and what is wrong with the others: for lists, which go on without these."""
        tasks, problems = [], []
        for name in self:
            try:
                tasks.append(self[name])
            except TaskError as error:
                problems.append(error.message)
        problems += [
            f"{_label(point)} has the name of a bundled task, which stays; rename it"
            for point in self._points
            if point.name in self._builtin
        ]
        return tasks, problems


def package_of(name: str) -> str:
    """The package that a task is from, with its version, as text; empty for a bundled task."""
    package = next(
        (point.dist for point in installed_plugins() if point.name == name and point.dist is not None), None
    )
    return "" if package is None else f"{package.name} {package.version}"


def _load(point: EntryPoint) -> Task:
    def wrong(kind: str) -> TaskError:
        return TaskError(f"{_label(point)} {kind}", value=point.value)

    try:
        loaded = point.load()
        task = loaded() if isinstance(loaded, type) and issubclass(loaded, Task) else loaded
    except Exception as error:  # whatever a stranger's module raises when it is imported
        raise wrong(f"cannot be loaded ({type(error).__name__}: {error}); repair or uninstall it") from error
    if not isinstance(task, Task):
        kind = f"the class {loaded.__name__}" if isinstance(loaded, type) else f"a {type(task).__name__}"
        raise wrong(f"gives {kind}, which is no Task of evalcube; point it at a subclass of evalcube.Task")
    missing = [name for name in _DECLARED if not hasattr(task, name)]
    if missing or not issubclass(task.Params, TaskParams):
        lack = f"does not declare {', '.join(missing)}" if missing else "has Params that are no TaskParams"
        raise wrong(f"{lack}; complete its class")
    if task.name != point.name:
        raise wrong(f"gives a task that calls itself '{task.name}'; give both one name")
    return task


def _label(point: EntryPoint) -> str:
    package = f", package {point.dist.name}" if point.dist is not None else ""
    return f"task plugin '{point.name}' ({point.value} of group {point.group}{package})"
