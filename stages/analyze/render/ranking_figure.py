"""The figure of a report's ranking: what leads each row with its interval and its tiers, on one axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evalcube.stages.analyze.labelled.axes import plain
from evalcube.stages.analyze.labelled.results import Estimate, Leaderboard
from evalcube.stages.analyze.render import charts as figures


@dataclass(frozen=True)
class Track:
    """One row of the ranking figure; positions in per cent."""

    dot: float | None
    """None without a value."""
    left: float
    """Where the interval begins."""
    width: float
    pins: tuple[figures.Pin, ...]
    """Of the tiers."""


def tracks(board: Leaderboard) -> tuple[figures.Axis, list[Track]]:
    """The axis, and a track for each row of the board."""
    by_score = board.lead == "score"
    found = [(board.leading(row), [t.score if by_score else t.rate for t in row.tiers]) for row in board.rows]
    scaled = [(_scaled(lead, by_score), [_scaled(tier, by_score) for tier in tiers]) for lead, tiers in found]
    every = [
        value
        for lead, tiers in scaled
        for one in (lead, *tiers)
        for value in (one.value, one.lower, one.upper)
    ]
    axis = figures.axis_around([0.0, *every])
    return axis, [_track(lead, tiers, axis, initials(board.tiers)) for lead, tiers in scaled]


def _scaled(estimate: Estimate, by_score: bool) -> Estimate:
    """A score as it is, a rate in per cent."""
    if by_score:
        return estimate
    return Estimate(100 * estimate.value, 100 * estimate.lower, 100 * estimate.upper)


def _track(lead: Estimate, tiers: Sequence[Estimate], axis: figures.Axis, names: Sequence[str]) -> Track:
    if math.isnan(lead.value):
        return Track(None, 0.0, 0.0, ())
    left, right = axis.at(lead.lower), axis.at(lead.upper)
    marks = [
        (axis.at(tier.value), name)
        for tier, name in zip(tiers, names, strict=True)
        if not math.isnan(tier.value) and len(names) > 1
    ]
    return Track(axis.at(lead.value), left, round(right - left, 2), figures.pins(marks))


def initials(tiers: Sequence[str]) -> list[str]:
    """A letter per tier, or its number where first letters are not unique."""
    letters = [plain(tier)[:1].upper() for tier in tiers]
    return letters if len(set(letters)) == len(letters) else [str(place + 1) for place in range(len(tiers))]
