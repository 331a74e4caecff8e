"""The second level: estimates of any groups of points, from counters alone."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import xarray as xr

from evalcube.flows.errors import SweepError, refused
from evalcube.flows.explore.explored import Explored
from evalcube.flows.explore.overview import overview
from evalcube.flows.explore.query import Endpoint, Json, Query
from evalcube.flows.explore.ranking import parts
from evalcube.flows.plan.filters import checked_names
from evalcube.stages.analyze.formulas.estimators import MODES
from evalcube.stages.analyze.labelled import axes
from evalcube.stages.analyze.labelled.aggregate import aggregate
from evalcube.stages.analyze.labelled.points import told_of_points
from evalcube.stages.analyze.labelled.selection import keys
from evalcube.stages.reply.status import COUNTED

MOST_NAMES, MOST_GROUPS = 3, 100_000
MOST_LEVELS = 60
"""Levels of a parameter up to which a bundle holds curves and surfaces over it."""

MOST_BUNDLED = 20_000
"""Groups of a surface up to which a bundle holds it."""

_DIGITS = 4


def groups(explored: Explored, query: Query) -> Json:
    """Estimates with intervals and counters of groups by ``by``, names behind commas.

    Groups are in row-major order of ``levels``. Where nothing was planned or measured, estimates are null.
    """
    by = query.one("by", "model,task").split(",")
    # Evaluations that are put together answered the same questions, which only their trials tell.
    opened = explored.part(query, trials="model" not in by)
    dataset, labels = chosen(explored, query, opened.dataset)
    names = checked_names(by, keys(dataset), "by")
    if not 1 <= len(names) <= MOST_NAMES:
        raise SweepError(f"`by`: {len(names)} names are given", f"Give one to {MOST_NAMES}")
    with refused():
        found = aggregate(dataset, by=names, mode=query.choice("mode", MODES, "C_P")).compute()  # type: ignore[arg-type]
    sizes = [found.sizes[name] for name in names]
    if np.prod(sizes) > MOST_GROUPS:
        raise SweepError(f"`by`: {np.prod(sizes):,} groups", "Choose fewer models, or fewer names")
    sums = dict(
        zip(found["counter"].values.tolist(), np.moveaxis(found["counters"].values, -1, 0), strict=True)
    )
    return {
        "by": names,
        "mode": found.attrs["mode"],
        "levels": [labels if name == "model" else found[name].values.tolist() for name in names],
        **{name: np.round(found[name].values.ravel(), _DIGITS) for name in ("point", "lower", "upper")},
        **{
            name: sums[name].ravel().astype(int) for name in ("trials", "completed", *COUNTED) if name in sums
        },
        "cut": np.round(found["per_trial"].sel(counter="truncated").values.ravel(), _DIGITS),
        **{name: found[name].values.ravel() for name in ("points", "points_planned")},
        "selection": opened.selection,
        "warnings": [*opened.warnings, *told_of_points(found.attrs, labels)],
    }


def chosen(explored: Explored, query: Query, dataset: xr.Dataset) -> tuple[xr.Dataset, list[str]]:
    """The evaluations of a part that a query names by ``model``, all of them if it names none, and their labels.

    Raises
    ------
    SweepError
        If one is unknown, or none of them is in the part.
    """
    by_id = explored.label_of()
    labels = [by_id[one] for one in axes.names(dataset, "eval_id")]
    wanted = query.all("model")
    for name in wanted:
        explored.model(name)
    places = [labels.index(name) for name in wanted if name in labels] if wanted else list(range(len(labels)))
    if not places:
        raise SweepError(f"`model`: this part has nothing of {', '.join(wanted)}", "Widen the filters")
    return dataset.isel(model=places), [labels[place] for place in places]


def _bundled(explored: Explored) -> Iterable[Query]:
    """What the views ask that show groups: by task, by tier and task, and over parameters of each task."""
    for part in parts(explored):
        for by in ("model", "model,task", "model,tier,task", "task"):
            yield Query((*part.items, ("by", by)))
    models = len(explored.labels())
    for task in overview(explored, Query())["tasks"]:
        levels = {one["name"]: len(one["levels"]) for one in task["params"]}
        several = [one["name"] for one in task["params"] if 1 < len(one["levels"]) <= MOST_LEVELS]
        for place, name in enumerate(several):
            yield Query.make(task=task["label"], by=f"model,{name}")
            for other in several[place + 1 :]:
                if models * levels[name] * levels[other] > MOST_BUNDLED:
                    continue
                yield Query.make(task=task["label"], by=f"model,{name},{other}")
        yield Query.make(task=task["label"], by="model,difficulty")


ENDPOINTS = (Endpoint("groups", groups, _bundled),)
