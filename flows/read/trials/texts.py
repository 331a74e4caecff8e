"""Values of columns: of the cube's arrays, and texts, which are questions made again and replies of the cache."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from evalcube.flows.plan.evaluations import Opinion
from evalcube.flows.read.reader import STATUSES, Answered, FoundTrial, Reader, outcome_codes, row_of
from evalcube.flows.read.trials.columns import DISAGREE, Rows, TrialColumn, Values, disagree, objects
from evalcube.flows.read.trials.open_cube import OpenCube
from evalcube.stages.generate.answers.ways import way_of
from evalcube.stages.reply.status import SECOND, Status

AT_ONCE = 512
"""Rows whose replies are in memory at once."""
_HALVES = re.compile("[\ud800-\udfff]")


def texts(reader: Reader, columns: Sequence[TrialColumn], rows: Rows) -> tuple[dict[str, Values], int]:
    """The values of some columns, and how many replies were looked for and not found."""
    names = {column.name for column in columns}
    # Of an imported trial, what was sent stands with the reply.
    looked_up = ("messages",) if reader.plan.has_imported else ()
    replies = any(column.source == "reply" or column.name in looked_up for column in columns)
    places = zip(*(rows[name].tolist() for name in ("model", "task", "slot", "trial", "repeat")), strict=True)
    trials = reader.load_trials(
        places,
        asked=replies or bool(names & {"messages", "digest"}),
        replies=replies,
        parse=bool(names & {"answer", "fault"}),
        judged="opinions" in names,
    )
    missing = sum(bool(row.digest) and row.answered is None for row in trials) if replies else 0
    return {
        name: objects([None if row.truth is None else READ[name](row) for row in trials]) for name in names
    }, missing


def whole(text: str) -> str:
    """A text that UTF-8 can carry: halves of surrogate pairs, which models may send, become U+FFFD."""
    return text if text.isascii() else _HALVES.sub("\ufffd", text)


def _tool_calls(answered: Answered) -> str | None:
    calls = [{"name": name, "arguments": arguments} for name, arguments in answered.reading.tool_calls]
    return json.dumps(calls) if calls else None


def _opinion(view: Opinion) -> dict[str, Any]:
    score = None if math.isnan(view.score) else view.score
    return {"judge": view.judge, "repeat": view.repeat, "score": score, "reason": whole(view.reason) or None}


def _of_reply(read: Callable[[Answered], Any]) -> Callable[[FoundTrial], Any]:
    return lambda row: None if row.answered is None else read(row.answered)


READ: Mapping[str, Callable[[FoundTrial], Any]] = {
    "row": lambda row: row_of(row.question)[0],
    "row_id": lambda row: row_of(row.question)[1] or None,
    "prompt": lambda row: whole(row.question.prompt),
    "messages": lambda row: (
        [{"role": one["role"], "content": whole(one["content"])} for one in row.messages] or None
    ),
    "options": lambda row: [whole(option) for option in row.question.options],
    "reference": lambda row: whole(row.question.answer),
    "digest": lambda row: row.digest or None,
    "answer": _of_reply(lambda answered: None if answered.parsed is None else whole(answered.parsed)),
    "fault": _of_reply(lambda answered: answered.fault or None),
    "response": _of_reply(lambda answered: whole(answered.reading.answer or answered.reading.error)),
    "reasoning": _of_reply(lambda answered: whole(answered.reading.reasoning)),
    "finish": _of_reply(lambda answered: answered.reading.finish),
    "tool_calls": _of_reply(_tool_calls),
    "opinions": lambda row: None if row.opinions is None else list(map(_opinion, row.opinions)),
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
_MISSING = list(Status).index(Status.MISSING)


def arrays_of(column: TrialColumn) -> Sequence[str]:
    """Arrays of the cube that a column needs, beside the status."""
    return _NEEDS.get(column.name, (column.name,)) if column.source == "cube" else ()


def column_values(opened: OpenCube, column: TrialColumn, rows: Rows) -> Values:
    """The values of a column."""
    if column.source == "plan":
        return opened.labels(column, rows)
    match column.name:
        case "status":
            referenced = opened.plan.referenced[rows["task"], rows["slot"]]
            return objects(STATUSES).take(outcome_codes(rows["status"], referenced))
        case "trial" | "repeat":
            return rows[column.name]
        case "cost":
            return _cost(opened, rows)
        case "provider" | "ending" | "read_as":
            # Of layers that the cube does not have, values are NaN.
            codes = np.nan_to_num(rows[column.name]).tolist()
            word = way_of if column.name == "read_as" else getattr(opened.reader, column.name)
            return objects([word(int(code)) for code in codes])
        case "status_theirs":
            ends = outcome_codes(rows[SECOND], np.ones(1, dtype=bool))
            theirs: Values = objects([*STATUSES[:_MISSING], None])[np.minimum(ends, _MISSING)]
            return theirs
        case "disagree":
            return np.ma.array(disagree(rows["ours"], rows[SECOND]), mask=rows[SECOND] == Status.MISSING)
        case "looping":
            flags = rows["looping"]
            return np.ma.array(flags == 1, mask=np.isnan(flags))
        case "duplicate":
            flags = opened.duplicates[rows["task"], rows["slot"], rows["trial"]]
            return np.ma.array(flags == 1, mask=flags > 1)
    values = rows[column.name]
    return np.ma.array(values, mask=values < 0 if values.dtype.kind == "i" else np.isnan(values))


def _cost(opened: OpenCube, rows: Rows) -> Values:
    prices = opened.prices[rows["model"]]
    tokens = np.stack([rows["prompt_tokens"], rows["tokens"]], axis=1)
    cached = np.nan_to_num(np.maximum(rows["cached_tokens"], 0)) * opened.cached_prices[rows["model"]]
    cost = ((np.maximum(tokens, 0) * prices).sum(axis=1) + cached) / 1e6
    return np.ma.array(cost, mask=np.isnan(cost) | (tokens < 0).any(axis=1))
