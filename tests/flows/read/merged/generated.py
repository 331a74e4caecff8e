"""Small cubes without a run: what a trial came to follows from its identity, so that no two of them contradict."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evalcube._arrays import as_xarray
from evalcube.flows.config.load import from_mapping
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.coordinates import coordinates
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.targets import SampleTargets, window_of
from evalcube.flows.state.recording import count_model, receipt_of
from evalcube.stages.reply.status import COUNTERS, QUESTION_COUNTERS, Status
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.cube.schema import LAYERS, SAID, VARIABLES

LENGTHS = (3, 4, 5)
"""Points of the first task."""
DEPTHS = (3, 6)
"""Points of the second one."""
MODELS = ("alpha", "beta", "gamma")
_MOST = (16, 4)


@dataclass(frozen=True)
class Recipe:
    """What a small cube is to hold."""

    models: tuple[str, ...] = MODELS
    lengths: tuple[int, ...] = LENGTHS
    depths: tuple[int, ...] = DEPTHS
    tiers: tuple[str, ...] = ("easy",)
    trials: tuple[int, int] = (0, 8)
    """The first that is measured, and how many are planned."""
    repeats: int = 1
    chunks: tuple[int, int] = (4, 2)
    salt: str = ""
    """Two teams' answers differ if this does."""
    failed: float = 0.0
    """Share of trials that ended in a transport error."""
    at: int = 0
    price: float = 3.0
    """Of completions."""
    judges: tuple[str, ...] = ()
    """Who rates the outputs of the first task."""
    changes: dict[str, Any] = field(default_factory=dict)
    """Of the config."""


def config_of(recipe: Recipe) -> dict[str, Any]:
    tasks: dict[str, Any] = {}
    if recipe.lengths:
        tasks["arithmetic"] = {
            "manifold": [{"points": [{"length": n} for n in recipe.lengths], "tiers": list(recipe.tiers)}]
        }
    if recipe.depths:
        tasks["boolean"] = {
            "manifold": [{"points": [{"length": n} for n in recipe.depths], "tiers": ["hard"]}]
        }
    if recipe.judges:
        tasks["arithmetic"]["rubric"] = "It is right."
    return {
        "name": "generated",
        "trials": recipe.trials[1],
        "repeats": recipe.repeats,
        "models": [
            {
                "name": name,
                "endpoint": "http://127.0.0.1:9/v1",
                "model": name,
                "prices": {"prompt": 1, "completion": recipe.price},
            }
            for name in recipe.models
        ]
        + [
            {"name": name, "endpoint": "http://127.0.0.1:9/v1", "model": name, "measured": False}
            for name in recipe.judges
        ],
        **({"judges": [{"model": name, "repeats": 2} for name in recipe.judges]} if recipe.judges else {}),
        "samplers": {"greedy": {"temperature": 0, "max_tokens": 200}},
        "tasks": tasks,
        **recipe.changes,
    }


def make_cube(path: Any, recipe: Recipe) -> Cube:
    """The cube of a recipe, as a run would have left it."""
    plan = build_plan(from_mapping(config_of(recipe)))
    sizes, chunks = plan.sizes, dict(zip(("trial", "repeat"), recipe.chunks, strict=True))
    return Cube.create(
        str(path),
        sizes=sizes,
        chunks=chunks,
        coordinates=coordinates(plan),
        counters=(*COUNTERS, *QUESTION_COUNTERS),
        attrs={"title": "evalcube sweep", "spec": plan.spec()},
        layers=list(plan.more_arrays),
        fill=lambda cube: _fill(cube, plan, recipe),  # sooner done than what is put on disk piece by piece
    )


def _fill(cube: Cube, plan: Plan, recipe: Recipe) -> None:
    targets = SampleTargets.uniform(plan, plan.trials, plan.repeats)
    cube.write_planned("trial", targets.trials)
    cube.write_planned("repeat", targets.repeats)
    for task in range(len(plan.tasks)):
        cube.write_duplicates(task, _flags(plan, task))
    truth = _truth(plan, recipe)
    written = []
    with Ledger(cube.records) as ledger:
        for region in cube.regions():
            window = window_of(cube.sizes, region, cube.chunks)
            trials = slice(window.first_trial, window.first_trial + window.shape[2])
            repeats = slice(window.first_repeat, window.first_repeat + window.shape[3])
            arrays = {name: values[region.model, :, :, trials, repeats] for name, values in truth.items()}
            arrays |= _layers(cube, plan, region.model, arrays["status"].shape, (trials, repeats))
            if (arrays["status"] == Status.MISSING).all():
                continue
            digest = cube.write_region(region, arrays)
            receipt = receipt_of(window, 1, targets.mask(window), arrays["status"], digest, {})
            ledger.append(replace(receipt, at=recipe.at))
            written.append(region)
    cube.write_counters(
        {
            model: count_model(cube, model, written, targets, prices)
            for model, prices in enumerate(plan.prices)
        }
    )


_DRAWN = {**VARIABLES, **{name: LAYERS[name] for name in SAID}}


