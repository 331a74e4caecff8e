"""The columns and notes with which tables show leaderboards and rankings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from evalcube.stages.analyze.formulas.estimators import PLAIN
from evalcube.stages.analyze.labelled.axes import count_text, plain
from evalcube.stages.analyze.labelled.columns import COLUMNS, BoardColumn
from evalcube.stages.analyze.labelled.ranking import RankedRow, Ranking
from evalcube.stages.analyze.labelled.remarks import CUT, ReaderGap, label_rows
from evalcube.stages.analyze.labelled.results import Composite, Leaderboard, Row, TierEstimate
from evalcube.stages.analyze.render.table import Column, TableSpec
from evalcube.stages.analyze.render.table_specs import (
    INCOMPLETE,
    point_span,
    points,
    share_done,
    shares,
    span,
)
from evalcube.stages.analyze.render.text import ABSENT, number, percent, shorten, significant
from evalcube.stages.analyze.verdict.composite import LAYERS


def leaderboard_spec(board: Leaderboard) -> TableSpec:
    """Rank, label and what there is to show of every evaluation; partly measured ones carry ``*`` and are faint."""
    labels = dict(zip(map(id, board.rows), label_rows(board.rows), strict=True))
    unfinished = any(row.partial for row in board.rows)
    refused = any(row.refused > 0 for row in board.rows)
    shared = [item for item in COLUMNS if item.is_plain(board) and (refused or item.head != "refused")]
    # What the rows are in the order of is never left out, nor how often models were cut off.
    essential = {board.sort, *(["truncated"] if any(row.truncated > CUT for row in board.rows) else [])}
    columns = [
        Column("#", places),
        Column("model", lambda row: labels[id(row)], right=False, name=True),
        *(_score_columns(board) if board.lead == "score" else _rate_columns(board)),
        *_composite_columns(board),
        *_gap_columns(board),
        *([Column("done", lambda row: share_done(row.trials, row.planned), 3)] if unfinished else []),
        *(Column(item.head, partial(value_text, item), item.gives_way) for item in shared),
    ]
    columns = [replace(column, gives_way=0) if column.head in essential else column for column in columns]
    notes, explains = (*board.notes, *board.remarks), {}
    if any(item.head == "v1" for item in shared) and board.ceiling_text not in ("", *notes):
        notes, explains = (*notes, board.ceiling_text), {board.ceiling_text: "v1"}
    return TableSpec(tuple(columns), board.rows, notes, lambda row: row.marked, explains).without_empty()


def places(row: Row) -> str:
    """The row's rank, or the ranks that it may have where these are open."""
    if row.rank is None:
        return ABSENT
    return str(row.rank) if math.isnan(row.rank_interval.lower) else span(row.rank_interval)


_FORMS = dict[str, Callable[[float], str]](number=number, percent=percent, money=significant)


def value_text(column: BoardColumn, row: Row) -> str:
    """Return what a column shows of a row."""
    return _FORMS[str(column.form)](column.value(row))


def _score_columns(board: Leaderboard) -> list[Column]:
    """Score with its interval and tiers, and beside it what was right; a guesser's score beside upper bounds."""
    guesser = Column("guesser", lambda row: number(row.guesser), 1)
    return [
        Column("score", lambda row: number(row.score.value) + (INCOMPLETE if row.marked else "")),
        Column(_level(board), lambda row: span(row.score), 1, of="score"),
        *([guesser] if board.version == "v1" else []),
        Column("score/token", lambda row: significant(row.score_per_token.value), 2),
        *_tier_columns(board, lambda tier: number(tier.score.value)),
        Column("accuracy", lambda row: percent(row.accuracy.value), 3),
        *([] if board.mode == PLAIN else [Column(board.mode, lambda row: percent(row.rate.value), 5)]),
    ]


def _rate_columns(board: Leaderboard) -> list[Column]:
    """Where trials are too few for a score: what was right, with and without guesses; the latter orders the board."""
    level = _level(board)
    plain_too = [
        Column("accuracy", lambda row: percent(row.accuracy.value), 2),
        Column(level, lambda row: shares(row.accuracy.lower, row.accuracy.upper), 5, of="accuracy"),
    ]
    return [
        *([] if board.mode == PLAIN else plain_too),
        Column(board.rate_name, lambda row: percent(row.rate.value) + (INCOMPLETE if row.marked else "")),
        Column(level, lambda row: shares(row.rate.lower, row.rate.upper), 1, of=board.rate_name),
        Column("right/1k tok", lambda row: significant(row.correct_per_1000_tokens.value), 2),
        *_tier_columns(board, lambda tier: percent(tier.rate.value)),
    ]


