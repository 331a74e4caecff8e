"""Columns with texts: questions that are made again, and replies that are looked up in the cache, many at a time."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from evalcube.flows.config.templates import Message
from evalcube.flows.plan.evaluations import Evaluation, opinion_keys, read_opinion
from evalcube.flows.plan.requests import CriteriaBook, messages_request, trial_messages
from evalcube.flows.read.reader import ANSWERED, Answered, read_answer, row_of
from evalcube.flows.read.trials.columns import (
    DISAGREE,
    Labels,
    Numbers,
    Plain,
    Rows,
    TrialColumn,
    Values,
    count,
    disagree,
)
from evalcube.flows.read.trials.opened import OpenCube
from evalcube.stages.generate import Cell, Trial
from evalcube.stages.generate.absent import AbsentTask
from evalcube.stages.reply.status import SECOND, Status
from evalcube.storage.cache.cache import Cache
from evalcube.storage.cube.regions import Region

AT_ONCE = 512
"""Rows whose replies are in memory at once."""
_ROOM = 100_000_000
"""Characters of questions that are kept, about."""
_OVERHEAD = 500
"""What a question takes beside its own text, about."""
_TOOL = 10
"""How many times as much a tool takes that goes along with one, about."""
_HALVES = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class _TrialRow:
    """One trial with what was made again and found of it."""

    place: tuple[int, int, int, int, int]
    """Indices of model, task, slot, trial and repeat."""
    cell: Cell
    truth: Trial | None
    """None where the code that makes it is not at hand."""
    messages: Sequence[Message] = ()
    digest: str = ""
    answered: Answered | None = None
    opinions: list[dict[str, Any]] | None = None


class Texts:
    """Makes the texts of a cube's rows.

    Parameters
    ----------
    opened
        The cube.
    """

    def __init__(self, opened: OpenCube) -> None:
        self._opened = opened
        self._questions: dict[tuple[int, int, int], Trial] = {}
        self._room = _ROOM
        self._shared = int(opened.models.sum()) > 1 or opened.plan.repeats > 1
        self.missing = 0
        """Replies that were looked for and not found."""

    @cached_property
    def cache(self) -> Cache | None:
        """Where replies are looked up; None if none is at hand."""
        return self._opened.reader.cache()

    def columns(self, columns: Sequence[TrialColumn], rows: Rows) -> dict[str, Values]:
        """The values of some columns.

        Parameters
        ----------
        columns
            Those that come from questions and replies.
        rows
            Of this cube; at most `AT_ONCE`, as their replies are all in memory.
        """
        names = {column.name for column in columns}
        # Of an imported trial, what was sent stands with the reply.
        looked_up = ("messages",) if self._opened.plan.has_imported else ()
        replies = any(column.source == "reply" or column.name in looked_up for column in columns)
        found = self._rows(rows, asked=replies or bool(names & {"messages", "digest"}))
        if replies:
            self._look_up(found, parse=bool(names & {"answer", "fault"}))
        if "opinions" in names and self._opened.plan.judges:
            self._ask_judges(found)
        return {
            column.name: Plain([None if row.truth is None else _READ[column.name](row) for row in found])
            for column in columns
        }

    def _rows(self, rows: Rows, *, asked: bool) -> list[_TrialRow]:
        plan = self._opened.plan
        found = []
        indices = (rows[name].tolist() for name in ("model", "task", "slot", "trial", "repeat"))
        for place in zip(*indices, strict=True):
            model, task, slot, trial, repeat = place
            cell = plan.tasks[task].cells[slot].cell
            row = _TrialRow(place, cell, self._question(cell, task, slot, trial))
            if asked and row.truth is not None and not plan.evaluations[model].not_run:
                _ask(row, plan.evaluations[model], repeat)
            found.append(row)
        return found

    def _question(self, cell: Cell, task: int, slot: int, trial: int) -> Trial | None:
        """A question, None of a task that is not at hand; what others were asked, too, is kept while there is room."""
        if isinstance(cell.task, AbsentTask):
            return None
        place = (task, slot, trial)
        truth = self._questions.get(place)
        if truth is None:
            truth = cell.trial(trial)
            if self._shared and self._room > 0:
                self._questions[place] = truth
                self._room -= len(truth.prompt) + _OVERHEAD * (1 + _TOOL * len(truth.tools))
        return truth

    def _look_up(self, rows: Sequence[_TrialRow], *, parse: bool) -> None:
        found = [row for row in rows if row.digest]
        if self.cache is None:
            self.missing += len(found)
            return
        replies = self.cache.get_many([row.digest for row in found])
        for row, reply in zip(found, replies, strict=True):
            row.answered = read_answer(reply, row.cell, _known(row), parse=parse)
            self.missing += row.answered is None
            said = None if row.answered is None else row.answered.reading.imported
            if said is not None and said.prompt is not None:
                row.messages = [{"role": "user", "content": said.prompt}]

    @cached_property
    def _book(self) -> CriteriaBook:
        return CriteriaBook(self._opened.plan.tasks)

    def _ask_judges(self, found: Sequence[_TrialRow]) -> None:
        """Set what judges gave: from their replies, or else the bare readings that the cube has."""
        keys: list[tuple[_TrialRow, str, int, str]] = []
        for row in found:
            row.opinions = []
            if row.answered is None or row.truth is None or self.cache is None:
                row.opinions = self._readings(row.place)
                continue
            rubric = self._book.of(row.place[1], row.truth).rubric
            answer = row.answered.reading.answer
            asked = opinion_keys(self._opened.plan.judges, rubric, row.truth.prompt, answer) if rubric else ()
            keys += [(row, *key) for key in asked]
        if self.cache is None or not keys:
            return
        replies = self.cache.get_many([key for *_, key in keys])
        for (row, judge, repeat, _), data in zip(keys, replies, strict=True):
            if data is not None and row.opinions is not None:
                row.opinions.append(_opinion(judge, repeat, data))

    def _readings(self, place: tuple[int, int, int, int, int]) -> list[dict[str, Any]]:
        model, task, slot, trial, repeat = place
        cube, judges = self._opened.cube, self._opened.plan.judges
        if "judge_readings" not in cube.trial_arrays:
            return []
        chunks = cube.chunks
        region = Region(model, trial // chunks["trial"], repeat // chunks["repeat"])
        if self._region[0] != region:
            self._region = (region, cube.read_region(region, ["judge_readings"])["judge_readings"])
        scores = self._region[1][task, slot, trial % chunks["trial"], repeat % chunks["repeat"]]
        return [
            {
                "judge": judges[judge].name,
                "repeat": number,
                "score": float(scores[judge, number]),
                "reason": None,
            }
            for judge, number in np.argwhere(~np.isnan(scores)).tolist()
        ]

    _region: tuple[Region | None, Any] = (None, None)


def whole(text: str) -> str:
    """A text that UTF-8 can carry: halves of surrogate pairs, which models may send, become U+FFFD."""
    return text if text.isascii() else _HALVES.sub("\ufffd", text)


def _known(row: _TrialRow) -> Trial:
    """The question of a row that has one."""
    return Trial("", "") if row.truth is None else row.truth


def _ask(row: _TrialRow, evaluation: Evaluation, repeat: int) -> None:
    row.messages = trial_messages(evaluation, row.cell, _known(row))
    row.digest = messages_request(evaluation, row.cell, _known(row), row.messages, repeat).digest


def _opinion(judge: str, repeat: int, data: bytes) -> dict[str, Any]:
    try:
        said = read_opinion(judge, repeat, data)
    except ValueError:  # whole, but no record: whatever it is, it is no opinion
        return {"judge": judge, "repeat": repeat, "score": None, "reason": None}
    return {"judge": judge, "repeat": repeat, "score": _number(said.score), "reason": whole(said.reason)}


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _text(value: str | None) -> str | None:
    return None if value is None else whole(value)


def _tool_calls(answered: Answered) -> str | None:
    calls = [{"name": name, "arguments": said} for name, said in answered.reading.tool_calls]
    return json.dumps(calls) if calls else None


def _of_reply(read: Callable[[Answered], Any]) -> Callable[[_TrialRow], Any]:
    return lambda row: None if row.answered is None else read(row.answered)


_READ: Mapping[str, Callable[[_TrialRow], Any]] = {
    "row": lambda row: row_of(_known(row))[0],
    "row_id": lambda row: row_of(_known(row))[1] or None,
    "prompt": lambda row: whole(_known(row).prompt),
    "messages": lambda row: (
        [{"role": one["role"], "content": whole(one["content"])} for one in row.messages] or None
    ),
    "options": lambda row: [whole(option) for option in _known(row).options],
    "reference": lambda row: whole(_known(row).answer),
    "digest": lambda row: row.digest or None,
    "answer": _of_reply(lambda answered: _text(answered.parsed)),
    "fault": _of_reply(lambda answered: answered.fault or None),
    "response": _of_reply(lambda answered: whole(answered.reading.answer)),
    "reasoning": _of_reply(lambda answered: whole(answered.reading.reasoning)),
    "finish": _of_reply(lambda answered: answered.reading.finish),
    "tool_calls": _of_reply(_tool_calls),
    "opinions": lambda row: row.opinions,
}
"""How each column is read from a row."""


_NEEDS: Mapping[str, Sequence[str]] = {
    "trial": (),
    "repeat": (),
    "status": (),
    "duplicate": (),
    DISAGREE: (SECOND,),
    "cost": ("prompt_tokens", "tokens", "cached_tokens"),
}
_NAMES = [*(status.name.lower() for status in Status), ANSWERED]
_CODES = np.zeros(256, dtype=np.int8)
_CODES[list(Status)] = np.arange(len(Status))
_MISSING = list(Status).index(Status.MISSING)


def arrays_of(column: TrialColumn) -> Sequence[str]:
    """Arrays of the cube that a column needs, beside the status."""
    return _NEEDS.get(column.name, (column.name,)) if column.source == "cube" else ()


def measured(opened: OpenCube, column: TrialColumn, rows: Rows) -> Values:
    """The values of a column.

    Parameters
    ----------
    opened
        The cube.
    column
        One that comes from the plan or from the cube.
    rows
        Of this cube, with the arrays that the column needs.
    """
    if column.source == "plan":
        return opened.labels(column, rows)
    match column.name:
        case "status":
            return _status(opened, rows)
        case "trial" | "repeat":
            return Numbers(rows[column.name], np.zeros(count(rows), dtype=bool))
        case "cost":
            return _cost(opened, rows)
        case "provider":
            # Of layers that the cube does not have, values are NaN.
            codes = np.nan_to_num(rows["provider"]).tolist()
            return Plain([opened.reader.provider(int(code)) for code in codes])
        case "status_theirs":
            return Labels([*_NAMES[:_MISSING], None], np.minimum(_CODES[rows[SECOND]], _MISSING))
        case "disagree":
            return Numbers(disagree(rows["ours"], rows[SECOND]), rows[SECOND] == Status.MISSING)
        case "looping":
            flags = rows["looping"]
            return Numbers(flags == 1, np.isnan(flags))
        case "duplicate":
            flags = opened.duplicates[rows["task"], rows["slot"], rows["trial"]]
            return Numbers(flags == 1, flags > 1)
    values = rows[column.name]
    return Numbers(values, values < 0 if values.dtype.kind == "i" else np.isnan(values))


def _status(opened: OpenCube, rows: Rows) -> Values:
    codes = _CODES[rows["status"]]
    unreferenced = ~opened.plan.referenced[rows["task"], rows["slot"]] & (rows["status"] == Status.INCORRECT)
    return Labels(_NAMES, np.where(unreferenced, len(Status), codes))


def _cost(opened: OpenCube, rows: Rows) -> Values:
    prices = opened.prices[rows["model"]]
    tokens = np.stack([rows["prompt_tokens"], rows["tokens"]], axis=1)
    cached = np.nan_to_num(np.maximum(rows["cached_tokens"], 0)) * opened.cached_prices[rows["model"]]
    cost = ((np.maximum(tokens, 0) * prices).sum(axis=1) + cached) / 1e6
    return Numbers(cost, np.isnan(cost) | (tokens < 0).any(axis=1))
