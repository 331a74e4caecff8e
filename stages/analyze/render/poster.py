"""The leaderboard as one drawing: who stands where, how sure that is, and what to distrust."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from evalcube.stages.analyze.labelled.axes import plain
from evalcube.stages.analyze.labelled.results import Leaderboard, Row, label_rows
from evalcube.stages.analyze.render.board_spec import leaderboard_spec
from evalcube.stages.analyze.render.charts import Axis, axis_around
from evalcube.stages.analyze.render.cover import cover, spans
from evalcube.stages.analyze.render.drawing import Dot, Drawing, Lines, Words
from evalcube.stages.analyze.render.table import fold
from evalcube.stages.analyze.render.text import ABSENT

MOST_ROWS = 50
"""Evaluations on a page; a reader with more wants a part of the board."""

_MARGIN = 36.0
_NAME_LEFT = _MARGIN + 34
_ROW = 26.0
_LINE = 17.0
_FIGURE = 300.0
"""Width of the figure with the intervals."""
_CHARACTER = 7.3
"""Width of a character of 13 px, about."""
_BOLD = 7.9
_GAP = 16.0
_NAME = 80
"""Characters of a line of a name; a longer one takes several lines."""
_LEAST = 900.0
"""Width of a page, for the sentences on it."""

_INK, _BLUE = "#1a1e24", "#0b5c94"


def poster(board: Leaderboard, title: str) -> Drawing:
    """The leaderboard as a drawing of one page.

    Parameters
    ----------
    board
        The leaderboard; of more than 50 rows the first 50.
    title
        Its heading.

    Returns
    -------
    Drawing
        All text in it is shown as it is.
    """
    labels = label_rows(board)
    sheet = _laid_out(board, labels)
    body, top = _head(board, labels, title, sheet.width)
    body += [
        Words(end - _GAP / 2, top, head, "b e") for head, end in zip(sheet.heads, sheet.ends, strict=True)
    ]
    body += [Words(_MARGIN + 18, top, "#", "b e"), Words(_NAME_LEFT, top, "model", "b")]
    body.append(Lines(((_MARGIN, top + 8, sheet.width - _MARGIN, top + 8),), _INK))
    axis = _axis(board, sheet.rows)
    lines, y = _lines(board, sheet, axis, top + 8)
    for tick in axis.ticks():
        x = sheet.figure + tick.at / 100 * _FIGURE
        value = float(tick.label) * (1 if board.lead == "score" else 100)
        body.append(Lines(((x, top + 8, x, y),), "#e1e5e9"))
        body.append(Words(x, y + 15, f"{value:g}", "s m"))
    body += lines
    notes = [f"The bars are {100 * board.confidence:g} % intervals."]
    if more := len(board.rows) - MOST_ROWS:
        told = "1 more evaluation is" if more == 1 else f"{more} more evaluations are"
        notes += [f"{told} not on this page."] if more > 0 else []
    body += [Words(_MARGIN, y + 36 + _LINE * place, note, "s") for place, note in enumerate(notes)]
    return Drawing(body, sheet.width, y + 36 + _LINE * len(notes) + _MARGIN / 2, title)


@dataclass(frozen=True)
class _Sheet:
    """What the table shows, and where."""

    rows: Sequence[Row]
    names: Sequence[Sequence[str]]
    """Of the rows, line by line."""
    heads: Sequence[str]
    texts: Sequence[Sequence[str]]
    ends: Sequence[float]
    """Right edges of the columns."""
    figure: float
    """Left edge of the figure."""
    width: float


def _laid_out(board: Leaderboard, labels: Sequence[str]) -> _Sheet:
    rows = board.rows[:MOST_ROWS]
    columns = [column for column in leaderboard_spec(board).columns[1:] if not column.name]
    texts = [[column.cell(row) for column in columns] for row in rows]
    heads = [column.head for column in columns]
    widths = [
        max([_BOLD * cell_len(head), *(_CHARACTER * cell_len(line[place]) for line in texts)]) + _GAP
        for place, head in enumerate(heads)
    ]
    names = [fold(name, _NAME).split("\n") for name in labels[: len(rows)]]
    longest = max([8, *(cell_len(line) for name in names for line in name)])
    figure = _NAME_LEFT + _GAP + _CHARACTER * longest
    ends = [figure + _FIGURE + _GAP + sum(widths[: place + 1]) for place in range(len(widths))]
    return _Sheet(rows, names, heads, texts, ends, figure, max(_LEAST, ends[-1] + _MARGIN))


def _lines(
    board: Leaderboard, sheet: _Sheet, axis: Axis, y: float
) -> tuple[list[Words | Lines | Dot], float]:
    """The rows from a height on, and where they end."""
    marks: list[Words | Lines | Dot] = []
    room = sheet.figure - _NAME_LEFT - _GAP / 2
    for row, cells, name in zip(sheet.rows, sheet.texts, sheet.names, strict=True):
        height = _ROW + _LINE * (len(name) - 1)
        middle, faint = y + height / 2 + 4, " f" if row.marked else ""
        marks.append(Words(_MARGIN + 18, middle, ABSENT if row.rank is None else str(row.rank), "e" + faint))
        first = middle - _LINE * (len(name) - 1) / 2
        marks += [
            Words(_NAME_LEFT, first + _LINE * place, line, faint.strip(), room)
            for place, line in enumerate(name)
        ]
        marks += _bar(board, row, axis, sheet.figure, y + height / 2)
        marks += [
            Words(end - _GAP / 2, middle, cell, "e" + faint)
            for cell, end in zip(cells, sheet.ends, strict=True)
        ]
        y += height
    return marks, y


def _head(
    board: Leaderboard, labels: Sequence[str], title: str, width: float
) -> tuple[list[Words | Lines | Dot], float]:
    """The heading and what a reader is to know first, and where the table begins."""
    told = cover(board, labels, None)
    y = _MARGIN + 24
    body: list[Words | Lines | Dot] = [Words(_MARGIN, y, title, "h")]
    y += 12
    most = int((width - 2 * _MARGIN) / _CHARACTER) - 18
    for head, sentences, kind in (
        ("part", (f"Part of the cube ({board.selection}).",) if board.selection else (), "d"),
        ("measured", told.measured, ""),
        ("how sure", told.sure, ""),
        ("distrust", told.doubts, "d"),
    ):
        whole = " ".join("".join(piece for piece, _ in spans(text, board)) for text in sentences)
        for place, line in enumerate(textwrap.wrap(plain(whole), most)):
            y += _LINE
            body += [Words(_MARGIN, y, head, f"b {kind}".strip())] if place == 0 else []
            body.append(Words(_MARGIN + 84, y, line, kind))
        y += 4
    return body, y + 34


def _axis(board: Leaderboard, rows: Sequence[Row]) -> Axis:
    ends = [value for row in rows for value in (board.leading(row).lower, board.leading(row).upper)]
    return axis_around([0.0, *ends])


def _bar(board: Leaderboard, row: Row, axis: Axis, left: float, y: float) -> list[Lines | Dot]:
    """The interval and the value of a row; nothing where there is none."""
    lead = board.leading(row)
    if math.isnan(lead.value):
        return []
    value, low, high = (left + axis.at(end) / 100 * _FIGURE for end in (lead.value, lead.lower, lead.upper))
    ends = ((low, y - 5, low, y + 5), (high, y - 5, high, y + 5), (low, y, high, y))
    return [
        Lines(ends, _BLUE, 1.6),
        Dot(value, y, 4.2, "#ffffff" if row.marked else _BLUE, _BLUE, 1.6),
    ]
