"""The rows of a leaderboard, as frozen values and as stable JSON data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, SupportsFloat

from evalcube import known_as
from evalcube.stages.analyze.formulas.estimators import PLAIN, Mode
from evalcube.stages.analyze.labelled.axes import Facet
from evalcube.stages.analyze.labelled.remarks import ReaderGap, notes_of, remarks_of

SCHEMA = "evalcube.leaderboard"
SCHEMA_VERSION = 3
"""Raised when a field of `Leaderboard.to_dict` changes its meaning or goes; new fields do not raise it."""


LACKING = 0.01
"""Share of planned trials without a result above which an evaluation is not shown like a finished one."""

BEHIND = 0.5
"""An evaluation that has less than this share of what the furthest one has done is taken for begun, not measured."""

SCALE = 1000
"""The score's upper end."""


@known_as("evalcube.results")
@dataclass(frozen=True)
class Estimate:
    """A value with its interval; NaN where undefined."""

    value: float
    lower: float
    upper: float

    @classmethod
    def of(cls, parts: Iterable[SupportsFloat]) -> Estimate:
        """An estimate of a value and both bounds."""
        return cls(*map(float, parts))

    def scaled(self, factor: float) -> Estimate:
        """The same in other units."""
        return Estimate(factor * self.value, factor * self.lower, factor * self.upper)


@dataclass(frozen=True)
class TierEstimate:
    """Score of one model in one tier, with what it rests on."""

    tier: str
    score: Estimate
    """ReasonScore, 10 to 1000, with its interval."""
    rate: Estimate
    """The board's `mode`, mean over the tasks of the tier."""
    tasks_present: int
    tasks_expected: int
    cells_present: int
    """Points of the tier with at least one finished trial."""
    cells_expected: int
    """Points of the tier at which the evaluation is to be measured."""
    tokens: float
    """Completion tokens per finished trial of the tier."""

    @property
    def incomplete(self) -> bool:
        """True if a task or a point that belongs to the tier has no finished trial."""
        return self.tasks_present < self.tasks_expected or self.cells_present < self.cells_expected


@dataclass(frozen=True)
class Composite:
    """What the layers of an evaluation's outputs come to, from 1 to 5."""

    score: Estimate
    """Weighted mean of the layers, mean over the questions."""
    shown: str
    """The score with the layers behind it, such as "4.33 (3/3)": others behind it are another measurement."""
    layers: Mapping[str, float]
    """Mean of each layer that was measured."""
    gate_passed: bool
    """Whether each of these reaches the threshold of 3.5."""
    units: int
    """Questions with a composite."""
    rated: int = 0
    """Ratings by people that have corrected it; 0 where none have."""


