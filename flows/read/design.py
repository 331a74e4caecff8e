"""What a cube's description and notes say about its points, evaluations and prices, as coordinates of its dataset."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from evalcube._arrays import Dataset, Labelled, dataset_like, variable
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.evaluations import token_limit
from evalcube.flows.plan.filters import meets
from evalcube.flows.plan.spec import PointSpec, Spec, base_design_array, filled_base, parse_spec
from evalcube.flows.state.records import MERGED, cached_prices, priced_models
from evalcube.stages.analyze.labelled import axes
from evalcube.stages.analyze.labelled.axes import names
from evalcube.stages.analyze.labelled.counters import counter_cells
from evalcube.stages.analyze.labelled.selection import restrict
from evalcube.stages.reply.status import BASE, COUNTERS
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.schema import LAYERS, VARIABLES

FILE_VERSION = "file_version"
OLDER = "older_file"
_CELL = ("task", "params")
_DIGITS = 8
_MOST_TRIALS = 1 << 23
"""Trials with those that pad them, where columns of files make points: some 60 bytes each."""
_PADDING: Mapping[str, Any] = {"cell_id": "", "in_tier": False, "planned_trials": 0, "planned_repeats": 0}
_SCHEMA = {**VARIABLES, **LAYERS}

Columns = Mapping[str, Mapping[str, Sequence[str | None]]]
"""What columns of data files have for the trials of points, by the points' ids."""


def with_design(dataset: Dataset) -> Dataset:
    """The dataset of a cube with ``base_trials`` (model, task, params), ``max_tokens`` (model) and ``data_set`` (task).

    Where a data file was edited, ``file_version`` and ``older_file`` (task, params) tell what was asked before from
    what is asked now.

    Points weigh by the former.
    """
    if "max_tokens" in dataset.coords or "spec" not in dataset.attrs or "cell_id" not in dataset.coords:
        return dataset
    try:
        spec = parse_spec(dataset.attrs["spec"])
    except SweepError:
        return dataset  # opening a cube by its address reports this; a dataset may come from anywhere
    dataset = _with_sources(_with_versions(spec, dataset))
    dataset = _with_data_sets(spec, dataset)
    limits = {row.eval_id: token_limit(row.sampler.params) for row in spec.evaluations}
    tokens = np.array([limits.get(name, 0) for name in names(dataset, "eval_id")], dtype=np.int64)
    long_name = "limit of completion tokens, 0 for none"
    dataset = _with(dataset, "max_tokens", ("model",), tokens, {"long_name": long_name})
    base = _base_design(spec, dataset)
    if base is None:
        return dataset
    stored = dataset[BASE].transpose("model", *_CELL).values if BASE in dataset.coords else None
    coordinate = base_design_array(filled_base(stored, base, dataset.sizes["model"]))
    return _with(dataset, BASE, coordinate.dims, coordinate.values, dict(coordinate.attrs))


def of_data_set(task: str) -> bool:
    """Whether a task of that name asks the rows of a data set, and generates nothing."""
    return task == "dataset" or task.startswith("lm-eval:")


def _with_data_sets(spec: Spec, dataset: Dataset) -> Dataset:
    """The dataset with ``data_set`` (task); unchanged if its task labels are gone, which their first user reports."""
    if "task" not in dataset.coords:
        return dataset
    of_rows = {task.label: of_data_set(task.name) for task in spec.tasks}
    rows = np.array([of_rows.get(name, False) for name in names(dataset, "task")], dtype=bool)
    return _with(
        dataset, "data_set", ("task",), rows, {"long_name": "whether its questions are of a data set"}
    )


