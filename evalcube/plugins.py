"""What a task, a grader, a check or a scorer of one's own is made of and called with."""

from __future__ import annotations

from evalcube import known_as
from evalcube.stages.generate import Task, TaskParams, Trial
from evalcube.stages.generate.contract import check_task
from evalcube.stages.generate.dataset.matching import GradingContext
from evalcube.stages.generate.stream import Stream
from evalcube.stages.process.assertions.model import Context as AssertionContext

__all__ = [
    "AssertionContext",
    "GradingContext",
    "Stream",
    "Task",
    "TaskParams",
    "Trial",
    "check_task",
]

for _name in __all__:
    known_as(__name__, _name)(globals()[_name])
