"""The leaderboard as one drawing: who stands where, how sure that is, and what to distrust."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from rich.cells import cell_len

from stages.analyze.labelled.axes import plain
from stages.analyze.labelled.leaderboard import label_rows
from stages.analyze.labelled.results import Leaderboard, Row
from stages.analyze.render.charts import Axis, axis_around
from stages.analyze.render.cover import cover, spans
from stages.analyze.render.table_specs import leaderboard_spec
from stages.analyze.render.text import ABSENT, shorten

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
_NAME = 40
"""Characters of a name; a longer one is cut in the middle, and whole in its title."""
_LEAST = 900.0
"""Width of a page, for the sentences on it."""

_STYLE = (
    "text{font:13px 'Helvetica Neue',Arial,'Liberation Sans','DejaVu Sans',sans-serif;fill:#1a1e24}"
    ".h{font-size:26px;font-weight:700}.s{fill:#565f6b;font-size:12px}.b{font-weight:700}.e{text-anchor:end}"
    ".m{text-anchor:middle}.d{fill:#a8420b}.f{opacity:.55}"
)


def poster(board: Leaderboard, title: str) -> str:
    """The leaderboard as an SVG of one page; all text is shown as it is.

    Parameters
    ----------
    board
        The leaderboard; of more than 50 rows the first 50.
    title
        Its heading.

    Returns
    -------
    str
        The drawing.
    """
    labels = label_rows(board)
    sheet = _laid_out(board, labels)
    body, top = _head(board, labels, title, sheet.width)
    body += [
        _text(end - _GAP / 2, top, head, "b e") for head, end in zip(sheet.heads, sheet.ends, strict=True)
    ]
    body += [_text(_MARGIN + 18, top, "#", "b e"), _text(_NAME_LEFT, top, "model", "b")]
    body.append(_rule(_MARGIN, sheet.width - _MARGIN, top + 8))
    axis = _axis(board, sheet.rows)
    lines, y = _lines(board, sheet, axis, top + 8)
    for tick in axis.ticks():
        x = sheet.figure + tick.at / 100 * _FIGURE
        value = float(tick.label) * (1 if board.lead == "score" else 100)
        body.append(f'<path d="M{x:.1f} {top + 8:.1f}V{y:.1f}" stroke="#e1e5e9"/>')
        body.append(_text(x, y + 15, f"{value:g}", "s m"))
    body += lines
    notes = [f"The bars are {100 * board.confidence:g} % intervals."]
    if len(board.rows) > MOST_ROWS:
        notes.append(f"{len(board.rows) - MOST_ROWS} more evaluations are not on this page.")
    body += [_text(_MARGIN, y + 36 + _LINE * place, note, "s") for place, note in enumerate(notes)]
    return _page(body, sheet.width, y + 36 + _LINE * len(notes) + _MARGIN / 2)


@dataclass(frozen=True)
class _Sheet:
    """What the table shows, and where."""

    rows: Sequence[Row]
    names: Sequence[str]
    """Of the rows, whole."""
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
    names = labels[: len(rows)]
    figure = _NAME_LEFT + _GAP + _CHARACTER * max([8, *(cell_len(shorten(name, _NAME)) for name in names)])
    ends = [figure + _FIGURE + _GAP + sum(widths[: place + 1]) for place in range(len(widths))]
    return _Sheet(rows, names, heads, texts, ends, figure, max(_LEAST, ends[-1] + _MARGIN))


def _lines(board: Leaderboard, sheet: _Sheet, axis: Axis, y: float) -> tuple[list[str], float]:
    """The rows from a height on, and where they end."""
    lines = []
    for row, cells, name in zip(sheet.rows, sheet.texts, sheet.names, strict=True):
        middle, faint = y + _ROW / 2 + 4, " f" if row.marked else ""
        lines.append(_text(_MARGIN + 18, middle, ABSENT if row.rank is None else str(row.rank), "e" + faint))
        lines.append(_text(_NAME_LEFT, middle, shorten(name, _NAME), faint, whole=name))
        lines += _bar(board, row, axis, sheet.figure, y + _ROW / 2)
        lines += [
            _text(end - _GAP / 2, middle, cell, "e" + faint)
            for cell, end in zip(cells, sheet.ends, strict=True)
        ]
        y += _ROW
    return lines, y


def _head(board: Leaderboard, labels: Sequence[str], title: str, width: float) -> tuple[list[str], float]:
    """The heading and what a reader is to know first, and where the table begins."""
    told = cover(board, labels, None)
    y = _MARGIN + 24
    body = [_text(_MARGIN, y, title, "h")]
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
            body += [_text(_MARGIN, y, head, f"b {kind}")] if place == 0 else []
            body.append(_text(_MARGIN + 84, y, line, kind))
        y += 4
    return body, y + 34


def _axis(board: Leaderboard, rows: Sequence[Row]) -> Axis:
    ends = [value for row in rows for value in (board.leading(row).lower, board.leading(row).upper)]
    return axis_around([0.0, *ends])


def _bar(board: Leaderboard, row: Row, axis: Axis, left: float, y: float) -> list[str]:
    """The interval and the value of a row; nothing where there is none."""
    lead = board.leading(row)
    if math.isnan(lead.value):
        return []
    value, low, high = (left + axis.at(end) / 100 * _FIGURE for end in (lead.value, lead.lower, lead.upper))
    fill = "#ffffff" if row.marked else "#0b5c94"
    pen = 'stroke="#0b5c94" stroke-width="1.6"'
    path = f"M{low:.1f} {y - 5:.1f}v10M{high:.1f} {y - 5:.1f}v10M{low:.1f} {y:.1f}H{high:.1f}"
    return [
        f'<path d="{path}" {pen} fill="none"/>',
        f'<circle cx="{value:.1f}" cy="{y:.1f}" r="4.2" fill="{fill}" {pen}/>',
    ]


def _text(x: float, y: float, text: str, kind: str = "", whole: str = "") -> str:
    title = f"<title>{escape(plain(whole))}</title>" if whole and plain(whole) != plain(text) else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind.strip()}">{title}{escape(plain(text))}</text>'


def _rule(left: float, right: float, y: float) -> str:
    return f'<path d="M{left:.1f} {y:.1f}H{right:.1f}" stroke="#1a1e24"/>'


def _page(body: Sequence[str], width: float, height: float) -> str:
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{_STYLE}</style>'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(body)}</svg>\n'
    )
