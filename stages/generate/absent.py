"""A task whose code is not at hand: its cells are known by what a cube says of them, and their trials are not."""

from __future__ import annotations

import math
from typing import ClassVar, NoReturn

from pydantic import ConfigDict

from evalcube.stages.generate.base import Cell, Task, TaskParams
from evalcube.stages.generate.errors import CodeError


class AbsentParams(TaskParams):
    """Params of which nothing is known but their values."""

    model_config = ConfigDict(frozen=True, extra="allow")


class AbsentTask(Task):
    """Stands for a task where nothing but its cells' names and numbers is needed.

    Parameters
    ----------
    name, version
        Of the task.
    reason
        Why it is not at hand, and what to do: what is raised where its code is needed.
    """

    summary: ClassVar[str] = "a task that is not installed"
    guess_rule: ClassVar[str] = "not known"
    Params: ClassVar[type[TaskParams]] = AbsentParams

    def __init__(self, name: str, version: int, reason: str) -> None:
        self.name, self.version, self.reason = name, version, reason  # type: ignore[misc]  # of an instance, here

    def __reduce__(self) -> tuple[type[AbsentTask], tuple[str, int, str]]:
        return AbsentTask, (self.name, self.version, self.reason)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        """Refuse, with the reason."""
        raise CodeError(self.reason, value=self.name)

    generate = parse = grade = _refuse

    def difficulty(self, params: TaskParams) -> float:  # noqa: ARG002
        """Not a number: it is not known."""
        return math.nan


def absent_cell(task: AbsentTask, params: dict[str, object], seed: int, identity: str) -> Cell:
    """A cell of a task that is not at hand, with the id that the cube says: which params enter it, the task knows."""
    cell = Cell(task, AbsentParams.model_validate(params), seed)
    object.__setattr__(cell, "id", identity)
    return cell
