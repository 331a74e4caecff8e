"""Several cubes as one labelled dataset in memory, region by region, and on what they contradict each other."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from evalcube._arrays import PlainDataset, as_xarray
from evalcube.flows.cube_like import SMALL
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.targets import Window, window_of
from evalcube.flows.read.cautions import graders_meet
from evalcube.flows.read.merged.inputs import Input
from evalcube.flows.read.merged.joined import Joined
from evalcube.flows.read.merged.layers import Array, Layers, UnionPart, lay
from evalcube.flows.state.recording import count_arrays, lacking_questions, receipt_of, sum_pairwise
from evalcube.stages.reply.status import COUNTERS, QUESTION_COUNTERS, SECOND, Status
from evalcube.stages.score.counters import add_counters, set_cost
from evalcube.storage.cube.ledger import Receipt, graders_of, most_fingerprints
from evalcube.storage.cube.regions import Region
from evalcube.storage.cube.schema import COUNTERS as COUNTERS_VARIABLE
from evalcube.storage.cube.schema import DUPLICATE, PLANNED, TRIAL_DIMS, Variable

if TYPE_CHECKING:
    import dask.array as da
    import pandas as pd
    import xarray as xr


@dataclass(frozen=True)
class Conflict:
    """Trials of one model and one task on which two cubes contradict each other."""

    model: str
    task: str
    kept: str
    """The cube whose outcomes stay."""
    hidden: str
    trials: int
    """How many, repeats included."""
    status_changes: int
    """How many of them also ended differently, such as right and wrong."""
    by_nature: bool
    """Whether the model was asked at a temperature above 0, so that two answers differ anyhow."""
    example: Mapping[str, Any]
    """One of them: params, trial, repeat, and how it ended in either cube."""


class Tally:
    """Counts contradictions. One thread at a time may add to it; `slots` is the length of the axis of params."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._tables: list[pd.DataFrame] = []

    @property
    def trials(self) -> int:
        """All contradicted trials."""
        return int(sum(table["trials"].sum() for table in self._tables))

    @property
    def unclear(self) -> int:
        """Those of which no side is newer."""
        return int(sum(table["undecided"].sum() for table in self._tables))

    def add(
        self, model: int, shape: tuple[int, int, int], first: tuple[int, int], rows: pd.DataFrame
    ) -> None:
        """Count what was found in a region."""
        cell, trial, repeat = np.unravel_index(rows["where"].to_numpy(), shape)
        task, slot = np.divmod(cell, self._slots)
        position = {"slot": slot, "trial": trial + first[0], "repeat": repeat + first[1]}
        changes = rows["kept"] != rows["hidden"]
        rows = rows.assign(model=model, task=task, **position, trials=1, changes=changes)
        self._tables.append(_sum_conflicts(rows))

    def update(self, tally: Tally) -> None:
        """Add what another one has counted, of other models."""
        self._tables += tally._tables

    def conflicts(
        self,
        names: Sequence[str],
        models: Sequence[str],
        tasks: Sequence[str],
        points: Sequence[Sequence[Mapping[str, Any]]],
        by_nature: Sequence[bool],
    ) -> list[Conflict]:
        """All of them, by model and task."""
        if not self._tables:
            return []
        import pandas as pd

        rows = _sum_conflicts(pd.concat(self._tables)).to_dict("records")
        return [
            Conflict(
                models[row["model"]],
                tasks[row["task"]],
                names[row["upper"]],
                names[row["lower"]],
                int(row["trials"]),
                int(row["changes"]),
                by_nature[row["model"]],
                {
                    "params": dict(points[row["task"]][row["slot"]]),
                    "trial": int(row["trial"]),
                    "repeat": int(row["repeat"]),
                    **{side: Status(row[side]).name.lower() for side in ("kept", "hidden")},
                },
            )
            for row in rows
        ]


_OF = ["model", "task", "upper", "lower"]


