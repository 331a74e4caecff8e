"""Grades recorded replies again from the cache, with the graders of today; nothing is ever asked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube import known_as
from evalcube.flows.events import Announcer
from evalcube.flows.plan.evaluations import read_stored
from evalcube.flows.plan.grading import LayerGrader, Prices, columns, grade_reading, trial_variables
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.requests import Prepared, prepare_trials
from evalcube.flows.plan.targets import Block, SampleTargets, Window, window_of
from evalcube.flows.state.recording import count_model, grader_of, prices_of, receipt_of
from evalcube.flows.state.records import MERGED, read_record
from evalcube.stages.generate.reader import SecondReader
from evalcube.stages.process.grading import GRADER, IMPORTED, Outcome
from evalcube.stages.reply.status import LAST_FINISHED, Status
from evalcube.storage.cache.cache import Cache, find_cache
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.group import chunk_error
from evalcube.storage.cube.integrity import stored_problems
from evalcube.storage.cube.ledger import Ledger, Receipt, graders_of
from evalcube.storage.cube.regions import region_digest
from evalcube.storage.urls import MadeCube

_AT_ONCE = 64
"""Trials whose replies are in memory at once."""


def regrade(
    plan: Plan,
    window: Window,
    planned: npt.NDArray[np.bool_],
    receipt: Receipt,
    cache: Cache,
    prices: Prices,
    stored: npt.NDArray[np.uint8] | None,
) -> tuple[dict[str, npt.NDArray[Any]], int]:
    """Make a region again."""
    arrays: dict[str, npt.NDArray[Any]] = {
        name: np.full((*window.shape, *more), variable.fill, dtype=variable.dtype)
        for name, (variable, more) in trial_variables(plan).items()
    }
    layers, unanswered = LayerGrader(plan), 0
    positions = np.flatnonzero(planned)
    for begin in range(0, len(positions), _AT_ONCE):
        part = positions[begin : begin + _AT_ONCE]
        prepared = prepare_trials(plan, Block(window, receipt.generation, 0, part))
        replies = cache.get_many([item.request.digest for item in prepared])
        outcomes = []
        for index, item, reply in zip(part.tolist(), prepared, replies, strict=True):
            outcome = _outcome(item, plan.tasks[item.task].second, reply, layers, cache, prices)
            unanswered += outcome is None
            outcomes.append(outcome or Outcome(_status_without_reply(receipt, stored, index)))
        for name, column in columns(plan, outcomes).items():
            arrays[name].reshape(-1, *column.shape[1:])[part] = column
    return arrays, unanswered


def _outcome(
    item: Prepared,
    second: SecondReader | None,
    reply: bytes | None,
    layers: LayerGrader,
    cache: Cache,
    prices: Prices,
) -> Outcome | None:
    reading = read_stored(reply, item.trial)
    if reading is None:
        return None
    outcome = grade_reading(reading, item.cell, item.trial, second)
    judged = [
        [cache.get(request.digest) for request in each]
        for each in layers.judge_requests(item, reading.answer)
    ]
    return layers.with_layers(item, reading, outcome, prices, judged)


def _status_without_reply(receipt: Receipt, stored: npt.NDArray[np.uint8] | None, place: int) -> Status:
    if not receipt.missing:
        return Status.TRANSPORT
    if receipt.transport and stored is not None and stored.reshape(-1)[place] == Status.TRANSPORT:
        return Status.TRANSPORT
    return Status.MISSING


Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Remade:
    """A region that was made again."""

    arrays: dict[str, Array]
    """In the window's shape."""
    lost: int
    """Replies that were recorded and that the cache has no more: with any, nothing was written."""
    receipt: Receipt | None
    """To be recorded, where what was written is not what had been recorded."""


def remake(
    cube: Cube,
    plan: Plan,
    receipt: Receipt,
    targets: SampleTargets,
    cache: Cache,
    prices: Sequence[Prices],
    stored: npt.NDArray[np.uint8] | None,
) -> Remade:
    """Make a recorded region again, and write it unless replies are lost."""
    window, recorded = window_of(cube.sizes, receipt.region, cube.chunks), recorded_window(cube, receipt)
    planned = np.zeros(window.shape, dtype=bool)
    planned[:, :, : receipt.trials, : receipt.repeats] = targets.mask(recorded)
    arrays, open_trials = regrade(plan, window, planned, receipt, cache, prices[receipt.region.model], stored)
    later = int(planned.sum()) - receipt.planned  # planned since it was recorded, and not run yet
    lost = max(0, open_trials - later - receipt.transport - receipt.missing)
    if lost:
        return Remade(arrays, lost, None)
    same = (
        region_digest(cube.shape_of(receipt).crop(arrays, receipt.trials, receipt.repeats)) == receipt.digest
    )
    if not same and MERGED in cube.attrs:
        # Caches may have another team's replies to the same requests, which were not measured here.
        return Remade(arrays, receipt.planned, None)
    digest = cube.write_region(receipt.region, arrays)
    if same:
        return Remade(arrays, 0, None)
    # The cache has got other replies since, or more of them: what is there now is what counts.
    grader = grader_of(plan.evaluations[receipt.region.model])
    return Remade(arrays, 0, _again(cube, receipt, targets, arrays["status"], digest, grader))


