"""The table of trials for people: few columns, texts cut to the width that there is."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from evalcube.flows.errors import SweepError
from evalcube.flows.plan.filters import telling
from evalcube.flows.read.trials.columns import TrialColumn
from evalcube.flows.read.trials.escaping import visible
from evalcube.stages.analyze.render.shown import WIDTH
from evalcube.stages.analyze.render.table import GAP, NAME_WIDTH, Column, TableSpec
from evalcube.stages.analyze.render.text import ABSENT, shorten
from evalcube.stages.reply.status import SECOND

if TYPE_CHECKING:
    from evalcube.flows.read.trials.read import Trials

FIRST = 20
"""Rows that are shown if nobody says how many."""
_MOST = 12
"""Columns that are all shown; of more only a few are."""
_LEAST = 6
"""Characters that a text gets at least."""
_CUT = "…"
_REPLY = "response"
_QUESTION = ("prompt", "question")
_ENOUGH = {"model": 14, "task": NAME_WIDTH, "params": 24, "point": 24, "reference": 8, "answer": 8}
_ENOUGH |= dict.fromkeys(_QUESTION, 30) | dict.fromkeys(("first", "second"), 8)
"""What these texts keep, if they need it, before others go: question, answer and reference are what is looked for."""
_YIELDING = ("latency", "behavior", "fact", "judge", "tokens", "params", "point")
"""Columns that go where a terminal has no room for all, these first."""
_FIRST_TO_GO = 9
_DIGITS = {"latency": 3, "first_token": 3, "cost": 6, "fact": 2, "behavior": 2, "judge": 2}
_FEW_VALUES = ("status", SECOND, "finish", "digest", "eval_id", "cell_id")
"""Texts that are short, or of use only if they are whole."""


def brief_of(table: Trials) -> list[TrialColumn]:
    """The columns of a table that are shown if none are named."""
    names = table.distinguishing | table.grading_columns | {_REPLY}
    varies = {"repeat": table.has_repeats, "params": any(table.varying.values())}
    brief = [column for column in table.columns if column.brief or column.name in names]
    return [column for column in brief if varies.get(column.name, True)]


def with_values(columns: Sequence[TrialColumn], rows: Sequence[Mapping[str, Any]]) -> list[TrialColumn]:
    """The columns of a brief table in which any row has a value; the reply in the place of what was not read in it."""
    if rows:
        columns = [column for column in columns if any(row[column.name] not in (None, "") for row in rows)]
    read = {"answer", "reference"} <= {column.name for column in columns}
    return [column for column in columns if column.name != _REPLY or (rows and not read)]


def first_rows(table: Trials) -> TableSpec:
    """The first rows of a table with few of its columns, and how many rows there are."""
    some = table.first(FIRST)
    if len(table.columns) > _MOST:
        some = some.with_columns(brief_of(table))
    rows = list(some.rows())
    columns = some.columns if some.columns == table.columns else with_values(some.columns, rows)
    every = table.count()
    notes = [f"{len(rows):,} of {every:,} trials."] if every > len(rows) else []
    return brief_table(columns, rows, [*notes, *some.notes], WIDTH, some.varying)


def count_values(table: Trials) -> tuple[list[TrialColumn], list[dict[str, Any]]]:
    """Columns and rows of a table of how many trials have the same values."""
    for column in table.columns:
        if column.kind in ("texts", "messages", "opinions"):
            raise SweepError(
                f"`count`: '{column.name}' has lists, by which nothing is counted", "Leave it out"
            )
    counts = Counter(tuple(row.values()) for row in table.rows())
    columns = [*table.columns, TrialColumn("trials", "integer", "cube", "How many have these values.")]
    names = [column.name for column in columns]
    ordered = sorted(counts.items(), key=lambda item: [(cell is not None, str(cell)) for cell in item[0]])
    return columns, [dict(zip(names, (*values, times), strict=True)) for values, times in ordered]


def brief_table(
    columns: Sequence[TrialColumn],
    rows: Sequence[Mapping[str, Any]],
    notes: Sequence[str],
    width: int,
    varying: Mapping[str, set[str]],
) -> TableSpec:
    """The rows as a table of so many characters, each row on one line.

    What a question begins with like others of its task is left out, names are cut in the middle, where they differ
    least. Control characters are written out, white space is one space, and what is cut ends with ``…``.
    """
    texts = [{column.name: _cell_text(column, row, varying) for column in columns} for row in rows]
    for name in _QUESTION:
        _without_beginnings(texts, name)
    needed = {
        column.name: max([cell_len(column.name), *(cell_len(row[column.name]) for row in texts)])
        for column in columns
    }
    fitting = _fitting_columns(columns, needed, width)
    widths = needed | _widths(fitting, needed, width)
    if "model" in widths:
        widths["model"] = _told_apart({row["model"] for row in texts}, widths["model"])
    shown = [
        Column(
            visible(column.name),
            lambda row, name=column.name: (shorten if name == "model" else cut)(row[name], widths[name]),  # type: ignore[misc]
            gives_way=0 if column in fitting else _FIRST_TO_GO,
            right=column.kind in ("integer", "single", "number"),
        )
        for column in columns
    ]
    return TableSpec(tuple(shown), texts, tuple(notes))


def _without_beginnings(rows: Sequence[dict[str, str]], name: str) -> None:
    """Take away, word by word, what a text begins with like another one of its task."""
    by_task: dict[str, set[str]] = {}
    for row in rows:
        if name in row:
            by_task.setdefault(row.get("task", ""), set()).add(row[name])
    ordered = {task: sorted(text.split(" ") for text in texts) for task, texts in by_task.items()}
    for row in rows if by_task else ():
        sentences, words = ordered[row.get("task", "")], row[name].split(" ")
        rank = bisect_left(sentences, words)
        beside = sentences[max(rank - 1, 0) : rank] + sentences[rank + 1 : rank + 2]
        shared = max((_in_common(words, sentence) for sentence in beside), default=0)
        row[name] = _CUT + " ".join(words[shared:]) if 0 < shared < len(words) else row[name]


def _in_common(words: Sequence[str], sentence: Sequence[str]) -> int:
    """How many words two texts begin with."""
    pairs = enumerate(zip(words, sentence, strict=False))
    return next((index for index, (first, second) in pairs if first != second), 0)


def _told_apart(names: Collection[str], width: int) -> int:
    """The least width, at least this one, at which names that are cut still differ."""
    whole = max(map(len, names), default=width)
    cut_names = ((enough, {shorten(name, enough) for name in names}) for enough in range(width, whole))
    return next((enough for enough, texts in cut_names if len(texts) == len(names)), max(width, whole))


def cut(text: str, width: int) -> str:
    """At most `width` columns of a terminal; what is cut ends with ``…``.

    Examples
    --------
    >>> cut("one two three", 8)
    'one two…'
    """
    if cell_len(text) <= width:
        return text
    head = text[: width - 1]
    while cell_len(head) > width - 1:
        head = head[:-1]
    return head + _CUT


def _fitting_columns(
    columns: Sequence[TrialColumn], needed: Mapping[str, int], width: int
) -> list[TrialColumn]:
    """The columns for which a line has room, without those that go first if it has not."""
    fitting = list(columns)

    def least() -> int:
        texts = {column.name: _enough(column.name) for column in fitting if _gives_way(column)}
        return sum(min(needed[column.name], texts.get(column.name, width)) + GAP for column in fitting) - GAP

    for name in _YIELDING:
        if least() <= width:
            break
        fitting = [column for column in fitting if column.name != name]
    return fitting


def _widths(columns: Sequence[TrialColumn], needed: Mapping[str, int], width: int) -> dict[str, int]:
    """What each column gets: numbers all that they need, texts what is left, those first that need the least."""
    long = [column.name for column in columns if _gives_way(column)]
    least = {name: min(needed[name], _enough(name)) for name in long}
    short = sum(needed[column.name] for column in columns if column.name not in long)
    left = width - GAP * (len(columns) - 1) - short - sum(least.values())
    # No terminal is too narrow: the longest get less, but for heads and tasks.
    while left < 0 and (
        some := [name for name in long if least[name] > max(_LEAST, len(name)) and name != "task"]
    ):
        least[max(some, key=least.__getitem__)] -= 1
        left += 1
    left, widths = max(0, left), {}
    for number, name in enumerate(sorted(long, key=lambda name: needed[name] - least[name])):
        more = min(needed[name] - least[name], left // (len(long) - number))
        widths[name] = least[name] + more
        left -= more
    return widths


def _enough(name: str) -> int:
    """What a text keeps before others go; its head is never cut."""
    return max(_ENOUGH.get(name, _LEAST), len(name))


def _gives_way(column: TrialColumn) -> bool:
    return column.kind not in ("integer", "single", "number", "flag") and column.name not in _FEW_VALUES


def _cell_text(column: TrialColumn, row: Mapping[str, Any], varying: Mapping[str, set[str]]) -> str:
    value = row[column.name]
    if column.name == "params" and value is not None:
        names = varying.get(row["task"]) if "task" in row else set().union(*varying.values())
        return visible(_params(value, names)) or ABSENT
    match value:
        case None:
            return ABSENT
        case bool():
            return "yes" if value else "no"
        case float():
            digits = _DIGITS.get(column.name)
            return f"{value:g}" if digits is None else f"{value:.{digits}f}"
        case str():
            return visible(" ".join(value.split()))
        case list():
            text = ", ".join(value) if column.kind == "texts" else json.dumps(value)
            return visible(" ".join(text.split())) if value else ABSENT
    return str(value)


def _params(text: str, names: set[str] | None) -> str:
    """A point's parameters as they are written on a command line."""
    return " ".join(f"{name}={value}" for name, value in telling(json.loads(text), names).items())
