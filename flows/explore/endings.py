"""What single trials say of a model: tokens, ends, and how reasoning compresses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from evalcube.flows.errors import SweepError, refused
from evalcube.flows.explore.explored import Explored
from evalcube.flows.explore.query import Answerer, Json, Query, each_model
from evalcube.flows.explore.ranking import chosen
from evalcube.flows.state.engines import unknown_ends
from evalcube.stages.analyze.labelled import axes
from evalcube.stages.analyze.labelled.counters import counter_cells
from evalcube.stages.analyze.labelled.forensics import compression_table, hazard_table
from evalcube.stages.analyze.render.rows import compression_rows
from evalcube.stages.reply.body import UNKNOWN_END, ending_code
from evalcube.stages.reply.status import FINISHED, Status
from evalcube.storage.cube.ledger import Ledger

BINS = 40
"""About as many bins as a histogram has up to four times the mean number of tokens."""
SAMPLE = 1200
"""Traces that are shown one by one, at most."""
MOST_TRIALS = 50_000_000
"""Of one model, padding included, that are read for one answer."""
_WIDEST = 1 << 16
_DIGITS = 5


def hazard(explored: Explored, query: Query) -> Json:
    """When the trials of one model end: counts, hazards, survival and incidence by bins of tokens."""
    dataset, label = _one_model(explored, query)
    width = query.number("width", 0, 0, _WIDEST) or bin_width(explored.part(query).dataset)
    with refused():
        table = hazard_table(dataset, width=width).isel(model=0)
    last = int(np.flatnonzero(table["at_risk"].values)[-1]) + 1 if table["at_risk"].values.any() else 0
    bins = table.isel(bin=slice(last))
    ends = bins["ends"].transpose("end", "bin")
    return {
        "model": label,
        "width": width,
        "tokens": bins["tokens"].values,
        "at_risk": bins["at_risk"].values.astype(int),
        "ends": {
            str(name): row.astype(int) for name, row in zip(ends["end"].values, ends.values, strict=True)
        },
        "survival": _curve(bins["survival"]),
        "budget": _curve(bins["budget"]),
        **{
            name: {str(cause): _curve(bins[name].sel(cause=cause)) for cause in bins["cause"].values}
            for name in ("hazard", "incidence")
        },
        "limit": int(dataset["max_tokens"].values[0]) if "max_tokens" in dataset.coords else 0,
    }


def bin_width(dataset: xr.Dataset) -> int:
    """Tokens of a bin, a power of 2 that suits the mean of all models."""
    cells, labels = counter_cells(dataset).values, axes.names(dataset, "counter")
    trials, tokens = (float(cells[..., labels.index(name)].sum()) for name in ("trials", "tokens_sum"))
    mean = tokens / trials if trials else 0.0
    return int(min(max(4, 2 ** int(np.round(np.log2(max(4.0 * mean / BINS, 1.0))))), _WIDEST))


def ends(explored: Explored, query: Query) -> Json:
    """Return how many replies of each model, and to each task, end in a loop, or in a way that nobody knows.

    Each end that any reply has comes with its title, and with the condition that chooses its trials.
    """
    dataset, labels = chosen(explored, query, explored.part(query, trials=True).dataset)
    receipts = (receipt for cube in explored.opened for receipt in Ledger(cube.records).newest().values())
    words = unknown_ends(receipts)
    kinds = [("loops", "looping", 1), *((UNKNOWN_END + word, "ending", ending_code(word)) for word in words)]
    tasks, rows = axes.names(dataset, "task"), []
    for title, name, code in kinds:
        if name not in dataset:
            continue
        ended = dataset[name].reset_coords(drop=True) == code
        sums = ended.sum(["params", "trial", "repeat"], dtype=np.int64)
        counts = sums.transpose("model", "task").values
        by_model = dict(zip(labels, counts.sum(axis=1).tolist(), strict=True))
        by_task = dict(zip(tasks, counts.sum(axis=0).tolist(), strict=True))
        if counts.any():
            rows.append({"title": title, "where": f"{name}={code}", "model": by_model, "task": by_task})
    return {"ends": rows}


def _curve(values: xr.DataArray) -> dict[str, npt.NDArray[Any]]:
    return {str(name): np.round(values.sel(bound=name).values, _DIGITS) for name in values["bound"].values}


def traces(explored: Explored, query: Query) -> Json:
    """How the reasoning of one model compresses, by outcome, with traces spread evenly over all."""
    dataset, label = _one_model(explored, query)
    with refused():
        rows = compression_rows(compression_table(dataset), [label])
    names = ("status", "tokens", "reasoning_bytes", "compressed_bytes")
    trials = dataset[list(names)].reset_coords(drop=True).isel(model=0).compute()
    trials = trials.transpose("task", "params", "trial", "repeat")
    arrays = {name: trials[name].values for name in names}
    there = np.flatnonzero(np.isin(arrays["status"], FINISHED) & (arrays["reasoning_bytes"] > 0))
    picked = there[np.unique(np.linspace(0, len(there) - 1, min(len(there), SAMPLE)).astype(int))]
    task, slot, trial, repeat = np.unravel_index(picked, arrays["status"].shape)
    tasks, params = axes.names(dataset, "task"), dataset["params_json"].transpose("task", "params").values
    points = sorted(set(zip(task.tolist(), slot.tolist(), strict=True)))
    number = {point: index for index, point in enumerate(points)}
    return {
        "model": label,
        "rows": rows,
        "traces": len(there),
        "points": [{"task": tasks[row], "params": str(params[row, column])} for row, column in points],
        "sample": {
            "point": [number[pair] for pair in zip(task.tolist(), slot.tolist(), strict=True)],
            "trial": trial,
            "repeat": repeat,
            "status": [Status(int(code)).name.lower() for code in arrays["status"].ravel()[picked]],
            **{name: arrays[name].ravel()[picked] for name in names[1:]},
        },
    }


def _one_model(explored: Explored, query: Query) -> tuple[xr.Dataset, str]:
    if len(query.all("model")) != 1:
        raise SweepError(f"`model`: {len(query.all('model'))} are named", "Name one")
    dataset, (label,) = chosen(explored, query, explored.part(query, trials=True).dataset)
    size = math.prod(dataset.sizes[dim] for dim in ("task", "params", "trial", "repeat"))
    if size > MOST_TRIALS:
        raise SweepError(
            f"{label} has up to {size:,} trials here, more than the {MOST_TRIALS:,} that are read at once",
            "Choose a task or a tier",
        )
    return dataset, label


ENDPOINTS = (
    Answerer("hazard", hazard, each_model),
    Answerer("traces", traces, each_model),
    Answerer("ends", ends),
)
