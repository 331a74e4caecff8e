"""What a leaderboard says, as plain frozen values and as stable JSON data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields

from stages.analyze.formulas.estimators import Mode
from stages.analyze.labelled.axes import Facet

SCHEMA = "evalcube.leaderboard"
SCHEMA_VERSION = 1
"""Raised when a field of `Leaderboard.to_dict` changes its meaning or goes; new fields do not raise it."""


@dataclass(frozen=True)
class Estimate:
    """A value with its interval; NaN where undefined."""

    value: float
    lower: float
    upper: float


@dataclass(frozen=True)
class TierEstimate:
    """Score of one model in one tier, with what it rests on."""

    tier: str
    score: Estimate
    """ReasonScore, 10 to 1000, with its bootstrap interval."""
    tasks_present: int
    tasks_expected: int
    cells_present: int
    """Points of the tier with at least one finished trial."""
    cells_expected: int
    tokens: float
    """Completion tokens per finished trial of the tier."""

    @property
    def incomplete(self) -> bool:
        """True if a task or a point that belongs to the tier has no finished trial."""
        return self.tasks_present < self.tasks_expected or self.cells_present < self.cells_expected


@dataclass(frozen=True)
class Row:
    """One evaluation (model × template × sampler) on the leaderboard."""

    rank: int | None
    """From 1; None without a score."""
    model_name: str
    template: str
    sampler: str
    eval_id: str
    facets: Mapping[str, Facet]
    score: Estimate
    """Mean of the tier scores present, with its bootstrap interval."""
    tiers: tuple[TierEstimate, ...]
    score_per_token: Estimate
    accuracy: Estimate
    """The board's `mode`, pooled over all points, with its bounds: guess-corrected over completed trials by default."""
    tokens_per_trial: float
    """Completion tokens per finished trial."""
    truncated: float
    """Share of finished trials that were truncated."""
    invalid: float
    """Share of finished trials without a parsable answer."""
    refused: float
    """Share of finished trials that were refused or filtered."""
    trials: int
    """Finished trials."""
    transport: int
    """Trials without a reply after the last retry; not counted as trials."""
    missing: int
    """Planned trials that have not run."""
    cost: float
    """USD of all finished trials; NaN if no price is known."""
    cost_per_1000: float
    """USD per 1000 finished trials."""
    unique: float
    """Share of finished trials whose question is new in its cell; NaN if that is not known."""
    rank_interval: Estimate
    """Mean rank over the bootstrap's draws, and the ranks that the interval covers; NaN without a score."""

    @property
    def incomplete(self) -> bool:
        """True if any tier lacks a task or a point."""
        return any(tier.incomplete for tier in self.tiers)


@dataclass(frozen=True)
class Leaderboard:
    """Rows in order of score, best first, with how they were computed."""

    rows: tuple[Row, ...]
    tiers: tuple[str, ...]
    tasks: tuple[str, ...]
    basis: str
    """Denominator of the score: "completed" or "all" trials."""
    confidence: float
    """Level of every interval."""
    draws: int
    """Bootstrap draws."""
    seed: int
    """Seed of the bootstrap."""
    version: str
    """Of the ReasonScore: "v1" scores upper bounds, "v2" point values of C_P."""
    mode: Mode
    """Estimator of the rows' accuracy, see `stages.analyze.formulas.estimators`."""
    uneven: bool
    """True if points differ in their numbers of trials: sums weigh trials alike, not points."""
    repeats: int
    """How often each question was to be asked, at most."""
    selection: str
    """Which part of the cube this is, in words; empty for all of it."""

    @property
    def incomplete(self) -> tuple[Row, ...]:
        """Rows that do not rest on all tasks and points."""
        return tuple(row for row in self.rows if row.incomplete)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know before comparing rows, a sentence each; empty if nothing."""
        return tuple(_notes(self))

    def to_dict(self) -> dict[str, object]:
        """Plain JSON data with fixed keys in a fixed order; NaN becomes None.

        Returns
        -------
        ``schema`` ("evalcube.leaderboard") and ``schema_version`` name the form. ``rows`` holds one object
        per evaluation with the fields of `Row` and ``incomplete``; an estimate is {value, lower, upper}.
        """
        head = {"schema": SCHEMA, "schema_version": SCHEMA_VERSION}
        body = {item.name: _plain(getattr(self, item.name)) for item in fields(self) if item.name != "rows"}
        return {**head, **body, "notes": list(self.notes), "rows": [_plain(row) for row in self.rows]}


def _plain(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in sorted(value.items())}
    if isinstance(value, Estimate | TierEstimate | Row):
        data = {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
        return data if isinstance(value, Estimate) else {**data, "incomplete": value.incomplete}
    return value


def _notes(board: Leaderboard) -> list[str]:
    notes = [f"Part of the cube ({board.selection})."] if board.selection else []
    short = len(board.incomplete)
    if short:
        notes.append(
            f"Incomplete evaluations (*): {short} of {len(board.rows)}. Tasks or points are missing: the "
            "scores rest on other questions than those of complete rows and are not comparable with them."
        )
    missing = sum(row.missing for row in board.rows)
    if missing:
        notes.append(f"Planned trials that have not run: {missing:,}. Scores rest on the trials that have.")
    transport = sum(row.transport for row in board.rows)
    if transport:
        notes.append(
            f"Trials without a reply after the last retry: {transport:,}. They count neither as right nor as "
            "wrong; the next run tries them again."
        )
    if board.uneven:
        notes.append(
            "Points differ in their numbers of trials. Figures are pooled: a point with more trials weighs more "
            "(`evalcube table --pooling stratified` weighs points alike)."
        )
    if board.repeats > 1:
        notes.append(
            f"Questions were asked up to {board.repeats} times. Intervals here take answers as independent; they are "
            "too narrow where answers to one question are alike (`evalcube compare` goes by question)."
        )
    return notes
