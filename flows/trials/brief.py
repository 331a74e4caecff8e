"""The table of trials for people: few columns, texts cut to the width that there is."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from evalcube.flows.plan.points import telling
from evalcube.flows.trials.columns import TrialColumn
from evalcube.flows.trials.harmless import visible
from evalcube.stages.analyze.render.shown import WIDTH
from evalcube.stages.analyze.render.table import GAP, NAME_ENOUGH, NAME_WIDTH, Column, TableSpec
from evalcube.stages.analyze.render.text import ABSENT

if TYPE_CHECKING:
    from evalcube.flows.trials.read import Trials

FIRST = 20
"""Rows that are shown if nobody says how many."""
_MOST = 12
"""Columns that are all shown; of more only a few are."""
_LEAST = 6
"""Characters that a text gets at least."""
_CUT = "…"
_ENOUGH = {"model": NAME_ENOUGH, "task": NAME_WIDTH, "params": 24, "reference": 10, "answer": 10}
"""What these texts keep, if they need it, before others go: what a row is must be told."""
_YIELDING = ("latency", "behavior", "fact", "judge", "tokens", "reference")
"""Columns that go where a terminal has no room for all, these first."""
_FIRST_TO_GO = 9
_DIGITS = {"latency": 3, "first_token": 3, "cost": 6, "fact": 2, "behavior": 2, "judge": 2}
_FEW_VALUES = ("status", "finish", "digest", "eval_id", "cell_id")
"""Texts that are short, or of use only if they are whole."""


def brief_columns(
    known: Sequence[TrialColumn], *, repeats: bool, layers: bool, names: Collection[str] = ()
) -> list[TrialColumn]:
    """The columns that are shown if none are named.

    Parameters
    ----------
    known
        All columns.
    repeats
        Whether questions were asked several times.
    layers
        Whether outputs have scores of their own.
    names
        Columns without which rows of several evaluations of a model look alike.
    """
    scores = ("fact", "behavior", "judge") if layers else ()
    return [
        column
        for column in known
        if (column.brief or column.name in scores or column.name in names)
        and (repeats or column.name != "repeat")
    ]


def brief_of(table: Trials) -> list[TrialColumn]:
    """The columns of a table that are shown if none are named."""
    return brief_columns(
        table.columns, repeats=table.repeated, layers=table.layered, names=table.distinguishing
    )


def first_rows(table: Trials, count: int = FIRST, width: int = WIDTH) -> TableSpec:
    """The first rows of a table with few of its columns, and how many rows there are.

    Parameters
    ----------
    table
        The trials.
    count
        Most rows.
    width
        Characters of a line.
    """
    some = table.first(count)
    if len(table.columns) > _MOST:
        some = some.with_columns(brief_of(table))
    rows = list(some.rows())
    every = table.count()
    notes = [f"{len(rows):,} of {every:,} trials."] if every > len(rows) else []
    return brief_table(some.columns, rows, [*notes, *some.notes], width, some.varying)


def brief_table(
    columns: Sequence[TrialColumn],
    rows: Sequence[Mapping[str, Any]],
    notes: Sequence[str],
    width: int,
    varying: Mapping[str, set[str]],
) -> TableSpec:
    """The rows as a table of so many characters.

    Control characters are written out, white space is one space, and what is cut ends with ``…``.

    Parameters
    ----------
    columns
        Of the rows.
    rows
        As `evalcube.flows.trials.read.Trials.rows` has them.
    notes
        Sentences below the table.
    width
        Characters of a line.
    varying
        Parameters in which the points of each task differ: the others are left out where the task is shown, too.
    """
    texts = [{column.name: _shown(column, row, varying) for column in columns} for row in rows]
    needed = {
        column.name: max([cell_len(column.name), *(cell_len(row[column.name]) for row in texts)])
        for column in columns
    }
    kept = _kept(columns, needed, width)
    widths = needed | _widths(kept, needed, width)
    shown = [
        Column(
            column.name,
            (lambda row, name=column.name: row[name])  # type: ignore[misc]
            if column.name == "model"
            else lambda row, name=column.name: cut(row[name], widths[name]),  # type: ignore[misc]
            keep=0 if column in kept else _FIRST_TO_GO,
            right=column.kind in ("integer", "single", "number"),
            name=column.name == "model",
        )
        for column in columns
    ]
    return TableSpec(tuple(shown), texts, tuple(notes))


def cut(text: str, width: int) -> str:
    """At most `width` columns of a terminal; what is cut ends with ``…``.

    Examples
    --------
    >>> cut("one two three", 8)
    'one two…'
    """
    if cell_len(text) <= width:
        return text
    kept = text[: width - 1]
    while cell_len(kept) > width - 1:
        kept = kept[:-1]
    return kept + _CUT


def _kept(columns: Sequence[TrialColumn], needed: Mapping[str, int], width: int) -> list[TrialColumn]:
    """The columns for which a line has room, without those that go first if it has not."""
    kept = list(columns)

    def least() -> int:
        texts = {column.name: _ENOUGH.get(column.name, _LEAST) for column in kept if _gives_way(column)}
        return sum(min(needed[column.name], texts.get(column.name, width)) + GAP for column in kept) - GAP

    for name in _YIELDING:
        if least() <= width:
            break
        kept = [column for column in kept if column.name != name]
    return kept


def _widths(columns: Sequence[TrialColumn], needed: Mapping[str, int], width: int) -> dict[str, int]:
    """What each column gets: numbers all that they need, texts what is left, those first that need the least."""
    long = [column.name for column in columns if _gives_way(column)]
    least = {name: min(needed[name], _ENOUGH.get(name, _LEAST)) for name in long}
    short = sum(needed[column.name] for column in columns if column.name not in long)
    left = width - GAP * (len(columns) - 1) - short - sum(least.values())
    for name in [name for name in long if name in ("params", "model")]:  # no terminal is too narrow
        less = min(max(0, -left), max(0, least[name] - _LEAST))
        least[name] -= less
        left += less
    left = max(0, left)
    found = {}
    for place, name in enumerate(sorted(long, key=lambda name: needed[name] - least[name])):
        more = min(needed[name] - least[name], left // (len(long) - place))
        found[name] = least[name] + more
        left -= more
    return found


def _gives_way(column: TrialColumn) -> bool:
    return column.kind not in ("integer", "single", "number", "flag") and column.name not in _FEW_VALUES


def _shown(column: TrialColumn, row: Mapping[str, Any], varying: Mapping[str, set[str]]) -> str:
    value = row[column.name]
    if column.name == "params" and value is not None:
        return visible(_params(value, varying.get(row["task"]) if "task" in row else None)) or ABSENT
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
