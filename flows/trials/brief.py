"""The table of trials for people: few columns, texts cut to the width that there is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from flows.trials.columns import TrialColumn
from flows.trials.harmless import visible
from stages.analyze.render.shown import WIDTH
from stages.analyze.render.table import GAP, Column, TableSpec
from stages.analyze.render.text import ABSENT

if TYPE_CHECKING:
    from flows.trials.read import Trials

FIRST = 20
"""Rows that are shown if nobody says how many."""
_MOST = 12
"""Columns that are all shown; of more only a few are."""
_LEAST = 6
"""Characters that a text gets at least."""
_CUT = "…"
_DIGITS = {"latency": 3, "first_token": 3, "cost": 6}
_FEW_VALUES = ("status", "finish", "digest", "eval_id", "cell_id")
"""Texts that are short, or of use only if they are whole."""


def brief_columns(known: Sequence[TrialColumn], *, repeats: bool, layers: bool) -> list[TrialColumn]:
    """The columns that are shown if none are named.

    Parameters
    ----------
    known
        All columns.
    repeats
        Whether questions were asked several times.
    layers
        Whether outputs have scores of their own.
    """
    scores = ("fact", "behavior", "judge") if layers else ()
    return [
        column
        for column in known
        if (column.brief or column.name in scores) and (repeats or column.name != "repeat")
    ]


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
        some = some.with_columns(brief_columns(table.columns, repeats=table.repeated, layers=table.layered))
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
        As `flows.trials.read.Trials.rows` has them.
    notes
        Sentences below the table.
    width
        Characters of a line.
    varying
        Parameters in which the points of each task differ: the others are left out where the task is shown, too.
    """
    texts = [{column.name: _shown(column, row, varying) for column in columns} for row in rows]
    widths = _widths(columns, texts, width)
    shown = [
        Column(
            column.name,
            lambda row, name=column.name: cut(row[name], widths[name]),  # type: ignore[misc]
            right=column.kind in ("integer", "single", "number"),
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


def _widths(columns: Sequence[TrialColumn], texts: Sequence[Mapping[str, str]], width: int) -> dict[str, int]:
    """What each column gets: numbers all that they need, texts what is left, short ones no more than they need."""
    needed = {
        column.name: max([cell_len(column.name), *(cell_len(row[column.name]) for row in texts)])
        for column in columns
    }
    long = [column.name for column in columns if _gives_way(column)]
    left = width - GAP * (len(columns) - 1) - sum(size for name, size in needed.items() if name not in long)
    found = dict(needed)
    for place, name in enumerate(sorted(long, key=lambda name: needed[name])):
        found[name] = min(needed[name], max(_LEAST, left // (len(long) - place)))
        left -= found[name]
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
    return " ".join(
        f"{name}={value}" for name, value in json.loads(text).items() if not names or name in names
    )
