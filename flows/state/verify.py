"""Compares all of a cube with what was recorded of it, and heals what the cache can: nothing is ever asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube._together import in_threads
from evalcube.flows.config.kept_questions import key_of
from evalcube.flows.cube_like import OneCube, need_address
from evalcube.flows.errors import SweepError
from evalcube.flows.events import Announcer, Subscriber
from evalcube.flows.plan.coordinates import OF_CODE, ROW_ID, labels, row_ids
from evalcube.flows.plan.grading import Prices
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.spec import description_problem, filled_base, parse_spec
from evalcube.flows.plan.targets import SampleTargets
from evalcube.flows.state.caches import needed_replies
from evalcube.flows.state.damage import Damage, Verification
from evalcube.flows.state.questions import damaged_questions, is_whole, keep_block, keep_copy, kept_blocks
from evalcube.flows.state.recording import count_model, count_read, prices_of, sum_regions
from evalcube.flows.state.records import MERGED, read_notes
from evalcube.flows.state.rescoring import recorded_window, remake
from evalcube.flows.state.shared_arrays import (
    measured_plan,
    planned_of,
    repeat_flags,
    unrecorded_trials,
    write_planned,
)
from evalcube.flows.state.store import CHANGING, cube_plan
from evalcube.stages.generate.absent import AbsentTask
from evalcube.stages.generate.errors import TaskError
from evalcube.stages.reply.status import BASE, QUESTION_COUNTERS
from evalcube.stages.reply.status import COUNTERS as STATUS_COUNTERS
from evalcube.storage.cache.cache import Cache
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.holder import apparent_holder
from evalcube.storage.cube.integrity import CONTENT, stored_problems
from evalcube.storage.cube.lease import Lease
from evalcube.storage.cube.ledger import Ledger, Receipt
from evalcube.storage.cube.schema import COUNTERS, DUPLICATE, PLANNED
from evalcube.storage.errors import CubeDamagedError

Array = npt.NDArray[Any]

_INDEXES = ("trial", "repeat")
_COUNTERS = (*STATUS_COUNTERS, *QUESTION_COUNTERS)
_COUNTED = (COUNTERS.name, DUPLICATE.name, *PLANNED)
_DERIVED = "no trial is lost, and the next run adds them up, as after every kill"


def verify_cube(
    cube: OneCube,
    *,
    heal: bool = False,
    cache: str | Path | None = None,
    subscribers: Sequence[Subscriber] = (),
) -> Verification:
    """Check a cube for damage.

    Holds one region in memory at a time, and some of a cube on a store.

    Parameters
    ----------
    cube
        A cube: its address, or the result of a function that made it.
    heal
        Whether to repair damage: regions from the replies in the cache, and counters, flags, plans and labels from
        regions and the cube's description. No request is sent.
    cache
        Address of the response cache; default: that of your own run, or one beside the cube.
    subscribers
        Functions that are called with each event (see `evalcube.events`); default: none.

    Returns
    -------
    Verification
        What is damaged, what of it was repaired, and how many requests the rest needs.

    Raises
    ------
    StorageError
        If there is no cube, its metadata are damaged, or another process works on it while it is to be healed.
    SweepError
        If it is not a sweep's, or it is to be healed and no cache is known.

    Examples
    --------
    >>> import evalcube as ec
    >>> ec.verify("results/sweep.zarr").damages
    []
    """
    announcer, cube = Announcer(subscribers), need_address(cube)
    opened = Cube.open(cube, writable=heal)
    notes = read_notes(opened.records)
    plan = cube_plan(opened, notes)
    caches = needed_replies(opened, notes.get("cache"), cache) if heal else None
    holder = apparent_holder(opened.records)
    if not heal and holder is not None:
        if holder.process.pid:
            where = f"process {holder.process.pid} on {holder.process.host} works on cube '{cube}'"
            raise SweepError(where, "Verify it once that has ended")
        raise SweepError(
            f"the lease of cube '{cube}' cannot be read: a run may be at work on it",
            "If none is, run its sweep, or verify it with `heal`, which take the lease over",
        )
    with ExitStack() as stack:
        if heal:
            stack.enter_context(Lease.acquire(opened.records, notify=announcer.note))
        return _Check(opened, plan, caches, announcer).run()


def verify_unseen(cube: Cube, announcer: Announcer) -> Verification:
    """Compare a cube that nobody else sees yet, as `verify_cube` does: no growth of it can have been killed."""
    return _Check(cube, cube_plan(cube, read_notes(cube.records)), None, announcer).run()


class _Check:
    """One verification; heals if it has a cache."""

    def __init__(self, cube: Cube, plan: Plan, cache: Cache | None, announcer: Announcer) -> None:
        self._cube, self._plan, self._cache = cube, plan, cache
        self._heals, self._announcer = cache is not None, announcer
        self._sums: dict[int, Array] = {}
        self._ledger = Ledger(cube.records)
        self._newest = self._ledger.newest()
        self._damages: list[Damage] = []
        self._unplanned = self._uncompared = False

    def run(self) -> Verification:
        """Compare, in an order in which each step rests on what was compared before."""
        lines = self._ledger.damaged
        self._check_metadata()
        self._check_questions()
        shared = self._cube.shared_problems()
        self._check_labels({name: text for name, text in shared.items() if name not in _COUNTED})
        if self._newest:
            self._check_planned({name: text for name, text in shared.items() if name in PLANNED})
            self._check_flags(shared.get(DUPLICATE.name), counted=COUNTERS.name not in shared)
            self._check_regions()
            # Counters follow from flags and plans, too: without these there is nothing to compare them with.
            if not self._unplanned and not self._uncompared:
                self._check_counters(shared.get(COUNTERS.name))
        elif COUNTERS.name not in shared and (counted := unrecorded_trials(self._cube, ())):
            text = f"counts {counted:,} trials of which the ledger has no receipt: a run does them again"
            self._damages.append(Damage(COUNTERS.name, text))
        self._ledger.close()
        return Verification(self._cube.url, len(self._newest), lines, self._damages)

    def _check_metadata(self) -> None:
        for name, problem in self._cube.metadata_problems().items():
            self._damages.append(Damage(f"{name}/zarr.json", problem, healed=self._heals))
        if self._heals:
            self._cube.restore_metadata()

    def _check_labels(self, problems: dict[str, str]) -> None:
        # From the description alone: a data file that lies elsewhere now has its old path there and in the labels.
        sizes, attrs = self._cube.sizes, self._cube.attrs
        described = Plan.from_spec(attrs["spec"], sizes["trial"], sizes["repeat"])
        forged = description_problem(attrs, parse_spec(attrs["spec"])) or _wrong_cell(
            described, attrs["spec"]
        )
        if forged is not None:
            self._damages.append(
                Damage("zarr.json", f"has another description than it was written with: {forged}")
            )
        expected = {coordinate.name: coordinate.values for coordinate in labels(described)}
        expected |= self._row_ids(problems)
        lost = self._lost_base(described, expected, problems)
        self._leave_absent(described, expected, problems)
        expected |= {name: np.arange(self._cube.sizes[name]) for name in _INDEXES}
        for name, values in expected.items():
            # The difficulty is what the code of the day declares: a newer one may declare another.
            compared = name not in problems and name not in (*CHANGING, "difficulty")
            here = compared and self._cube.has_label(name)
            if here and not _equal_labels(self._cube.read_label(name), values):
                problems[name] = "differs from the cube's description"
        for name, problem in problems.items():
            # Facets and prices are the config's, which may have changed since the cube was made: a run has them.
            comparable = name in expected and name not in CHANGING
            if self._heals and name in ("trial", "repeat"):
                self._cube.restore_index(name)
            elif self._heals and comparable:
                self._cube.write_label(name, expected[name])
            more = "" if comparable else "; a run of the sweep's config writes it anew"
            more, comparable = (lost, False) if lost and name == BASE else (more, comparable)
            self._damages.append(Damage(name, problem + more, healed=self._heals and comparable))

    def _lost_base(self, described: Plan, made: dict[str, Array], problems: dict[str, str]) -> str:
        """Compare the weights of points with the description; what is lost with them if it does not tell them all."""
        merged = MERGED in self._cube.attrs
        if self._cube.has_label(BASE) and BASE not in problems:
            stored = self._cube.read_label(BASE)
            # Evaluations of a merged cube keep their own design, of which the description has the greatest values.
            differs = stored > described.base if merged else stored != described.base
            if ((stored < 0) | (stored > 0) & differs).any():
                problems[BASE] = "differs from the cube's description"
        if BASE not in problems:
            return ""
        made[BASE] = filled_base(None, described.base, len(described.evaluations))
        return (
            "; what each evaluation of a merged cube had is lost: healed, all weigh as the description says; to have "
            "each one's own, merge the cubes anew"
            if merged
            else ""
        )

    def _check_questions(self) -> None:
        """Compare the questions that the cube keeps; healed, they are kept again from the file if that is at hand."""
        records = self._cube.records
        damaged: list[tuple[str, str, Callable[[], bool]]] = [
            (params.digest(), "the data file whose rows were asked", partial(keep_copy, records, params))
            for params in damaged_questions(records, self._plan)
        ]
        damaged += [
            (name, "the questions that were asked", partial(keep_block, records, task, cell, number))
            for task, cell, number, name, packed in kept_blocks(records, self._plan)
            if not is_whole(packed)
        ]
        for name, problem, keep in damaged:
            healed, text = False, f"is not {problem}"
            if self._heals:
                records.delete(key_of(name))
                try:
                    healed = keep()
                except TaskError as error:
                    text += f", and that is not at hand: {error}"
            self._damages.append(Damage(key_of(name), text, healed=healed))

    def _leave_absent(self, described: Plan, made: dict[str, Array], problems: Mapping[str, str]) -> None:
        """Take what only the code of tasks tells that are not at hand as it is stored."""
        rows = [row for row, task in enumerate(described.tasks) if isinstance(task.task, AbsentTask)]
        for name in OF_CODE if rows else ():
            stored = None if name in problems else self._cube.read_label(name)
            if stored is None or stored.shape != made[name].shape:
                del made[name]
            else:
                made[name][..., rows, :] = stored[..., rows, :]

    def _row_ids(self, problems: dict[str, str]) -> dict[str, Array]:
        """Ids of rows as their files have them, if the cube has them, too; else a damage may not be healed."""
        if not self._cube.has_label(ROW_ID):
            return {}
        try:
            return {ROW_ID: row_ids(self._plan, self._cube.sizes["trial"])}
        except TaskError as error:
            if ROW_ID in problems:
                problems[ROW_ID] += f", and its data set is not at hand: {error}"
            return {}

    def _check_planned(self, problems: dict[str, str]) -> None:
        derived = measured_plan(self._cube, self._newest)
        if not problems:
            stored = self._planned
            pairs = {"trial": (stored.trials, derived.trials), "repeat": (stored.repeats, derived.repeats)}
            for dim, (here, least) in pairs.items():
                # More than was measured may be planned, in cells that there are.
                outside = (here > self._cube.sizes[dim]) | ((here != 0) & ~self._plan.valid())
                if (outside | (here < least)).any():
                    problems[f"planned_{dim}s"] = "differs from what was measured"
        self._unplanned = bool(problems) and not self._heals
        if not problems:
            return
        exact = all(
            int(derived.mask(recorded_window(self._cube, receipt)).sum()) == receipt.planned
            for receipt in self._newest.values()
        )
        self._planned = derived
        if self._heals:
            write_planned(self._cube, derived)
        more = "" if exact else "; a run of the sweep's config plans the rest anew"
        for name, problem in problems.items():
            self._damages.append(Damage(name, problem + more, healed=self._heals and exact))

    def _check_flags(self, problem: str | None, *, counted: bool) -> None:
        if problem is None and self._lacks_flags(counted=counted):
            problem = "is gone"
        if problem is None and not np.isin(self._cube.read_duplicates(), DUPLICATE.allowed).all():
            problem = "holds values that no evalcube writes"
        self._uncompared = problem is not None and not self._heals
        if problem is not None:
            self._damages.append(Damage(DUPLICATE.name, problem, healed=self._heals))
            if self._heals:
                self._compare_prompts()

    def _lacks_flags(self, *, counted: bool) -> bool:
        """Whether flags are gone of prompts that were counted, before which they are always compared.

        A cube grows along all cells where one of them gets more trials: what nobody asked there has no flags.
        """
        unwritten = self._cube.unwritten_flags()
        if counted:
            asked = self._cube.read_counters()[..., _COUNTERS.index("questions")].max(axis=0)
        else:
            asked = self._planned.trials.max(axis=0)
        return bool((unwritten & (np.arange(unwritten.shape[2]) < asked[..., np.newaxis])).any())

    def _compare_prompts(self) -> None:
        """Find out anew which planned prompts occurred before in their cell."""
        sizes = self._cube.sizes
        planned = self._cube.read_planned("trial").max(axis=0)
        for row, task in enumerate(self._plan.tasks):
            flags = np.full((sizes["params"], sizes["trial"]), DUPLICATE.fill, dtype=np.uint8)
            self._cube.write_duplicates(row, repeat_flags(task, planned[row], flags))

    def _check_regions(self) -> None:
        """Compare the regions with their receipts, and add up those of models of which none is damaged."""
        counts = not self._unplanned and not self._uncompared
        _ = (self._planned, self._prices) if counts else ()  # before threads want them
        # Threads wait for a store together; of files they would wait for each other, at more than twice the CPU.
        each = in_threads if self._cube.is_object_store else map
        receipts = [self._newest[region] for region in sorted(self._newest)]
        compared = enumerate(each(partial(self._compare_region, counts=counts), receipts), 1)
        for model, group in groupby(compared, lambda numbered: numbered[1][0].region.model):
            regions, counted = [], []
            for done, (receipt, problems, arrays, counters) in group:
                self._announcer.count("regions compared", done)
                if problems:
                    self._keep_damage(receipt, problems, arrays)
                regions.append(receipt.region)
                counted += [] if counters is None else [counters]
            if len(counted) == len(regions):
                self._sums[model] = sum_regions(self._cube, regions, counted)

    def _compare_region(
        self, receipt: Receipt, *, counts: bool
    ) -> tuple[Receipt, dict[str, str], Mapping[str, Array], Array | None]:
        """A receipt, what is wrong with its region, its arrays if anything is, and else its counters."""
        problems, arrays = stored_problems(self._cube, receipt)
        if problems or not counts:
            return receipt, problems, arrays if problems else {}, None
        price = self._prices[receipt.region.model]
        counters = count_read(self._cube, receipt.region, arrays, self._planned, price)
        return receipt, problems, {}, counters

    def _keep_damage(self, receipt: Receipt, problems: dict[str, str], arrays: Mapping[str, Array]) -> None:
        """Keep what is wrong with a region, and make it again if that is wanted."""
        healed, lost = False, 0
        if self._cache is not None:
            status = arrays.get("status")
            remade = remake(self._cube, self._plan, receipt, self._planned, self._cache, self._prices, status)
            lost, healed = remade.lost, not remade.lost
            if remade.receipt is not None:
                self._newest[receipt.region] = remade.receipt
                self._ledger.append(remade.receipt)
            if healed:
                changed = [name for name in arrays if not _equal(arrays[name], remade.arrays[name])]
                if CONTENT in problems and changed:
                    problems = dict.fromkeys(changed, problems[CONTENT])
        label = self._plan.labels[receipt.region.model]
        for name, problem in problems.items():
            self._damages.append(Damage(name, problem, label, receipt.region, healed, lost))

    def _check_counters(self, problem: str | None) -> None:
        damaged = {damage.region.model for damage in self._damages if damage.region and not damage.healed}
        unpriced = {model for model, prices in enumerate(self._prices) if not np.isfinite(prices).all()}
        for model in sorted(unpriced):
            text = "is gone, and costs with it; the next run with its config writes it"
            self._damages.append(Damage("price_prompt", text, self._plan.labels[model]))
        models = [model for model in range(len(self._plan.labels)) if model not in damaged | unpriced]
        if problem is not None:
            self._damages.append(Damage(COUNTERS.name, problem, healed=self._heals))
            if self._heals:
                self._cube.drop_chunks(COUNTERS.name)
                self._cube.write_counters({model: self._sum(model) for model in models})
            return
        stored = self._cube.read_counters()
        sums = {model: self._sums[model] if model in self._sums else self._sum(model) for model in models}
        wrong = {model: _columns(stored[model], sums[model]) for model in models}
        wrong = {model: columns for model, columns in wrong.items() if columns}
        # Flags and latencies are in no digest: where only what follows from them differs, it may be they.
        if any("duplicates" in columns for columns in wrong.values()) and self._heals:
            self._compare_prompts()
        for model, columns in wrong.items():
            if columns == {"latency_sum"}:
                self._check_latency(model)
        for model, columns in wrong.items():
            if columns != {"latency_sum"}:
                text = f"differs from the sum of the regions in {', '.join(sorted(columns))}: {_DERIVED}"
                self._damages.append(
                    Damage(COUNTERS.name, text, self._plan.labels[model], healed=self._heals)
                )
        if wrong and self._heals:
            self._cube.write_counters({model: self._sum(model) for model in wrong})

    def _check_latency(self, model: int) -> None:
        for region in sorted(region for region in self._newest if region.model == model):
            _, arrays = stored_problems(self._cube, self._newest[region])
            text = "of this or another region of the model differs from its sum in `counters`"
            self._keep_damage(self._newest[region], {"latency": text}, arrays)

    def _sum(self, model: int) -> Array:
        """Counters of an evaluation, added in the order in which a run adds them."""
        return count_model(self._cube, model, self._newest, self._planned, self._prices[model])

    @cached_property
    def _planned(self) -> SampleTargets:
        return planned_of(self._cube, self._newest)

    @cached_property
    def _prices(self) -> list[Prices]:
        """By model, as the cube has them; where it cannot say, a run counts the cost anew."""
        try:
            return prices_of(self._cube)
        except CubeDamagedError:
            return [(0.0, 0.0)] * len(self._plan.labels)


def _wrong_cell(plan: Plan, spec: Mapping[str, Any]) -> str | None:
    """The point of a description whose id is not that of its task and params; None if there is none."""
    for task, described in zip(plan.tasks, spec["tasks"], strict=True):
        for planned, point in zip(task.cells, described["points"], strict=True):
            if planned.cell.id != point["cell_id"]:
                return (
                    f"cell_id '{point['cell_id']:.40}' of task '{task.label}' is not the digest of its params"
                )
    return None


def _columns(stored: Array, counted: Array) -> set[str]:
    """Counters that differ in any bit."""
    same = (stored.view(np.uint64) == counted.view(np.uint64)).all(axis=(0, 1))
    return {name for name, equal in zip(_COUNTERS, same, strict=True) if not equal}


def _equal_labels(left: Array, right: Array) -> bool:
    if right.dtype.kind in "OUT":
        return bool(left.tolist() == right.tolist())
    return _equal(left, right.astype(left.dtype))


def _equal(left: Array, right: Array) -> bool:
    return left.shape == right.shape and left.tobytes() == right.tobytes()
