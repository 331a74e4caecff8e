"""The order of a leaderboard's rows: by what leads it, or by any of its columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalcube.stages.analyze.labelled.results import Estimate, Leaderboard, Row
from evalcube.stages.analyze.verdict.composite import LAYERS
from evalcube.stages.errors import ArgumentError


@dataclass(frozen=True)
class _By:
    path: str
    """From a row to the value; its first part is what JSON calls it."""
    falling: bool = True
    """Whether the highest value comes first: what is spent or lost has the lowest there."""

    def value(self, row: Row) -> float:
        """NaN where the row has none."""
        value: Any = row
        for name in self.path.split("."):
            if isinstance(value, Mapping):
                value = value.get(name)
            else:
                value = value[int(name)] if isinstance(value, tuple) else getattr(value, name)
            if value is None:
                return math.nan
        return float(value)


COLUMNS: Mapping[str, _By] = {
    "rank": _By("rank", falling=False),
    "score": _By("score.value"),
    "score/token": _By("score_per_token.value"),
    "right/1k tok": _By("correct_per_1000_tokens.value"),
    "accuracy": _By("accuracy.value"),
    "v1": _By("score_v1"),
    "composite": _By("composite.score.value"),
    **{name: _By(f"composite.layers.{name}") for name in LAYERS},
    "guesser": _By("guesser"),
    "done": _By("done"),
    "tokens": _By("tokens_per_trial", falling=False),
    "ranks": _By("rank_interval.value", falling=False),
    "USD/1000": _By("cost_per_1000", falling=False),
    **{name: _By(name, falling=False) for name in ("truncated", "cost", "invalid", "refused")},
    **{name: _By(name) for name in ("trials", "unique")},
}
"""Columns that every board can be sorted by, by their heads; its tiers and its mode come on top."""

MODEL = "model"
"""The column of names, which are in the order of the alphabet."""


def _in_order(rows: Sequence[Row], by: _By) -> list[Row]:
    """Rows with a value first, of these the ranked ones, the best first; equal ones as they were."""

    def key(row: Row) -> tuple[bool, bool, float]:
        value = by.value(row)
        absent = math.isnan(value)
        return absent, row.unranked, 0.0 if absent else -value if by.falling else value

    return sorted(rows, key=key)


def by_lead(board: Leaderboard) -> Leaderboard:
    """The board in the order of what leads it, with ranks: complete rows first, those without a value last.

    Equal ones have one rank, and are in the order of their accuracy, then of their names. Incomplete rows and those
    that were asked other points than most have no rank, and one that lost many trials is first only if it were with all
    of them wrong. A rank interval holds the rank.
    """
    named = sorted(board.rows, key=lambda row: (row.model_name, row.template, row.sampler, row.eval_id))
    accuracy = sorted(named, key=lambda row: 0.0 if math.isnan(row.accuracy.value) else -row.accuracy.value)
    rows = _in_order(accuracy, _By("score.value" if board.lead == "score" else "rate.value"))
    sure = (row for row in rows if not row.unranked and _stands(board, row, rows))
    if first := next(sure, None):
        rows = [first, *(row for row in rows if row is not first)]
    values = [board.leading(row).value for row in rows]
    ranked = [
        row if math.isnan(value) or row.unranked else _at(row, index + 1 - values[:index].count(value))
        for index, (row, value) in enumerate(zip(rows, values, strict=True))
    ]
    return replace(board, rows=tuple(ranked))


def _stands(board: Leaderboard, row: Row, rows: Sequence[Row]) -> bool:
    """Whether a row that lost many trials would lead the others with all of these wrong; true if it did not."""
    if row.bounds is None:
        return True
    worst = board.leading(row).value * row.bounds[0] / max(row.accuracy.value, 1e-9)
    return all(worst > board.leading(peer).value for peer in rows if peer is not row and not peer.unranked)


def _at(row: Row, rank: int) -> Row:
    ranks = row.rank_interval
    interval = Estimate(ranks.value, min(ranks.lower, rank), max(ranks.upper, rank))
    return replace(row, rank=rank, rank_interval=interval)


def columns(board: Leaderboard) -> dict[str, _By]:
    """Return the columns that this board can be sorted by, those in which a row has a value, by their heads."""
    measure = "score" if board.lead == "score" else "rate"
    tiers = {name: _By(f"tiers.{index}.{measure}.value") for index, name in enumerate(board.tiers)}
    keys = {**tiers, **COLUMNS, board.mode: _By("rate.value")}
    return {name: by for name, by in keys.items() if not all(math.isnan(by.value(row)) for row in board.rows)}


def sorted_estimate(board: Leaderboard, row: Row) -> Estimate | None:
    """A row's value in the column that orders the board, with its interval if it has one; None if it has no number."""
    by = columns(board).get(board.sort)
    if by is None:
        return None
    stem = by.path.removesuffix("value")
    ends = (by.path, by.path) if stem == by.path else (f"{stem}lower", f"{stem}upper")
    return Estimate.of(_By(path).value(row) for path in (by.path, *ends))


def sorted_by(board: Leaderboard, column: str) -> Leaderboard:
    """Return the board by a column, best first; incomplete rows stay below, as they have no rank."""
    there = columns(board)
    fields = {by.path.partition(".")[0]: key for key, by in there.items() if not by.path.startswith("tiers")}
    name = column if column in there else {**fields, "#": "rank"}.get(column, column)
    if name == MODEL:
        rows = sorted(board.rows, key=lambda row: (row.model_name, row.template, row.sampler))
    elif name in there:
        rows = _in_order(board.rows, there[name])
    else:
        listed = ", ".join([MODEL, *there])
        raise ArgumentError(f"`sort`: no column '{column}' has a value; the leaderboard has: {listed}")
    return replace(board, rows=tuple(rows), sort=name)
