"""The part of a cube that is copied: which evaluations and points, and what describes them."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

import numpy as np

from evalcube.flows.cubes.design import with_design
from evalcube.flows.cubes.selection import refused
from evalcube.flows.plan.filters import checked_where
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.spec import Spec, parse_spec
from evalcube.flows.plan.targets import IntArray, SampleTargets
from evalcube.stages.analyze.labelled import axes
from evalcube.stages.analyze.labelled.selection import keys, select
from evalcube.storage.cube.cube import Cube


@dataclass(frozen=True, eq=False)
class CopiedPart:
    """What is copied, by places in the source, in the order that it has in the copy."""

    models: tuple[int, ...]
    tasks: tuple[int, ...]
    slots: tuple[tuple[int, ...], ...]
    """Of each task."""
    plan: Plan
    """Of the copy."""
    spec: Mapping[str, Any]
    """Of the copy; data files are named without their folders."""
    targets: SampleTargets
    """Of the copy."""
    whole_tasks: bool
    """Whether all points of these tasks are copied, with all of their tiers."""

    def cells(self, slots: int) -> tuple[Any, Any]:
        """Flat indices, by task and slot, of the cells in the source and in the copy.

        Parameters
        ----------
        slots
            Length of the source's axis of params.
        """
        mine, theirs = [], []
        for row, (task, kept) in enumerate(zip(self.tasks, self.slots, strict=True)):
            mine += [task * slots + slot for slot in kept]
            theirs += [row * self.plan.slots + slot for slot in range(len(kept))]
        return np.array(mine, dtype=np.intp), np.array(theirs, dtype=np.intp)


def copied_part(cube: Cube, where: Sequence[str] = (), models: Sequence[str] = ()) -> CopiedPart:
    """The part of a cube that is meant; all of it without a condition.

    Parameters
    ----------
    cube
        The source.
    where
        Conditions ``NAME=VALUE``, as all commands take them.
    models
        Labels of models.

    Raises
    ------
    SweepError
        If a name or value is unknown, or nothing is left.
    """
    spec = parse_spec(cube.attrs.get("spec"), cube.sizes)
    dataset = with_design(cube.summary())
    conditions = checked_where(
        [*where, *([f"model={','.join(models)}"] if models else [])], keys(dataset), dataset
    )
    with refused():
        chosen = select(dataset, conditions, keys(dataset))
    rows = tuple(np.flatnonzero(chosen.models).tolist())
    tiers = [axes.names(dataset, "tier")[tier] for tier in chosen.tiers] if "tier" in conditions else None
    slots = [
        tuple(slot for slot in range(len(task.points)) if chosen.cells[row, slot])
        for row, task in enumerate(spec.tasks)
    ]
    tasks = tuple(row for row, kept in enumerate(slots) if kept)
    described = _described(cube.attrs["spec"], rows, tasks, slots, tiers)
    targets = _targets(cube, rows, tasks, slots)
    plan = Plan.from_spec(described, max(1, targets.maxima[0]), max(1, targets.maxima[1]))
    return CopiedPart(
        rows,
        tasks,
        tuple(slots[task] for task in tasks),
        replace(plan, prices=_prices(cube, rows), facets=_facets(cube, rows)),
        described,
        targets,
        tiers is None and all(len(slots[task]) == len(spec.tasks[task].points) for task in tasks),
    )


def _described(
    spec: Mapping[str, Any],
    rows: Sequence[int],
    tasks: Sequence[int],
    slots: Sequence[Sequence[int]],
    tiers: Sequence[str] | None,
) -> dict[str, Any]:
    """The description of a part, with all that a later version may have added to it."""
    found: dict[str, Any] = copy.deepcopy(dict(spec))
    found["evaluations"] = [found["evaluations"][row] for row in rows]
    if found.get("asserted_prices"):
        found["asserted_prices"] = [found["asserted_prices"][row] for row in rows]
    kept = []
    for task in tasks:
        entry = found["tasks"][task]
        entry["points"] = [entry["points"][slot] for slot in slots[task]]
        for point in entry["points"]:
            if tiers is not None:
                point["tiers"] = [tier for tier in point["tiers"] if tier in tiers]
            if "sha256" in point["params"] and isinstance(point["params"].get("file"), str):
                # The digest is what tells the file; where it lies on this machine is nobody's business.
                point["params"]["file"] = PurePath(point["params"]["file"]).name
        kept.append(entry)
    found["tasks"] = kept
    Spec.model_validate(found)
    return found


def _targets(
    cube: Cube, rows: Sequence[int], tasks: Sequence[int], slots: Sequence[Sequence[int]]
) -> SampleTargets:
    width = max(len(slots[task]) for task in tasks)

    def taken(values: IntArray) -> IntArray:
        found = np.zeros((len(rows), len(tasks), width), dtype=np.int32)
        for place, task in enumerate(tasks):
            found[:, place, : len(slots[task])] = values[np.ix_(rows, [task], slots[task])][:, 0]
        return found

    return SampleTargets(taken(cube.read_planned("trial")), taken(cube.read_planned("repeat")))


def _prices(cube: Cube, rows: Sequence[int]) -> tuple[tuple[float, float], ...]:
    both = [cube.read_label(f"price_{kind}") for kind in ("prompt", "completion")]
    return tuple((float(both[0][row]), float(both[1][row])) for row in rows)


def _facets(cube: Cube, rows: Sequence[int]) -> tuple[Mapping[str, Any], ...]:
    texts = cube.read_label("facets")
    return tuple(json.loads(str(texts[row])) for row in rows)