@dataclass(frozen=True)
class Row:
    """One evaluation (model × template × sampler) on the leaderboard."""

    rank: int | None
    """From 1, by what leads the board; None without a score, and before every point has a trial."""
    model_name: str
    template: str
    sampler: str
    eval_id: str
    facets: Mapping[str, Facet]
    score: Estimate
    """Mean of the tier scores present, with its interval."""
    tiers: tuple[TierEstimate, ...]
    score_per_token: Estimate
    correct_per_1000_tokens: Estimate
    """Accuracy by 1000 completion tokens: over `tokens_per_trial`."""
    score_v1: float
    """ReasonScore of upper bounds, as the reference defines it: 1000 for a model that is always right, at any size."""
    accuracy: Estimate
    """Plain share of right answers in the finished trials, mean over the tasks."""
    pooled: float
    """The same of all these trials together, whatever their task."""
    rate: Estimate
    """The board's `mode`, mean over the tasks: by default C_P, the share of right answers with guesses taken out."""
    guesser: float
    """Version 1 score that guessing alone would reach with as many trials; NaN for other scores."""
    tokens_per_trial: float
    """Completion tokens per finished trial: mean over the tiers of their tasks' means."""
    truncated: float
    """Share of finished trials that were truncated."""
    max_tokens: int | None
    """The limit of completion tokens that the evaluation asked for; None if it is not known."""
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
    """Mean rank over the draws of what leads the board, and the ranks that the interval covers; NaN without a score."""
    revision: str = ""
    """What tells the model from others that answer to the same name."""
    others: str = ""
    """Which of the points that rows are ranked on it was not asked, in words; it has no rank then."""
    behind: bool = False
    """True if it is far behind the others, by `BEHIND`: it has no rank then, and what leads does not go by it."""
    thin: int = 0
    """Points with less than half of the trials that the first plan gave them; it has no rank then."""
    bounds: tuple[float, float] | None = None
    """Accuracy with all lost trials wrong and with all right, if more than 5% of a point's were lost."""
    composite: Composite | None = None
    """Of its outputs' layers; None where outputs have none."""
    gap: ReaderGap | None = None
    """Between evalcube's reading of its replies and a second reader's; None where there is none."""

    @property
    def incomplete(self) -> bool:
        """True if any tier lacks a task or a point: it is not ranked."""
        return any(tier.incomplete for tier in self.tiers)

    @property
    def planned(self) -> int:
        """Trials that were asked for, or are to be."""
        return self.trials + self.transport + self.missing

    @property
    def done(self) -> float:
        """Share of these that have a result; NaN without any."""
        return self.trials / self.planned if self.planned else math.nan

    @property
    def partial(self) -> bool:
        """True if it is incomplete, or more than `LACKING` of its planned trials have no result."""
        return self.incomplete or self.planned - self.trials > LACKING * self.planned

    @property
    def unranked(self) -> bool:
        """True if it has no place among the others: incomplete, without points they have, behind, or thin."""
        return self.incomplete or bool(self.others) or self.behind or self.thin > 0

    @property
    def marked(self) -> bool:
        """True if its figures are not to be taken for those of a finished evaluation that was asked what most were."""
        return self.partial or self.unranked


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
    """Of the ReasonScore: "auto" scores what the rates may be, "v1" upper bounds, "v2" point values of C_P."""
    lead: str
    """What rows are ordered by: "score", or "rate" where there are too few trials for an honest score."""
    size: float
    """Fewest trials of a task in a tier that any row rests on, at their effective number; NaN without any."""
    enough: int
    """Trials of each task and tier from which the score leads."""
    mode: Mode
    """Estimator of the rows' rate, see `evalcube.stages.analyze.formulas.estimators`."""
    uneven: bool
    """True if points differ in their numbers of trials."""
    weighed: str
    """"base" if points that were asked more often than the first plan says are weighed as there; else empty."""
    repeats: int
    """How often each question was to be asked, at most."""
    clustered: bool
    """True if intervals go by question, as answers to one question are alike."""
    selection: str
    """Which part of the cube this is, in words; empty for all of it."""
    ceiling: float = 1000.0
    """Score of a model that is always right, with as many trials as there are."""
    sort: str = ""
    """Column that the rows are in the order of; empty for what leads the board."""
    cautions: tuple[str, ...] = ()
    """What its points are short of and how they weigh, a sentence each."""
    data_sets: bool = False
    """Whether all questions are of data sets, which have no difficulty to be scored by: accuracy leads then."""
    layer_weights: Mapping[str, float] = field(default_factory=dict)
    """Weights of the layers in the composites, as the config has them; empty where all are the same."""
    readers: Mapping[str, str] = field(default_factory=dict)
    """Names of second readers, by task."""

    @property
    def worth(self) -> bool:
        """Whether `size` may be below the trials asked: answers to a question are alike, or points weigh."""
        return (self.clustered and self.repeats > 1) or bool(self.weighed)

    @property
    def incomplete(self) -> tuple[Row, ...]:
        """Rows that do not rest on all tasks and points."""
        return tuple(row for row in self.rows if row.incomplete)

    def leading(self, row: Row) -> Estimate:
        """What the row is ranked by."""
        return row.score if self.lead == "score" else row.rate

    @property
    def heads(self) -> tuple[str, str]:
        """What the columns are called that `leading` and `by_token` are shown in."""
        return ("score", "score/token") if self.lead == "score" else (self.rate_name, "right/1k tok")

    @property
    def rate_name(self) -> str:
        """What the column of `mode` is called."""
        return "accuracy" if self.mode == PLAIN else self.mode

    def by_token(self, row: Row) -> Estimate:
        """What a token of the row brings: of the score, or where that does not lead of right answers."""
        return row.score_per_token if self.lead == "score" else row.correct_per_1000_tokens

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know before comparing rows, a sentence each; empty if nothing."""
        return tuple(notes_of(self))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What explains the rows without casting doubt on them, a sentence each; empty if nothing."""
        return tuple(remarks_of(self))

    @property
    def places_text(self) -> tuple[str, ...]:
        """What several places of one row mean, where a row has them."""
        spans = [row.rank_interval for row in self.rows if row.rank is not None]
        for ends in (f"{span.lower:.0f}–{span.upper:.0f}" for span in spans if span.lower < span.upper):
            return (f"Rank {ends}: too close to call ({100 * self.confidence:g}% rank interval).",)
        return ()

    @property
    def ceiling_text(self) -> str:
        """What a model that is always right scores, where that is not 1000; empty where it is."""
        if not self.ceiling < SCALE - 0.5:  # nor where there is none
            return ""
        return (
            f"With this many trials, a model that is always right scores {self.ceiling:.0f}: the score is a posterior "
            f"median. v1, from upper bounds, gives it {SCALE:,} with any number."
        )

    def to_dict(self) -> dict[str, object]:
        """Plain JSON data with fixed keys in a fixed order; NaN becomes None.

        Returns
        -------
        ``schema`` ("evalcube.leaderboard") and ``schema_version`` name the form. ``rows`` holds one object
        per evaluation with the fields of `Row` and ``incomplete``; an estimate is {value, lower, upper}.
        """
        head = {"schema": SCHEMA, "schema_version": SCHEMA_VERSION}
        body = {item.name: _plain(getattr(self, item.name)) for item in fields(self) if item.name != "rows"}
        return {**head, **body, "notes": [*self.notes, *self.remarks], "rows": self.records()}

    def records(self) -> list[dict[str, object]]:
        """The ``rows`` of `to_dict`."""
        shown = ("planned", "partial", "incomplete")
        return [_plain_fields(row) | {name: getattr(row, name) for name in shown} for row in self.rows]


def _plain(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in sorted(value.items())}
    if is_dataclass(value):
        data = _plain_fields(value)
        return {**data, "incomplete": value.incomplete} if isinstance(value, TierEstimate) else data
    return value


def _plain_fields(value: Any) -> dict[str, object]:  # noqa: ANN401 - of a dataclass
    return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
