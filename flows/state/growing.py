"""Makes a cube, and brings it to what its sweep has become: what is recorded is compared, what is new gets room."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.flows.plan.coordinates import coordinates, grown_row_ids, labels
from evalcube.flows.plan.growth import Growth, Recorded, grown
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.spec import base_design_array, description, filled_base
from evalcube.flows.state.recording import prices_of
from evalcube.stages.analyze.labelled import axes
from evalcube.stages.reply.status import BASE, COUNTERS, QUESTION_COUNTERS
from evalcube.storage.cube.batch_notes import BatchNotes
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.cube.schema import SAID
from evalcube.storage.errors import CubeDamagedError, CubeMismatchError

Array = npt.NDArray[Any]

_GROWING = ("model", "task", "params", "judge_name", "judge_repeat")


def new_cube(plan: Plan, url: str | Path, fill: Callable[[Cube], None] | None = None) -> Cube:
    """Make a plan's cube; others see it when it is there whole, with what `fill` puts into it."""
    return Cube.create(
        url,
        sizes=plan.sizes,
        chunks=plan.chunks,
        coordinates=[
            *coordinates(plan),
            base_design_array(filled_base(None, plan.base, len(plan.evaluations))),
        ],
        counters=(*COUNTERS, *QUESTION_COUNTERS),
        attrs={"title": "evalcube sweep", **description(plan.spec())},
        layers=list(plan.more_arrays),
        fill=fill,
    )


def grown_cube(cube: Cube, old: Plan, new: Plan) -> Growth:
    """What the sweep of a cube is with a config added."""
    growth = grown(_with_prices_and_facets(cube, old), new, _recorded_trials(cube))
    return replace(growth, plan=replace(growth.plan, trials=new.trials, repeats=new.repeats))


def described(cube: Cube, plan: Plan) -> dict[str, Any]:
    """The description of a plan for its cube: points that the cube has stay described as they are there.

    A data file that lies elsewhere now is another path, and nothing else.
    """
    spec: dict[str, Any] = plan.spec()
    before = cube.attrs["spec"]["tasks"]
    existing = {
        (task["label"], point["cell_id"]): point["params"] for task in before for point in task["points"]
    }
    for task in spec["tasks"]:
        for point in task["points"]:
            point["params"] = existing.get((task["label"], point["cell_id"]), point["params"])
    return spec


def extend(cube: Cube, plan: Plan) -> None:
    """Make room in a cube for all that a plan has, with its labels; for the holder of the lease only.

    After a kill the cube is what it was, or what it is to be. Nothing new is planned yet.
    """
    spec, before = described(cube, plan), cube.attrs["spec"]
    if spec == before:
        with_said(cube)
        return
    grown = replace(Plan.from_spec(spec, plan.trials, plan.repeats), prices=plan.prices, facets=plan.facets)
    ids = grown_row_ids(cube, Plan.from_spec(before, plan.trials, plan.repeats), plan)
    more = [] if ids is None else [ids]
    if cube.has_label(BASE):  # 0 for what is new: the description has it
        more.append(base_design_array(_keep(cube.whole_label(BASE), grown, *_changes(before, spec))))
    cube.extend(
        sizes={dim: size for dim, size in grown.sizes.items() if dim in _GROWING},
        coordinates=[*labels(grown), *more],
        attrs=description(spec),
        layers=list(grown.more_arrays),
        shared=_clear(cube, before, spec, grown),
    )


def with_said(cube: Cube) -> None:
    """Make room in a cube of an earlier version for what endpoints say of replies; for the holder of the lease only."""
    if not set(SAID) <= set(cube.trial_arrays):
        cube.extend(sizes={}, coordinates=[], attrs={}, layers=[*cube.trial_arrays, *SAID])


def pad_to(values: Array, shape: Sequence[int]) -> Array:
    """Values of a cube at the size that it is to have: 0 for what is new."""
    if values.shape == tuple(shape):
        return values
    grown = np.zeros(tuple(map(max, values.shape, shape)), values.dtype)
    grown[tuple(map(slice, values.shape))] = values
    return grown


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[list[int], list[tuple[int, int]]]:
    """Places of evaluations, and of points by task, that stand for something else from now on."""
    models = [
        index
        for index, (was, now) in enumerate(zip(before["evaluations"], after["evaluations"], strict=False))
        if was["eval_id"] != now["eval_id"]
    ]
    points = [
        (row, slot)
        for row, (was, now) in enumerate(zip(before["tasks"], after["tasks"], strict=False))
        for slot, point in enumerate(was["points"])
        if slot >= len(now["points"]) or now["points"][slot]["cell_id"] != point["cell_id"]
    ]
    return models, points


def _keep(values: Array, plan: Plan, models: list[int], points: list[tuple[int, int]]) -> Array:
    """Values (model, task, params) at a plan's size, 0 where something else stands now."""
    grown = pad_to(values, (len(plan.evaluations), *plan.sources.shape)).copy()
    grown[models] = 0
    for row, slot in points:
        grown[:, row, slot] = 0
    return grown


def _clear(cube: Cube, before: Mapping[str, Any], after: Mapping[str, Any], plan: Plan) -> dict[str, Array]:
    """Plans of the new size without those of places that stand for something else from now on; none if all stay."""
    models, points = _changes(before, after)
    if not models and not points:
        return {}
    for row in {row for row, _ in points}:
        # Flags of other prompts. Unknown ones are no harm to the cube as it is, should this be cut short.
        cube.write_duplicates(row, np.full((cube.sizes["params"], cube.sizes["trial"]), 255, np.uint8))
    return {
        f"planned_{dim}s": _keep(cube.read_planned(dim), plan, models, points) for dim in ("trial", "repeat")
    }


def _with_prices_and_facets(cube: Cube, plan: Plan) -> Plan:
    """A cube's plan with its prices and facets, as far as they can be read: a run writes them anew."""
    prices = [(0.0, 0.0)] * len(plan.evaluations)
    facets: list[Mapping[str, object]] = [{}] * len(plan.evaluations)
    with suppress(CubeDamagedError, CubeMismatchError):
        prices = prices_of(cube)
    with suppress(CubeDamagedError, CubeMismatchError):
        facets = [axes.facets(str(text)) for text in cube.read_label("facets")]
    pairs = cube.attrs["spec"].get("asserted_prices", ())
    asserted = tuple((float(prompt), float(completion)) for prompt, completion in pairs)
    return replace(plan, prices=tuple(prices), facets=tuple(facets), asserted_prices=asserted)


def _recorded_trials(cube: Cube) -> Recorded:
    """How many trials are recorded of each evaluation and task; at least 1 where that is not sure to be none."""
    done = np.zeros(cube.sizes["model"], dtype=np.int64)
    with Ledger(cube.records) as ledger:
        for region, receipt in ledger.newest().items():
            done[region.model] += receipt.finished
    if BatchNotes(cube.records).tokens():
        done = np.maximum(done, 1)  # answers are on their way
    try:
        counted = cube.read_counters()[..., COUNTERS.index("trials")].sum(axis=2)
        planned = cube.read_planned("trial").any(axis=2)
    except CubeDamagedError:
        return Recorded(done.tolist(), [max(1, int(done.sum()))] * cube.sizes["task"])
    # Where counters are behind the ledger, any planned task may be what was recorded.
    behind = (counted.sum(axis=1) != done)[:, None] & (done > 0)[:, None] & planned
    return Recorded(done.tolist(), np.maximum(counted.sum(axis=0), behind.any(axis=0)).astype(int).tolist())
