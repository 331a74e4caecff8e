"""Outcome metrics such as pass@k of labelled outcomes or a cube, with intervals and how many questions they rest on.

A question counts once however often it was answered, for each k for which it has at least so many answers. Of a cube,
a metric is the mean over tasks of the means over points, weighed by the base design, of the means over questions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evalcube._arrays import Dataset, DatasetT, dataset_like, variable
from evalcube.stages.analyze.formulas import design
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.formulas.outcomes import table
from evalcube.stages.analyze.formulas.outcomes.counts import Integers
from evalcube.stages.analyze.formulas.outcomes.inputs import out_of_range
from evalcube.stages.analyze.labelled import axes, counters, selection
from evalcube.stages.analyze.labelled.aggregate import checked_by, labels_of_groups
from evalcube.stages.analyze.labelled.clustering import all_clusters, trials_of
from evalcube.stages.analyze.labelled.points import common_in_groups, planned_points
from evalcube.stages.analyze.labelled.questions import Bank, Group, MetricRequest, evaluate
from evalcube.stages.analyze.labelled.remarks import first_few
from evalcube.stages.errors import ArgumentError
from evalcube.stages.reply.status import LAST_FINISHED, Status

if TYPE_CHECKING:
    import xarray as xr

    from evalcube.stages.analyze.labelled.selection import Groups


_MEANS = ("avg_ci", "bayes_ci", "max_at_k_ci")
"""Whose intervals are clipped to what an answer can be worth: the reference's are by default to nothing."""


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
    """Metrics of labelled outcomes, by all dimensions but questions and samples.

    Parameters
    ----------
    R
        Outcomes of 0 and 1 (or categories 0..C, with `w`): a DataArray in memory or of Dask chunks; or any array of
        questions × samples, for which a mapping is returned.
    metrics
        Names of metrics, such as pass_at_k; None means all that `w` and `options` allow.
    k
        One or several numbers of samples to draw.
    w
        Score of each category 0..C, for bayes, avg and max_at_k; None means (0, 1).
    options
        Further arguments by metric, such as ``{"g_pass_at_k_tau": {"tau": 0.5}}``; None means none.
    questions
        Names of the dimensions that together number the questions, such as ``("task", "params", "trial")``.
    sample
        Name of the dimension of a question's samples.
    finished
        Whether each sample is there, with R's dimensions; None means all except NaN.
    member
        Booleans over some of the question dimensions and new ones, such as ``in_tier`` (tier, task, params): results
        get the new dimensions, and use for each of their labels the questions that are its members. None means no
        groups.

    Returns
    -------
    A Dataset: a variable per metric, with ``<metric>_lower`` and ``_upper`` if it is a mean over questions in
    [0, 1], or ``<metric>_sigma``, ``_mu``, ``_lo`` and ``_hi`` for its parts, NaN without questions; along k,
    ``questions``, which have at least k samples, and ``questions_incomplete``, which have some, but fewer.

    Raises
    ------
    ValueError
        If a dim is absent, and as the metrics do.
    """
    if not hasattr(R, "dims"):
        return table.metric_table(R, metrics, k, w=w, options=options)
    import xarray as xr

    array: Any = R
    wanted = MetricRequest(table.select_metrics(metrics, w, options), table.draws_list(k), w, options)
    absent = [dim for dim in (*questions, sample) if dim not in array.dims]
    if absent or not questions:
        raise ArgumentError(
            f"`questions` and `sample` must name dims of R, which has {tuple(array.dims)}, got "
            f"{tuple(questions)} and {sample!r}"
        )
    counts = _category_counts(array, finished, sample, table.top_category(w))
    outer = [dim for dim in counts.dims if dim not in (*questions, "category")]
    counts = counts.transpose(*outer, *questions, "category")
    shape = [counts.sizes[dim] for dim in outer]
    bank = Bank.of(counts.values.reshape(*shape, -1, counts.sizes["category"]))
    dims, masks = [*outer], np.ones((1, bank.codes.shape[-1]), bool)
    if member is not None:
        inner = [dim for dim in member.dims if dim not in questions]
        unnamed = {dim: counts.sizes[dim] for dim in questions if dim not in member.dims}
        mask = member.astype(bool).expand_dims(unnamed).transpose(*inner, *questions).values
        dims += inner
        shape += mask.shape[: len(inner)]
        masks = mask.reshape(-1, bank.codes.shape[-1])
    codes = bank.codes.reshape(-1, 1, 1, bank.codes.shape[-1])
    weight, task = np.ones((1, 1)), np.zeros(1, dtype=np.int64)
    groups = (Group.of(outcomes[..., mask], weight, task) for outcomes in codes for mask in masks)
    variables = evaluate(bank, zip(np.ndindex(*shape), groups, strict=True), tuple(shape), dims, wanted)
    sources = [counts] if member is None else [counts, member]
    labels = {
        name: label
        for source in sources
        for name, label in source.coords.items()
        if set(label.dims) <= set(dims) and name != "k"
    }
    return xr.Dataset(variables).assign_coords({"k": wanted.draws, **labels})


