"""A cube that is merged: it is only read, and only what its ledger vouches for, also while a run works on it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.flows.plan.spec import (
    REMEDY,
    Spec,
    damaged_at,
    described_base,
    description_problem,
    filled_base,
    parse_spec,
)
from evalcube.flows.plan.targets import window_of
from evalcube.flows.read.merged.union import Place, Rename, rename_labels
from evalcube.flows.state.recording import prices_of
from evalcube.flows.state.records import read_notes, read_spent
from evalcube.flows.state.shared_arrays import planned_of
from evalcube.stages.analyze.labelled import axes
from evalcube.stages.analyze.labelled.axes import Facet
from evalcube.stages.reply.status import BASE, Status
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.group import chunk_error, heal
from evalcube.storage.cube.holder import apparent_holder
from evalcube.storage.cube.integrity import stored_problems
from evalcube.storage.cube.ledger import Ledger, Receipt, to_line
from evalcube.storage.cube.regions import Region, region_digest
from evalcube.storage.errors import CubeDamagedError

Array = npt.NDArray[Any]

_ATTEMPTS, _PAUSE = 40, 0.25
"""A run may write a region again while it is read, and appends the receipt a moment later: seconds between attempts."""


class Input:
    """One cube that is merged, with new names for its models and tasks.

    Raises StorageError if its metadata cannot be read, SweepError if it is no sweep's or its description is damaged.
    """

    def __init__(self, url: str, renames: Sequence[Rename] = ()) -> None:
        self.url = url
        self.cube = Cube.open(url)
        self.sizes, self.chunks = self.cube.sizes, self.cube.chunks
        self.described = parse_spec(self.cube.attrs.get("spec"), self.sizes)
        self.spec = rename_labels(self.described, url, renames)
        problem = description_problem(self.cube.attrs, self.described)
        if problem is not None:
            raise CubeDamagedError(f"its description was changed: {problem}", self.cube.url, REMEDY)
        _refuse_twins(self.spec)
        ledger = Ledger(self.cube.records)
        self.receipts = ledger.newest()
        self.damaged_lines = ledger.damaged
        self.planned = planned_of(self.cube, self.receipts)

    @cached_property
    def notes(self) -> dict[str, Any]:
        """What the last run noted beside it."""
        return read_notes(self.cube.records)

    @cached_property
    def base(self) -> Array:
        """Answers that the first plan gave each point, shape (model, task, params); 0 where they came later."""
        if self.cube.has_label(BASE):
            return self.cube.whole_label(BASE)
        return filled_base(None, described_base(self.described, self.sizes["params"]), self.sizes["model"])

    @cached_property
    def prices(self) -> list[tuple[float, float]]:
        """USD per million prompt and completion tokens, by evaluation."""
        return [pair if np.isfinite(pair).all() else (0.0, 0.0) for pair in prices_of(self.cube)]

    @cached_property
    def facets(self) -> list[dict[str, Facet]]:
        """Free labels, by evaluation."""
        return [axes.facets(str(text)) for text in self.cube.whole_label("facets")]

    @cached_property
    def spent(self) -> tuple[float, float]:
        """Tokens and dollars that its runs have noted as spent."""
        spent = read_spent(self.cube.records)
        return (spent.tokens, spent.usd) if spent else (0.0, 0.0)

    @cached_property
    def times(self) -> tuple[int, int] | None:
        """When its first and its last region were written, seconds since the epoch; None if none is."""
        times = [receipt.at for receipt in self.receipts.values()]
        return (min(times), max(times)) if times else None

    @cached_property
    def ledger_digest(self) -> str:
        """See `ledger_digest`."""
        return ledger_digest(self.receipts.values())

    @cached_property
    def spec_digest(self) -> str:
        """SHA-256 of its description."""
        return hashlib.sha256(json.dumps(self.cube.attrs.get("spec"), sort_keys=True).encode()).hexdigest()

    def cells(self, layout: Place, slots: int) -> tuple[Array, Array]:
        """Flat indices of its cells, by task and slot, in its own arrays and in those of the union."""
        mine, theirs = [], []
        for row, (task, targets) in enumerate(zip(layout.tasks, layout.slots, strict=True)):
            mine += [row * self.sizes["params"] + slot for slot, target in enumerate(targets) if target >= 0]
            theirs += [task * slots + target for target in targets if target >= 0]
        return np.array(mine, dtype=np.intp), np.array(theirs, dtype=np.intp)

    def read_region(self, region: Region) -> tuple[Receipt, dict[str, Array]] | None:
        """A recorded region: its receipt, and the arrays as far as that speaks of them; None if there is no receipt."""
        problems: Mapping[str, str] = {}
        for _ in range(_ATTEMPTS):
            receipt = self.receipts.get(region)
            if receipt is None:
                return None
            problems, arrays = {}, self._matching(receipt)
            if arrays is None:
                problems, arrays = stored_problems(self.cube, receipt)
            if not problems:
                recorded = self._recorded_part(arrays, receipt)
                self._refuse_unplanned(region, recorded["status"])
                return receipt, recorded
            if self._recorded_again(region) == receipt:
                if apparent_holder(self.cube.records) is None:
                    break
                time.sleep(_PAUSE)
        name, problem = next(iter(problems.items()))
        raise chunk_error(name, problem, self.url)

    def _refuse_unplanned(self, region: Region, status: Array) -> None:
        """Refuse a plan that lacks trials which were measured: they would be left out without a word."""
        window = window_of(self.sizes, region, self.chunks)
        there = status != Status.MISSING
        part = np.s_[:, :, : status.shape[2], : status.shape[3]]
        if not (there & ~self.planned.mask(window)[part]).any():
            return
        self.planned = planned_of(self.cube, self.receipts)  # a run may have grown it meanwhile
        if (there & ~self.planned.mask(window)[part]).any():
            problem = "`planned_trials` or `planned_repeats` lacks trials that were measured"
            raise CubeDamagedError(problem, self.url, heal(self.url))

    def peek(self, region: Region, name: str) -> tuple[Receipt, dict[str, Array]] | None:
        """One array of a recorded region, not compared with what was recorded; otherwise as `read_region`.

        A cube that has no such array has nothing of it: outputs of another cube may be scored in layers.
        """
        receipt = self.receipts.get(region)
        if receipt is None:
            return None
        names = [name] if name in self.cube.trial_arrays else []
        return receipt, self._recorded_part(self.cube.read_region(region, names), receipt)

    def _matching(self, receipt: Receipt) -> dict[str, Array] | None:
        """The arrays of a region that is what its receipt says; None if it is not, or that takes a closer look.

        Which asks for each chunk again, as costs as much as reading it in a bucket.
        """
        try:
            arrays = self.cube.read_region(receipt.region)
        except CubeDamagedError:
            return None
        recorded = self.cube.shape_of(receipt).crop(arrays, receipt.trials, receipt.repeats)
        # No digest has latencies: where all are missing their chunk may be gone.
        lost = np.isnan(recorded["latency"]).all()
        return None if lost or region_digest(recorded) != receipt.digest else arrays

    def _recorded_part(self, arrays: Mapping[str, Array], receipt: Receipt) -> dict[str, Array]:
        """What a receipt speaks of, with all cells of the cube as it is now, and fills where it says nothing."""
        shape = self.cube.shape_of(receipt)
        recorded = shape.crop(arrays, receipt.trials, receipt.repeats)
        if shape == self.cube.shapes[-1]:
            return recorded
        widened = {}
        for name in arrays:
            variable = self.cube.trial_arrays[name]
            values = arrays[name][:, :, : receipt.trials, : receipt.repeats]
            widened[name] = np.full(values.shape, variable.fill, dtype=variable.dtype)
            if name in recorded:
                widened[name][tuple(slice(size) for size in recorded[name].shape)] = recorded[name]
        return widened

    def _recorded_again(self, region: Region) -> Receipt:
        """The region's receipt as the ledger has it now; others stay as they were listed."""
        self.receipts[region] = Ledger(self.cube.records).newest().get(region, self.receipts[region])
        self.cube.refresh()
        self.sizes = self.cube.sizes
        return self.receipts[region]


def ledger_digest(receipts: Iterable[Receipt]) -> str:
    """SHA-256 of what a ledger vouches for: equal for equal results, wherever they lie."""
    digest = hashlib.sha256()
    for receipt in sorted(receipts, key=lambda entry: entry.region):
        digest.update(to_line(receipt))
    return digest.hexdigest()


def _refuse_twins(spec: Spec) -> None:
    """Refuse what no sweep describes: two places for one thing, or prices for other evaluations than there are."""
    ids = [row.eval_id for row in spec.evaluations]
    labels = [task.label for task in spec.tasks]
    cells = [[point.cell_id for point in task.points] for task in spec.tasks]
    for where, names in (("evaluations", ids), ("tasks", labels), *(("points", row) for row in cells)):
        if len(set(names)) < len(names):
            raise damaged_at(f"spec.{where}", "one of them stands there twice")
    pairs = spec.asserted_prices
    if pairs and (len(pairs) != len(ids) or any(len(pair) != 2 for pair in pairs)):
        raise damaged_at("spec.asserted_prices", "must be two numbers for each evaluation")
