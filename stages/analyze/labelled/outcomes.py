"""Outcome metrics such as pass@k of labelled outcomes or a cube, with how many questions they rest on.

A question with some, but not all, of its samples finished is left out, and counted: every question then has the
same N, which the metrics need, and k means the same everywhere. To use the samples that all questions have,
select them first: ``ds.isel(repeat=slice(0, 4))``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evalcube.stages.analyze.formulas.outcomes import table
from evalcube.stages.analyze.formulas.outcomes.counts import (
    Categories,
    Integers,
    Successes,
    count_rows,
    distinct_rows,
)
from evalcube.stages.reply.status import FINISHED, Status

if TYPE_CHECKING:
    import xarray as xr

_UNFINISHED, _UNTOUCHED = -1, -2


def outcome_metrics(
    R: object,
    metrics: Sequence[str] | None = None,
    k: int | Sequence[int] = 1,
    *,
    questions: Sequence[str] = (),
    sample: str = "repeat",
    finished: xr.DataArray | None = None,
    member: xr.DataArray | None = None,
    w: object = None,
    options: table.Options | None = None,
) -> Any:  # noqa: ANN401 - a Dataset for labelled outcomes, else a dict
    """Metrics of labelled outcomes, for each label of the dims that are neither questions nor samples.

    Parameters
    ----------
    R
        A DataArray of outcomes, in memory or of Dask chunks; anything else goes to `table.metric_table`.
    metrics, k, w, options
        As for `table.metric_table`.
    questions
        Dims that together number the questions, for instance ``("task", "params", "trial")``.
    sample
        Dim of a question's samples.
    finished
        Whether each sample is there, with R's dims; None means all, but NaN is never.
    member
        Booleans over some of the question dims and new dims, such as ``in_tier`` (tier, task, params): results get
        the new dims, and each of their labels uses the questions that are its members.

    Returns
    -------
    A Dataset: a variable per metric, or ``<metric>_sigma``, ``_mu``, ``_lo`` and ``_hi`` for its parts, NaN
    without questions; ``questions``, used; ``questions_incomplete``, left out. A question of which no sample is
    finished counts in neither.

    Raises
    ------
    ValueError
        If a dim is absent, and as the metrics do.
    """
    if not hasattr(R, "dims"):
        return table.metric_table(R, metrics, k, w=w, options=options)
    names = table.selected(metrics, w, options)
    array: Any = R
    absent = [dim for dim in (*questions, sample) if dim not in array.dims]
    if absent or not questions:
        raise ValueError(
            f"`questions` and `sample` must name dims of R, which has {tuple(array.dims)}, got "
            f"{tuple(questions)} and {sample!r}"
        )
    counts = _question_counts(array, finished, sample, table.top_category(w))
    others = [dim for dim in counts.dims if dim not in (*questions, "category")]
    counts = counts.transpose(*others, *questions, "category").compute()
    extra = [dim for dim in member.dims if dim not in questions] if member is not None else []
    flat = counts.values.reshape(*(counts.sizes[dim] for dim in others), -1, counts.sizes["category"])
    masks = _masks(counts, list(questions), member, extra)
    shape = flat.shape[:-2] + masks.shape[:-1]
    rows = ((place, flat[place[: len(others)]][masks[place[len(others) :]]]) for place in np.ndindex(*shape))
    dims = (*others, *extra)
    found = _evaluate(rows, shape, dims, _Request(names, table.draws_list(k), w, options))
    return found.assign_coords(_coordinates((counts, member), dims))


def cube_outcomes(ds: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """Correctness of each trial of a cube, and whether it is finished; both lazy if the cube is.

    Truncated, invalid and refused replies are finished and not correct; transport failures and trials that never
    ran are not finished.

    Parameters
    ----------
    ds
        Dataset with ``status`` (model, task, params, trial, repeat), lazy or not.

    Returns
    -------
    correct, finished
        int8 0 or 1, and booleans, both (model, task, params, trial, repeat).

    Raises
    ------
    ValueError
        If the dataset has no ``status``.
    """
    if "status" not in ds:
        raise ValueError("the dataset has no array `status`; open it with `Cube.dataset()`")
    status = ds["status"]
    over = status.isin([int(code) for code in FINISHED])
    return (status == int(Status.CORRECT)).astype(np.int8), over


def cube_outcome_metrics(
    ds: xr.Dataset,
    metrics: Sequence[str] | None = None,
    k: int | Sequence[int] = 1,
    *,
    by: str | Sequence[str] = ("model", "tier"),
    options: table.Options | None = None,
) -> xr.Dataset:
    """Metrics of any groups of a cube's questions; a question's samples are its repeats.

    Parameters
    ----------
    ds
        Dataset with ``status`` and ``in_tier``, lazy or not.
    metrics, k, options
        As for `outcome_metrics`.
    by
        Names to group by, as for `evalcube.stages.analyze.labelled.aggregate.aggregate`: model, task, tier, facets,
        parameters. Questions of several models in one group count for each model.

    Returns
    -------
    Dataset
        As of `outcome_metrics`, along the names of `by`, models first.

    Raises
    ------
    ValueError
        If `by` has an unknown name or ``status`` is missing, and as the metrics do.
    """
    from evalcube.stages.analyze.labelled import selection  # with xarray, which plain arrays do without

    known = selection.keys(ds)
    by = [by] if isinstance(by, str) else list(by)
    for name in by:
        selection.known(known, name, "by")
    wanted = _Request(table.selected(metrics, None, options), table.draws_list(k), None, options)
    outcomes, finished = cube_outcomes(ds)
    counts = _question_counts(outcomes, finished, "repeat", table.top_category(None))
    values = counts.transpose("model", "task", "params", "trial", "category").compute().values
    values = values.reshape(values.shape[0], -1, *values.shape[3:])
    chosen = selection.select(ds, None, known)
    models, cells = (
        selection.group(ds, by, dims, chosen, known) for dims in (selection.MODEL, selection.CELL)
    )
    rows = (
        ((*outer, *inner), values[np.ix_(some, points)].reshape(-1, values.shape[-1]))
        for outer, some in models.members()
        for inner, points in cells.members()
    )
    result = _evaluate(rows, models.shape + cells.shape, (*models.names, *cells.names), wanted)
    levels = dict(zip((*models.names, *cells.names), (*models.levels, *cells.levels), strict=True))
    return result.assign_coords(levels | _labels_of_models(ds, models.names))


def _labels_of_models(ds: xr.Dataset, names: Sequence[str]) -> dict[Any, Any]:
    """Coordinates along ``model``, where each is a group of its own; its index is none of them."""
    if "model" not in names:
        return {}
    return {
        name: values.variable
        for name, values in ds.coords.items()
        if values.dims == ("model",) and name != "model"
    }


@dataclass(frozen=True)
class _Request:
    """What to evaluate."""

    names: tuple[str, ...]
    draws: list[int]
    w: object
    options: table.Options | None

    def variables(self) -> Iterator[tuple[str, str, int]]:
        """Name of each result, its metric and the place of its value in what the metric returns."""
        for name in self.names:
            parts = table.METRICS[name].parts or ("",)
            for place, part in enumerate(parts):
                yield (f"{name}_{part}" if part else name), name, place


def _question_counts(
    array: xr.DataArray, finished: xr.DataArray | None, sample: str, top: int
) -> xr.DataArray:
    """Counts of the categories per question, dims (..., category); −1 if unfinished, −2 if untouched."""
    import xarray as xr

    there = array.notnull() if finished is None else finished & array.notnull()
    counts: xr.DataArray = xr.apply_ufunc(
        _count_block,
        array,
        there,
        input_core_dims=[[sample], [sample]],
        output_core_dims=[["category"]],
        kwargs={"top": top},
        dask="parallelized",
        output_dtypes=[np.int64],
        dask_gufunc_kwargs={"output_sizes": {"category": top + 1}, "allow_rechunk": True},
    )
    return counts


def _count_block(block: NDArray[Any], there: NDArray[np.bool_], top: int) -> Integers:
    shape = block.shape[:-1]
    rows = block.reshape(-1, block.shape[-1])
    present = there.reshape(rows.shape)
    result = np.full((rows.shape[0], top + 1), _UNFINISHED, dtype=np.int64)
    complete = present.all(axis=1)
    result[~present.any(axis=1)] = _UNTOUCHED
    result[complete] = count_rows(rows if complete.all() else rows[complete], top)
    return result.reshape(*shape, top + 1)


def _evaluate(
    groups: Iterable[tuple[tuple[int, ...], Integers]],
    shape: tuple[int, ...],
    dims: Sequence[Any],
    wanted: _Request,
) -> xr.Dataset:
    """The metrics of each group of questions, given with its place."""
    import xarray as xr

    found = {
        key: np.full((*shape, len(wanted.draws)) if table.METRICS[name].takes_k else shape, np.nan)
        for key, name, _ in wanted.variables()
    }
    used, incomplete = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    for place, rows in groups:
        complete = rows[rows[:, 0] >= 0]
        used[place], incomplete[place] = len(complete), (rows[:, 0] == _UNFINISHED).sum()
        if len(complete):
            _fill(found, place, complete, wanted)
    variables: dict[str, Any] = {
        key: ((*dims, "k") if table.METRICS[name].takes_k else tuple(dims), found[key])
        for key, name, _ in wanted.variables()
    }
    variables |= {"questions": (tuple(dims), used), "questions_incomplete": (tuple(dims), incomplete)}
    return xr.Dataset(variables, coords={"k": wanted.draws})


def _coordinates(sources: tuple[xr.DataArray | None, ...], dims: tuple[Any, ...]) -> dict[Any, Any]:
    """Coordinates of the sources that lie on the result's dims."""
    return {
        name: values
        for source in sources
        if source is not None
        for name, values in source.coords.items()
        if set(values.dims) <= set(dims) and name != "k"
    }


