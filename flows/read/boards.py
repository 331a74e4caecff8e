"""Leaderboards of a cube: one of all, or one for each value of a coordinate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from evalcube.flows.cube_like import CubeLike
from evalcube.flows.errors import refused
from evalcube.flows.plan.filters import checked_names
from evalcube.flows.read.results import LeaderboardResult
from evalcube.flows.read.selection import Part
from evalcube.flows.read.statistics import leaderboard_of, rated_part
from evalcube.stages.analyze.labelled import axes
from evalcube.stages.analyze.labelled.selection import keys, restrict


def boards(
    cube: CubeLike,
    by: str | None,
    part: Part | None = None,
    *,
    gold: str | Path | None = None,
    **options: Any,  # noqa: ANN401 - handed on
) -> tuple[tuple[str, ...], dict[str, LeaderboardResult]]:
    """Warnings, and a leaderboard for each value of a coordinate of evaluations or cells.

    Parameters
    ----------
    cube
        A cube, or several in a list.
    by
        A facet, tier, task, ...; None is one leaderboard, under the empty text.
    part
        Which part of it; default: all of it.
    gold
        File of ratings by people, see `leaderboard`.
    options
        As for `leaderboard_of`.

    Returns
    -------
    tuple
        Warnings; value of the coordinate -> its leaderboard.

    Raises
    ------
    StorageError, SweepError
        As `leaderboard`.
    """
    opened = rated_part(cube, part, gold)
    if by is None:
        return opened.warnings, {"": leaderboard_of(opened, **options)}
    table = keys(opened.arrays)
    name = checked_names([by], table, "by")[0]
    name = "model_name" if name == "model" and "model_name" in table else name
    values = axes.names(opened.arrays, "tier") if name == "tier" else table[name].values
    found = {}
    for value in dict.fromkeys(value for value in values if value is not None):
        with refused():
            dataset = restrict(opened.arrays, {name: value})
        words = ", ".join(filter(None, (opened.selection, f"{by}={value}")))
        found[str(value)] = leaderboard_of(replace(opened, arrays=dataset, selection=words), **options)
    return opened.warnings, found
