"""A leaderboard -> a table for the terminal, Markdown, or JSON text."""

from __future__ import annotations

import json

from rich.table import Table

from stages.analyze.labelled.leaderboard import Estimate, Leaderboard, Row
from stages.analyze.render import table as sheet
from stages.analyze.render.table import Column, Sheet
from stages.analyze.render.text import ABSENT, distinguishing, number, percent, plain, significant

INCOMPLETE = "*"


def label_rows(board: Leaderboard) -> list[str]:
    """A label per row: the model's name, with template and sampler where the board has several of them."""
    return distinguishing([(row.model_name, row.template, row.sampler) for row in board.rows])


def board_sheet(board: Leaderboard) -> Sheet:
    """Rank, label and what there is to show of every evaluation; incomplete rows carry ``*`` and are faint."""
    labels = dict(zip(map(id, board.rows), label_rows(board), strict=True))
    tiers = [
        Column(plain(tier), lambda row, at=place: _tier(row, at), 3)  # type: ignore[misc]
        for place, tier in enumerate(board.tiers)
    ]
    level = f"{100 * board.confidence:g} %"
    repeated = any(row.unique < 1 for row in board.rows)
    columns = [
        Column("#", lambda row: ABSENT if row.rank is None else str(row.rank)),
        Column("model", lambda row: labels[id(row)], right=False, name=True),
        Column("score", lambda row: number(row.score.value) + (INCOMPLETE if row.incomplete else "")),
        Column(level, lambda row: span(row.score), 1),
        *(tiers if len(tiers) > 1 else []),
        Column(_accuracy_head(board), lambda row: percent(row.accuracy.value), 2),
        Column("tokens", lambda row: number(row.tokens_per_trial), 4),
        Column("score/token", lambda row: significant(row.score_per_token.value), 5),
        Column("truncated", lambda row: percent(row.truncated), 6),
        *([Column("ranks", lambda row: span(row.rank_interval), 7)] if len(board.rows) > 1 else []),
        Column("USD/1000", lambda row: significant(row.cost_per_1000), 8),
        Column("invalid", lambda row: percent(row.invalid), 9),
        Column("trials", lambda row: number(row.trials), 10),
        *([Column("unique", lambda row: percent(row.unique), 11)] if repeated else []),
    ]
    return Sheet(tuple(columns), board.rows, board.notes, lambda row: row.incomplete).filled()


def terminal_table(board: Leaderboard, *, width: int = 100) -> Table:
    """`board_sheet` for a terminal of `width` characters; see `stages.analyze.render.table.terminal`."""
    return sheet.terminal(board_sheet(board), width=width)


def markdown_table(board: Leaderboard) -> str:
    """`board_sheet` as a Markdown table with all columns, followed by its notes; ends with a line end."""
    return sheet.markdown_text(board_sheet(board))


def json_text(board: Leaderboard) -> str:
    """`Leaderboard.to_dict` as JSON in ASCII, indented, without NaN; ends with a line end."""
    return json.dumps(board.to_dict(), indent=2, allow_nan=False) + "\n"


def span(estimate: Estimate, digits: int = 0) -> str:
    """The interval of an estimate, a single number if both ends are shown alike."""
    low, high = number(estimate.lower, digits), number(estimate.upper, digits)
    return low if low == high else ABSENT if ABSENT in (low, high) else f"{low}–{high}"


def _accuracy_head(board: Leaderboard) -> str:
    return "accuracy" if board.mode == "C_I" else board.mode


def _tier(row: Row, place: int) -> str:
    tier = row.tiers[place]
    return number(tier.score.value) + (INCOMPLETE if tier.incomplete else "")
