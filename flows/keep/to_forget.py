"""Finds the recorded results of a cube that a choice means: by cell, trial, outcome and row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from evalcube.flows.errors import SweepError, refused
from evalcube.flows.plan.coordinates import ROW_ID
from evalcube.flows.plan.filters import Where, checked_where
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.targets import Window, window_of
from evalcube.flows.read.design import with_design
from evalcube.flows.read.trials.opened import fulfils, split_where
from evalcube.flows.state.shared_arrays import planned_of
from evalcube.stages.analyze.labelled.selection import keys, select
from evalcube.stages.reply.status import Status
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger, Receipt
from evalcube.storage.cube.regions import Region
from evalcube.storage.errors import CubeDamagedError

BoolArray = npt.NDArray[np.bool_]
OUTCOMES = tuple(status.name.lower() for status in Status if status != Status.MISSING)


@dataclass(frozen=True)
class Choice:
    """Which results of a cube are meant."""

    where: Where
    """Conditions ``NAME=VALUE`` on models and points, and on single results: trial, status, row_id."""

    def parts(self) -> tuple[Where, dict[str, object], list[str]]:
        """Conditions on cells, those on numbers and rows of trials by name, and outcomes."""
        if isinstance(self.where, Mapping):
            return self.where, {}, []
        status = [text for text in self.where if text.partition("=")[0].strip() == "status"]
        outcomes = [one.strip() for text in status for one in text.partition("=")[2].split(",")]
        cells, single = split_where([text for text in self.where if text not in status])
        if unknown := sorted(single.keys() - {"trial", ROW_ID}):
            remedy = f"Choose by models and points, trial, status or {ROW_ID}"
            raise SweepError(f"`where`: results are not forgotten by '{unknown[0]}'", remedy)
        if wrong := [name for name in outcomes if name not in OUTCOMES]:
            raise SweepError(f"`where`: status is never '{wrong[0]}'", f"Give some of: {', '.join(OUTCOMES)}")
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
    counts: dict[tuple[int, int], npt.NDArray[np.float64]] = field(default_factory=dict)
    """By model and task: results, planned ones among them, and what they cost in USD."""


def find(cube: Cube, plan: Plan, choice: Choice) -> ToForget:
    """The results that a choice means; reads the chosen regions one at a time.

    Parameters
    ----------
    cube, plan
        The cube, and its plan.
    choice
        What is meant.

    Raises
    ------
    SweepError
        If a name or value of the choice is unknown, or nothing fulfils its conditions.
    """
    return _Search(cube, plan, choice).of(Ledger(cube.records).newest())


class _Search:
    def __init__(self, cube: Cube, plan: Plan, choice: Choice) -> None:
        self._cube = cube
        where, self._single, self._outcomes = choice.parts()
        rows = self._single.get(ROW_ID)
        self._rows = None if rows is None else _asked_rows(cube, plan, str(rows).split(","))
        self._found = ToForget(_chosen_cells(cube, plan, where))
        self._prices = [
            np.nan_to_num(cube.read_label(f"price_{kind}")) / 1e6 for kind in ("prompt", "completion")
        ]

    def of(self, newest: Mapping[Region, Receipt]) -> ToForget:
        planned = planned_of(self._cube, newest)
        for region in sorted(newest):
            if not self._found.cells[region.model].any():
                continue
            window = window_of(self._cube.sizes, region, self._cube.chunks)
            mask = self._chosen(newest[region], window)
            if mask.any():
                self._take(Chosen(region, window, mask), planned.mask(window))
            else:
                self._found.empty.append(region)
        return self._found

    def _chosen(self, receipt: Receipt, window: Window) -> BoolArray:
        """Results of a region that are meant, whenever they were recorded."""
        cells = self._found.cells[window.region.model]
        numbers = np.arange(window.first_trial, window.first_trial + window.shape[2])
        trials = fulfils(numbers, self._single["trial"]) if "trial" in self._single else numbers >= 0
        mask = np.broadcast_to((cells[..., None] & trials)[..., None], window.shape)
        if self._rows is not None:
            mask = mask & self._rows[:, :, numbers, None]
        try:
            status = self._cube.read_region(receipt.region, ["status"])["status"]
        except CubeDamagedError:
            return np.asarray(mask)  # nobody knows what there is
        codes = [Status[name.upper()] for name in self._outcomes]
        there = np.isin(status, codes) if codes else status != Status.MISSING
        return np.asarray(mask & there)

    def _take(self, one: Chosen, planned: BoolArray) -> None:
        """Keep a region's part, with what it counts and has cost."""
        self._found.regions.append(one)
        usd = np.zeros(one.window.shape)
        for name, price in zip(("prompt_tokens", "tokens"), self._prices, strict=True):
            try:
                tokens = self._cube.read_region(one.region, [name])[name]
            except CubeDamagedError:
                continue
            usd += np.maximum(tokens, 0) * price[one.region.model]
        for task in np.flatnonzero(one.mask.any(axis=(1, 2, 3))).tolist():
            here = one.mask[task]
            counted = np.array([here.sum(), (here & planned[task]).sum(), usd[task][here].sum()], float)
            place = (one.region.model, task)
            self._found.counts[place] = self._found.counts.get(place, np.zeros(3)) + counted


def _chosen_cells(cube: Cube, plan: Plan, where: Where) -> BoolArray:
    """Cells that fulfil the conditions, shape (model, task, params)."""
    dataset = with_design(cube.summary())
    valid = np.broadcast_to(plan.valid(), (len(plan.evaluations), *plan.sources.shape))
    if not where:
        return valid.copy()
    with refused():
        table = keys(dataset)
        chosen = select(dataset, checked_where(where, table, dataset), table)
    found: BoolArray = valid & chosen.models[:, None, None] & chosen.cells
    if not found.any():
        words = ", ".join(where if not isinstance(where, Mapping) else map(str, where.items()))
        raise SweepError(f"`where`: nothing fulfils all of {words}", "Drop or widen a condition")
    return found


def _asked_rows(cube: Cube, plan: Plan, rows: Sequence[str]) -> BoolArray:
    """Which trials ask rows of these ids, shape (task, params, trial)."""
    if not cube.has_label(ROW_ID):
        raise SweepError(f"`where`: the cube's questions have no {ROW_ID}", "Choose by trial=NUMBER")
    stored = cube.read_label(ROW_ID)
    wanted = set(rows)
    if unknown := sorted(wanted - set(stored.ravel().tolist())):
        raise SweepError(f"`where`: {ROW_ID} is never '{unknown[0]}'", "Give ids as the data set has them")
    found = np.zeros((*plan.sources.shape, stored.shape[1]), dtype=bool)
    for (task, slot), ids in zip(plan.named_points, stored, strict=True):
        found[task, slot] = [text in wanted for text in ids.tolist()]
    return found
