"""Takes results out of a cube, and their replies out of its cache, so that they are asked again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.flows.errors import SweepError
from evalcube.flows.keep.choice import Choice, Chosen, ToForget, find
from evalcube.flows.plan.evaluations import judge_keys, score_in
from evalcube.flows.plan.grading import due_readings
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.requests import CriteriaBook, Prepared, prepare_trials
from evalcube.flows.plan.targets import Block, SampleTargets, Window, window_of
from evalcube.flows.state.caches import default_cache_address
from evalcube.flows.state.recording import count_model, grader_of, prices_of, receipt_of, uncounted_models
from evalcube.flows.state.records import read_notes
from evalcube.flows.state.shared_arrays import planned_of, repair_shared
from evalcube.flows.state.store import cube_plan
from evalcube.stages.reply.status import LAST_FINISHED
from evalcube.storage.cache.cache import ManagedCache, open_cache
from evalcube.storage.cube.batch_notes import BatchNotes
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.integrity import CONTENT, stored_problems
from evalcube.storage.cube.lease import Lease
from evalcube.storage.cube.ledger import Ledger, Receipt
from evalcube.storage.cube.regions import Region
from evalcube.storage.urls import beside

_KEYS_AT_ONCE = 512


def judge_request_keys(plan: Plan, parts: Sequence[Chosen], cache: ManagedCache) -> Iterator[str]:
    """Keys of what judges were asked about the answers that a cache holds."""
    if not plan.judges:
        return
    book = CriteriaBook(plan.tasks)
    for part in parts:
        for item in _trials_of(plan, part):
            rubric = book.of(item.task, item.trial).rubric
            if rubric:
                keys = list(judge_keys(plan.judges, rubric, item.trial, cache.get(item.request.digest)))
                yield from (
                    key for key, there in zip(keys, cache.contents(keys), strict=True) if there is not None
                )


def _trials_of(plan: Plan, part: Chosen) -> Iterator[Prepared]:
    """The trials, some in memory at a time."""
    positions = np.flatnonzero(part.mask)
    for begin in range(0, len(positions), _KEYS_AT_ONCE):
        yield from prepare_trials(plan, Block(part.window, 0, 0, positions[begin : begin + _KEYS_AT_ONCE]))


Array = npt.NDArray[Any]
_AT_ONCE = 100_000
"""Replies that are deleted at once: a directory writes packs anew each time."""


@dataclass(frozen=True)
class ForgottenRow:
    """What goes of one model on one task."""

    model: str
    task: str
    trials: int
    """Results."""
    requests: int
    """Of these, planned ones: a run sends a request for each to have them again, unless the cache has the reply."""


@dataclass(frozen=True)
class Forgetting:
    """What goes, or went."""

    cube: str
    cache: str
    """Address of the cache whose replies go, too; empty if they stay."""
    done: bool
    rows: list[ForgottenRow] = field(default_factory=list)
    replies: int = 0
    """Requests whose replies are not in the cache any more, those to judges among them."""
    kept_replies: int = 0
    """Replies that stay, since another process writes the pack that they are in."""
    batches: int = 0
    """Notes of batches under way, whose answers may still come."""

    @property
    def trials(self) -> int:
        """All results."""
        return sum(row.trials for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        totals = {"trials": self.trials, "requests": sum(row.requests for row in self.rows)}
        return {"schema": "evalcube.forget", "schema_version": 1, **asdict(self), **totals}


def forget(
    url: str | Path,
    choice: Choice,
    *,
    cache: str | Path | bool = False,
    confirmed: Callable[[Forgetting], bool] = lambda _: True,
) -> Forgetting:
    """Take results out of a cube. Killed at any point, it leaves what a second call brings to its end."""
    cube = Cube.open(url)
    notes = read_notes(cube.records)
    plan = cube_plan(cube, notes)
    address = _cache_address(cube, notes, cache)
    if address:
        open_cache(address, writable=False).close()  # says that it is not there
    shown = _forgetting_of(cube, plan, find(cube, plan, choice), address)
    if not confirmed(shown):
        return shown
    writable = Cube.open(url, writable=True)
    with Lease.acquire(writable.records):
        return _Forgetter(writable, plan, choice, address).run()


def forget_unrated(url: str | Path, where: Sequence[str], cache: str | Path) -> None:
    """Delete judges' replies without a score from a cache, so that a run asks these judges again, and no model.

    The results stay until then: their receipts say that not all judges have rated them.
    """
    cube = Cube.open(url, writable=True)
    plan = cube_plan(cube, read_notes(cube.records))
    replies, records = open_cache(cache, writable=True), cube.records
    with Lease.acquire(records), closing(replies), Ledger(records) as ledger:
        newest = ledger.newest()
        for part in find(cube, plan, Choice(tuple(where))).regions if plan.judges else ():
            stored, receipt = cube.read_region(part.region, ["status", "judge_readings"]), newest[part.region]
            due = due_readings(plan.tasks, plan.judges, part.mask & (stored["status"] <= LAST_FINISHED))
            unrated = (due & np.isnan(stored["judge_readings"])).any(axis=(-2, -1))
            if unrated.any():
                generation, count = receipt.generation + 1, int(unrated.sum())
                ledger.append(replace(receipt, generation=generation, unrated=count))
                keys = list(judge_request_keys(plan, [replace(part, mask=unrated)], replies))
                scored = zip(keys, replies.get_many(keys), strict=True)
                replies.remove([key for key, data in scored if data is None or math.isnan(score_in(data))])


def _cache_address(cube: Cube, notes: dict[str, Any], cache: str | Path | bool) -> str:
    if not isinstance(cache, bool):
        return str(cache)
    if not cache:
        return ""
    noted = notes.get("cache")
    address = default_cache_address(cube, noted)
    # For reading, the cache of a like sweep elsewhere will do. What is to be deleted must be this cube's.
    if address is None or address not in (noted, beside(cube.url, str(noted).rpartition("/")[2])):
        raise SweepError(
            f"it is not certain where the replies of cube '{cube.url}' are",
            "Run the sweep's config once here, or put the cache beside the cube",
        )
    return address


def _forgetting_of(cube: Cube, plan: Plan, chosen: ToForget, address: str) -> Forgetting:
    rows = [
        ForgottenRow(
            plan.labels[model], plan.task_names[task], trials=int(counted[0]), requests=int(counted[1])
        )
        for (model, task), counted in sorted(chosen.counts.items())
    ]
    return Forgetting(cube.url, address, False, rows, batches=len(BatchNotes(cube.records).tokens()))


class _Forgetter:
    """Takes results out of a cube, under its lease."""

    def __init__(self, cube: Cube, plan: Plan, choice: Choice, address: str) -> None:
        self._cube, self._plan, self._choice, self._address = cube, plan, choice, address

    def run(self) -> Forgetting:
        """Take the results out in an order that leaves no silent contradiction if the process is killed."""
        repair_shared(self._cube)
        cache = open_cache(self._address, writable=True) if self._address else None
        # Again, under the lease: somebody may have recorded more since it was shown.
        chosen_results = find(self._cube, self._plan, self._choice)
        shown = _forgetting_of(self._cube, self._plan, chosen_results, self._address)
        planned = planned_of(self._cube, Ledger(self._cube.records).newest())
        deleted = left = 0
        if cache is not None:
            # Replies before results, as a run would take them from there; those of judges before the answers that they
            # are about, without which nobody knows any more which they are.
            chosen = list(chosen_results.regions)
            for keys in (
                judge_request_keys(self._plan, chosen, cache),
                (item.request.digest for part in chosen for item in _trials_of(self._plan, part)),
            ):
                while batch := list(islice(keys, _AT_ONCE)):
                    left += cache.remove(batch)
                    deleted += len(batch)
            cache.close()
        self._clear([*chosen_results.regions, *self._unrecorded_regions(chosen_results.empty)], planned)
        return replace(shown, done=True, replies=deleted, kept_replies=left)

    def _unrecorded_regions(self, regions: Iterable[Region]) -> Iterator[Chosen]:
        """Regions that a killed run wrote without recording them; no results are taken from them."""
        newest = Ledger(self._cube.records).newest()
        for region in regions:
            if CONTENT in stored_problems(self._cube, newest[region])[0]:
                window = window_of(self._cube.sizes, region, self._cube.chunks)
                yield Chosen(region, window, np.zeros(window.shape, dtype=bool))

    def _clear(self, chosen: Iterable[Chosen], planned: SampleTargets) -> None:
        """Write the regions without the results, record it, and count their models anew."""
        with Ledger(self._cube.records) as ledger:
            newest = ledger.newest()
            for region in chosen:
                grader = grader_of(self._plan.evaluations[region.region.model])
                receipt = _clear_region(self._cube, newest[region.region], region.mask, planned, grader)
                ledger.append(receipt)
                newest[receipt.region] = receipt
            prices = [(float(p), float(c)) for p, c in np.nan_to_num(prices_of(self._cube))]
            models = {region.region.model for region in chosen}
            # A call before this one may have been killed before it counted.
            models |= uncounted_models(newest, self._cube.read_counters())
            counted = {
                model: count_model(self._cube, model, newest, planned, prices[model])
                for model in sorted(models)
            }
        if counted:
            self._cube.write_counters(counted)


def _clear_region(
    cube: Cube, receipt: Receipt, mask: npt.NDArray[np.bool_], planned: SampleTargets, grader: str
) -> Receipt:
    """Write a region without some of its results; the receipt to record, of `grader` where nothing stays."""
    window = window_of(cube.sizes, receipt.region, cube.chunks)
    problems, stored = stored_problems(cube, receipt)
    arrays: dict[str, Array] = {}
    stays = np.zeros(window.shape, dtype=bool) if problems else _vouched_mask(cube, receipt, window) & ~mask
    for name, variable in cube.trial_arrays.items():
        more = tuple(cube.sizes[dim] for dim in variable.dims[5:])
        arrays[name] = np.full((*window.shape, *more), variable.fill, dtype=variable.dtype)
        if not problems:
            arrays[name][stays] = stored[name][stays]
    digest = cube.write_region(receipt.region, arrays)
    anything = bool((arrays["status"] <= LAST_FINISHED).any())
    # What stays was graded and written when it was: neither grader nor time are today's.
    cleared = receipt_of(
        window,
        receipt.generation + 1,
        planned.mask(window),
        arrays["status"],
        digest,
        {},
        cube.shape_number,
        receipt.grader if anything else grader,
    )
    return replace(cleared, at=receipt.at, fingerprints=receipt.fingerprints if anything else {})


def _vouched_mask(cube: Cube, receipt: Receipt, window: Window) -> npt.NDArray[np.bool_]:
    """The part of a region that its receipt vouches for; a killed run may have left more."""
    mask, sizes = np.zeros(window.shape, dtype=bool), cube.shape_of(receipt).sizes
    mask[: sizes["task"], : sizes["params"], : receipt.trials, : receipt.repeats] = True
    return mask
