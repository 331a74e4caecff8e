"""Trials of a task, and the part of their prompt that holds the question."""

from __future__ import annotations

from typing import Any

from evalcube.stages.generate import TASKS, Cell, Trial


def trials(name: str, count: int = 100, **params: Any) -> list[Trial]:
    cell = Cell(TASKS[name], TASKS[name].Params(**params), 3)
    return [cell.trial(i) for i in range(count)]


def body(trial: Trial) -> str:
    return trial.prompt.split("\n\n")[1]