def _truth(plan: Plan, recipe: Recipe) -> dict[str, Any]:
    """All trial arrays of a plan."""
    shape = (len(plan.evaluations), len(plan.tasks), plan.slots, plan.trials, plan.repeats)
    arrays = {name: np.full(shape, variable.fill, dtype=variable.dtype) for name, variable in _DRAWN.items()}
    for model, row in enumerate(plan.evaluations):
        for task, entry in enumerate(plan.tasks):
            for slot, planned in enumerate(entry.cells):
                rng = np.random.default_rng(_number(row.eval_id, planned.cell.id, recipe.salt))
                drawn = {name: rng.integers(0, 900, _MOST) for name in _DRAWN}
                drawn["looping"] %= 2
                drawn["status"] = rng.integers(0, 5, _MOST)
                drawn["guess_chance"] = np.full(_MOST, 0.25)
                failed = np.random.default_rng(
                    _number(row.eval_id, planned.cell.id, "failed", recipe)
                ).random(_MOST)
                for name, values in drawn.items():
                    part = values[: plan.trials, : plan.repeats].astype(arrays[name].dtype)
                    fill = Status.TRANSPORT if name == "status" else _DRAWN[name].fill
                    part[failed[: plan.trials, : plan.repeats] < recipe.failed] = fill
                    part[: recipe.trials[0]] = _DRAWN[name].fill
                    arrays[name][model, task, slot] = part
    return arrays


def _layers(
    cube: Cube, plan: Plan, model: int, shape: tuple[int, ...], part: tuple[slice, slice]
) -> dict[str, Any]:
    """Readings of the judges of a region, each judge's own; nothing for other layers."""
    arrays = {name: np.full(shape, np.nan, np.float32) for name in cube.trial_arrays if name not in _DRAWN}
    if "judge_readings" in arrays:
        dims = cube.sizes["judge_name"], cube.sizes["judge_repeat"]
        readings = arrays["judge_readings"] = np.full((*shape, *dims), np.nan, np.float32)
        for task, entry in enumerate(plan.tasks):
            for slot, planned in enumerate(entry.cells if entry.graded else ()):
                for number, judge in enumerate(plan.judges):
                    key = _number(plan.evaluations[model].eval_id, planned.cell.id, judge.name)
                    drawn = np.random.default_rng(key).integers(1, 6, (*_MOST, dims[1]))
                    readings[task, slot, :, :, number] = drawn[part]
    return arrays


def _flags(plan: Plan, task: int) -> Any:
    flags = np.full((plan.slots, plan.trials), 255, dtype=np.uint8)
    for slot, planned in enumerate(plan.tasks[task].cells):
        rng = np.random.default_rng(_number(planned.cell.id))
        flags[slot] = rng.integers(0, 2, _MOST[0])[: plan.trials]
    return flags


def _number(*parts: object) -> int:
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big")


def content(url: object, *, timed: bool = True) -> dict[str, Any]:
    """What a cube holds, by identity: every trial that is not missing, plans, flags, counters, weights and labels.

    Not the counter of missing trials: it speaks of regions that are recorded, and so depends on their size.
    """
    cube = Cube.open(str(url))
    dataset = as_xarray(cube.load())
    names = [name for name in cube.trial_arrays if timed or name not in ("latency", "first_token")]
    # Plain arrays: taking each trial out of a labelled one takes a thousand times as long.
    cells = ("model", "task", "params", ...)
    arrays = {name: dataset[name].transpose(*cells).values for name in (*names, "counters")}
    planned = [dataset[f"planned_{dim}s"].transpose(*cells).values for dim in ("trial", "repeat")]
    duplicate = dataset["duplicate"].transpose("task", "params", ...).values
    readings = arrays.pop("judge_readings", None)
    counted = dict(
        zip(dataset["counter"].values.tolist(), np.moveaxis(arrays.pop("counters"), -1, 0), strict=True)
    )
    weights = {
        (task["label"], point["cell_id"]): (point.get("base"), tuple(sorted(point["tiers"])))
        for task in cube.attrs["spec"]["tasks"]
        for point in task["points"]
    }
    found: dict[str, Any] = {"points": weights}
    for model, evaluation in enumerate(dataset["eval_id"].values):
        found[evaluation, "prices"] = (
            float(dataset["price_prompt"][model]),
            str(dataset["facets"].values[model]),
        )
        for task, label in enumerate(dataset["task"].values):
            for slot, cell in enumerate(dataset["cell_id"].values[task]):
                if not cell:
                    continue
                key = (evaluation, label, cell)
                at = (model, task, slot)
                places = [tuple(row) for row in np.argwhere(arrays["status"][at] != Status.MISSING).tolist()]
                found[key, "trials"] = [
                    (place, *(values[at][place].tobytes() for values in arrays.values())) for place in places
                ]
                if readings is not None:
                    for number, judge in enumerate(dataset["judge_name"].values):
                        read = [readings[at][place][number] for place in places]
                        found[key, "judge", judge] = [
                            one.tobytes() for one in read if not np.isnan(one).all()
                        ]
                found[key, "planned"] = tuple(int(counts[at]) for counts in planned)
                flags = duplicate[task, slot]
                found[key, "flags"] = tuple(np.flatnonzero(flags == 1)), tuple(np.flatnonzero(flags == 0))
                found[key, "counters"] = {
                    # Costs are added region by region, so that their last bits depend on the regions, too.
                    name: round(float(counted[name][at]), 9)
                    for name in (*COUNTERS, *QUESTION_COUNTERS)
                    if name != "missing" and (timed or name != "latency_sum")
                }
    return found


def bytes_of(url: object, *, provenance: bool = True) -> dict[str, bytes]:
    """All that a cube is made of, by key; the ledger by its receipts."""
    cube = Cube.open(str(url))
    space = cube.space
    found = {key: space.get(key).data for key in space.list() if not key.startswith("_evalcube/")}
    document = json.loads(found.pop("zarr.json"))
    if not provenance:
        document["attributes"].pop("merged", None)
    found["zarr.json"] = json.dumps(document, sort_keys=True).encode()
    with Ledger(cube.records) as ledger:
        found["ledger"] = repr(list(ledger.receipts())).encode()
    return found