def recorded_window(cube: Cube, receipt: Receipt) -> Window:
    """The part of a region that was there when it was recorded, as far as it is there: anyone may write a receipt."""
    window = window_of(cube.sizes, receipt.region, cube.chunks)
    trials, repeats = min(receipt.trials, window.shape[2]), min(receipt.repeats, window.shape[3])
    return replace(window, shape=(*window.shape[:2], trials, repeats))


GRADED = (Status.CORRECT, Status.INCORRECT, Status.INVALID)
"""What a grader decides between; the rest an endpoint has decided."""

_UP_TO_DATE = (GRADER, IMPORTED)
"""Graders that no later one replaces: what another tool graded stays as it said."""

UNCOUNTED = "regrading.json"
"""Key of the record of models that are being graded again."""

Counts = Counter[tuple[int, int, Status]]
"""Trials by model, task and status."""


@dataclass(frozen=True)
class Recount:
    """Counts of one model on one task before and after."""

    model: str
    task: str
    old: Mapping[str, int]
    """Trials by status: correct, incorrect, invalid."""
    new: Mapping[str, int]


@known_as("evalcube.results")
@dataclass(frozen=True)
class Rescoring(MadeCube):
    """What a rescoring graded again."""

    cube: str
    grader: str
    """Version of the grader that holds now."""
    before: tuple[str, ...]
    """Versions of the graders of the regions before, and of those that are left alone."""
    regions: int
    """Regions that were graded again."""
    lost: int
    """Regions left as they were, since the cache lacks some of their replies."""
    rows: list[Recount] = field(default_factory=list)
    imported: int = 0
    """Regions left as they were, since another tool graded them."""

    @property
    def changed(self) -> int:
        """Trials more or less of any status, each moved trial once."""
        return sum(sum(max(0, row.new[name] - row.old[name]) for name in row.new) for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values."""
        return {**asdict(self), "before": list(self.before), "changed": self.changed}


def _models_to_count(cube: Cube) -> set[int]:
    """Models whose counters somebody was killed over."""
    listed = read_record(cube.records, UNCOUNTED)
    models = listed if isinstance(listed, list) else []
    return {model for model in models if isinstance(model, int) and 0 <= model < cube.sizes["model"]}


def regrade_older(cube: Cube, plan: Plan, cache: str, announcer: Announcer) -> None:
    """Grade the regions of other graders again, for a run that goes on and holds the lease.

    Regions whose replies the cache lacks stay as they are; whoever reads the cube is told that two graders meet.
    """
    with Ledger(cube.records) as ledger:
        older = set(graders_of(ledger.newest().values())) - set(_UP_TO_DATE)
    if not older and not _models_to_count(cube):
        return
    address = find_cache(cache)
    if address is None:
        announcer.note(
            "replies that an older grader graded are kept as they were, since their cache is not there"
        )
        return
    done = regrade_recorded(cube, plan, address, announcer, older_only=True)
    note = f"; {done.lost} are kept as they were, as the cache lacks replies" if done.lost else ""
    announcer.note(
        f"grader {GRADER} graded {done.regions} regions again: {done.changed} trials changed{note}"
    )


def _whole(cube: Cube, receipt: Receipt) -> dict[str, Array]:
    """The arrays of a recorded region; raises StorageError if they are not what was recorded."""
    problems, arrays = stored_problems(cube, receipt)
    if problems:
        raise chunk_error(*next(iter(problems.items())), cube.url)
    return arrays


def _again(
    cube: Cube, receipt: Receipt, targets: SampleTargets, status: Array, digest: str, grader: str
) -> Receipt:
    """The receipt of a region whose replies were read again."""
    window = window_of(cube.sizes, receipt.region, cube.chunks)
    mask, generation = targets.mask(window), receipt.generation + 1
    renewed = receipt_of(window, generation, mask, status, digest, receipt.causes, cube.shape_number, grader)
    return replace(renewed, fingerprints=receipt.fingerprints)


def regrade_recorded(
    cube: Cube, plan: Plan, cache: Cache, announcer: Announcer, *, older_only: bool
) -> Rescoring:
    """Grade recorded regions again; whoever calls holds the lease.

    A kill leaves whole regions of either grader, and their receipts say which; a record names the models whose counters
    may be behind, for as many trials are counted as before.
    """
    with Ledger(cube.records) as ledger:
        return _Rescore(cube, plan, cache, ledger).run(announcer, older_only=older_only)


class _Rescore:
    def __init__(self, cube: Cube, plan: Plan, cache: Cache, ledger: Ledger) -> None:
        self._cube, self._plan, self._cache, self._ledger = cube, plan, cache, ledger
        self._newest = ledger.newest()
        self._planned = SampleTargets(*cube.read_targets())
        self._prices = prices_of(cube)

    def run(self, announcer: Announcer, *, older_only: bool) -> Rescoring:
        before = graders_of(self._newest.values())
        old, new = Counts(), Counts()
        left_alone = _UP_TO_DATE if older_only else (IMPORTED,)
        imported = sum(receipt.grader == IMPORTED for receipt in self._newest.values())
        wanted = [region for region in sorted(self._newest) if self._newest[region].grader not in left_alone]
        touched, lost, regions = _models_to_count(self._cube), 0, 0
        if wanted:
            models = sorted(touched | {region.model for region in wanted})
            self._cube.records.put(UNCOUNTED, json.dumps(models).encode())
        for region in announcer.count_each(wanted, "regions graded"):
            stored, graded = self._regrade(self._newest[region], whole=not older_only)
            if stored is None:
                continue  # the run does it again
            _count(old, region.model, stored)
            _count(new, region.model, stored if graded is None else graded)
            if graded is None:
                lost += 1
                continue
            regions += 1
            touched.add(region.model)
        if touched:
            self._cube.write_counters({model: self._counters(model) for model in sorted(touched)})
        self._cube.records.delete(UNCOUNTED)
        return Rescoring(self._cube.url, GRADER, before, regions, lost, self._rows(old, new), imported)

    def _regrade(
        self, receipt: Receipt, *, whole: bool
    ) -> tuple[npt.NDArray[Any] | None, npt.NDArray[Any] | None]:
        """Status of a region before and after; None after where the cache lacks replies, and it is kept.

        None before, too, where it is not what was recorded, as after a kill, unless regions have to be `whole`.
        """
        if not whole and stored_problems(self._cube, receipt)[0]:
            return None, None
        status = _whole(self._cube, receipt)["status"]
        window = window_of(self._cube.sizes, receipt.region, self._cube.chunks)
        recorded = np.zeros(window.shape, dtype=bool)
        recorded[:, :, : receipt.trials, : receipt.repeats] = True
        planned = recorded & self._planned.mask(window) & (status != Status.MISSING)
        prices = self._prices[receipt.region.model]
        fresh, _ = regrade(self._plan, window, planned, receipt, self._cache, prices, status)
        # By trial: a reply that has come since, to what was a transport error, does not make up for one that is gone.
        if (planned & (status <= LAST_FINISHED) & (fresh["status"] > LAST_FINISHED)).any():
            return status, None
        digest = self._cube.write_region(receipt.region, fresh)
        grader = grader_of(self._plan.evaluations[receipt.region.model])
        new = _again(self._cube, receipt, self._planned, fresh["status"], digest, grader)
        self._newest[receipt.region] = new
        self._ledger.append(new)
        return status, fresh["status"]

    def _counters(self, model: int) -> npt.NDArray[np.float64]:
        return count_model(self._cube, model, self._newest, self._planned, self._prices[model])

    def _rows(self, old: Counts, new: Counts) -> list[Recount]:
        pairs = sorted({(model, task) for model, task, _ in (*old, *new)})
        names = list(self._plan.task_names)
        return [
            Recount(
                self._plan.labels[model],
                names[task],
                *(
                    {status.name.lower(): counts[model, task, status] for status in GRADED}
                    for counts in (old, new)
                ),
            )
            for model, task in pairs
        ]


def _count(counts: Counts, model: int, status: npt.NDArray[Any]) -> None:
    for task in range(status.shape[0]):
        for kind in GRADED:
            if number := int((status[task] == kind).sum()):
                counts[model, task, kind] += number