def _sum_conflicts(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each model, task and pair of cubes, with one that ended differently, if any, as its example."""
    rows = rows.assign(same=rows["kept"] == rows["hidden"]).sort_values(["same", "slot", "trial", "repeat"])
    sums = dict.fromkeys(("trials", "changes", "undecided"), "sum")
    example = dict.fromkeys(("slot", "trial", "repeat", "kept", "hidden"), "first")
    return rows.groupby(_OF, as_index=False).agg(sums | example)


_MOST_CAUSES = 8


@dataclass(frozen=True, eq=False)
class MergedRegion:
    """A region of the union."""

    window: Window
    arrays: dict[str, Array]
    """In the window's shape."""
    parts: Sequence[Receipt]
    """Of what it was made."""

    def receipt(self, planned: Array, digest: str) -> Receipt:
        """Its receipt."""
        generation = max(part.generation for part in self.parts)
        receipt = receipt_of(self.window, generation, planned, self.arrays["status"], digest, {})
        causes: Counter[str] = Counter()
        # The same region of two copies of a cube has met each error once.
        for copy in {(part.digest, json.dumps(dict(part.causes))): part for part in self.parts}.values():
            causes.update(copy.causes)
        graders = sorted({grader for part in self.parts for grader in part.grader.split("+")})
        return replace(
            receipt,
            causes=dict(causes.most_common(_MOST_CAUSES)) if receipt.transport else {},
            grader="+".join(graders),
            at=max(part.at for part in self.parts),
            fingerprints=most_fingerprints({part.digest: part.fingerprints for part in self.parts}.values()),
        )


class ModelMerge:
    """Merges one model of the union, given by its number. One thread uses it.

    With `newer` the later of two different outcomes stays, else that of the cube named first.
    """

    def __init__(self, joined: Joined, model: int, *, newer: bool) -> None:
        self._joined, self._model, self._newer = joined, model, newer
        self._layers = joined.layers()
        self.tally = Tally(joined.plan.slots)
        """What contradicted in the regions so far."""
        self._counted: list[Array] = []
        self._lacking: list[Array] = []

    def regions(self) -> Iterator[MergedRegion]:
        """All regions that any cube knows something of, in the order of trials and repeats."""
        sizes, chunks = self._joined.plan.sizes, self._joined.plan.chunks
        for trial in range(-(-sizes["trial"] // chunks["trial"])):
            status = []
            for repeat in range(-(-sizes["repeat"] // chunks["repeat"])):
                region = self._region(window_of(sizes, Region(self._model, trial, repeat), chunks))
                if region is not None:
                    self._counted.append(self._counters(region))
                    status.append(region.arrays["status"])
                    yield region
            if len(status) > 1:
                self._lacking.append(lacking_questions(status))

    def counters(self) -> Array | None:
        """Counters of the regions so far, shape (task, params, counter); None if there were none."""
        parts = [*self._counted, *self._lacking]
        return sum_pairwise(parts, add_counters) if parts else None

    def _region(self, window: Window) -> MergedRegion | None:
        shape, begin = window.shape, (window.first_trial, window.first_repeat)
        part = UnionPart(self._model, (begin[0], begin[0] + shape[2]), (begin[1], begin[1] + shape[3]))
        parts: list[Receipt] = []
        top, contradictions = lay(self._layers.of(part, parts), newer=self._newer)
        if top is None:
            return None
        for contradiction in contradictions:
            cells = (shape[0] * shape[1], shape[2], shape[3])
            self.tally.add(self._model, cells, begin, contradiction)
        arrays = {name: values.reshape(*shape, *values.shape[3:]) for name, values in top.arrays.items()}
        return MergedRegion(window, arrays, parts)

    def _counters(self, region: MergedRegion) -> Array:
        """As if the region held all repeats of its questions."""
        window = region.window
        trials = slice(window.first_trial, window.first_trial + window.shape[2])
        prices = self._joined.plan.prices[self._model]
        flags = self._joined.flags[:, :, trials, np.newaxis]
        return count_arrays(region.arrays, flags, self._joined.targets.mask(window), prices)


_THREADS = 2


@dataclass(frozen=True)
class JoinedCubes:
    """Several cubes as one."""

    dataset: PlainDataset | xr.Dataset
    """As of a merged cube."""
    warnings: tuple[str, ...]
    """What its reader should know, a sentence each."""
    plan: Plan


def open_joined(cubes: Sequence[str], *, trials: bool, lazy: bool = False) -> JoinedCubes:
    """Several cubes as one dataset, joined by identity as `evalcube.flows.share.merge.merge_cubes` joins them.

    Where two of them contradict, the outcome of the cube that is named first holds, and a warning says how many. Where
    they have other judges, scores by judges are left out, and a warning says so. Large trial arrays are lazy.
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
    if trials or {"fact", "cluster", SECOND} & set(joined.variables):
        # of about four bytes each
        lazy = lazy or 4 * len(joined.variables) * math.prod(shape[dim] for dim in TRIAL_DIMS) > SMALL
        arrays = _lazy_arrays(joined) if lazy else _read_models(joined)
        variables |= {name: _variable(joined.variables[name][0], array) for name, array in arrays.items()}
    coords = {label.name: (label.dims, label.values, dict(label.attrs)) for label in joined.labels()}
    for dim in ("trial", "repeat"):
        coords[dim] = ((dim,), np.arange(shape[dim]), {"long_name": dim})
    attrs = {"title": "evalcube sweep", "spec": joined.plan.spec()}
    plain = PlainDataset(variables, coords, attrs)
    dataset = as_xarray(plain) if lazy else plain
    graders = graders_of(chain.from_iterable(label.receipts.values() for label in joined.inputs))
    warnings = (*joined.notes, *_contradictions(tally), *graders_meet(graders))
    return JoinedCubes(dataset, warnings, joined.plan)


def _variable(variable: Variable, values: Any) -> tuple[tuple[str, ...], Any, dict[str, object]]:  # noqa: ANN401 - Dask's
    return variable.dims, values, dict(variable.attributes)


def _contradictions(tally: Tally) -> list[str]:
    if not tally.trials:
        return []
    many = f"{tally.trials:,} trials have other outcomes in two of the cubes"
    return [f"{many}; those of the cube that is named first are taken. evalcube diff shows more."]


def _counters(joined: Joined) -> tuple[Array, Tally]:
    """Counters (model, task, params, counter): those of the cubes, and counted anew where two of them have one cell."""
    width = len(COUNTERS + QUESTION_COUNTERS)
    shape = (len(joined.plan.evaluations), len(joined.plan.tasks), joined.plan.slots, width)
    sums = np.zeros((shape[0], shape[1] * shape[2], width))
    holders = np.zeros(sums.shape[:2], dtype=np.int64)
    for source, layout in zip(joined.inputs, joined.union.places, strict=True):
        mine, theirs = source.cells(layout, shape[2])
        stored = source.cube.read_counters().reshape(len(layout.models), -1, width)
        recorded = (source.planned.trials > 0).reshape(len(layout.models), -1)
        for row, model in enumerate(layout.models):
            sums[model, theirs] += stored[row][mine]
            holders[model, theirs] += recorded[row][mine]
    tally = Tally(shape[2])
    shared = np.flatnonzero((holders > 1).any(axis=1)).tolist()
    with ThreadPoolExecutor(_THREADS) as pool:
        for model, merge, values in pool.map(lambda model: _count_model(joined, model), shared):
            tally.update(merge.tally)
            sums[model] = 0.0 if values is None else values.reshape(-1, width)
    counters = sums.reshape(shape)
    prices = np.array(joined.plan.prices, dtype=np.float64)[:, None, None]
    set_cost(counters, prices[..., 0], prices[..., 1])
    return counters, tally


def _count_model(joined: Joined, model: int) -> tuple[int, ModelMerge, Array | None]:
    """The counters of a model that several cubes have, from its trials."""
    merge = ModelMerge(joined, model, newer=False)
    for _ in merge.regions():
        pass
    return model, merge, merge.counters()


def _read_models(joined: Joined) -> dict[str, Array]:
    """Trial arrays in memory."""
    sizes, layers = joined.plan.sizes, joined.layers()
    parts = [UnionPart(n, (0, sizes["trial"]), (0, sizes["repeat"])) for n in range(sizes["model"])]
    models = [_read_part(joined, layers, part, joined.variables) for part in parts]
    return {name: np.concatenate([arrays[name] for arrays in models]) for name in joined.variables}


def _lazy_arrays(joined: Joined) -> dict[str, da.Array]:
    """Trial arrays, one chunk for each region, which is read and joined on demand."""
    import dask.array as da

    sizes, chunks = joined.plan.sizes, joined.plan.chunks
    shape = tuple(sizes[dim] for dim in TRIAL_DIMS)
    cut = (1, *shape[1:3], chunks["trial"], chunks["repeat"])

    def read_block(block_info: Any, name: str) -> Array:  # noqa: ANN401 - Dask's
        (model, _), _, _, trials, repeats, *_ = block_info[None]["array-location"]
        return _read_part(joined, joined.layers(), UnionPart(model, trials, repeats), [name])[name]

    return {
        name: da.map_blocks(
            partial(read_block, name=name),
            chunks=da.core.normalize_chunks(cut + more, shape + more),
            name=f"joined-{name}-{id(joined)}",
            dtype=variable.dtype,
            meta=np.empty((0,) * len(shape + more), variable.dtype),
        )
        for name, (variable, more) in joined.variables.items()
    }


def _read_part(joined: Joined, layers: Layers, part: UnionPart, names: Iterable[str]) -> dict[str, Array]:
    """Trial arrays of a part by name, each as (1, task, params, trial, repeat, ...)."""
    if len(layers.sharing(part.model)) == 1:
        # Nothing to compare: read as any reader of that cube reads it.
        tops = {name: lay(joined.layers(only=name).of(part, []))[0] for name in names}
    else:
        tops = dict.fromkeys(names, lay(layers.of(part, []))[0])
    sizes, blocks = joined.plan.sizes, {}
    lengths = tuple(last - first for first, last in (part.trials, part.repeats))
    for name, top in tops.items():
        variable, more = joined.variables[name]
        shape = (1, sizes["task"], sizes["params"], *lengths, *more)
        values = np.full(shape, variable.fill, variable.dtype) if top is None else top.arrays[name]
        blocks[name] = values.reshape(shape)
    return blocks
