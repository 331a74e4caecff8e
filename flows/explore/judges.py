"""How far judges agree on a model's answers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.flows.errors import SweepError
from evalcube.flows.explore.endings import with_trials
from evalcube.flows.explore.explored import Explored
from evalcube.flows.explore.groups import chosen
from evalcube.flows.explore.query import Endpoint, Json, Query
from evalcube.stages.analyze.labelled import axes
from evalcube.stages.analyze.verdict.agreement import judge_agreement, krippendorff_alpha
from evalcube.stages.reply.status import FINISHED

SCORES = np.arange(1, 6)


def judges(explored: Explored, query: Query) -> Json:
    """Agreement of the judges on each model's answers, what each gave on average, and how often two gave what.

    Cubes that other judges graded stand in sets of their own: agreement is among those who saw the same answers.
    """
    sets: list[Json] = []
    warnings: list[str] = []
    refused = None
    judged = explored.judged()
    for cubes, names in judged:
        try:
            models, said = _of_set(explored, query, cubes, names)
        except SweepError as error:  # a task or a facet that only other cubes have
            refused = refused or error
            continue
        warnings += said
        sets.append({"judges": names, "cubes": len(cubes), "models": models})
    if refused is not None and not sets:
        raise refused
    without = len(explored.cubes) - sum(len(cubes) for cubes, _ in judged)
    if sets and without:
        have = "has" if without == 1 else "have"
        warnings.append(f"{without} of {len(explored.cubes)} cubes {have} no judgements, and no place here.")
    return {"scores": SCORES, "sets": sets, "warnings": list(dict.fromkeys(warnings))}


def _of_set(
    explored: Explored, query: Query, cubes: tuple[str, ...], names: list[str]
) -> tuple[list[Json], Sequence[str]]:
    """Agreement on each model that the same judges graded, and what a reader should know of these cubes."""
    part = with_trials(explored, query, cubes)
    of_part = {explored.label_of()[one] for one in axes.names(part.dataset, "eval_id")}
    wanted = query.all("model")
    if "judge_readings" not in part.dataset or (wanted and not of_part.intersection(wanted)):
        return [], part.warnings
    dataset, labels = chosen(explored, query, part.dataset)
    found = []
    for place, label in enumerate(labels):
        one = dataset[["status", "judge_readings"]].reset_coords(drop=True).isel(model=place).compute()
        order = ("task", "params", "trial", "repeat")
        status = one["status"].transpose(*order).values
        readings = one["judge_readings"].transpose(*order, ...).values
        found.append({"model": label, **agreement(readings[np.isin(status, FINISHED)], names)})
    return found, part.warnings


def agreement(readings: npt.NDArray[Any], names: list[str]) -> Json:
    """Agreement of judges over units.

    Parameters
    ----------
    readings
        Array (unit, judge, repeat), NaN where there is none.
    names
        Of the judges.

    Returns
    -------
    dict
        Measures, NaN where there is none; mean and units of each judge; for each two judges a table of how often
        they gave which scores, rounded to whole ones.
    """
    given = ~np.isnan(readings)
    counts = given.sum(axis=2)
    means = np.where(counts > 0, np.where(given, readings, 0.0).sum(axis=2) / np.maximum(counts, 1), np.nan)
    both = judge_agreement(means) if means.shape[1] > 1 else None
    return {
        "units": 0 if both is None else both.units,
        "ac2": math.nan if both is None else both.ac2,
        "pearson": math.nan if both is None else both.pearson,
        "mad": math.nan if both is None else both.mad,
        "alpha": krippendorff_alpha(means) if both is not None else math.nan,
        "judges": [
            {
                "judge": name,
                "units": int((counts[:, place] > 0).sum()),
                "mean": float(np.nanmean(means[:, place])) if (counts[:, place] > 0).any() else math.nan,
            }
            for place, name in enumerate(names[: means.shape[1]])
        ],
        "pairs": [
            {"first": names[a], "second": names[b], "counts": _crossed(means[:, a], means[:, b])}
            for a, b in combinations(range(min(means.shape[1], len(names))), 2)
        ],
    }


def _crossed(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """How often the first gave which score (row) where the second gave which (column)."""
    there = ~np.isnan(first) & ~np.isnan(second)
    edges = np.append(SCORES - 0.5, SCORES[-1] + 0.5)
    counts = np.histogram2d(first[there], second[there], bins=(edges, edges))[0]
    return np.asarray(counts, dtype=np.int64)


def _once(explored: Explored) -> Iterable[Query]:
    return (Query(),) if explored.judged() else ()


ENDPOINTS = (Endpoint("judges", judges, _once),)
