"""Make trials: questions with their reference answers, from a task and its params, by random access."""

from __future__ import annotations

from stages.generate.axes import Axis, Density, Window
from stages.generate.base import Cell, Task, TaskParams, Trial
from stages.generate.dataset import Dataset
from stages.generate.errors import TaskError
from stages.generate.manifold import Entry, Point, expand, find_problems
from stages.generate.plugins import installed, with_plugins
from stages.generate.tasks.arithmetic import Arithmetic
from stages.generate.tasks.boolean import Boolean
from stages.generate.tasks.brackets import Brackets
from stages.generate.tasks.cars import Cars
from stages.generate.tasks.dates import Dates
from stages.generate.tasks.jsonpath import Jsonpath
from stages.generate.tasks.letters import Letters
from stages.generate.tasks.movies import Movies
from stages.generate.tasks.objects import Objects
from stages.generate.tasks.sequence import Sequence
from stages.generate.tasks.shapes import Shapes
from stages.generate.tasks.shuffle import Shuffle
from stages.generate.tasks.sort import Sort
from stages.generate.tasks.tables import Tables

__all__ = [
    "TASKS",
    "Axis",
    "Cell",
    "Density",
    "Entry",
    "Point",
    "Task",
    "TaskError",
    "TaskParams",
    "Trial",
    "Window",
    "all_tasks",
    "expand",
    "find_problems",
]

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Arithmetic(),
        Boolean(),
        Brackets(),
        Cars(),
        Dates(),
        Jsonpath(),
        Letters(),
        Movies(),
        Objects(),
        Sequence(),
        Shapes(),
        Shuffle(),
        Sort(),
        Tables(),
        Dataset(),
    )
}
"""The bundled tasks by name."""


def all_tasks() -> dict[str, Task]:
    """The bundled tasks and those of installed plugins, by name; `TaskError` names a broken plugin."""
    return with_plugins(TASKS, installed())