def _with_versions(spec: Spec, dataset: Dataset) -> Dataset:
    """The dataset with ``file``, `FILE_VERSION`, `OLDER` (task, params), if a task has several versions of a file."""
    digests = [{point.params.get("sha256") for point in task.points} for task in spec.tasks]
    if all(len(versions) < 2 for versions in digests):
        return dataset
    from evalcube.stages.generate.dataset.hub.address import bare_name  # here, as it loads all tasks

    shape = tuple(dataset.sizes[dim] for dim in _CELL)
    file, version = np.full(shape, "", dtype=object), np.full(shape, "", dtype=object)
    older = np.zeros(shape, dtype=bool)
    for index, point in _points(spec, dataset).items():
        if point is not None and "sha256" in point.params:
            version[index], older[index] = str(point.params["sha256"])[:_DIGITS], point.older
            file[index] = f"{bare_name(str(point.params.get('file', '')))} {version[index]}"
    digits = "first digits of the data file's SHA-256"
    versioned = _with(dataset, "file", _CELL, file, {"long_name": "name of the data file, and its version"})
    versioned = _with(versioned, FILE_VERSION, _CELL, version, {"long_name": digits})
    return _with(versioned, OLDER, _CELL, older, {"long_name": "whether the data file was edited since"})


def _with_sources(dataset: Dataset) -> Dataset:
    """The dataset of a merged cube with ``source``: by evaluation where each is of one cube, else by point."""
    attribute = dataset.attrs.get(MERGED)
    entries = attribute.get("sources") if isinstance(attribute, Mapping) else None
    sources = {"evaluations": dict[str, list[str]](), "points": dict[str, list[str]]()}
    for entry in entries if isinstance(entries, list) else ():
        for field, named in sources.items():
            ids = entry.get(field) if isinstance(entry, Mapping) else None  # anyone may have written it
            for name in ids if isinstance(ids, list) else ():
                named.setdefault(str(name), []).append(str(entry.get("name", "")))
    apart = all(len(cubes) < 2 for cubes in sources["evaluations"].values())
    field, label, dims = ("evaluations", "eval_id", ("model",)) if apart else ("points", "cell_id", _CELL)
    if not sources[field]:
        return dataset
    ids = dataset[label].transpose(*dims).values
    names = [", ".join(sources[field].get(str(name), ())) for name in ids.ravel().tolist()]
    values = np.array(names, dtype=object).reshape(ids.shape)
    return _with(dataset, "source", dims, values, {"long_name": "cube from which it was merged"})


def _with(
    dataset: Dataset, name: str, dims: tuple[str, ...], values: np.ndarray, attrs: Mapping[Any, Any]
) -> Dataset:
    return dataset.assign_coords({name: variable(dims, values, attrs)})


def without_older(dataset: Dataset) -> tuple[Dataset, tuple[str, ...]]:
    """The dataset without what edited data files had in them before, where what they have now was measured."""
    if OLDER not in dataset.coords:
        return dataset, ()
    older = dataset[OLDER].transpose(*_CELL).values
    column = names(dataset, "counter").index("trials")
    trials = counter_cells(dataset).values[..., column].sum(axis=0)
    left_out = older & ((trials > 0) & ~older).any(axis=1, keepdims=True)
    if not left_out.any():
        return dataset, ()
    marked = _with(dataset, OLDER, _CELL, left_out, dataset[OLDER].attrs)
    digests = dict.fromkeys(dataset[FILE_VERSION].transpose(*_CELL).values[left_out].tolist())
    tasks = [name for name, row in zip(names(dataset, "task"), left_out, strict=True) if row.any()]
    text = (
        f"The data file of {', '.join(tasks)} was edited, and only its newest version counts here: "
        f"{int(trials[left_out].sum()):,} trials of earlier ones are left out; "
        f"the condition {FILE_VERSION}={','.join(digests)} shows them."
    )
    return restrict(marked, {OLDER: [False]}), (text,)


def tells_version(where: Iterable[str]) -> bool:
    """Whether conditions say which version of a data file is meant."""
    return any(name.partition("=")[0].strip() in (FILE_VERSION, OLDER, "params", "cell_id") for name in where)


