"""A plan and an address in; the sweep's cube, its ledger, and what is left to do, out. Refuses another sweep's cube."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import storage.errors
from flows.blocks import pending_positions, window_of
from flows.driver import RegionTask
from flows.errors import SweepError
from flows.plan import Plan
from flows.spec import parse_spec
from stages.outcome import COUNTERS, Status
from storage.cube import Cube, region_digest
from storage.files import replace_synced
from storage.ledger import Ledger, Receipt
from storage.regions import Region
from storage.urls import directory_of

LEDGER, LEASE, NOTES = "ledger.jsonl", "lease.json", "sweep.json"
"""Names of a sweep's records beside its cube."""

_SHOWN_DIFFERENCES = 6
_CHANGING = ("facets", "price_prompt", "price_completion")


@dataclass(frozen=True)
class Target:
    """How far a run goes; the cube may be larger already."""

    trials: int
    repeats: int


class Home:
    """The cube of one sweep with its records."""

    def __init__(self, cube: Cube, plan: Plan, target: Target | None = None) -> None:
        self.cube = cube
        self.target = target or Target(plan.trials, plan.repeats)
        sizes = cube.sizes
        self.plan = replace(
            plan,
            trials=max(self.target.trials, sizes["trial"]),
            repeats=max(self.target.repeats, sizes["repeat"]),
        )
        """At the size that the cube has once it has grown to the target."""
        self.ledger = Ledger(cube.side / LEDGER)
        self._newest = self.ledger.newest()
        self._repriced: set[int] = set()

    @property
    def lease_path(self) -> Path:
        """Where the sweep's lease lies."""
        return self.cube.side / LEASE

    def grow(self) -> None:
        """Bring the cube to the target's size; only the holder of the lease may."""
        sizes = self.cube.sizes
        if (sizes["trial"], sizes["repeat"]) != (self.plan.trials, self.plan.repeats):
            self.cube.grow(trial=self.plan.trials, repeat=self.plan.repeats)

    def relabel(self) -> None:
        """Take over what a config may change at any time: facets and prices. Changed prices mean other costs."""
        for coordinate in self.plan.coordinates():
            if coordinate.name not in _CHANGING:
                continue
            before = self.cube.read_label(coordinate.name)
            changed = np.flatnonzero(before != coordinate.values)
            if len(changed):
                self.cube.write_label(coordinate.name, coordinate.values)
                self._repriced.update(changed.tolist() if coordinate.name != "facets" else ())

    def note(self, notes: Mapping[str, Any]) -> None:
        """Keep what helps readers of the cube but is no part of its identity, such as the cache's address."""
        with storage.errors.guarded(self.cube.side, "keep notes of the sweep"):
            replace_synced(self.cube.side / NOTES, json.dumps(notes, indent=1, sort_keys=True).encode())

    def regions(self, model: int) -> Iterator[Region]:
        """The regions of one evaluation that the target reaches into."""
        chunks = self.cube.chunks
        for trial in range(-(-self.target.trials // chunks["trial"])):
            for repeat in range(-(-self.target.repeats // chunks["repeat"])):
                yield Region(model, trial, repeat)

    def tasks(self, model: int) -> Iterator[RegionTask]:
        """The regions of one evaluation with something left to do; what is done costs neither request nor cache."""
        for region in self.regions(model):
            task = self._task(region)
            if task is not None:
                yield task

    def _task(self, region: Region) -> RegionTask | None:
        window = window_of(self.plan, region, self.cube.chunks)
        receipt = self._newest.get(region)
        if receipt is not None and receipt.complete and self._covers(receipt.trials, receipt.repeats, region):
            return None
        status, generation = None, 0
        if receipt is not None:
            generation = receipt.generation
            status = self._trusted_status(receipt, window.shape)
        positions = pending_positions(window, self.plan.valid(), status)
        reach = self.target.trials - window.first_trial, self.target.repeats - window.first_repeat
        _, _, trial, repeat = np.unravel_index(positions, window.shape)
        positions = positions[(trial < reach[0]) & (repeat < reach[1])]
        if not len(positions):
            return None
        kept = (receipt.trials, receipt.repeats) if receipt is not None and status is not None else (0, 0)
        return RegionTask(window, positions, generation, kept)

    def _covers(self, trials: int, repeats: int, region: Region) -> bool:
        chunks, target = self.cube.chunks, self.target
        wanted_trials = min(chunks["trial"], target.trials - region.trial * chunks["trial"])
        wanted_repeats = min(chunks["repeat"], target.repeats - region.repeat * chunks["repeat"])
        return trials >= wanted_trials and repeats >= wanted_repeats

    def _trusted_status(self, receipt: Receipt, shape: tuple[int, ...]) -> npt.NDArray[np.uint8] | None:
        """Status as stored, missing beyond what the receipt vouches for.

        None if the region is not what its receipt says: somebody was killed between writing and recording.
        """
        arrays = self.cube.read_region(receipt.region)
        part = {name: values[:, :, : receipt.trials, : receipt.repeats] for name, values in arrays.items()}
        if region_digest(part) != receipt.digest:
            return None
        status = np.full(shape, Status.MISSING, dtype=np.uint8)
        status[:, :, : receipt.trials, : receipt.repeats] = arrays["status"][
            :, :, : receipt.trials, : receipt.repeats
        ]
        return status

    def stale(self) -> list[int]:
        """Evaluations whose counters do not yet hold what the ledger records."""
        recorded = np.zeros(len(self.plan.evaluations))
        cells = self.plan.cells
        for region, receipt in self._newest.items():
            finished = cells * receipt.trials * receipt.repeats - receipt.transport - receipt.missing
            recorded[region.model] += finished
        counted = self.cube.read_counters()[..., COUNTERS.index("trials")].sum(axis=(1, 2))
        behind = set(np.flatnonzero(recorded != counted).tolist())
        return sorted(behind | {model for model in self._repriced if recorded[model]})

    def transport(self) -> list[int]:
        """Transport errors recorded, by evaluation."""
        errors = [0] * len(self.plan.evaluations)
        for region, receipt in self._newest.items():
            errors[region.model] += receipt.transport
        return errors


def open_home(plan: Plan, url: str) -> Home:
    """Open the sweep's cube, or create it.

    Raises
    ------
    SweepError
        If there is a cube of another sweep.
    StorageError
        If the address cannot be used.
    """
    if not directory_of(url).exists():
        try:
            cube = Cube.create(
                url,
                sizes=plan.sizes,
                chunks=plan.chunks,
                coordinates=plan.coordinates(),
                counters=COUNTERS,
                attrs={"title": "evalcube sweep", "spec": plan.spec()},
            )
            return Home(cube, plan)
        except storage.errors.CubeExistsError:
            pass  # another driver was faster: its lease decides who goes on
    return Home(_open_same(plan, url, writable=True), plan)


def open_existing(plan: Plan, url: str) -> Home | None:
    """Open the sweep's cube for reading; None if there is none yet.

    Raises
    ------
    SweepError
        If there is a cube of another sweep.
    """
    return Home(_open_same(plan, url, writable=False), plan) if directory_of(url).exists() else None


def _open_same(plan: Plan, url: str, *, writable: bool) -> Cube:
    cube = Cube.open(url, writable=writable)
    parse_spec(cube.attrs.get("spec"), cube.sizes)  # damaged, it cannot be compared
    differences = spec_differences(cube.attrs.get("spec", {}), plan.spec())
    if differences:
        shown = "; ".join(differences[:_SHOWN_DIFFERENCES])
        more = len(differences) - _SHOWN_DIFFERENCES
        raise SweepError(
            f"cube '{url}' was written by another config: {shown}"
            + (f"; and {more} more" if more > 0 else ""),
            "Give this sweep a cube of its own (`cube:` or --cube); with the same cache, what both have in common "
            "is not asked again",
        )
    return cube


def spec_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What differs between the sweep in a cube and the one to run, in words; empty if they are the same sweep."""
    found = [
        f"{name} is {old.get(name)!r} in the cube and {new.get(name)!r} in the config"
        for name in ("format", "seed")
        if old.get(name) != new.get(name)
    ]
    before = {_evaluation_name(item): item for item in old.get("evaluations", ())}
    after = {_evaluation_name(item): item for item in new.get("evaluations", ())}
    found += _set_differences("evaluation", before, after)
    for name in before.keys() & after.keys():
        for part in ("request_model", "template", "sampler"):
            if before[name][part] != after[name][part]:
                was, now = before[name][part], after[name][part]
                found.append(
                    f"{part} of evaluation {name} is {_short(was)} in the cube and {_short(now)} in the config"
                )
    found += _task_differences(old, new)
    if not found and _ordered(old) != _ordered(new):
        found.append("models, tasks or points stand in another order")
    return found


def _task_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    before = {task["name"]: task for task in old.get("tasks", ())}
    after = {task["name"]: task for task in new.get("tasks", ())}
    found = _set_differences("task", before, after)
    for name in before.keys() & after.keys():
        versions = before[name]["version"], after[name]["version"]
        if versions[0] != versions[1]:
            found.append(
                f"generator of task {name} is version {versions[0]} in the cube and {versions[1]} here"
            )
            continue
        points = [
            {json.dumps(p["params"], sort_keys=True): p for p in t[name]["points"]} for t in (before, after)
        ]
        found += _set_differences(f"point of task {name}", *points)
        for params in points[0].keys() & points[1].keys():
            tiers = points[0][params]["tiers"], points[1][params]["tiers"]
            if tiers[0] != tiers[1]:
                found.append(
                    f"tiers of {name} {params} are {tiers[0]} in the cube and {tiers[1]} in the config"
                )
    return found


def _set_differences(kind: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    gone = [f"{kind} {name} is in the cube only" for name in before if name not in after]
    return gone + [f"{kind} {name} is in the config only" for name in after if name not in before]


def _evaluation_name(item: Mapping[str, Any]) -> str:
    return f"{item['model']} / {item['template']['name']} / {item['sampler']['name']}"


def _ordered(spec: Mapping[str, Any]) -> str:
    return json.dumps(spec, sort_keys=True)


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."
