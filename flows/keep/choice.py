"""Finds the recorded results of a cube that a choice means: by cell, trial, outcome and row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.flows.errors import SweepError, refused
from evalcube.flows.plan.coordinates import ROW_ID
from evalcube.flows.plan.filters import Where, checked_where
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.targets import Window, window_of
from evalcube.flows.read.design import with_design
from evalcube.flows.read.trials.open_cube import fulfils, split_where
from evalcube.flows.state.shared_arrays import planned_of
from evalcube.stages.analyze.labelled.selection import keys, select
from evalcube.stages.reply.status import Status
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.cube.regions import Region
from evalcube.storage.errors import CubeDamagedError

BoolArray = npt.NDArray[np.bool_]
OUTCOMES = tuple(status.name.lower() for status in Status if status != Status.MISSING)


@dataclass(frozen=True)
class Choice:
    """Which results of a cube are meant."""

    where: Where
    """Conditions ``NAME=VALUE`` on models and points, and on single results: trial, status, row_id."""

    def parts(self) -> tuple[Where, dict[str, Any], list[str]]:
        """Conditions on cells, those on numbers and rows of trials by name, and outcomes."""
        if isinstance(self.where, Mapping):
            return self.where, {}, []
        texts: dict[str, list[str]] = {"status": [], ROW_ID: []}
        conditions = []
        for text in self.where:
            name, _, values = text.partition("=")
            if name.strip() in texts:
                texts[name.strip()] += [value.strip() for value in values.split(",")]
            else:
                conditions.append(text)
        outcomes, rows = texts.values()
        cells, single = split_where(conditions)
        single |= {ROW_ID: rows} if rows else {}
        if unknown := sorted(single.keys() - {"trial", ROW_ID}):
            remedy = f"Choose by models and points, trial, status or {ROW_ID}"
            raise SweepError(f"`where`: results are not forgotten by '{unknown[0]}'", remedy)
        if wrong := [name for name in outcomes if name not in OUTCOMES]:
            raise SweepError(
                f"`where`: there is no status '{wrong[0]}'", f"Give some of: {', '.join(OUTCOMES)}"
            )
        return cells, single, outcomes


@dataclass(frozen=True, eq=False)
class Chosen:
    """Results of one region."""

    region: Region
    window: Window
    mask: BoolArray
    """In the window's shape."""


@dataclass(eq=False)
class ToForget:
    """What a choice means in a cube."""

    cells: BoolArray
    """Chosen cells, with results or without; shape (model, task, params)."""
    regions: list[Chosen] = field(default_factory=list)
    empty: list[Region] = field(default_factory=list)
    """Recorded regions of the chosen trials without any result that is meant."""
    counts: dict[tuple[int, int], npt.NDArray[np.int64]] = field(default_factory=dict)
    """By model and task: results, and planned ones among them."""


def find(cube: Cube, plan: Plan, choice: Choice) -> ToForget:
    """The results that a choice means; reads the chosen regions one at a time."""
    where, single, outcomes = choice.parts()
    rows = _asked_rows(cube, plan, single[ROW_ID]) if ROW_ID in single else None
    chosen = ToForget(_chosen_cells(cube, plan, where))
    newest = Ledger(cube.records).newest()
    planned = planned_of(cube, newest)
    for region in sorted(newest):
        cube.region_shape(region)  # refuses one that is outside of the cube, as a stranger's ledger may have
        cells = chosen.cells[region.model]
        if not cells.any():
            continue
        window = window_of(cube.sizes, region, cube.chunks)
        numbers = np.arange(window.first_trial, window.first_trial + window.shape[2])
        trials = fulfils(numbers, single["trial"]) if "trial" in single else numbers >= 0
        meant = cells[..., None] & trials if rows is None else cells[..., None] & trials & rows[:, :, numbers]
        mask = meant[..., None] & _there(cube, region, outcomes, window.shape)
        if not mask.any():
            chosen.empty.append(region)
            continue
        chosen.regions.append(Chosen(region, window, mask))
        asked = planned.mask(window)
        for task in np.flatnonzero(mask.any(axis=(1, 2, 3))).tolist():
            here = mask[task]
            counted, key = np.array([here.sum(), (here & asked[task]).sum()]), (region.model, task)
            chosen.counts[key] = chosen.counts.get(key, 0) + counted
    return chosen


def _there(cube: Cube, region: Region, outcomes: Sequence[str], shape: tuple[int, ...]) -> BoolArray:
    """Results of a region that ended in one of some ways; without any, all. Of a damaged one nobody knows: all."""
    try:
        status = cube.read_region(region, ["status"])["status"]
    except CubeDamagedError:
        return np.ones(shape, dtype=bool)
    codes = [Status[name.upper()] for name in outcomes]
    return np.asarray(np.isin(status, codes) if codes else status != Status.MISSING)


def _chosen_cells(cube: Cube, plan: Plan, where: Where) -> BoolArray:
    """Cells that fulfil the conditions, shape (model, task, params)."""
    dataset = with_design(cube.summary())
    valid = np.broadcast_to(plan.valid(), (len(plan.evaluations), *plan.sources.shape))
    if not where:
        return valid.copy()
    with refused():
        table = keys(dataset)
        chosen = select(dataset, checked_where(where, table, dataset), table)
    cells: BoolArray = valid & chosen.models[:, None, None] & chosen.cells
    if not cells.any():
        words = ", ".join(where if not isinstance(where, Mapping) else map(str, where.items()))
        raise SweepError(f"`where`: nothing fulfils all of {words}", "Drop or widen a condition")
    return cells


def _asked_rows(cube: Cube, plan: Plan, rows: Sequence[str]) -> BoolArray:
    """Which trials ask rows of these ids, shape (task, params, trial)."""
    if not cube.has_label(ROW_ID):
        raise SweepError(f"`where`: the cube's questions have no {ROW_ID}", "Choose by trial=NUMBER")
    stored = cube.read_label(ROW_ID)
    wanted = set(rows)
    if unknown := sorted(wanted - set(stored.ravel().tolist())):
        raise SweepError(f"`where`: there is no {ROW_ID} '{unknown[0]}'", "Give ids as the data set has them")
    asked = np.zeros((*plan.sources.shape, stored.shape[1]), dtype=bool)
    for (task, slot), ids in zip(plan.named_points, stored, strict=True):
        asked[task, slot] = [text in wanted for text in ids.tolist()]
    return asked
