"""Make trials: questions with their reference answers, from a task and its params, by random access."""

from __future__ import annotations

from evalcube.stages.generate.axes import Axis, Density, Window
from evalcube.stages.generate.base import Cell, Task, TaskParams, Trial
from evalcube.stages.generate.dataset import Dataset
from evalcube.stages.generate.errors import TaskError
from evalcube.stages.generate.manifold import Entry, Point, expand, find_problems
from evalcube.stages.generate.plugins import KnownTasks, installed
from evalcube.stages.generate.tasks.arithmetic import Arithmetic
from evalcube.stages.generate.tasks.boolean import Boolean
from evalcube.stages.generate.tasks.brackets import Brackets
from evalcube.stages.generate.tasks.cars import Cars
from evalcube.stages.generate.tasks.dates import Dates
from evalcube.stages.generate.tasks.jsonpath import Jsonpath
from evalcube.stages.generate.tasks.letters import Letters
from evalcube.stages.generate.tasks.movies import Movies
from evalcube.stages.generate.tasks.objects import Objects
from evalcube.stages.generate.tasks.sequence import Sequence
from evalcube.stages.generate.tasks.shapes import Shapes
from evalcube.stages.generate.tasks.shuffle import Shuffle
from evalcube.stages.generate.tasks.sort import Sort
from evalcube.stages.generate.tasks.tables import Tables

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


def all_tasks() -> KnownTasks:
    """The bundled tasks and those of installed plugins, by name; asking for a broken one raises a `TaskError`."""
    return KnownTasks(TASKS, installed())
