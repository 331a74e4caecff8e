"""Two evaluations, of one cube or of two, laid side by side question by question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evalcube._arrays import Dataset, PlainDataset
from evalcube.flows.cube_like import need_addresses
from evalcube.flows.errors import SweepError, need_number, no_bare_text
from evalcube.flows.plan.evaluations import evaluation_place
from evalcube.flows.read.selection import OpenPart, Part, open_part
from evalcube.stages.analyze.labelled import axes, pairing
from evalcube.stages.analyze.labelled.axes import base_design
from evalcube.stages.analyze.labelled.clustering import CLUSTER
from evalcube.stages.analyze.labelled.counters import members, planned_mask, planned_questions
from evalcube.stages.analyze.labelled.pairing import Pair
from evalcube.stages.analyze.labelled.remarks import first_few
from evalcube.stages.reply.status import BASE, COUNTERS, LAST_FINISHED, Status
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.group import chunk_words, heal
from evalcube.storage.cube.integrity import stored_problems
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.errors import CubeDamagedError
from evalcube.storage.urls import redacted

if TYPE_CHECKING:
    import xarray as xr

CELL = ("task", "params")


@dataclass(frozen=True)
class Side:
    """One evaluation of a cube, or of a part of it."""

    address: str
    """Of its cube."""
    label: str
    """What it is called beside the other."""
    eval_id: str
    dataset: Dataset
    """Of this evaluation alone, dims ``model`` of length 1, ``task``, ``params``, ``trial``, ``repeat``."""

    @cached_property
    def points(self) -> dict[tuple[str, str], tuple[int, int]]:
        """(label of the task, id of the cell) -> indices along the dataset's ``task`` and ``params``."""
        tasks = axes.names(self.dataset, "task")
        ids = self.dataset["cell_id"].transpose(*CELL).values
        return {(tasks[task], str(cell)): (task, slot) for (task, slot), cell in np.ndenumerate(ids) if cell}

    def array(self, name: str) -> npt.NDArray[np.integer]:
        """An array of its trials or points, without ``model``."""
        variable = self.dataset[name].variable.isel(model=0)
        order = [dim for dim in (*CELL, "trial", "repeat") if dim in variable.dims]
        return np.asarray(variable.transpose(*order).compute().values)


@dataclass(frozen=True)
class SidePoint:
    """A point that at least one of two sides has."""

    task: str
    cell_id: str
    params: str
    """JSON."""


@dataclass(frozen=True)
class SideBySide:
    """Two sides with their trials in common order; arrays have the dims that `dataset` has."""

    first: Side
    second: Side
    selection: str
    warnings: tuple[str, ...]
    points: tuple[tuple[SidePoint, ...], ...]
    """By task; a task's points fill the beginning of ``params``."""
    dataset: PlainDataset
    """``status`` (model, task, params, trial, repeat), the two sides along ``model``, ``planned_trials``, the points'
    weights, and ``cluster`` if questions have any."""
    planned: npt.NDArray[np.bool_]
    """Which trials were to be asked: shape of ``status``."""

    @cached_property
    def status(self) -> npt.NDArray[np.uint8]:
        """Outcomes, shape (side, task, params, trial, repeat)."""
        return np.asarray(self.dataset["status"].values)

    @property
    def tasks(self) -> list[str]:
        """Labels of the tasks."""
        return axes.names(self.dataset, "task")

    def refuse_altered(self) -> None:
        """See `refuse_altered`."""
        for side in (self.first, self.second):
            refuse_altered(side.address, [side.eval_id])

    def both(self, truncated: str = "wrong") -> npt.NDArray[np.bool_]:
        """Which trials are compared, as both finished them: shape (task, params, trial, repeat)."""
        return np.asarray(pairing.is_counted(self.status, truncated).all(axis=0))

    def lacking(self, truncated: str = "wrong") -> npt.NDArray[np.bool_]:
        """Which trials that were put to both, or to the first at points that the second lacks, not both finished."""
        first, second = self.planned
        alone = ~second.any(axis=(-2, -1), keepdims=True)
        return np.asarray(first & (second | alone) & ~self.both(truncated))

    def compare(self, **options: Any) -> Pair | None:  # noqa: ANN401 - of `compare_evaluations`
        """The paired comparison of the two; None where they have no finished trial in common."""
        if not self.both(options.get("truncated", "wrong")).any():
            return None
        (pair,) = pairing.compare_evaluations(self.dataset, [0, 1], **options)
        return replace(pair, first=self.first.label, second=self.second.label)

    def cut(self, cells: npt.NDArray[np.bool_], trials: int | None = None) -> SideBySide:
        """The same with some of the points, (task, params), and the first so many trials of each."""
        dataset, inside = self.dataset.isel(trial=slice(trials)), cells[..., np.newaxis, np.newaxis]
        asked, status = dataset["planned_trials"], dataset["status"]
        dataset = dataset.assign(
            status=(status.dims, np.where(inside, status.values, np.uint8(Status.MISSING))),
            planned_trials=(asked.dims, np.where(cells, asked.values, 0).clip(max=dataset.sizes["trial"])),
        )
        planned = self.planned[..., :trials, :] & inside
        return replace(self, dataset=dataset, planned=planned)


