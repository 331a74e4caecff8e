"""The order of a leaderboard's rows: by what leads it, or by any of its columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from evalcube.stages.analyze.labelled.results import Estimate, Leaderboard, Row
from evalcube.stages.analyze.verdict.composite import LAYERS
from evalcube.stages.errors import ArgumentError


@dataclass(frozen=True)
class _By:
    value: Callable[[Row], float]
    """NaN where the row has none."""
    field: str = ""
    """What JSON calls it, where that is another name."""
    falling: bool = True
    """Whether the highest value comes first: what is spent or lost has the lowest there."""


def _share(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def _layer(name: str) -> _By:
    return _By(lambda row: math.nan if row.composite is None else row.composite.layers.get(name, math.nan))


COLUMNS: Mapping[str, _By] = {
    "rank": _By(lambda row: math.nan if row.rank is None else row.rank, "#", falling=False),
    "score": _By(lambda row: row.score.value),
    "score/token": _By(lambda row: row.score_per_token.value, "score_per_token"),
    "right/1k tok": _By(lambda row: row.correct_per_1000_tokens.value, "correct_per_1000_tokens"),
    "accuracy": _By(lambda row: row.accuracy.value),
    "v1": _By(lambda row: row.score_v1, "score_v1"),
    "composite": _By(lambda row: math.nan if row.composite is None else row.composite.score.value),
    **{name: _layer(name) for name in LAYERS},
    "guesser": _By(lambda row: row.guesser),
    "done": _By(lambda row: _share(row.trials, row.planned)),
    "tokens": _By(lambda row: row.tokens_per_trial, "tokens_per_trial", falling=False),
    "truncated": _By(lambda row: row.truncated, falling=False),
    "ranks": _By(lambda row: row.rank_interval.value, "rank_interval", falling=False),
    "USD/1000": _By(lambda row: row.cost_per_1000, "cost_per_1000", falling=False),
    "cost": _By(lambda row: row.cost, falling=False),
    "invalid": _By(lambda row: row.invalid, falling=False),
    "refused": _By(lambda row: row.refused, falling=False),
    "trials": _By(lambda row: row.trials),
    "unique": _By(lambda row: row.unique),
}
"""What every board can be sorted by, by the head of the column; its tiers and its mode come on top."""

MODEL = "model"
"""The column of names, which are in the order of the alphabet."""


def by_lead(board: Leaderboard) -> Leaderboard:
    """The board in the order of what leads it, with ranks: complete rows first, those without a value last.

    Equal ones are in the order of their accuracy, then of their names. Incomplete rows and those that were asked other
    points than most have no rank. A rank interval holds the rank.

    Parameters
    ----------
    board
        With rows in any order.
    """

    def key(row: Row) -> tuple[bool, bool, float, float, str, str, str, str]:
        value = board.leading(row).value
        absent = math.isnan(value)
        accuracy = 0.0 if math.isnan(row.accuracy.value) else -row.accuracy.value
        unranked = row.unranked
        names = row.model_name, row.template, row.sampler, row.eval_id
        return (absent, unranked, 0.0 if absent else -value, accuracy, *names)

    rows = [
        row if math.isnan(board.leading(row).value) or row.unranked else _at(row, place)
        for place, row in enumerate(sorted(board.rows, key=key), start=1)
    ]
    return replace(board, rows=tuple(rows))


def _at(row: Row, place: int) -> Row:
    ranks = row.rank_interval
    return replace(
        row, rank=place, rank_interval=Estimate(ranks.value, min(ranks.lower, place), max(ranks.upper, place))
    )


def columns(board: Leaderboard) -> dict[str, _By]:
    """What this board can be sorted by: columns in which a row has a value, by their heads."""

    def tier(place: int) -> _By:
        if board.lead == "score":
            return _By(lambda row: row.tiers[place].score.value)
        return _By(lambda row: row.tiers[place].rate.value)

    tiers = {name: tier(place) for place, name in enumerate(board.tiers)}
    found = {**tiers, **COLUMNS, board.mode: _By(lambda row: row.rate.value, "rate")}
    return {
        name: by for name, by in found.items() if not all(math.isnan(by.value(row)) for row in board.rows)
    }


def sorted_by(board: Leaderboard, column: str) -> Leaderboard:
    """The board in the order of a column, best first; incomplete rows stay below complete ones, as they have no rank.

    Parameters
    ----------
    column
        The column's head, or the name of its field in JSON.

    Raises
    ------
    ValueError
        If the board has no such column.
    """
    there = columns(board)
    name = next((head for head, by in there.items() if column in (head, by.field)), column)
    if name == MODEL:
        rows = sorted(board.rows, key=lambda row: (row.model_name, row.template, row.sampler))
    elif name in there:
        by = there[name]

        def key(row: Row) -> tuple[bool, bool, float]:
            value = by.value(row)
            absent = math.isnan(value)
            unranked = row.unranked
            return (absent, unranked, 0.0 if absent else -value if by.falling else value)

        rows = sorted(board.rows, key=key)
    else:
        listed = ", ".join([MODEL, *there])
        raise ArgumentError(f"`sort`: the board has no column '{column}' with a value; it has: {listed}")
    return replace(board, rows=tuple(rows), sort=name)
