"""Where each evaluation stands among the others: clusters of equals, chances to win, ratings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from string import ascii_uppercase

import numpy as np

from evalcube._arrays import Dataset
from evalcube.stages.analyze.formulas.compare.ranks import overlap_clusters
from evalcube.stages.analyze.formulas.compare.winrates import bradley_terry, expected_wins, win_rates
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.formulas.stratified import effective_trials
from evalcube.stages.analyze.labelled import counters
from evalcube.stages.analyze.labelled.clustering import question_effects, questions_once
from evalcube.stages.analyze.labelled.leaderboard import row_order
from evalcube.stages.analyze.labelled.points import common_part
from evalcube.stages.analyze.labelled.remarks import label_rows
from evalcube.stages.analyze.labelled.results import Estimate, Leaderboard, Row

SCHEMA = "evalcube.ranking"
SCHEMA_VERSION = 4

_SHOWN = (
    *("model_name", "template", "sampler", "eval_id", "rank", "score", "accuracy", "rate", "rank_interval"),
    *("incomplete", "partial"),
)
PRIOR = 1.0
"""Drawn games that each model is taken to have played, so that a model that won all its games has a rating."""


@dataclass(frozen=True)
class RankedRow:
    """One evaluation among the others."""

    row: Row
    label: str
    clusters: tuple[int, ...]
    """Numbers of its clusters, 0 the best; empty without a rank."""
    wins: float
    """Wins to be expected if it met each other ranked evaluation once; NaN without a rank or common tasks."""
    rating: float
    """Bradley–Terry: r/(r + other r) is the chance to be the better one in a task; ratings of ranked ones sum to 1."""

    @property
    def letters(self) -> str:
        """A letter for each cluster, best first."""
        return "".join(map(cluster_name, self.clusters))


@dataclass(frozen=True)
class Ranking:
    """All evaluations in the order of the leaderboard."""

    rows: tuple[RankedRow, ...]
    clusters: tuple[tuple[int, ...], ...]
    """Indices of rows whose rank intervals overlap, best cluster first."""
    rates: Floats
    """Shape (row, row): the chance that the row is truly better than the column, averaged over tasks."""

    def to_dict(self, board: Leaderboard) -> dict[str, object]:
        """Plain JSON values."""
        rows = [
            {name: asdict(v) if isinstance(v := getattr(item.row, name), Estimate) else v for name in _SHOWN}
            | {"clusters": list(item.clusters), "expected_wins": item.wins, "rating": item.rating}
            for item in self.rows
        ]
        return {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            **{name: getattr(board, name) for name in ("version", "lead", "mode", "confidence")},
            "prior": PRIOR,
            "selection": board.selection,
            "notes": list(board.notes),
            "clusters": [list(members) for members in self.clusters],
            "win_rates": self.rates.tolist(),
            "rows": rows,
        }


def rank_rows(ds: Dataset, board: Leaderboard) -> Ranking:
    """The rows of a leaderboard, compared with each other.

    Wins are chances that one evaluation's success rate in a task is above another's, a truncated trial being a
    failure and guesses taken out, averaged over the tasks of both. The noise of guessing is part of it.
    """
    order = row_order(ds, board)
    # Who was asked other questions has no place among the others, and wins nothing from them.
    ranked = np.array([row.rank is not None for row in board.rows], dtype=bool)
    clusters = rank_groups(board)
    ds = questions_once(ds)
    part = common_part(ds.assign(counters=counters.counter_cells(ds).compute()))[0]
    rates = win_rates(*_successes(part, order)).rates
    rates[~ranked], rates[:, ~ranked] = np.nan, np.nan
    wins, ratings = expected_wins(rates), _ratings(rates)
    rows = tuple(
        RankedRow(row, label, numbers, float(wins[index]), float(ratings[index]))
        for index, (row, label, numbers) in enumerate(
            zip(board.rows, label_rows(board.rows), numbers_of(clusters, len(board.rows)), strict=True)
        )
    )
    return Ranking(rows, clusters, rates)


def rank_groups(board: Leaderboard) -> tuple[tuple[int, ...], ...]:
    """Indices of rows whose rank intervals overlap, the best first: who shares a group may stand at one place."""
    ends = np.full((len(board.rows), 2), np.nan)
    for index, row in enumerate(board.rows):
        if row.rank is not None:
            ends[index] = row.rank_interval.lower, row.rank_interval.upper
    return tuple(overlap_clusters(ends[:, 0], ends[:, 1]))


def numbers_of(clusters: Sequence[Sequence[int]], rows: int) -> list[tuple[int, ...]]:
    """The numbers of the clusters that each row is in."""
    numbers: list[list[int]] = [[] for _ in range(rows)]
    for number, members in enumerate(clusters):
        for row in members:
            numbers[row].append(number)
    return list(map(tuple, numbers))


def cluster_name(number: int) -> str:
    """A letter, or letters, for a cluster.

    Examples
    --------
    >>> cluster_name(0), cluster_name(26)
    ('A', 'A2')
    """
    turn, letter = divmod(number, len(ascii_uppercase))
    return ascii_uppercase[letter] + (str(turn + 1) if turn else "")


def _successes(ds: Dataset, order: Sequence[int]) -> tuple[Floats, Floats]:
    """Right answers and trials of each row and task, guesses among them, as many as independent ones are worth.

    Where the chance to guess is the same for all, the higher rate with guesses is the higher one without, and its
    noise is that of guessing too; where lost trials made chances differ, each is put on their mean.
    """
    ranked = np.asarray(counters.members(ds).any(axis=0))
    moments = counters.task_moments(ds, ranked, "C_P", question_effects(ds))
    rate, trials, chance = effective_trials(moments[list(order)])
    defined = ~np.isnan(chance)
    usual = np.where(defined, chance, 0.0).sum(axis=0) / np.maximum(defined.sum(axis=0), 1)
    return (usual + (1.0 - usual) * (rate - chance) / (1.0 - chance)) * trials, trials


def _ratings(rates: Floats) -> Floats:
    """Ratings of the evaluations that met another one; NaN for the others."""
    blank = rates.copy()
    np.fill_diagonal(blank, np.nan)
    met = np.flatnonzero(~np.isnan(blank).all(axis=1))
    ratings = np.full(len(rates), np.nan)
    if len(met) > 1:
        ratings[met] = bradley_terry(rates[np.ix_(met, met)], prior=PRIOR)
    return ratings