def side_by_side(
    cubes: Sequence[str | Path],
    models: Sequence[str] = (),
    part: Part | None = None,
    *,
    repeats: int | None = None,
) -> SideBySide:
    """Two evaluations of one cube, or one of each of two cubes."""
    no_bare_text(cubes=cubes, models=models)
    check_repeats(repeats)
    if len(cubes) > 2:
        raise SweepError(f"`cube`: two are compared at most, got {len(cubes)} cubes", "Name one cube or two")
    if len(models) > 2:
        raise SweepError(f"`models`: two are compared, got {len(models)}", "Name two of them")
    opened = [open_part(str(cube), part) for cube in cubes]
    warnings = tuple(dict.fromkeys(text for side in opened for text in side.warnings))
    first, second = _chosen([str(cube) for cube in cubes], opened, models)
    return _align(first, second, opened[0].selection, warnings, repeats)


def refuse_altered(address: str | Path, eval_ids: Sequence[str]) -> None:
    """Refuse to decide on evaluations of a cube whose trials or counters are not what was recorded.

    Trials that are recorded and not counted yet are no contradiction: a run adds them up later.
    """
    cube = Cube.open(address)
    ids, newest = cube.whole_label("eval_id").tolist(), Ledger(cube.records).newest()
    for model in [ids.index(name) for name in eval_ids if name in ids]:
        own = [receipt for receipt in newest.values() if receipt.region.model == model]
        reasons, counted = list[str](), np.zeros((2, *cube.read_counters().shape[1:3]))
        for receipt in own:
            problems, arrays = stored_problems(cube, receipt)
            words = [chunk_words(*pair) for pair in sorted(problems.items())]
            reasons += [f"{text} ({receipt.planned:,} trials)" for text in words]
            status = arrays.get("status", np.zeros((*counted.shape[1:], 0, 0)))
            counted[0] += (status <= LAST_FINISHED).sum(axis=(-2, -1))
            counted[1] += (status == int(Status.CORRECT)).sum(axis=(-2, -1))
        stored = [cube.read_counters()[model, ..., COUNTERS.index(name)] for name in ("trials", "correct")]
        apart = int(np.abs(counted - stored).sum(axis=(1, 2)).max())
        late = stored[0].sum() < sum(receipt.finished for receipt in own)
        if apart and own and not late:
            reasons.append(f"arrays 'status' and 'counters' differ by {apart:,} trials")
        if reasons and Ledger(cube.records).newest() != newest:  # a run has just written there
            refuse_altered(address, eval_ids)
            return
        if reasons:
            problem = f"nothing is decided on '{cube.whole_label('model_name')[model]}': {'; '.join(reasons)}"
            raise CubeDamagedError(problem, cube.url, heal(cube.url))


