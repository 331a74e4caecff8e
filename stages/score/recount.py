"""Count a cube's dataset again, as if less had been measured: fewer trials, new prompts only, a lower token limit."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from evalcube._arrays import Dataset, DatasetT, is_lazy, variable
from evalcube.stages.errors import ArgumentError, ArgumentTypeError
from evalcube.stages.reply.status import COUNTERS, QUESTION_MOMENTS, SECOND, Status
from evalcube.stages.score.counters import (
    VALUES,
    FloatArray,
    check_options,
    count_trials,
    over_limit,
    set_cost,
)

if TYPE_CHECKING:
    import dask.array as da

_TRIAL = ("model", "task", "params", "trial", "repeat")
_CELL = _TRIAL[:3]
_SHARED = {
    "duplicate": ("task", "params", "trial"),
    "asked": ("task", "params", "trial"),
    "planned_trials": _CELL,
    "planned_repeats": _CELL,
}
_MISSING = int(Status.MISSING)
_Arrays = dict[str, tuple[Any, tuple[str, ...]]]
"""Name to array and dims."""


def recount(
    dataset: DatasetT, *, unique_only: bool = False, trials: int | None = None, clip_tokens: int | None = None
) -> DatasetT:
    """Recompute a dataset's `counters` from a part of its trials.

    Every chunk is counted on its own and the counts are added, so that memory holds some chunks at a time,
    however large the cube.

    Parameters
    ----------
    dataset
        Dataset with the trial arrays (model, task, params, trial, repeat), lazy or not. Used where they are there:
        ``duplicate``, ``asked`` (task, params, trial), ``planned_trials`` and ``planned_repeats`` (model, task,
        params), without which every trial without an outcome is missing, and the prices ``price_prompt`` and
        ``price_completion`` (model) in USD per million tokens, without which nothing costs anything.
    unique_only
        Leave out trials that repeat an earlier question of their cell.
    trials
        Use only this many trials of each cell, from the first; None means all.
    clip_tokens
        Compute as if the limit of completion tokens had been this: longer answers count as truncated; None means as it
        was.

    Returns
    -------
    Dataset
        With ``counters`` (model, task, params, counter), lazy if the trial arrays are; all else as it was.

    Raises
    ------
    ValueError
        If a trial array is missing, or an option cannot be met.
    """
    if not hasattr(dataset, "data_vars"):
        raise ArgumentTypeError(
            f"`dataset` is a {type(dataset).__name__}, and no Dataset; open it with `open_cube`"
        )
    check_options(
        map(str, dataset.variables), unique_only=unique_only, trials=trials, clip_tokens=clip_tokens
    )
    absent = [name for name in ("status", *VALUES) if name not in dataset]
    if absent:
        raise ArgumentError(f"the dataset lacks the trial arrays {absent}; open it with `Cube.dataset()`")
    prices: list[FloatArray] = []
    for name in ("price_prompt", "price_completion"):
        price = np.nan_to_num(np.asarray(dataset.variables.get(name, 0.0), dtype=np.float64))
        prices.append(np.broadcast_to(price, dataset.sizes["model"]).reshape(-1, 1, 1, 1))
    taken = _take(dataset.isel(trial=slice(trials)))
    options = {"unique_only": unique_only, "clip_tokens": clip_tokens}
    counted: FloatArray | da.Array
    if any(is_lazy(array) for array, _ in taken.values()):
        counted = _counted_lazily(taken, prices, options)
    else:
        arrays = [array for array, _ in taken.values()]
        counted = _price(_count_chunk(*arrays, names=tuple(taken), options=options)[:, :, :, 0, 0], *prices)
    attrs = dataset["counters"].attrs if "counters" in dataset else {}
    # Those of the questions follow from the trial arrays, for whoever needs them.
    recounted = dataset.drop_vars(["counters", "counter", QUESTION_MOMENTS], errors="ignore")
    recounted = recounted.assign(counters=variable((*_CELL, "counter"), counted, attrs))
    return recounted.assign_coords(counter=variable(("counter",), np.array(COUNTERS)))


def trim_trials(
    dataset: DatasetT, *, unique_only: bool = False, trials: int | None = None, clip_tokens: int | None = None
) -> DatasetT:
    """The dataset with its trial arrays as `recount` counts them, for analyses that read single trials."""
    subset = dataset.isel(trial=slice(trials))
    tokens, changed = subset.variables["tokens"].transpose(*_TRIAL), {}
    if clip_tokens is not None:
        fewer = np.minimum(tokens.data, np.int64(clip_tokens)).astype(tokens.dtype)
        changed["tokens"] = variable(_TRIAL, fewer, tokens.attrs)
    for name in ("status", *([SECOND] if SECOND in subset else [])):
        status = subset.variables[name].transpose(*_TRIAL)
        values = status.data
        if unique_only:
            again = subset.variables["duplicate"].transpose(*_SHARED["duplicate"]).data[..., np.newaxis] == 1
            values = np.where(again, np.uint8(Status.MISSING), values)
        if clip_tokens is not None:
            values = np.where(
                over_limit(values, tokens.data, clip_tokens), np.uint8(Status.TRUNCATED), values
            )
        changed[name] = variable(_TRIAL, values, status.attrs)
    return subset.assign(changed)


def _take(dataset: Dataset) -> _Arrays:
    """Arrays with their dims, and numbers along trial and repeat, which a chunk does not know by itself."""
    dims: dict[str, tuple[str, ...]] = dict.fromkeys(("status", *VALUES), _TRIAL)
    dims |= {name: own for name, own in _SHARED.items() if name in dataset}
    # Variables, not data arrays: coordinates may be chunked otherwise.
    arrays: _Arrays = {
        name: (dataset.variables[name].transpose(*own).data, own) for name, own in dims.items()
    }
    for dim in _TRIAL[3:]:
        numbers = dataset.variables.get(dim)  # of what was selected
        arrays[dim] = (np.arange(dataset.sizes[dim]) if numbers is None else numbers.values, (dim,))
    return arrays


def _counted_lazily(arrays: _Arrays, prices: list[FloatArray], options: dict[str, Any]) -> da.Array:
    """Counters (model, task, params, counter): chunks counted on their own, then added."""
    import dask.array as da

    status = arrays["status"][0]
    cuts = status.chunks if is_lazy(status) else [(size,) for size in status.shape]
    chunks = dict(zip(_TRIAL, cuts, strict=True))
    pairs: list[Any] = []
    for array, dims in arrays.values():
        # As `status` is cut: a finer cut of a small shared array would cut every array.
        pairs += [_blocks(array, tuple(chunks[dim] for dim in dims)), dims]
    parts = da.blockwise(
        _count_chunk,
        (*_TRIAL, "counter"),
        *pairs,
        names=tuple(arrays),
        options=options,
        new_axes={"counter": len(COUNTERS)},
        adjust_chunks=dict.fromkeys(_TRIAL[3:], lambda _: 1),
        meta=np.empty((0,) * 6),
    )
    summed = parts.sum(axis=(3, 4))
    costs = (_blocks(price, (summed.chunks[0], (1,), (1,), (1,))) for price in prices)
    priced: da.Array = da.map_blocks(_price, summed, *costs, dtype=np.float64)
    return priced


def _blocks(array: Any, chunks: tuple[tuple[int, ...], ...]) -> da.Array:  # noqa: ANN401 - of numpy or Dask
    """An array cut into chunks: views of one in memory, which `da.from_array` would copy and hash as a whole."""
    if is_lazy(array):
        cut: da.Array = array.rechunk(chunks)
        return cut
    import dask.array as da
    from dask.array.core import slices_from_chunks

    name = f"trials-{uuid4()}"
    keys = product([name], *(range(len(sizes)) for sizes in chunks))
    parts = (array[region] for region in slices_from_chunks(chunks))
    return da.Array(dict(zip(keys, parts, strict=True)), name, chunks, meta=array)


def _count_chunk(*blocks: npt.NDArray[Any], names: tuple[str, ...], options: dict[str, Any]) -> FloatArray:
    """Counters of one chunk, shape (model, task, params, 1, 1, counter)."""
    arrays = dict(zip(names, blocks, strict=True))
    trial, repeat = arrays.pop("trial"), arrays.pop("repeat")
    asked = arrays.pop("asked", np.ones((), np.bool_))
    if "planned_trials" in arrays and "planned_repeats" in arrays:
        trials, repeats = (arrays.pop(f"planned_{dim}s")[..., None, None] for dim in ("trial", "repeat"))
        if (arrays["status"] == _MISSING).any():
            arrays["planned"] = (trial[:, np.newaxis] < trials) & (repeat < repeats) & asked[..., None]
    if "duplicate" in arrays:
        arrays["duplicate"] = arrays["duplicate"][..., np.newaxis]
    return count_trials(arrays, **options)[:, :, :, np.newaxis, np.newaxis]


def _price(counters: FloatArray, prompt: FloatArray, completion: FloatArray) -> FloatArray:
    total = counters.copy()
    set_cost(total, prompt[..., 0], completion[..., 0])
    return total
