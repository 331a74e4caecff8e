"""Several cubes as one labelled dataset in memory: of their trials only what is asked for is read."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from evalcube.flows.read.merged.conflicts import Tally
from evalcube.flows.read.merged.inputs import Input
from evalcube.flows.read.merged.joined import Joined
from evalcube.flows.read.merged.layers import Array, Part, lay
from evalcube.flows.read.merged.regions import ModelMerge
from evalcube.stages.reply.status import COUNTERS, QUESTION_COUNTERS
from evalcube.stages.score.counters import set_cost
from evalcube.storage.cube.ledger import graders_of
from evalcube.storage.cube.schema import COUNTERS as COUNTERS_VARIABLE
from evalcube.storage.cube.schema import DUPLICATE, PLANNED, Variable

if TYPE_CHECKING:
    import dask.array as da

_THREADS = 2


@dataclass(frozen=True)
class JoinedCubes:
    """Several cubes as one."""

    dataset: xr.Dataset
    """As of a merged cube."""
    warnings: tuple[str, ...]
    """What its reader should know, a sentence each."""


def open_joined(cubes: Sequence[str], *, trials: bool) -> JoinedCubes:
    """Several cubes as one dataset, joined by identity as `evalcube.flows.share.merge.merge_cubes` joins them.

    Where two of them contradict, the outcome of the cube that is named first holds, and a warning says how many. Where
    they have other judges, scores by judges are left out, and a warning says so.

    Parameters
    ----------
    cubes
        Their addresses.
    trials
        Whether single trials are needed, and not only their counters. They are lazy.

    Raises
    ------
    StorageError
        If a cube cannot be read, or is damaged.
    SweepError
        If they do not fit together.
    """
    joined = Joined([Input(url) for url in cubes], without_judges=True)
    counters, tally = _counters(joined)
    shape = joined.plan.sizes
    variables = {
        COUNTERS_VARIABLE.name: _variable(COUNTERS_VARIABLE, counters),
        DUPLICATE.name: _variable(DUPLICATE, joined.flags),
        **{
            name: _variable(variable, getattr(joined.targets, name.removeprefix("planned_")))
            for name, variable in PLANNED.items()
        },
    }
    # There are no composites without the layers of single trials, nor sums by cluster.
    if trials or {"fact", "cluster"} & set(joined.variables):
        variables |= {
            name: _variable(variable, _lazy(joined, name, variable, more))
            for name, (variable, more) in joined.variables.items()
        }
    coords = {one.name: (one.dims, one.values, dict(one.attrs)) for one in joined.labels()}
    for dim in ("trial", "repeat"):
        coords[dim] = ((dim,), np.arange(shape[dim]), {"long_name": dim})
    attrs = {"title": "evalcube sweep", "spec": joined.plan.spec()}
    dataset = xr.Dataset(variables, coords=coords, attrs=attrs)
    return JoinedCubes(dataset, (*joined.notes, *_contradictions(tally), *_graders(joined)))


def _variable(variable: Variable, values: Any) -> tuple[tuple[str, ...], Any, dict[str, object]]:  # noqa: ANN401 - Dask's
    return variable.dims, values, dict(variable.attributes)


def _contradictions(tally: Tally) -> list[str]:
    if not tally.trials:
        return []
    many = f"{tally.trials:,} trials have other outcomes in two of the cubes"
    return [f"{many}; those of the cube that is named first are taken. evalcube diff shows more."]


def _graders(joined: Joined) -> list[str]:
    found = graders_of(chain.from_iterable(one.receipts.values() for one in joined.inputs))
    if len(found) < 2:
        return []
    named = f"{', '.join(found[:-1])} and {found[-1]}"
    return [f"Results of graders {named} meet in these cubes; evalcube rescore grades all replies alike."]


def _counters(joined: Joined) -> tuple[Array, Tally]:
    """Counters (model, task, params, counter): those of the cubes, and counted anew where two of them have one cell."""
    width = len(COUNTERS + QUESTION_COUNTERS)
    shape = (len(joined.plan.evaluations), len(joined.plan.tasks), joined.plan.slots, width)
    found = np.zeros((shape[0], shape[1] * shape[2], width))
    holders = np.zeros(found.shape[:2], dtype=np.int64)
    for one, place in zip(joined.inputs, joined.union.places, strict=True):
        mine, theirs = one.cells(place, shape[2])
        stored = one.cube.read_counters().reshape(len(place.models), -1, width)
        recorded = (one.planned.trials > 0).reshape(len(place.models), -1)
        for row, model in enumerate(place.models):
            found[model, theirs] += stored[row][mine]
            holders[model, theirs] += recorded[row][mine]
    tally = Tally(shape[2])
    shared = np.flatnonzero((holders > 1).any(axis=1)).tolist()
    with ThreadPoolExecutor(_THREADS) as pool:
        for model, merge, values in pool.map(lambda model: _counted(joined, model), shared):
            tally.update(merge.tally)
            found[model] = 0.0 if values is None else values.reshape(-1, width)
    counters = found.reshape(shape)
    prices = np.array(joined.plan.prices, dtype=np.float64)[:, None, None]
    set_cost(counters, prices[..., 0], prices[..., 1])
    return counters, tally


def _counted(joined: Joined, model: int) -> tuple[int, ModelMerge, Array | None]:
    """The counters of a model that several cubes have, from its trials."""
    merge = ModelMerge(joined, model, newer=False)
    for _ in merge.regions():
        pass
    return model, merge, merge.counters()


def _lazy(joined: Joined, name: str, variable: Variable, more: tuple[int, ...]) -> da.Array:
    """A trial array, one chunk for each region, which is read and joined on demand."""
    import dask.array as da

    sizes, chunks = joined.plan.sizes, joined.plan.chunks
    shape = tuple(sizes[dim] for dim in ("model", "task", "params", "trial", "repeat")) + more
    cut = (1, shape[1], shape[2], chunks["trial"], chunks["repeat"], *more)

    def read(block_info: Any) -> Array:  # noqa: ANN401 - Dask's
        (model, _), _, _, trials, repeats, *_ = block_info[None]["array-location"]
        part = Part(model, trials, repeats)
        layers = joined.layers()
        if len(layers.sharing(model)) == 1:
            # Nothing to compare: read as any reader of that cube reads it.
            layers = joined.layers(only=name)
        known = layers.of(part, [])
        first = next(known, None)
        block = (1, *shape[1:3], trials[1] - trials[0], repeats[1] - repeats[0], *more)
        if first is None:
            return np.full(block, variable.fill, dtype=variable.dtype)
        values: Array = lay(chain([first], known))[0].arrays[name].reshape(block)
        return values

    array: da.Array = da.map_blocks(
        read,
        chunks=da.core.normalize_chunks(cut, shape),
        name=f"joined-{name}-{id(joined)}",
        dtype=variable.dtype,
        meta=np.empty((0,) * len(shape), variable.dtype),
    )
    return array
