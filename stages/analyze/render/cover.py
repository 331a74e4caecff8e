"""The summary at the top of a report: what was measured, how sure it is, and what to distrust."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evalcube.stages.analyze.labelled.axes import count_text, plain
from evalcube.stages.analyze.labelled.ranking import Ranking
from evalcube.stages.analyze.labelled.remarks import first_few
from evalcube.stages.analyze.labelled.results import Leaderboard, Row
from evalcube.stages.analyze.render.text import number, percent

MANY = 0.05
"""Share of replies that are invalid or refused above which a report says so before all else."""


@dataclass(frozen=True)
class Cover:
    """Sentences for a reader who reads nothing else."""

    measured: tuple[str, ...]
    sure: tuple[str, ...]
    doubts: tuple[str, ...]
    """Empty if nothing of what is looked for was found."""


def cover(
    board: Leaderboard, labels: Sequence[str], standings: Ranking | None, warnings: Sequence[str] = ()
) -> Cover:
    """Return the summary at the top of a report."""
    doubts = (*_doubts(board, labels), *map(plain, warnings))
    return Cover(tuple(_measured_lines(board)), tuple(_sure(board, standings)), doubts)


def _measured_lines(board: Leaderboard) -> list[str]:
    trials, planned = (sum(getattr(row, name) for row in board.rows) for name in ("trials", "planned"))
    tasks = count_text(len(board.tasks), "task")
    sentences = [
        f"{count_text(len(board.rows), 'evaluation')} on {tasks}, {_points(board)}.",
        f"{trials:,} finished trials" + (f" of {planned:,} planned." if planned > trials else "."),
    ]
    if board.repeats > 1:
        sentences.append(f"Each question was asked up to {board.repeats} times.")
    return sentences


def _points(board: Leaderboard) -> str:
    """How many points there are, tier by tier: one may be in several."""
    most = [
        max((row.tiers[index].cells_expected for row in board.rows), default=0)
        for index in range(len(board.tiers))
    ]
    first = count_text(most[0], "point") if most else "no points"
    if len(most) < 2:
        return first
    harder = [f"{count} in {plain(tier)}" for count, tier in zip(most[1:], board.tiers[1:], strict=True)]
    return ", ".join([f"{first} in tier {plain(board.tiers[0])}", *harder])


def _sure(board: Leaderboard, standings: Ranking | None) -> list[str]:
    sentences = []
    ends = [board.leading(row) for row in board.rows]
    halves = [(lead.upper - lead.lower) / 2 for lead in ends if not math.isnan(lead.lower)]
    level = f"median {100 * board.confidence:g}% interval"
    if halves and board.lead == "score":
        sentences.append(f"The {level} of the score is ±\u00a0{number(float(np.median(halves)))} of 1000.")
    elif halves:
        middle = 100 * float(np.median(halves))
        sentences.append(f"The {level} of {board.rate_name} is ±\u00a0{middle:.1f} percentage points.")
    if not math.isnan(board.size):
        each = "Of ranked models, each" if any(row.incomplete or row.behind for row in board.rows) else "Each"
        size = number(board.size)
        basis = f"trials worth at least {size} independent ones" if board.worth else f"at least {size} trials"
        sentences.append(f"{each} task has {basis} in each tier.")
    ranked = sum(row.rank is not None for row in board.rows)
    if standings is not None and len(standings.clusters) == 1 and ranked > 1:
        sentences.append("All intervals overlap: they alone do not separate any two models.")
    elif standings is not None and len(standings.clusters) > 1:
        sentences.append(f"Intervals separate {len(standings.clusters)} groups of models.")
    if board.clustered and board.repeats > 1:
        sentences.append("Intervals count the answers to one question as one.")
    return sentences


def _doubts(board: Leaderboard, labels: Sequence[str]) -> list[str]:
    doubts = [note for note in board.notes if not note.startswith("Part of the cube")]
    if board.lead == "score" and board.version != "auto" and board.size < board.enough:
        doubts.append(
            f"Few trials: a score needs about {board.enough} in each task and tier; some have only "
            f"{number(board.size)}."
        )
    named = list(zip(board.rows, labels, strict=True))
    doubts += _shares(named, "invalid", "replies without a readable answer, which count as wrong")
    doubts += _shares(named, "refused", "refused, which counts as wrong")
    repeated = [row.unique for row in board.rows if row.unique < 1]
    if repeated:
        doubts.append(
            f"Some generated questions are duplicates (up to {percent(1 - min(repeated), 0)} of an evaluation's); "
            "intervals are slightly too narrow. Use `evalcube report CUBE --unique-only`."
        )
    whole = [row.trials for row in board.rows if row.rank is not None and row.trials]
    if whole and max(whole) > 1.5 * min(whole):
        doubts.append(
            f"Unequal sampling: ranked evaluations have from {min(whole):,} to {max(whole):,} trials each; with fewer "
            "trials, intervals are wider."
        )
    return doubts


def _shares(named: Sequence[tuple[Row, str]], name: str, words: str) -> list[str]:
    """Name the evaluations with a high share of an outcome, the worst first."""
    shares = ((getattr(row, name), label) for row, label in named)
    many = sorted((pair for pair in shares if pair[0] > MANY), reverse=True)
    if not many:
        return []
    shown = first_few([f"{label} {percent(share, 0)}" for share, label in many], ", ", " ")
    return [f"{shown}: {words}."]
