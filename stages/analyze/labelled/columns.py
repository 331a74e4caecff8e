"""The columns of a leaderboard, each defined once for all that show it, and the order of rows by one of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from evalcube.stages.analyze.labelled.results import Estimate, Leaderboard, Row
from evalcube.stages.analyze.verdict.composite import LAYERS
from evalcube.stages.errors import ArgumentError

Condition: TypeAlias = Callable[[Leaderboard], bool]
_YES: Condition = lambda _: True  # noqa: E731 - a value of fields, as is the next
_NO: Condition = lambda _: False  # noqa: E731 - as above


@dataclass(frozen=True)
class BoardColumn:
    """A column of leaderboards, from which tables, the report, the explorer and the order of rows are made."""

    head: str
    path: str
    """From a row to its value or estimate; the first part is its name in JSON, and all of it with a `form`."""
    higher_first: bool = True
    """Whether the highest value is the best: what is spent or lost has the lowest there."""
    form: Literal["number", "percent", "money"] | None = None
    """How values are shown; None where code of its own does that, as with an interval, and this is for sorting only."""
    gives_way: int = 0
    """How soon terminals leave it out, as in `Column`."""
    hint: str = ""
    """What it says, for those who point at its head."""
    long_head: str = ""
    """Its head where there is room, with line ends where it may be broken; default: `head`."""
    when: Condition = _YES
    """Whether tables and the report have it."""
    explorer: Condition | None = None
    """Whether the explorer shows it before anybody chooses columns; default: if a row has more than 0."""

    def is_plain(self, board: Leaderboard) -> bool:
        """Whether tables and the report of this board show it like others, by its `form`."""
        return self.form is not None and self.when(board)

    def estimate(self, row: Row) -> Estimate:
        """Return a row's value with its interval, or with itself for both ends; NaN where the row has none."""
        value: Any = row
        for name in self.path.split("."):
            if isinstance(value, Mapping):
                value = value.get(name)
            elif value is not None:
                value = value[int(name)] if isinstance(value, tuple) else getattr(value, name)
        value = math.nan if value is None else value
        return value if isinstance(value, Estimate) else Estimate.of([value] * 3)

    def value(self, row: Row) -> float:
        """NaN where the row has none."""
        return self.estimate(row).value


COLUMNS: Sequence[BoardColumn] = (
    BoardColumn("rank", "rank", higher_first=False),
    BoardColumn("score", "score"),
    BoardColumn("score/token", "score_per_token"),
    BoardColumn("right/1k tok", "correct_per_1000_tokens"),
    BoardColumn("accuracy", "accuracy"),
    BoardColumn("composite", "composite.score"),
    *(BoardColumn(name, f"composite.layers.{name}") for name in LAYERS),
    BoardColumn("guesser", "guesser"),
    BoardColumn("done", "done"),
    BoardColumn("ranks", "rank_interval", higher_first=False),
    BoardColumn(
        *("tokens", "tokens_per_trial", False, "number", 6),
        hint="Completion tokens for each trial.",
        long_head="tokens\nper trial",
    ),
    BoardColumn("truncated", "truncated", False, "percent", 7, "Cut off by the token limit.", explorer=_YES),
    BoardColumn(
        "USD/1000", "cost_per_1000", False, "money", 9, "USD for 1000 trials.", "USD per\n1000 trials"
    ),
    BoardColumn("cost", "cost", False, "money", 0, "USD of all finished trials.", when=_NO, explorer=_NO),
    BoardColumn("invalid", "invalid", False, "percent", 10, "Replies without an answer in the asked form."),
    BoardColumn("refused", "refused", False, "percent", 10, "Refused or filtered."),
    BoardColumn(
        *("trials", "trials", True, "number", 11),
        hint="Finished trials, of those that are planned.",
        explorer=lambda board: any(row.partial for row in board.rows),
    ),
    BoardColumn(
        *("unique", "unique", True, "percent", 12),
        hint="Trials whose question is new in its cell.",
        long_head="new\nquestions",
        when=lambda board: any(row.unique < 1 for row in board.rows),
        explorer=_NO,
    ),
    BoardColumn(
        *("v1", "score_v1", True, "number", 13),
        hint="Score of upper bounds: a model that is always right has 1000, whatever the number of trials.",
        when=lambda board: board.lead == "score" and board.version == "auto",
        explorer=_NO,
    ),
)
"""Columns that every board can be sorted by; its tiers and its mode come on top."""

