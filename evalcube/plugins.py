# ruff: noqa: PLC0414 - the one list of the names, which is handed on to type checkers
"""What a task, a grader, a check or a scorer of one's own is made of and called with."""

from evalcube import known_as as _known_as
from evalcube.stages.generate import Task as Task
from evalcube.stages.generate import TaskParams as TaskParams
from evalcube.stages.generate import Trial as Trial
from evalcube.stages.generate.contract import check_task as check_task
from evalcube.stages.generate.dataset.matching import GradingContext as GradingContext
from evalcube.stages.generate.stream import Stream as Stream
from evalcube.stages.process.assertions import model as _model

AssertionContext = _model.Context

__all__ = [name for name in dir() if not name.startswith("_")]

for _name in __all__:
    _known_as(__name__, _name)(globals()[_name])
