"""A sweep's cube with its ledger and notes, and what is left to do in it. Refuses another sweep's cube."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.flows.errors import SweepError
from evalcube.flows.plan.coordinates import label_rows, labels
from evalcube.flows.plan.growth import Contradiction
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.spec import parse_spec
from evalcube.flows.plan.targets import (
    NOTHING_KEPT,
    BoolArray,
    RegionWork,
    SampleTargets,
    pending_positions,
    window_of,
)
from evalcube.flows.state.growing import described, extend, grown_cube, new_cube, pad_to
from evalcube.flows.state.questions import keep_blocks, offer_questions
from evalcube.flows.state.recording import count_model, uncounted_models
from evalcube.flows.state.records import NOTES, PACKAGES, SPENT, read_notes
from evalcube.flows.state.shared_arrays import planned_of
from evalcube.flows.state.trust import remembered_code
from evalcube.stages.generate.dataset.hub.address import lasting
from evalcube.stages.named_code import allow_code, may_run
from evalcube.stages.reply.status import COUNTERS, Status
from evalcube.stages.score.counters import set_cost
from evalcube.storage.cube.batch_notes import BatchNotes
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.integrity import stored_problems
from evalcube.storage.cube.lease import Lease
from evalcube.storage.cube.ledger import Ledger, Receipt
from evalcube.storage.cube.regions import Region
from evalcube.storage.cube.schema import TRIAL_DIMS
from evalcube.storage.errors import CubeDamagedError, CubeExistsError, guarded

_SHOWN_CONTRADICTIONS = 6
_UNKNOWN = 255
_COMPARED_CELLS = 1_000_000
"""Up to so many trials of a cube, padding included, a run compares all that is recorded with its receipts."""
CHANGING = ("facets", "price_prompt", "price_completion")


class OtherSweepError(SweepError):
    """The cube at an address belongs to another sweep."""


class SweepStore:
    """The cube of one sweep with its records."""

    def __init__(
        self,
        cube: Cube,
        plan: Plan,
        targets: SampleTargets | None = None,
        found: dict[tuple[Region, int, str], bool] | None = None,
        whole: SampleTargets | None = None,
    ) -> None:
        self.cube = cube
        self.found = {} if found is None else found
        """Of which receipts it is known whether the regions are as they say; a store made from this one may have it."""
        self.ledger = Ledger(cube.records)
        self._newest = self.ledger.newest()
        # Where the sweep has grown and the cube has not yet, nothing of what is new is planned.
        there, cells = planned_of(cube, self._newest), (len(plan.evaluations), *plan.sources.shape)
        self.planned = SampleTargets(pad_to(there.trials, cells), pad_to(there.repeats, cells))
        """What the cube is to hold, by this run or others."""
        self.targets = self.planned if targets is None else targets
        """How far this run goes; the cube may go further."""
        # A run that is to measure a part of its plan plans all of it.
        whole = self.targets if whole is None else whole
        self._wanted = self.planned.union(whole)
        sizes, maxima = cube.sizes, whole.maxima
        self.plan = replace(
            plan, trials=max(maxima[0], sizes["trial"]), repeats=max(maxima[1], sizes["repeat"])
        )
        """At the size that the cube has once it has grown to the targets."""

    @property
    def receipts(self) -> Collection[Receipt]:
        """The newest of each region when this was made."""
        return self._newest.values()

    @property
    def grown(self) -> bool:
        """Whether the cube's plan has all that is wanted."""
        return self._wanted.same(self.planned)

    def grow(self) -> None:
        """Bring the cube to the sweep's and the targets' size and plan; only the holder of the lease may."""
        extend(self.cube, self.plan)
        wanted = {"trial": self.plan.trials, "repeat": self.plan.repeats}
        same = all(self.cube.sizes[dim] == size for dim, size in wanted.items())
        if not same or not self.cube.group.consolidated:
            self.cube.grow(**wanted)
            label_rows(self.cube, self.plan)
        if not self.grown:
            keep_blocks(self.cube.records, self.plan, self._wanted.trials.max(axis=0))
            self.cube.write_planned("trial", self._wanted.trials)
            self.cube.write_planned("repeat", self._wanted.repeats)
            self.planned = self._wanted

    def counters(self) -> npt.NDArray[np.float64]:
        """The counters of trials (model, task, params, counter), with costs at the config's prices.

        Counted from the regions where the cube's cannot be read: a run that may write makes them again.
        """
        try:
            counters = self.cube.read_counters()
        except CubeDamagedError:
            there = planned_of(self.cube, self._newest)
            models = range(self.cube.sizes["model"])
            counters = np.stack(
                [count_model(self.cube, model, self._newest, there, (0.0, 0.0)) for model in models]
            )
        cells = self.planned.trials.shape
        return self._with_costs(pad_to(counters[..., : len(COUNTERS)], (*cells, len(COUNTERS))))

    def _with_costs(self, counters: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        priced = counters.copy()
        prices = np.array(self.plan.prices, dtype=np.float64)[:, None, None]
        set_cost(priced, prices[..., 0], prices[..., 1])
        return priced

    def note(self, notes: Mapping[str, Any]) -> None:
        """Keep what helps readers of the cube but is no part of its identity, such as the cache's address."""
        records = self.cube.records
        with guarded(records.address, "keep notes of the sweep"):
            records.put(NOTES, json.dumps(notes, indent=1).encode())

    def regions(self, model: int) -> Iterator[Region]:
        """The regions of one evaluation that the targets reach into."""
        chunks = self.cube.chunks
        trials, repeats = int(self.targets.trials[model].max()), int(self.targets.repeats[model].max())
        for trial in range(self.targets.first // chunks["trial"], -(-trials // chunks["trial"])):
            for repeat in range(-(-repeats // chunks["repeat"])):
                yield Region(model, trial, repeat)

    def unfinished(self, model: int) -> Iterator[RegionWork]:
        """The regions of one evaluation with something left to do; what is done costs neither request nor cache."""
        return filter(None, map(self.work_in, self.regions(model)))

    def is_recorded(self, region: Region) -> bool:
        """Whether there is a receipt of a region."""
        return region in self._newest

    def work_in(self, region: Region) -> RegionWork | None:
        """What is left to do in a region; None if that is nothing."""
        window = window_of(self.plan.sizes, region, self.cube.chunks)
        receipt = self._newest.get(region)
        # Plans only grow, so that equal numbers are equal trials.
        done = receipt is not None and receipt.complete and receipt.planned == self._wanted.count(window)
        rated = receipt is None or self._is_rated(receipt)
        if receipt is not None and done and rated and self._is_there(receipt):
            return None
        status, generation = None, 0
        if receipt is not None:
            generation = receipt.generation
            status = self._trusted_status(receipt, window.shape)
        wanted = self.targets.mask(window)
        positions = pending_positions(window, wanted, status)
        unrated = self._rateable(wanted, status) if status is not None and not rated else positions[:0]
        if not len(positions) and not len(unrated):
            return None
        shape = self.cube.shape_number
        if receipt is None or status is None:
            return RegionWork(window, positions, generation, NOTHING_KEPT, shape)
        recorded = (receipt.trials, receipt.repeats, receipt.shape)
        return RegionWork(
            window, positions, generation, recorded, shape, receipt.grader, unrated, receipt.fingerprints
        )

    def _is_rated(self, receipt: Receipt) -> bool:
        """Whether all judges of today were asked about a region's answers."""
        then, now = self.cube.shape_of(receipt).sizes, self.plan.sizes
        return not receipt.unrated and all(
            then.get(dim, 0) == now.get(dim, 0) for dim in ("judge_name", "judge_repeat")
        )

    def _rateable(self, wanted: BoolArray, status: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
        """Flat positions of the finished trials that judges rate: what they said before is in the cache."""
        judged = np.array([task.judged for task in self.plan.tasks])
        finished = (status != Status.MISSING) & (status != Status.TRANSPORT)
        return np.flatnonzero(wanted & finished & judged[:, None, None, None])

    def _is_there(self, receipt: Receipt) -> bool:
        """Whether a recorded region is still there: its chunks are whole; of a small cube, all content is compared."""
        identity = (receipt.region, receipt.generation, receipt.digest)
        if identity not in self.found:
            # Not more than costs a moment: `evalcube cube verify` is there for all of a large cube.
            size = math.prod(self.cube.sizes[dim] for dim in TRIAL_DIMS)
            small = size <= _COMPARED_CELLS and not self.cube.is_object_store
            self.found[identity] = not (
                stored_problems(self.cube, receipt)[0]
                if small
                else self.cube.apparent_problems(receipt.region, self.cube.shape_of(receipt))
            )
        return self.found[identity]

    def trust(self, receipt: Receipt) -> None:
        """Take a region to be what a receipt says, which this process was told by whoever has just written it."""
        self.found[receipt.region, receipt.generation, receipt.digest] = True

    def _trusted_status(self, receipt: Receipt, shape: tuple[int, ...]) -> npt.NDArray[np.uint8] | None:
        """Status as stored, missing beyond what the receipt vouches for.

        None if the region is not what its receipt says: somebody was killed between writing and recording, or it
        was damaged since.
        """
        problems, arrays = stored_problems(self.cube, receipt)
        if problems:
            return None
        status = np.full(shape, Status.MISSING, dtype=np.uint8)
        cropped = self.cube.shape_of(receipt).crop(
            {"status": arrays["status"]}, receipt.trials, receipt.repeats
        )["status"]
        status[tuple(map(slice, cropped.shape))] = cropped
        return status

    def stale(self) -> list[int]:
        """Evaluations whose counters do not yet hold what the ledger records."""
        return self.behind()[0]

    def behind(self) -> tuple[list[int], list[int]]:
        """Evaluations that are `stale`, and tasks with planned prompts that nobody has compared yet."""
        unknown, counters = self._unknown(), self.cube.read_counters()
        stale = uncounted_models(self._newest, counters)
        stale |= self._counted_at_other_prices(counters) | self._counted_with(unknown)
        return sorted(stale), np.flatnonzero(unknown.any(axis=(1, 2))).tolist()

    def _counted_at_other_prices(self, counters: npt.NDArray[np.float64]) -> set[int]:
        cost = COUNTERS.index("cost_sum")
        same = np.isclose(counters[..., cost], self._with_costs(counters)[..., cost], rtol=1e-9, atol=0.0)
        return set(np.flatnonzero(~same.all(axis=(1, 2))).tolist())

    def _counted_with(self, unknown: npt.NDArray[np.bool_]) -> set[int]:
        """Evaluations with recorded trials whose prompts were not compared when they were counted."""
        first = np.flatnonzero(unknown.any(axis=(0, 1)))
        if not len(first):
            return set()
        step = self.cube.chunks["trial"]
        return {
            region.model
            for region, receipt in self._newest.items()
            if region.trial * step + receipt.trials > first[0]
        }

    def _unknown(self) -> npt.NDArray[np.bool_]:
        """Planned prompts without a flag, shape (task, params, trial)."""
        # Of the config's tasks: the data file of another one may be anywhere by now.
        planned = np.where(self.plan.named_cells.any(axis=0), self.planned.trials.max(axis=0), 0)
        if not planned.any():
            return np.zeros((*planned.shape, 0), bool)
        flags = self.cube.read_duplicates()
        there = np.arange(flags.shape[2]) < planned[:, :, None]
        unknown: npt.NDArray[np.bool_] = (flags == _UNKNOWN) & there
        return unknown

    def transport_errors(self) -> list[int]:
        """Transport errors recorded, by evaluation."""
        errors = [0] * len(self.plan.evaluations)
        for region, receipt in self._newest.items():
            errors[region.model] += receipt.transport
        return errors


def relabel(cube: Cube, plan: Plan) -> None:
    """Take over what a config may change at any time, facets and prices; write labels anew that are damaged."""
    expected = {coordinate.name: coordinate.values for coordinate in labels(plan)}
    damaged = {} if cube.is_object_store else cube.label_problems([*expected, "trial", "repeat"])
    for name, values in expected.items():
        if name in damaged or (name in CHANGING and (cube.read_label(name) != values).any()):
            cube.write_label(name, values)
    for dim in {"trial", "repeat"} & damaged.keys():
        cube.restore_index(dim)
    label_rows(cube, plan)


def open_store(plan: Plan, url: str) -> SweepStore:
    """Open the sweep's cube, or create it with nothing planned yet; raises as `sweep_cube`."""
    return SweepStore(*sweep_cube(plan, url))


def sweep_cube(plan: Plan, url: str) -> tuple[Cube, Plan]:
    """The sweep's cube, open for writing; created with nothing planned yet if there is none."""
    if not Cube.exists(url):
        SampleTargets.uniform(plan, plan.trials, plan.repeats).refuse_too_many()
        try:
            return new_cube(plan, url), plan
        except CubeExistsError:
            pass  # another driver was faster: its lease decides who goes on
    cube, merged, grows = _open_or_refuse(plan, url, writable=True)
    if grows:
        spent = _removed_unused(url)
        if spent is not None:
            cube, merged = sweep_cube(plan, url)
            if spent:
                cube.records.put(SPENT, spent)
    if isinstance(merged, OtherSweepError):
        raise merged
    return cube, merged


def _removed_unused(url: str) -> bytes | None:
    """Remove a cube that holds no trial; what was spent on it, empty if that is not noted. None if it was left there.

    A typo in the config of a first run, such as in a model's name, must not lock the cube: nothing is in it.
    """
    cube = Cube.open(url, writable=True)
    if not _is_unused(cube):
        return None
    # With the lease: a run that has recorded nothing yet is at work. It cannot be held while its record is removed.
    with Lease.acquire(cube.records):
        if not _is_unused(cube):
            return None
        spent = cube.records.get(SPENT)
    return (b"" if spent is None else spent.data) if cube.remove() else None


def _is_unused(cube: Cube) -> bool:
    """Whether no trial is recorded, and no batch is under way whose answers could become some."""
    recorded = any(receipt.finished > 0 for receipt in Ledger(cube.records).newest().values())
    return not recorded and not BatchNotes(cube.records).tokens()


def existing_store(plan: Plan, url: str) -> SweepStore | None:
    """Open the sweep's cube for reading, with the plan's own sizes as the targets; None if there is none yet."""
    if not Cube.exists(url):
        return None
    SampleTargets.uniform(plan, plan.trials, plan.repeats).refuse_too_many()
    cube, merged, grows = _open_or_refuse(plan, url, writable=False)
    if grows and _is_unused(cube):
        return None  # a run will replace it
    if isinstance(merged, OtherSweepError):
        raise merged
    return SweepStore(cube, merged, SampleTargets.uniform(merged, plan.trials, plan.repeats))


def _open_or_refuse(plan: Plan, url: str, *, writable: bool) -> tuple[Cube, Plan | OtherSweepError, bool]:
    """The sweep's cube, what the sweep is with the config added, and whether that is more than the cube has."""
    cube = Cube.open(url, writable=writable)
    parse_spec(cube.attrs.get("spec"), cube.sizes)  # damaged, it cannot be compared
    notes = read_notes(cube.records)
    noted = notes.get("files")
    old = cube_plan(cube, {**notes, "files": {**(noted if isinstance(noted, dict) else {}), **plan.files}})
    if old.absent:
        return cube, OtherSweepError(old.absent[0], "Or give this sweep a cube of its own with `cube`"), True
    growth = grown_cube(cube, old, plan)
    if growth.contradictions:
        return cube, _other_sweep(url, growth.contradictions), True
    return cube, growth.plan, cube.attrs["spec"] != described(cube, growth.plan)


def _other_sweep(url: str, found: Sequence[Contradiction]) -> OtherSweepError:
    shown = "; ".join(contradiction.what for contradiction in found[:_SHOWN_CONTRADICTIONS])
    more = len(found) - _SHOWN_CONTRADICTIONS
    remedies = dict.fromkeys(
        contradiction.remedy.replace("evalcube forget CUBE", f"evalcube forget {shlex.quote(str(url))}")
        for contradiction in found[:_SHOWN_CONTRADICTIONS]
    )
    return OtherSweepError(
        f"cube '{url}' contradicts the config: {shown}" + (f"; and {more} more" if more > 0 else ""),
        ". ".join(remedies),
    )


def cube_plan(cube: Cube, notes: Mapping[str, Any]) -> Plan:
    """The plan of a cube, made again from its description."""
    spec, sizes = cube.attrs.get("spec"), cube.sizes
    parse_spec(spec, sizes)
    packages = _texts(notes.get(PACKAGES))
    plan = Plan.from_spec(spec, sizes["trial"], sizes["repeat"], packages=packages)
    if not all(map(may_run, plan.code)):
        allow_code(remembered_code())
    moved = _moved_files(plan.files, notes.get("files"))
    if moved:
        plan = Plan.from_spec(spec, sizes["trial"], sizes["repeat"], moved, packages)
    offer_questions(cube.records, plan)
    return plan


def _moved_files(named: Mapping[str, str], noted: object) -> dict[str, str]:
    """Data files that the last run found elsewhere than the cube says, by digest."""
    files = _texts(noted)
    return {key: files[key] for key, path in named.items() if key in files and lasting(path) != files[key]}


def _texts(noted: object) -> dict[str, str]:
    """What of a note is text."""
    named = noted.items() if isinstance(noted, dict) else ()
    return {name: text for name, text in named if isinstance(text, str)}
