"""Results of analyses as rows of plain values, which tables show and JSON documents hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalcube._arrays import Dataset
from evalcube.stages.analyze.formulas.outcomes.table import metric_parts
from evalcube.stages.analyze.labelled.forensics import FrontRow
from evalcube.stages.analyze.labelled.pairing import Pair, PairedDifference

PlainRow = dict[str, Any]
"""One row of plain values; NaN where undefined."""


def group_rows(table: Dataset, labels: Sequence[str]) -> list[PlainRow]:
    """A row for each group of `evalcube.stages.analyze.labelled.aggregate.aggregate` that has planned points."""
    counters = [str(name) for name in table["counter"].values.tolist()]
    dims = list(table["point"].dims)
    rows = []
    for index, names, values in _groups(table, dims, labels):
        if not values["points_planned"][index]:
            continue
        row = names | {name: float(values[name][index]) for name in ("point", "lower", "upper")}
        row |= {name: int(values[name][index]) for name in ("points", "points_planned")}
        row["truncated"] = float(values["per_trial"][index][counters.index("truncated")])
        rows.append(row | {"counters": dict(zip(counters, values["counters"][index].tolist(), strict=True))})
    return rows


def pair_row(pair: Pair) -> PlainRow:
    """Plain values of a comparison."""

    def plain_values(item: PairedDifference) -> PlainRow:
        values = dict(vars(item))
        gap = values.pop("difference")
        return values | {"difference": gap.value, "lower": gap.lower, "upper": gap.upper}

    overall = plain_values(pair.overall)
    del overall["task"]
    values = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(pair).items()}
    del values["ends"]
    bounds = None if pair.bounds is None else list(pair.bounds)
    return values | {"overall": overall, "tasks": list(map(plain_values, pair.tasks)), "bounds": bounds}


def pair_records(pairs: Sequence[Pair]) -> list[PlainRow]:
    """A row for each task of each comparison, and one for all tasks together, without a task."""
    rows = []
    for pair in pairs:
        plain = pair_row(pair)
        names = {"first": pair.first, "second": pair.second}
        rows += [names | row for row in (*plain["tasks"], {"task": "", **plain["overall"]})]
    return rows


def metric_rows(table: Dataset, names: Sequence[str], labels: Sequence[str]) -> list[PlainRow]:
    """A row for each group and k of `evalcube.stages.analyze.labelled.outcomes.cube_outcome_metrics`."""
    dims = list(table["points_planned"].dims)
    counted = ("questions", "questions_incomplete", "points")
    rows = []
    for cell, group, values in _groups(table, dims, labels):
        planned = int(values["points_planned"][cell])
        for index, k in enumerate(table["k"].values.tolist() if planned else ()):
            row = group | {name: int(values[name][(*cell, index)]) for name in counted}
            row |= {"points_planned": planned, "k": k}
            for name in (part for metric in names for part in metric_parts(metric)):
                row[name] = float(np.ravel(values[name][cell])[index if "k" in table[name].dims else 0])
            rows.append(row)
    return rows


def hazard_rows(table: Dataset, labels: Sequence[str]) -> list[PlainRow]:
    """A row for each evaluation (and task) and bin of tokens in which a trial was still at risk."""
    names = ["at_risk", "ends", "hazard", "incidence", "survival"]
    shown = table.assign_coords(bin=table["tokens"].variable)[names]
    rows = _expand(shown, list(table["at_risk"].dims), labels)
    return [
        {"tokens" if name == "bin" else name: number for name, number in row.items()}
        for row in rows
        if row["at_risk"]
    ]


def compression_rows(table: Dataset, labels: Sequence[str]) -> list[PlainRow]:
    """A row for each evaluation (and task) and outcome with a reasoning trace."""
    rows = _expand(table, list(table["traces"].dims), labels)
    return [row | {"traces": int(row["traces"])} for row in rows if row["traces"]]


def cost_rows(table: Dataset, labels: Sequence[str], front: Mapping[str, FrontRow]) -> list[PlainRow]:
    """A row for each evaluation (and task) with its costs; `front` has the evaluations' rows by label."""
    rows = _expand(table, list(table["total"].dims), labels)
    for row in rows:
        standing = front.get(row["model"]) if "task" not in row else None
        if standing is not None:
            shown = ("score", "tokens", "on_token_front", "on_cost_front", "on_front")
            row |= {name: getattr(standing, name) for name in shown}
    return rows


def _groups(
    table: Dataset, dims: Sequence[Any], labels: Sequence[str]
) -> Iterator[tuple[tuple[int, ...], PlainRow, dict[str, NDArray[Any]]]]:
    """Index and names of each group, with the arrays that the index belongs to."""
    levels: dict[Any, list[Any]] = {
        dim: table[dim].values.tolist() if dim in table.coords else list(range(table.sizes[dim]))
        for dim in dims
    }
    if "model" in levels:
        levels["model"] = [level if isinstance(level, str) else labels[level] for level in levels["model"]]
    values = {str(name): array.transpose(*dims, ...).values for name, array in table.data_vars.items()}
    for index in product(*(range(len(dim_levels)) for dim_levels in levels.values())):
        names = {str(dim): levels[dim][at] for dim, at in zip(dims, index, strict=True)}
        yield index, names, values


def _expand(table: Dataset, dims: Sequence[Any], labels: Sequence[str]) -> list[PlainRow]:
    """A row for each place along the dims; what lies along others besides is named by their labels, too."""
    inner = {
        str(name): [
            "_".join([str(name), *(label for label in index if label != "value")])
            for index in product(*(table[dim].values.tolist() for dim in array.dims if dim not in dims))
        ]
        for name, array in table.data_vars.items()
    }
    rows = []
    for index, row, values in _groups(table, dims, labels):
        for name, keys in inner.items():
            row.update(zip(keys, values[name][index].ravel().tolist(), strict=True))
        rows.append(row)
    return rows