def _category_counts(
    array: xr.DataArray, finished: xr.DataArray | None, sample: str, top: int
) -> xr.DataArray:
    """Return how many finished samples of each question are in each category, in memory: dims (category, ...)."""
    import xarray as xr

    there = array.notnull() if finished is None else finished & array.notnull()
    array, there = xr.align(array, there, join="exact")
    inside = (xr.DataArray(np.arange(top + 1), dims="category") == array) & there
    counts = xr.Dataset({"inside": inside.sum(sample), "all": there.sum(sample)}).compute()
    if (counts["inside"].sum("category") != counts["all"]).any():
        raise out_of_range(array.where(there, 0).values, top)
    return counts["inside"]


def cube_outcomes(ds: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """Return whether each trial of a cube is correct, and whether it is finished.

    Truncated, invalid and refused replies are finished and not correct; transport failures and trials that never
    ran are not finished.

    Parameters
    ----------
    ds
        Dataset of `open_cube`, with ``status`` (model, task, params, trial, repeat), lazy or not.

    Returns
    -------
    correct, finished
        int8 0 or 1, and booleans, both (model, task, params, trial, repeat).

    Raises
    ------
    ValueError
        If the dataset has no ``status``.
    """
    axes.need_status(ds)
    status = ds["status"]
    return (status == int(Status.CORRECT)).astype(np.int8), status <= LAST_FINISHED


def cube_outcome_metrics(
    ds: DatasetT,
    metrics: Sequence[str] | None = None,
    k: int | Sequence[int] = 1,
    *,
    by: str | Sequence[str] = ("model", "tier"),
    options: table.Options | None = None,
    confidence: float = 0.95,
) -> DatasetT:
    """Metrics of any groups of a cube's questions; a question's samples are its repeats.

    Parameters
    ----------
    ds
        Dataset of `open_cube`, with ``status`` and ``in_tier``, lazy or not; points weigh by ``base_trials`` if it has
        these.
    metrics, k, options
        As for `outcome_metrics`; intervals of means end where what a trial can give does, unless ``bounds`` says else.
    by
        Names to group by, as for `aggregate`: model, task, tier, facets, parameters. Several models in one group have
        equal weight.
    confidence
        Confidence level of the intervals of metrics that are means over questions.

    Returns
    -------
    Dataset
        As of `outcome_metrics`, along the names of `by`, models first; with ``points`` that have such questions, along
        k, and ``points_planned``, points of models with any question. Points in no tier, which have no right answer,
        are left out.

    Raises
    ------
    ValueError
        If `by` has an unknown name or ``status`` is missing, and as the metrics do.
    """
    keys = selection.keys(ds)
    by = checked_by(by, keys)
    names = table.select_metrics(metrics, None, options)
    wanted = MetricRequest(
        names,
        table.draws_list(k),
        None,
        {name: _with_bounds(name, (options or {}).get(name, {})) for name in names},
        confidence,
    )
    axes.need_status(ds)
    values = np.stack([_counts_of_model(ds, model) for model in range(ds.sizes["model"])])
    bank = Bank.of(values.reshape(values.shape[0], -1, *values.shape[3:]))
    chosen, clusters = selection.select(ds, None, keys), all_clusters(ds)
    models, cells = (
        selection.group(ds, by, dims, chosen, keys) for dims in (selection.MODEL, selection.CELL)
    )
    base, words = _point_weights(ds, np.asarray(values.any(axis=(3, 4))), cells)
    slots = ds.sizes["params"]
    questions = counters.planned_questions(ds).max(axis=0, initial=0).reshape(-1, 1)
    planned = np.arange(ds.sizes["trial"]) < questions

    def members() -> Iterator[tuple[tuple[int, ...], Group]]:
        for outer, some in models.members():
            for inner, every in cells.members():
                points = every[base[:, every].any(axis=0)]
                _, task = np.unique(points // slots, return_inverse=True)
                own = None if clusters is None else clusters[points]
                these = np.ix_(some, points)
                yield (*outer, *inner), Group.of(bank.codes[these], base[these], task, own, planned[points])

    variables = evaluate(bank, members(), models.shape + cells.shape, (*models.names, *cells.names), wanted)
    labels = {"k": variable(("k",), np.array(wanted.draws)), **labels_of_groups(ds, (models, cells))}
    return dataset_like(ds, variables, labels).assign_attrs(words)


def _with_bounds(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a metric's options with the bounds that its interval has by default."""
    worth = np.ravel(options.get("w", (0.0, 1.0)))
    return ({"bounds": (worth.min(), worth.max())} if name in _MEANS else {}) | dict(options)


def lost_sentences(
    ds: DatasetT,
    metric: str,
    k: int,
    labels: Sequence[str],
    *,
    by: Sequence[str],
    options: table.Options | None = None,
) -> list[str]:
    """Say how far lost answers could move a metric, if any were lost; arguments as of `cube_outcome_metrics`."""
    status = ds["status"].variable
    lost = status.data == int(Status.TRANSPORT)
    if not np.asarray(lost.any()) or table.METRICS[metric].parts:
        return []
    low, high = (
        cube_outcome_metrics(
            ds.assign(status=variable(status.dims, np.where(lost, np.uint8(code), status.data))),
            *([metric], k),
            by=by,
            options={name: choices for name, choices in (options or {}).items() if name == metric},
        )
        for code in (Status.INCORRECT, Status.CORRECT)
    )
    dims = [str(dim) for dim in low["points_planned"].dims]
    ends = [np.reshape(part[metric].values, part["points_planned"].shape) for part in (low, high)]
    ranges = []
    for index in map(tuple, np.argwhere(ends[0] != ends[1])):
        levels = [low[dim].values[at] for dim, at in zip(dims, index, strict=True)]
        group = [labels[int(at)] if dim == "model" else f"{at}" for dim, at in zip(dims, levels, strict=True)]
        ranges.append(f"{', '.join(group) or 'all'} {ends[0][index]:.3f}–{ends[1][index]:.3f}")
    shown = f"{metric} (k = {k}) with all of them wrong, and with all right: {first_few(ranges)}"
    return [f"Some answers were lost. {shown}."] if ranges else []


def _point_weights(ds: Dataset, there: NDArray[np.bool_], cells: Groups) -> tuple[Floats, dict[str, Any]]:
    """Weight of each model's points within their task, (model, point) row by row, and what to say of those left out.

    It is 0 in no tier, and where evaluations are compared on other points.
    """
    inside = counters.members(ds).any(axis=0)
    planned = planned_points(ds, there) & inside
    groups = (points for _, points in cells.members())
    common, words = common_in_groups(planned, groups, axes.names(ds, "task"))
    share = design.ratios(axes.base_design(ds), common & inside)
    return share.reshape(len(share), -1), words


def _counts_of_model(ds: Dataset, model: int) -> Integers:
    """Counts of wrong and right answers to each question of a model, shape (task, params, trial, 2)."""
    status = trials_of(ds, "status", model)
    right, finished = (part.sum(axis=-1) for part in (status == int(Status.CORRECT), status <= LAST_FINISHED))
    return np.stack([finished - right, right], axis=-1).astype(np.int64)