def _points(spec: Spec, dataset: Dataset) -> dict[tuple[int, ...], PointSpec | None]:
    """What the description says of each point by its place (task, params); None where it lacks one."""
    described = {(task.label, point.cell_id): point for task in spec.tasks for point in task.points}
    tasks = dict(enumerate(names(dataset, "task")))  # a damaged cube may lack some
    return {
        index: described.get((tasks.get(index[0], ""), str(cell)))
        for index, cell in np.ndenumerate(dataset["cell_id"].transpose(*_CELL).values)
        if cell
    }


def _base_design(spec: Spec, dataset: Dataset) -> np.ndarray | None:
    """The base design in the description, shape (task, params); None if a point lacks it."""
    base = np.zeros([dataset.sizes[dim] for dim in _CELL], dtype=np.int64)
    for index, point in _points(spec, dataset).items():
        if point is None:
            return None
        base[index] = point.base
    return base


def split_by_columns(
    dataset: Dataset, by: Sequence[str], wanted: Mapping[str, object], columns: Columns
) -> Dataset:
    """The trials whose rows fulfil conditions on columns of data files, with a point for each value of other columns.

    A point has as much of the weight of the one that it was as its share of the rows. Counters are those of the whole
    points: count them again.
    """
    trials = np.asarray(dataset["trial"].values)
    parts = [
        [
            (slot, values, inside, part)
            for slot, cell_id in enumerate(row)
            if cell_id
            for values, inside, part in _rows_by_value(
                [columns[name].get(str(cell_id), []) for name in (*by, *wanted)],
                list(wanted.values()),
                trials,
            )
        ]
        for row in dataset["cell_id"].transpose(*_CELL).values.tolist()
    ]
    slots = max(map(len, parts))
    if not slots:
        words = ", ".join(f"{name}={condition}" for name, condition in wanted.items())
        raise SweepError(f"`where`: no row of a data file has {words}", "Drop or widen a condition")
    size = slots * math.prod(dataset.sizes[dim] for dim in ("model", "task", "trial", "repeat"))
    if slots > dataset.sizes["params"] and size > _MOST_TRIALS:
        raise SweepError(
            f"`by`: {', '.join(by)} has {slots:,} values in one task, too many to tell apart at once",
            "Take a column with fewer values; `evalcube trials --count` counts the rows of any",
        )
    shape = (len(parts), slots)
    source, share, asked = np.zeros(shape, np.intp), np.zeros(shape), np.zeros((*shape, len(trials)), bool)
    labels = np.full((len(by), *shape), "", dtype=object)
    for task, row in enumerate(parts):
        for number, (slot, values, inside, part) in enumerate(row):
            source[task, number], share[task, number] = slot, part
            asked[task, number], labels[:, task, number] = inside, values
    arrays = {
        name: array if "params" not in array.dims else _take_points(name, array, source, share, asked)
        for name, array in dataset.variables.items()
        if "params" not in array.dims or "task" in array.dims
    }
    arrays["asked"] = variable((*_CELL, "trial"), asked)
    for name, own in zip(by, labels, strict=True):
        arrays[name] = variable(_CELL, own, {"long_name": f"column {name} of the data file"})
    points = {name: array for name, array in arrays.items() if name in dataset.coords or name in by}
    split = dataset_like(dataset, {label: arrays[label] for label in arrays.keys() - points.keys()}, points)
    return restrict(split, {"cell_id": bool}) if wanted else split


def _take_points(
    name: str, array: Labelled, source: np.ndarray, share: np.ndarray, asked: np.ndarray
) -> Labelled:
    """An array of points and maybe trials, with the points of `source` in their place as far as they are `asked`."""
    dims = [dim for dim in array.dims if dim not in _CELL]
    values = np.asarray(array.transpose(*_CELL, *dims).data)[np.arange(len(source))[:, None], source]
    sizes = [asked.shape[-1] if dim == "trial" else 1 for dim in dims]
    share = share.reshape(*source.shape, *[1] * len(dims))
    if name in _SCHEMA and "repeat" in dims:
        inside = asked.reshape(*source.shape, *sizes)
        values = np.where(inside, values, np.array(_SCHEMA[name].fill, values.dtype))
    elif name in _PADDING:
        values = np.where(share > 0, values, _PADDING[name])
    elif name == BASE:
        values = values * share
    return variable((*_CELL, *dims), values, array.attrs).transpose(*array.dims)


