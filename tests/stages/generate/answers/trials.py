"""Points of all tasks that make their trials up, and a few trials of each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from evalcube.stages.generate import Cell, Trial
from tests.stages.generate.family import FAMILY, LARGE
from tests.strategies import params_with

SAID = [name for name in FAMILY if name != "tools"]
"""Tasks whose answers are said; a call is made, and no word around it takes it back."""

KINDS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in SAID),
    *((name, LARGE[name]) for name in SAID if name != "boolean"),
    *(("boolean", {"format": words}) for words in ("T/F", "on/off", "1/0", "yes/no")),
    *(("tables", {"operation": operation}) for operation in ("lookup", "top", "mean")),
    ("cars", {"question": "car"}),
    ("jsonpath", {"depth": 2, "wildcards": 1}),
    ("sequence", {"terms": 1}),
]


def written(cell: Cell, answer: str) -> str:
    """An answer in the words that the prompt asks for."""
    if cell.task.name != "boolean":
        return answer
    true, false = str(cell.plain_params["format"]).split("/")
    return true if answer == "true" else false


def trials(name: str, params: dict[str, Any]) -> Iterator[tuple[Cell, Trial, str, str]]:
    """Some trials of a point, each with its answer and a wrong one of the same kind."""
    for index in range(4):
        yield _trial(name, json.dumps(params), index)


@cache
def _trial(name: str, params: str, index: int) -> tuple[Cell, Trial, str, str]:
    cell = Cell(FAMILY[name], params_with(FAMILY[name], **json.loads(params)), 7)
    trial = cell.trial(index)
    others = trial.options or (cell.trial(i).answer for i in range(index + 1, index + 50))
    wrong = next(answer for answer in others if answer != trial.answer)
    return cell, trial, written(cell, trial.answer), written(cell, wrong)