MODEL = "model"
"""The column of names, which are in the order of the alphabet."""


def _in_order(rows: Sequence[Row], by: BoardColumn) -> list[Row]:
    """Rows with a value first, of these the ranked ones, the best first; equal ones as they were."""

    def key(row: Row) -> tuple[bool, bool, float]:
        value = by.value(row)
        absent = math.isnan(value)
        return absent, row.unranked, 0.0 if absent else -value if by.higher_first else value

    return sorted(rows, key=key)


def by_lead(board: Leaderboard) -> Leaderboard:
    """The board in the order of what leads it, with ranks: complete rows first, those without a value last.

    Equal ones have one rank, and are in the order of their accuracy, then of their names. Incomplete rows and those
    that were asked other points than most have no rank, and one that lost many trials is first only if it were with all
    of them wrong. A rank interval holds the rank.
    """
    named = sorted(board.rows, key=lambda row: (row.model_name, row.template, row.sampler, row.eval_id))
    accuracy = sorted(named, key=lambda row: 0.0 if math.isnan(row.accuracy.value) else -row.accuracy.value)
    rows = _in_order(accuracy, BoardColumn("", "score" if board.lead == "score" else "rate"))
    sure = (row for row in rows if not row.unranked and _stands(board, row, rows))
    if first := next(sure, None):
        rows = [first, *(row for row in rows if row is not first)]
    values = [board.leading(row).value for row in rows]
    ranked = [
        row if math.isnan(value) or row.unranked else _with_rank(row, index + 1 - values[:index].count(value))
        for index, (row, value) in enumerate(zip(rows, values, strict=True))
    ]
    return replace(board, rows=tuple(ranked))


def _stands(board: Leaderboard, row: Row, rows: Sequence[Row]) -> bool:
    """Whether a row that lost many trials would lead the others with all of these wrong; true if it did not."""
    if row.bounds is None:
        return True
    worst = board.leading(row).value * row.bounds[0] / max(row.accuracy.value, 1e-9)
    return all(worst > board.leading(peer).value for peer in rows if peer is not row and not peer.unranked)


def _with_rank(row: Row, rank: int) -> Row:
    ranks = row.rank_interval
    interval = Estimate(ranks.value, min(ranks.lower, rank), max(ranks.upper, rank))
    return replace(row, rank=rank, rank_interval=interval)


def columns(board: Leaderboard) -> dict[str, BoardColumn]:
    """Return the columns that this board can be sorted by, those in which a row has a value, by their heads."""
    measure = "score" if board.lead == "score" else "rate"
    tiers = (BoardColumn(name, f"tiers.{index}.{measure}") for index, name in enumerate(board.tiers))
    by_head = {by.head: by for by in (*tiers, *COLUMNS, BoardColumn(board.mode, "rate"))}
    absent = [head for head, by in by_head.items() if all(math.isnan(by.value(row)) for row in board.rows)]
    return {head: by for head, by in by_head.items() if head not in absent}


def sorted_estimate(board: Leaderboard, row: Row) -> Estimate | None:
    """A row's value in the column that orders the board, with its interval if it has one; None if it has no number."""
    column = columns(board).get(board.sort)
    return column.estimate(row) if column else None


def sorted_by(board: Leaderboard, column: str) -> Leaderboard:
    """Return the board by a column, best first; incomplete rows stay below, as they have no rank."""
    there = columns(board)
    fields = {
        by.path.partition(".")[0]: head for head, by in there.items() if not by.path.startswith("tiers")
    }
    name = column if column in there else {**fields, "#": "rank"}.get(column, column)
    if name == MODEL:
        rows = sorted(board.rows, key=lambda row: (row.model_name, row.template, row.sampler))
    elif name in there:
        rows = _in_order(board.rows, there[name])
    else:
        listed = ", ".join([MODEL, *there])
        raise ArgumentError(f"`sort`: no column '{column}' has a value; the leaderboard has: {listed}")
    return replace(board, rows=tuple(rows), sort=name)