def _masks(
    counts: xr.DataArray, questions: list[str], member: xr.DataArray | None, extra: list[Any]
) -> NDArray[np.bool_]:
    """Which of the questions, in C order, belong to each label of the extra dims."""
    sizes = [counts.sizes[dim] for dim in questions]
    if member is None:
        return np.ones(int(np.prod(sizes)), dtype=bool)
    unknown = {dim: counts.sizes[dim] for dim in questions if dim not in member.dims}
    full = member.expand_dims(unknown).transpose(*extra, *questions)
    return np.asarray(full.values.astype(bool).reshape(*full.shape[: len(extra)], -1))


def _fill(
    found: dict[str, NDArray[np.float64]], place: tuple[int, ...], rows: Integers, wanted: _Request
) -> None:
    distinct, weights = distinct_rows(rows)
    samples = int(rows[0].sum())
    groups = Categories(samples, distinct, weights)
    bank: Successes | Categories = groups
    if distinct.shape[1] == 2:
        order = np.argsort(distinct[:, 1])
        bank = Successes(samples, distinct[order, 1], weights[order])
    for name in wanted.names:
        metric = table.METRICS[name]
        if not metric.categorical and not isinstance(bank, Successes):
            raise ValueError(
                f"{name} is for binary outcomes, but `w` has weights for {distinct.shape[1]} categories"
            )
        source = groups if metric.categorical else bank
        for index, k in enumerate(wanted.draws if metric.takes_k else [None]):
            value = table.evaluate(name, source, k, wanted.w, wanted.options)
            for part, number in enumerate(np.ravel(value)):
                key = next(key for key, owner, at in wanted.variables() if owner == name and at == part)
                found[key][(*place, index) if metric.takes_k else place] = number