def _rows_by_value(
    columns: Sequence[Sequence[str | None]], conditions: Sequence[object], trials: np.ndarray
) -> Iterator[tuple[tuple[str, ...], np.ndarray, float]]:
    """Values of the first columns, which trials ask rows with them, and their share; conditions are on the others."""
    size = max(map(len, columns))
    if not size:
        if not conditions:
            yield ("",) * len(columns), np.ones(len(trials), dtype=bool), 1.0
        return
    texts = np.array([[text or "" for text in column] or [""] * size for column in columns], dtype=object)
    by, chosen = len(columns) - len(conditions), np.ones(size, dtype=bool)
    for column, condition in zip(texts[by:], conditions, strict=True):
        chosen &= meets(column, condition)
    rows: dict[tuple[str, ...], list[int]] = {}
    for number in np.flatnonzero(chosen).tolist():
        rows.setdefault(tuple(texts[:by, number]), []).append(number)
    for values, numbers in rows.items():
        yield values, np.isin(trials, numbers), len(numbers) / size


def composite_settings(notes: Mapping[str, object]) -> tuple[Mapping[str, float] | None, str | None]:
    """Weights of the layers by name, None where all are the same, and the control; None where it is not declared."""
    config = notes.get("config")
    declared = config.get("composite") if isinstance(config, Mapping) else None
    if declared is None:
        return None, None
    from evalcube.flows.config.findings import reported  # both slow to load
    from evalcube.flows.config.judges import CompositeConfig

    with reported("`composite` in the cube's notes", CompositeConfig):
        composite = CompositeConfig.model_validate(declared)
    return None if composite.weights is None else composite.weights.model_dump(), composite.control


def with_prices(dataset: Dataset, cube: Cube | None, notes: Mapping[str, object]) -> Dataset:
    """The dataset with ``price_declared`` (model), and prices of prompts as they were with those that were cached.

    A price of 0 stands in a cube also where a config declares none. Cached tokens are told by trial and not in the
    counters, so that their lower price is spread over all prompts of a model.
    """
    declared = priced_models(notes)
    if declared is None:
        return dataset
    names = axes.names(dataset, "model_name")
    values = np.array([name in declared for name in names], dtype=bool)
    priced = dataset.assign_coords(price_declared=variable(("model",), values))
    more = cached_prices(notes)
    if cube is None or not any(more.values()) or "price_prompt" not in dataset.coords:
        return priced
    shares = _cached_shares(cube)
    prices = dataset["price_prompt"].values + [more.get(name, 0.0) * shares.get(name, 0.0) for name in names]
    return priced.assign_coords(price_prompt=variable(("model",), prices, dataset["price_prompt"].attrs))


def _cached_shares(cube: Cube) -> dict[str, float]:
    """Share of the tokens of a model's prompts that its endpoint had in its cache, by name of the model."""
    if "cached_tokens" not in cube.trial_arrays:
        return {}
    cached = cube.dataset()["cached_tokens"].clip(min=0).sum(("task", "params", "trial", "repeat")).values
    prompts = cube.read_counters()[..., COUNTERS.index("prompt_tokens_sum")].sum(axis=(1, 2))
    import pandas as pd  # which takes a while

    labels = list(map(str, cube.read_label("model_name")))
    sums = pd.DataFrame({"cached": cached, "every": prompts}, index=labels).groupby(level=0).sum()
    sums = sums[sums["every"] > 0]
    return dict((sums["cached"] / sums["every"]).clip(upper=1.0))