def warn_of_joined(
    opened: OpenPart, cubes: Sequence[str | Path | xr.Dataset], chosen: Sequence[int]
) -> OpenPart:
    """The part with a caution of evaluations that are in several cubes: two of these can be compared otherwise."""
    if len(cubes) < 2:
        return opened
    ids, labels = axes.names(opened.arrays, "eval_id"), axes.evaluation_labels(opened.arrays)
    there = [set(Cube.open(address).whole_label("eval_id").tolist()) for address in need_addresses(cubes)]
    twice = [labels[row] for row in chosen if sum(ids[row] in own for own in there) > 1]
    text = (
        f"{first_few(twice)}: in several of the cubes, whose answers are joined here. "
        "`evalcube gate`, and the flips of a comparison, pair those of the first cube with those of the second."
    )
    return replace(opened, warnings=(*opened.warnings, *([text] if twice else ())))


def check_repeats(repeats: int | None) -> None:
    """Refuse what is no number of answers to a question."""
    if repeats is None:
        return
    need_number("repeats", repeats, whole=True)
    if repeats < 1:
        raise SweepError(f"`repeats`: {repeats} is less than 1", "Give a number from 1, or none for all")


def _chosen(cubes: Sequence[str], opened: Sequence[OpenPart], models: Sequence[str]) -> tuple[Side, Side]:
    """The evaluation of each side: two of one cube, or one of each of two."""
    single = len(opened) == 1
    pair = list(opened) * (1 + single)
    names = list(models) * 2 if len(models) == 1 and not single else list(models)
    labels = [axes.evaluation_labels(side.arrays) for side in pair]
    both = [label for label in labels[0] if label in labels[1]]
    if names and len(names) == 2:
        places = [_place(name, side.arrays) for name, side in zip(names, pair, strict=True)]
    elif not names and len(labels[0]) == 2 and single:
        places = [0, 1]
    elif not names and len(labels[0]) == len(labels[1]) == 1 and not single:
        places = [0, 0]
    elif not names and len(both) == 1 and not single:
        places = [label.index(both[0]) for label in labels]
    else:
        own, common = ", ".join(labels[0]), ", ".join(both) or "none"
        there = f"this cube has: {own}" if single else f"both cubes have: {common}"
        raise SweepError(
            f"`models`: two are compared; {there}",
            "Name two of them" if single else "Name one for both, or one for each",
        )
    if single and places[0] == places[1]:
        raise SweepError("`models`: one is named twice", "Name two different ones")
    shown = [label[row] for label, row in zip(labels, places, strict=True)]
    if shown[0] == shown[1]:
        shown = [f"{name} ({end})" for name, end in zip(shown, cube_names(cubes), strict=True)]
    first, second = (
        _side(cube, side.arrays, row, name)
        for cube, side, row, name in zip(list(cubes) * (1 + single), pair, places, shown, strict=True)
    )
    return first, second


def cube_names(addresses: Sequence[str]) -> list[str]:
    """The last part of each address; with its number where two have the same.

    Examples
    --------
    >>> cube_names(("/data/one.zarr", "s3://bucket/a/one.zarr", "two.zarr/"))
    ['one.zarr (1)', 'one.zarr (2)', 'two.zarr']
    """
    paths = [redacted(address).partition("?")[0].rstrip("/") for address in addresses]
    names = [path.rpartition("/")[2] or "cube" for path in paths]
    return [name if names.count(name) == 1 else f"{name} ({number})" for number, name in enumerate(names, 1)]


def _side(cube: str, dataset: Dataset, row: int, label: str) -> Side:
    evaluation = dataset.isel(model=[row])
    return Side(cube, axes.plain(label), axes.names(evaluation, "eval_id")[0], evaluation)


def _place(name: str, dataset: Dataset) -> int:
    return evaluation_place(
        name, axes.evaluation_labels(dataset), axes.names(dataset, "model_name"), full_labels(dataset)
    )


