"""A leaderboard -> a table for the terminal, Markdown, or JSON text."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from stages.analyze.board import Estimate, Leaderboard, Row
from stages.analyze.text import ABSENT, markdown, number, percent, plain, shorten, significant

INCOMPLETE = "*"
NAME_WIDTH = 36
"""Most characters of an evaluation's label in the terminal."""
NAME_LEAST = 8
NAME_ENOUGH = 22
"""A column gives way rather than that names get less than this."""
GAP = 2
"""Spaces between columns."""


@dataclass(frozen=True)
class Column:
    """One column: its head, what it shows of a row, and how soon it gives way when space is short."""

    head: str
    cell: Callable[[Row], str]
    keep: int
    """Columns with low numbers are kept longest."""
    right: bool = True


def label_rows(board: Leaderboard) -> list[str]:
    """A label per row: the model's name, with template and sampler where the board has several of them."""
    several = {part: len({getattr(row, part) for row in board.rows}) > 1 for part in ("template", "sampler")}
    return [
        " · ".join(
            plain(text) for text in (row.model_name, *(getattr(row, p) for p in several if several[p]))
        )
        for row in board.rows
    ]


def columns(board: Leaderboard) -> list[Column]:
    """Columns behind rank and name, in order; those that no row has a value for are left out."""
    tiers = [
        Column(plain(tier), lambda row, at=place: _tier(row, at), 3)  # type: ignore[misc]
        for place, tier in enumerate(board.tiers)
    ]
    level = f"{100 * board.confidence:g} %"
    every = [
        Column("score", lambda row: number(row.score.value) + (INCOMPLETE if row.incomplete else ""), 0),
        Column(level, lambda row: _range(row.score), 1),
        *(tiers if len(tiers) > 1 else []),
        Column("accuracy", lambda row: percent(row.accuracy.value), 2),
        Column("tokens", lambda row: number(row.tokens_per_trial), 4),
        Column("score/token", lambda row: significant(row.score_per_token.value), 5),
        Column("truncated", lambda row: percent(row.truncated), 6),
        Column("invalid", lambda row: percent(row.invalid), 8),
        Column("USD/1000", lambda row: significant(row.cost_per_1000), 7),
        Column("trials", lambda row: number(row.trials), 9),
    ]
    return [column for column in every if any(column.cell(row) != ABSENT for row in board.rows)]


def terminal_table(board: Leaderboard, *, width: int = 100) -> Table:
    """Table for a terminal of `width` characters: columns give way until every row fits on one line.

    Names are shown as plain text: markup in them does nothing and control characters are gone. Incomplete
    rows carry ``*``, explained below the table with the board's other notes.

    Parameters
    ----------
    board
        The leaderboard.
    width
        Characters of the terminal.
    """
    labels = label_rows(board)
    chosen, name_width = _fit(board, labels, width)
    table = Table(
        box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, caption_justify="left"
    )
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("model", no_wrap=True, overflow="ellipsis", max_width=name_width)
    for column in chosen:
        table.add_column(Text(column.head), justify="right", no_wrap=True)
    for row, label in zip(board.rows, labels, strict=True):
        cells = [_rank(row), shorten(label, name_width), *(column.cell(row) for column in chosen)]
        table.add_row(*(Text(cell) for cell in cells), style="dim" if row.incomplete else None)
    if board.notes:
        table.caption = Text("\n".join(board.notes))
    return table


def markdown_table(board: Leaderboard) -> str:
    """The leaderboard with all columns as a Markdown table, followed by its notes; ends with a line end."""
    chosen = columns(board)
    lines = [
        _line(["#", "model", *(markdown(column.head) for column in chosen)]),
        _line(["--:", ":--", *("--:" for _ in chosen)]),
    ]
    for row, label in zip(board.rows, label_rows(board), strict=True):
        lines.append(_line([_rank(row), markdown(label), *(markdown(column.cell(row)) for column in chosen)]))
    notes = "".join(f"\n{markdown(note)}\n" for note in board.notes)
    return "\n".join(lines) + "\n" + notes


def json_text(board: Leaderboard) -> str:
    """`Leaderboard.to_dict` as JSON in ASCII, indented, without NaN; ends with a line end."""
    return json.dumps(board.to_dict(), indent=2, allow_nan=False) + "\n"


def _fit(board: Leaderboard, labels: Sequence[str], width: int) -> tuple[list[Column], int]:
    """The columns that fit, and the width left for names."""
    chosen = columns(board)
    wanted = min(NAME_WIDTH, max((cell_len(label) for label in labels), default=NAME_LEAST))
    rank = len(str(len(board.rows))) + GAP

    def spare() -> int:
        return width - rank - sum(GAP + _width(column, board) for column in chosen)

    while chosen and spare() < min(wanted, NAME_ENOUGH):
        last = max(column.keep for column in chosen)
        chosen = [column for column in chosen if column.keep != last]
    return chosen, max(NAME_LEAST, min(wanted, spare()))


def _width(column: Column, board: Leaderboard) -> int:
    return max(cell_len(column.head), *(cell_len(column.cell(row)) for row in board.rows), 0)


def _rank(row: Row) -> str:
    return ABSENT if row.rank is None else str(row.rank)


def _range(estimate: Estimate) -> str:
    low, high = number(estimate.lower), number(estimate.upper)
    return ABSENT if ABSENT in (low, high) else f"{low}–{high}"


def _tier(row: Row, place: int) -> str:
    tier = row.tiers[place]
    return number(tier.score.value) + (INCOMPLETE if tier.incomplete else "")


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
