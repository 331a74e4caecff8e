"""Finds the recorded results of a cube that a choice means: by cell, trial, outcome, row and time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from evalcube.flows.cubes.design import with_design
from evalcube.flows.cubes.selection import refused
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.blocks import Window, window_of
from evalcube.flows.plan.filters import Where, checked_where
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.row_ids import ROW_ID
from evalcube.flows.plan.shared_arrays import planned_of
from evalcube.flows.rework.forgotten_replies import reply_times
from evalcube.stages.analyze.labelled.selection import keys, select
from evalcube.stages.reply.status import Status
from evalcube.storage.cache.cache import ManagedCache
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger, Receipt
from evalcube.storage.cube.regions import Region
from evalcube.storage.errors import CubeDamagedError

BoolArray = npt.NDArray[np.bool_]
OUTCOMES = tuple(status.name.lower() for status in Status if status != Status.MISSING)


@dataclass(frozen=True)
class Choice:
    """Which results of a cube are meant; all of them by default."""

    where: Where = ()
    """Conditions on cells, as `evalcube.flows.cubes.selection.Part` has them."""
    trials: tuple[int | None, int | None] = (None, None)
    """Number of the first trial, from 0, and of the one behind the last; None for no bound."""
    status: Sequence[str] = ()
    """Outcomes, of `OUTCOMES`; empty means any."""
    rows: Sequence[str] = ()
    """Ids of rows of data sets; empty means any."""
    since: float | None = None
    """Only what was recorded then or later, in seconds since the epoch."""

    @property
    def whole_cells(self) -> bool:
        """Whether all trials of the cells are meant."""
        return self.trials == (None, None) and not self.status and not self.rows and self.since is None


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
    undated: int = 0
    """Results of chosen cells of which nothing tells whether they are from before the time."""


def find(cube: Cube, plan: Plan, choice: Choice, cache: ManagedCache | None) -> ToForget:
    """The results that a choice means; reads the chosen regions one at a time.

    Parameters
    ----------
    cube, plan
        The cube, and its plan.
    choice
        What is meant.
    cache
        Where the times of replies are looked up; None if there is none at hand.

    Raises
    ------
    SweepError
        If a name or value of the choice is unknown, or nothing fulfils its conditions.
    """
    if unknown := [name for name in choice.status if name not in OUTCOMES]:
        raise SweepError(f"`status`: there is no '{unknown[0]}'", f"Give one of: {', '.join(OUTCOMES)}")
    with Ledger(cube.records) as ledger:
        history: dict[Region, list[Receipt]] = {}
        for receipt in ledger.receipts():
            history.setdefault(receipt.region, []).append(receipt)
        newest = ledger.newest()
    return _Search(cube, plan, choice, cache).of(newest, history)


class _Search:
    def __init__(self, cube: Cube, plan: Plan, choice: Choice, cache: ManagedCache | None) -> None:
        self._cube, self._plan, self._choice, self._cache = cube, plan, choice, cache
        self._rows = _asked_rows(cube, plan, choice.rows) if choice.rows else None
        self._found = ToForget(_chosen_cells(cube, plan, choice.where))
        self._prices = [
            np.nan_to_num(cube.read_label(f"price_{kind}")) / 1e6 for kind in ("prompt", "completion")
        ]

    def of(self, newest: Mapping[Region, Receipt], history: Mapping[Region, Sequence[Receipt]]) -> ToForget:
        planned = planned_of(self._cube, newest)
        undecided: list[Chosen] = []
        for region in sorted(newest):
            if not self._found.cells[region.model].any():
                continue
            window = window_of(self._cube.sizes, region, self._cube.chunks)
            mask = self._chosen(newest[region], window)
            if not mask.any():
                self._found.empty.append(region)
                continue
            recorded = _recorded_since(newest[region], history[region], self._choice.since)
            if recorded is None:
                undecided.append(Chosen(region, window, mask))
            elif recorded:
                self._take(Chosen(region, window, mask), planned.mask(window))
        for one in self._dated(undecided):
            self._take(one, planned.mask(one.window))
        self._found.regions.sort(key=lambda one: one.region)
        return self._found

    def _chosen(self, receipt: Receipt, window: Window) -> BoolArray:
        """Results of a region that are meant, whenever they were recorded."""
        cells = self._found.cells[window.region.model]
        numbers = np.arange(window.first_trial, window.first_trial + window.shape[2])
        trials = np.isin(numbers, np.arange(self._cube.sizes["trial"])[slice(*self._choice.trials)])
        mask = np.broadcast_to((cells[..., None] & trials)[..., None], window.shape)
        if self._rows is not None:
            mask = mask & self._rows[:, :, numbers, None]
        try:
            status = self._cube.read_region(receipt.region, ["status"])["status"]
        except CubeDamagedError:
            return np.asarray(mask)  # nobody knows what there is
        codes = [Status[name.upper()] for name in self._choice.status]
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

    def _dated(self, undecided: Sequence[Chosen]) -> Iterable[Chosen]:
        """Of regions that were written before the time and after it, what the cache took in after it."""
        since = self._choice.since
        if since is None or not undecided:
            return
        times = {} if self._cache is None else reply_times(self._plan, undecided, self._cache)
        for one in undecided:
            when = np.full(one.mask.shape, np.nan)
            for place, at in times.get(one.region, {}).items():
                when.reshape(-1)[place] = at
            self._found.undated += int((one.mask & np.isnan(when)).sum())
            mask = one.mask & (when >= since)
            if mask.any():
                yield Chosen(one.region, one.window, mask)


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
        raise SweepError("`rows`: the cube's questions have no ids", "Choose trials by their numbers")
    stored = cube.read_label(ROW_ID)
    wanted = set(rows)
    if unknown := sorted(wanted - set(stored.ravel().tolist())):
        raise SweepError(
            f"`rows`: no question has the id '{unknown[0]}'", "Give ids as the data set has them"
        )
    found = np.zeros((*plan.sources.shape, stored.shape[1]), dtype=bool)
    for (task, slot), ids in zip(plan.named_points, stored, strict=True):
        found[task, slot] = [text in wanted for text in ids.tolist()]
    return found


def _recorded_since(newest: Receipt, history: Sequence[Receipt], since: float | None) -> bool | None:
    """Whether a region's results were recorded since a time; None if only some were, or nothing tells."""
    if since is None:
        return True
    if newest.at < since:
        return False
    earlier = any(receipt.at < since for receipt in history)
    return None if earlier else True