def full_labels(dataset: Dataset) -> list[str]:
    """What each evaluation is called with all parts of its name, as `verdict` and `show` take it, too."""
    parts = [axes.names(dataset, name) for name in ("model_name", "template", "sampler")]
    return [" / ".join(names) for names in zip(*parts, strict=True)]


def _align(
    first: Side, second: Side, selection: str, warnings: tuple[str, ...], repeats: int | None
) -> SideBySide:
    """The two with their points, which are the same where cells have the same id, in common places."""
    sides = (first, second)
    places = _places(sides)
    tasks = list(dict.fromkeys(task for task, _ in places))
    sizes = {dim: max(side.dataset.sizes[dim] for side in sides) for dim in ("trial", "repeat")}
    sizes["repeat"] = min(sizes["repeat"], repeats or sizes["repeat"])
    width = max((slot for _, slot in places.values()), default=-1) + 1
    shape = (2, len(tasks), width, sizes["trial"], sizes["repeat"])
    status, planned = np.full(shape, int(Status.MISSING), np.uint8), np.zeros(shape, bool)
    base, groups, asked = np.zeros(shape[:3]), np.zeros(shape, np.int64), np.zeros(shape[:3])
    points: list[list[SidePoint]] = [[] for _ in tasks]
    for number, side in enumerate(sides):
        laid = [
            (status, side.array("status")),
            (planned, planned_mask(side.dataset)[0]),
            (base, base_design(side.dataset)[0]),
            (asked, planned_questions(side.dataset)[0]),
            *([(groups, side.array(CLUSTER))] if CLUSTER in side.dataset else ()),
        ]
        for key, (task, slot) in side.points.items():
            for target, values in laid:
                own = values[task, slot, ..., : sizes["repeat"]] if values.ndim > 2 else values[task, slot]
                target[(number, *places[key], *map(slice, own.shape))] = own
    for key, (row, _) in places.items():
        side = first if key in first.points else second
        params = side.dataset["params_json"].transpose(*CELL).values[side.points[key]]
        points[row].append(SidePoint(*key, str(params)))
    trial_dims = ("model", *CELL, "trial", "repeat")
    arrays = {"status": (trial_dims, status), "planned_trials": (("model", *CELL), asked)}
    if groups.any():  # what a question shares is in its cell's id: the two cannot contradict
        arrays[CLUSTER] = (trial_dims, groups)
    labels = {
        "model_name": (("model",), np.array([first.label, second.label])),
        "task": (("task",), np.array(tasks)),
        BASE: (("model", *CELL), base),
        **_tiers(sides, places, shape),
    }
    dataset = PlainDataset(arrays, labels)
    return SideBySide(first, second, selection, warnings, tuple(map(tuple, points)), dataset, planned)


def _places(sides: Iterable[Side]) -> dict[tuple[str, str], tuple[int, int]]:
    """(task, cell) -> its place along the common ``task`` and ``params``: as in the first, what it lacks after that."""
    rows: dict[str, int] = {}
    sizes: dict[str, int] = {}
    positions: dict[tuple[str, str], tuple[int, int]] = {}
    for side in sides:
        for key in side.points:
            if key not in positions:
                row, slot = rows.setdefault(key[0], len(rows)), sizes.get(key[0], 0)
                positions[key], sizes[key[0]] = (row, slot), slot + 1
    return positions


def _tiers(
    sides: Sequence[Side], places: dict[tuple[str, str], tuple[int, int]], shape: tuple[int, ...]
) -> dict[str, tuple[tuple[str, ...], object]]:
    """Coordinates ``tier`` and ``in_tier``: a point is in the tiers that either side puts it in."""
    names = list(dict.fromkeys(name for side in sides for name in axes.names(side.dataset, "tier")))
    inside = np.zeros((len(names), *shape[1:3]), dtype=bool)
    for side in sides:
        own, member = axes.names(side.dataset, "tier"), members(side.dataset)
        for key, position in side.points.items():
            for number, name in enumerate(own):
                inside[(names.index(name), *places[key])] |= member[(number, *position)]
    return {"tier": (("tier",), np.array(names)), "in_tier": (("tier", *CELL), inside)}
