"""Columns that come from the plan and from the cube's arrays, for rows of one cube; no text is made for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from evalcube.flows.cubes.exchange import ANSWERED
from evalcube.flows.trials.columns import TrialColumn
from evalcube.flows.trials.opened import OpenCube
from evalcube.flows.trials.rows import Rows, count
from evalcube.flows.trials.values import Labels, Numbers, Values
from evalcube.stages.reply.status import Status

_NEEDS: Mapping[str, Sequence[str]] = {
    "trial": (),
    "repeat": (),
    "status": (),
    "duplicate": (),
    "cost": ("prompt_tokens", "tokens"),
}
_NAMES = [*(status.name.lower() for status in Status), ANSWERED]
_CODES = np.zeros(256, dtype=np.int8)
_CODES[list(Status)] = np.arange(len(Status))


def arrays_of(column: TrialColumn) -> Sequence[str]:
    """Arrays of the cube that a column needs, beside the status."""
    return _NEEDS.get(column.name, (column.name,)) if column.source == "cube" else ()


def measured(opened: OpenCube, column: TrialColumn, rows: Rows) -> Values:
    """The values of a column.

    Parameters
    ----------
    opened
        The cube.
    column
        One that comes from the plan or from the cube.
    rows
        Of this cube, with the arrays that the column needs.
    """
    if column.source == "plan":
        return opened.labels(column, rows)
    match column.name:
        case "status":
            return _status(opened, rows)
        case "trial" | "repeat":
            return Numbers(rows[column.name], np.zeros(count(rows), dtype=bool))
        case "cost":
            return _cost(opened, rows)
        case "duplicate":
            flags = opened.duplicates[rows["task"], rows["slot"], rows["trial"]]
            return Numbers(flags == 1, flags > 1)
    values = rows[column.name]
    return Numbers(values, values < 0 if values.dtype.kind == "i" else np.isnan(values))


def _status(opened: OpenCube, rows: Rows) -> Values:
    codes = _CODES[rows["status"]]
    unreferenced = ~opened.plan.referenced[rows["task"], rows["slot"]] & (rows["status"] == Status.INCORRECT)
    return Labels(_NAMES, np.where(unreferenced, len(Status), codes))


def _cost(opened: OpenCube, rows: Rows) -> Values:
    prices = opened.prices[rows["model"]]
    tokens = np.stack([rows["prompt_tokens"], rows["tokens"]], axis=1)
    cost = (np.maximum(tokens, 0) * prices).sum(axis=1) / 1e6
    return Numbers(cost, np.isnan(cost) | (tokens < 0).any(axis=1))