def _composite_columns(board: Leaderboard) -> list[Column]:
    """The composite with the layers behind it and its interval, and the layers, where outputs have some."""
    if not any(row.composite is not None for row in board.rows):
        return []

    def cell(shown: Callable[[Composite], str]) -> Callable[[Row], str]:
        return lambda row: ABSENT if row.composite is None else shown(row.composite)

    def mean(name: str) -> Callable[[Row], str]:
        return cell(lambda composite: number(composite.layers.get(name, math.nan), 2))

    return [
        Column("composite", cell(lambda composite: composite.shown), 2),
        Column(_level(board), cell(lambda composite: span(composite.score, 2)), 4, of="composite"),
        *(Column(name, mean(name), 6) for name in LAYERS),
    ]


def _gap_columns(board: Leaderboard) -> list[Column]:
    """Return the columns of a second reader: its accuracy, and the gap to ours with its interval."""
    if not any(row.gap is not None for row in board.rows):
        return []

    def cell(shown: Callable[[ReaderGap], str]) -> Callable[[Row], str]:
        return lambda row: ABSENT if row.gap is None else shown(row.gap)

    return [
        Column("theirs", cell(lambda gap: percent(gap.theirs)), 1),
        Column("gap", cell(lambda gap: points(gap.difference.value)), 1),
        Column(_level(board), cell(lambda gap: point_span(gap.difference)), 1, of="gap"),
    ]


def _tier_columns(board: Leaderboard, shown: Callable[[TierEstimate], str]) -> list[Column]:
    def cell(index: int) -> Callable[[Row], str]:
        return lambda row: shown(row.tiers[index]) + (INCOMPLETE if row.tiers[index].incomplete else "")

    columns = [Column(plain(tier), cell(index), 4) for index, tier in enumerate(board.tiers)]
    return columns if len(columns) > 1 else []


def _level(board: Leaderboard) -> str:
    return f"{100 * board.confidence:g}%"


def leading_text(board: Leaderboard, row: Row) -> tuple[str, str]:
    """Return the value that a row is ranked by, and its interval."""
    lead = board.leading(row)
    if board.lead == "score":
        return number(lead.value), span(lead)
    return percent(lead.value), shares(lead.lower, lead.upper)


_RATING = (
    "Ratings add up to 1: {:.3f} each, if all models were equal. Each model is given one tie with an "
    "average opponent, which keeps ratings finite."
)

MOST_MET = 12
"""Evaluations up to which a table says of each two which one wins."""


def matrix_spec(standing: Ranking) -> TableSpec | None:
    """The chance of each evaluation to be better than each other one; None of two, where `wins` says it, or of many."""
    if not 2 < len(standing.rows) <= MOST_MET:
        return None
    lines = {id(item): line for item, line in zip(standing.rows, standing.rates, strict=True)}

    def cell(index: int) -> Callable[[RankedRow], str]:
        return lambda item: ABSENT if item is standing.rows[index] else percent(lines[id(item)][index], 0)

    columns = [Column(f"> {shorten(row.label, 16)}", cell(index)) for index, row in enumerate(standing.rows)]
    note = (
        "> NAME: chance that the row's model is truly better than NAME, mean over tasks; they add up to wins."
    )
    names = Column("model", lambda item: item.label, right=False, name=True)
    return TableSpec((names, *columns), standing.rows, (note,))


def ranking_spec(standings: Ranking, board: Leaderboard) -> TableSpec:
    """Every evaluation with its place among the others."""
    columns = [
        Column("#", lambda item: places(item.row)),
        Column("model", lambda item: item.label, right=False, name=True),
        Column(board.heads[0], lambda item: leading_text(board, item.row)[0] + INCOMPLETE * item.row.marked),
        Column(_level(board), lambda item: leading_text(board, item.row)[1], 3),
        *([Column("guesser", lambda item: number(item.row.guesser), 3)] if board.version == "v1" else []),
        Column(board.heads[1], lambda item: significant(board.by_token(item.row).value), 1),
        Column("mean rank", lambda item: number(item.row.rank_interval.value, 1), 2),
        Column("groups", lambda item: item.letters or ABSENT),
        Column("wins", lambda item: number(item.wins, 2), 1),
        Column("rating", lambda item: number(item.rating, 3), 2),
    ]
    ranked = sum(item.row.rank is not None for item in standings.rows)
    notes = (
        "groups: models that share a letter may be equally good. mean rank: mean over random draws of the scores.",
        f"wins: expected number of wins against {count_text(max(ranked - 1, 0), 'other ranked model')}.",
        "rating: a model rated a beats one rated b with chance a/(a + b). "
        + _RATING.format(1 / max(ranked, 1)),
        *board.notes,
        *board.places_text,
    )
    explains = {notes[1]: "wins", notes[2]: "rating"}
    return TableSpec(tuple(columns), standings.rows, notes, lambda item: item.row.marked, explains)
