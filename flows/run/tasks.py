"""The bodies of the sweep's Dask tasks. An edge carries an address, a small array or a receipt, never a prompt.

::

    generate ─ Order ─> infer ─ Delivery ─> process ─ BlockResult ─> process (region) ─ Receipt ─> score ─> analyze
                          └─> infer (judges) ─┘

* ``generate``: a block's trials are made and looked up in the cache; out comes which of them must be asked.
* ``infer``: those are asked; replies go to the cache, out comes what could not be delivered and why.
  Where the sweep has judges, a second task of this stage asks them about the answers, with the same cache.
* ``process``: the block's replies are read from the cache and graded, a few bytes per trial; one more task of this
  stage gathers a region's blocks and writes whole chunks, the only writer of that region.
* ``score``: counters of a region, counted from what the cube now holds, and sums of such counters.
* ``analyze``: the counters of some models into the cube.

Any task may run again anywhere: it finds its inputs by address and writes the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from distributed import get_worker, secede

from flows.plan.blocks import Block, Window, window_of
from flows.run.dedup import ask
from flows.run.events import TALLY, BlockDone, as_message, topic
from flows.run.judging import Arrays, columns, judge_jobs, trial_variables, with_layers
from flows.run.poison_isolation import KILLED, name_trials
from flows.run.worker import Prepared, Workspace, workspace
from stages.generate import Cell, Trial
from stages.generate.novelty import repeated
from stages.infer.jobs import Job
from stages.process.grading import Outcome, judge_trial
from stages.process.reading import Reading, read_reply
from stages.reply.record import Record
from stages.reply.status import COMPLETED, Status
from stages.score.counters import add_counters, count_trials
from storage.cube.cube import Region
from storage.cube.ledger import Receipt
from storage.cube.schema import VARIABLES


@dataclass(frozen=True, eq=False)
class Order:
    """Which trials of a block must be asked."""

    missing: npt.NDArray[np.int32]
    """Indices within the block of trials that the cache does not answer."""
    worker: str
    """Id of the worker that looked."""


@dataclass(frozen=True, eq=False)
class Delivery:
    """What became of an order."""

    failed: dict[int, str] = field(default_factory=dict)
    """Cause by index within the block."""
    skipped: frozenset[int] = frozenset()
    """Indices never sent, because the run stops."""
    asked: int = 0
    details: dict[str, str] = field(default_factory=dict)
    """One thing that the endpoint said, by cause."""
    answered: tuple[int, ...] = ()
    """Indices of the trials that were asked and answered."""


@dataclass(frozen=True, eq=False)
class BlockResult:
    """A graded block: one row per trial."""

    positions: npt.NDArray[np.int64]
    arrays: Arrays
    """By variable, shape (trial of the block, and further dims of the variable)."""
    causes: dict[str, int]
    """Transport errors by cause."""


def generate(run: str, block: Block) -> Order:
    """Make a block's trials and find out which of them must be asked."""
    work = workspace(run)
    prepared = work.prepare(block)
    cached = work.cached([item.request.digest for item in prepared])
    asked = [i for i, known in enumerate(cached) if not known]
    return Order(np.array(asked, dtype=np.int32), get_worker().id)


def mark(run: str, task: int) -> None:
    """Find out which planned prompts of a task occurred before in their cell, once for all models."""
    work = workspace(run)
    cube = work.cube
    cube.refresh()
    flags = cube.read_duplicates()[task]
    planned = cube.read_planned("trial")[:, task].max(axis=0)
    for slot, entry in enumerate(work.plan.tasks[task].cells):
        count = int(planned[slot])
        if (flags[slot, :count] > 1).any():
            flags[slot, :count] = repeated(entry.cell.trial(i).prompt for i in range(count))
    work.check_lease()
    cube.write_duplicates(task, flags)


def infer(run: str, block: Block, order: Order) -> Delivery:
    """Ask what the cache does not answer; every reply is durable in the cache before this returns."""
    if not len(order.missing):
        return Delivery()
    work = workspace(run)
    prepared = work.prepare(block)
    evaluation = work.plan.evaluations[block.window.region.model]
    indices, worker = order.missing.tolist(), get_worker()
    if work.interrupted or order.worker != worker.id:
        # Somebody may have been killed, or stopped, in the middle of asking: look again.
        replies = work.fetch([prepared[i].request.digest for i in indices])
        indices = [i for i, reply in zip(indices, replies, strict=True) if reply is None]
    jobs = [work.job(block, prepared[i]) for i in indices]
    del prepared  # a batch takes hours: what waits for it should be small
    # Waiting is not work: give the thread back, so that this worker keeps many blocks in flight.
    secede()
    results = ask(work, evaluation.model, jobs, worker.get_current_task())
    asked = {i: result for i, result in zip(indices, results, strict=True) if result is not None}
    work.meter.asked(evaluation.model, list(asked.values()))
    failed = {i: result for i, result in asked.items() if result.kind == "failed"}
    return Delivery(
        {i: result.cause for i, result in failed.items()},
        frozenset(i for i, result in asked.items() if result.kind == "skipped"),
        len(asked),
        {result.cause: result.detail for result in failed.values()},
        tuple(i for i, result in asked.items() if result.kind == "stored"),
    )


def judge(run: str, block: Block, delivery: Delivery) -> Delivery:
    """Ask the judges about a block's answers; every reply is durable in the cache before this returns.

    An answer whose judges cannot be asked is a transport error: it is in the cache, and the next run asks them only.
    """
    work = workspace(run)
    jobs: dict[int, list[tuple[int, Job]]] = {}
    prepared = work.prepare(block)
    for i, data in _replies(work, prepared, delivery):
        item = prepared[i]
        answer = read(data) if work.judged(item) else None
        if answer is None:
            continue
        outcome = judge_reading(answer, item.cell, item.trial)
        for place, job in judge_jobs(work, item, answer, outcome, _prices(work, block)):
            jobs.setdefault(place, []).append((i, job))
    if not jobs:
        return delivery
    task = get_worker().get_current_task()
    secede()
    failed, details, skipped = dict(delivery.failed), dict(delivery.details), set(delivery.skipped)
    for place, asked in jobs.items():
        asks = work.plan.judges[place]
        results = ask(work, asks.model, [job for _, job in asked], task)
        work.meter.asked(asks.model, [result for result in results if result is not None])
        for (i, _), result in zip(asked, results, strict=True):
            if result is None:
                continue  # another run has had it answered
            if result.kind == "failed":
                failed[i] = f"judge {asks.name}: {result.cause}"
                details[failed[i]] = result.detail
            elif result.kind == "skipped":
                skipped.add(i)
    return replace(delivery, failed=failed, details=details, skipped=frozenset(skipped))


def process(run: str, block: Block, delivery: Delivery) -> BlockResult:
    """Read a block's replies from the cache and grade them."""
    work = workspace(run)
    prepared = work.prepare(block)
    causes = Counter(delivery.failed.values())
    skipped, failed = Outcome(Status.MISSING), Outcome(Status.TRANSPORT)
    outcomes = [skipped if i in delivery.skipped else failed for i in range(len(prepared))]
    prices = _prices(work, block)
    for i, data in _replies(work, prepared, delivery):
        outcome = grade(work, prepared[i], data, prices)
        if outcome is not None:
            outcomes[i] = outcome
        else:
            # Lost or damaged between infer and here: not an answer, so the next run asks again.
            causes["cache damaged"] += 1
    work.forget(block)
    result = BlockResult(block.positions, columns(work.plan, outcomes), dict(causes))
    _report(run, work, block, delivery, result)
    return result


def give_up(run: str, block: Block) -> BlockResult:
    """Record trials that kill their worker as transport errors; they are not even made, as that may be what kills."""
    work = workspace(run)
    result = BlockResult(
        block.positions, columns(work.plan, [Outcome(Status.TRANSPORT)] * block.size), {KILLED: block.size}
    )
    asked = Delivery(asked=block.size, details={KILLED: name_trials(work.plan, block)})
    _report(run, work, block, asked, result)
    return result


def _replies(
    work: Workspace, prepared: Sequence[Prepared], delivery: Delivery
) -> Iterator[tuple[int, bytes | None]]:
    """Indices of the trials that were answered, with their cached replies; None for one that was lost."""
    indices = [i for i in range(len(prepared)) if i not in delivery.failed and i not in delivery.skipped]
    return zip(indices, work.fetch([prepared[i].request.digest for i in indices]), strict=True)


def grade(work: Workspace, item: Prepared, data: bytes | None, prices: tuple[float, float]) -> Outcome | None:
    """The outcome of one trial from its cached reply, and those of its judges; None if the cache lacks one."""
    reading = read(data)
    if reading is None:
        return None
    outcome = judge_reading(reading, item.cell, item.trial)
    return with_layers(work, item, reading, outcome, prices) if work.plan.layers else outcome


def read(data: bytes | None) -> Reading | None:
    """What a trial's cached reply says; None if the cache has none."""
    if data is None:
        return None
    try:
        return read_reply(Record.decode(data))
    except ValueError:  # whole, but no record: whatever it is, it is no answer
        return None


def _prices(work: Workspace, block: Block) -> tuple[float, float]:
    return work.context.prices[block.window.region.model]


def judge_reading(reading: Reading, cell: Cell, trial: Trial) -> Outcome:
    """The outcome of one of a cell's trials."""
    return judge_trial(
        reading,
        trial.guess_chance,
        lambda text: cell.parse(text, trial),
        lambda answer: cell.grade(answer, trial),
    )


def _report(run: str, work: Workspace, block: Block, delivery: Delivery, result: BlockResult) -> None:
    """Tell subscribers what was graded; for display only, results travel along the graph."""
    status = result.arrays["status"]
    transport = int((status == Status.TRANSPORT).sum())
    missing = int((status == Status.MISSING).sum())
    event = BlockDone(
        key=block.key,
        model=block.window.region.model,
        trials=block.size - missing - transport,
        cached=block.size - delivery.asked,
        transport=transport,
        missing=missing,
        causes=result.causes,
        details=delivery.details,
        tally=_tally(work, block, result).tolist(),
    )
    seconds = result.arrays["latency"][list(delivery.answered)]
    work.meter.graded(
        work.plan.evaluations[event.model].model,
        hits=event.cached,
        answers=int(np.isfinite(seconds).sum()),
        seconds=float(np.nansum(seconds)),
    )
    get_worker().log_event(topic(run), as_message(event))


def _tally(work: Workspace, block: Block, result: BlockResult) -> npt.NDArray[np.float64]:
    """Running counts of a block, shape (tier, task, column of `TALLY`)."""
    plan = work.plan
    task, slot, _, _ = block.window.coordinates(block.positions)
    status = result.arrays["status"]
    truncated = status == Status.TRUNCATED
    completed = np.isin(status, COMPLETED)
    guess = np.nan_to_num(result.arrays["guess_chance"].astype(np.float64))
    tokens = np.maximum(result.arrays["tokens"].astype(np.float64), 0)
    finished = completed | truncated
    rows = np.stack(
        [finished, completed, status == Status.CORRECT, truncated, guess * completed, tokens * finished],
        axis=-1,
    ).astype(np.float64)
    tally = np.zeros((len(plan.tiers), len(plan.tasks), len(TALLY)))
    in_tier = plan.ranked
    for tier in range(len(plan.tiers)):
        member = in_tier[tier, task, slot]
        np.add.at(tally[tier], task[member], rows[member])
    return tally


def write_region(
    run: str, window: Window, generation: int, kept: tuple[int, int], results: Sequence[BlockResult]
) -> Receipt:
    """Gather a region's blocks and write every array's whole chunk.

    Parameters
    ----------
    generation
        Number of this version of the region; the newest receipt counts.
    kept
        Trials and repeats of the region as stored that are kept where the blocks say nothing. The rest is missing,
        whatever a killed run left there.
    results
        Blocks graded since the region was last written.
    """
    work = workspace(run)
    work.cube.refresh()  # it may have grown since this worker opened it
    arrays = _base(work, window, kept)
    causes: Counter[str] = Counter()
    for result in results:
        causes.update(result.causes)
        for name, column in result.arrays.items():
            arrays[name].reshape(-1, *column.shape[1:])[result.positions] = column
    work.check_lease()
    digest = work.cube.write_region(window.region, arrays)
    planned, status = work.planned().mask(window), arrays["status"]
    transport = int((planned & (status == Status.TRANSPORT)).sum())
    missing = int((planned & (status == Status.MISSING)).sum())
    return Receipt(
        region=window.region,
        generation=generation,
        trials=window.shape[2],
        repeats=window.shape[3],
        planned=int(planned.sum()),
        complete=not transport and not missing,
        transport=transport,
        missing=missing,
        causes=dict(causes),
        digest=digest,
    )


def _base(work: Workspace, window: Window, kept: tuple[int, int]) -> Arrays:
    """A region of missing trials with what is kept of the stored one, in the window's shape."""
    arrays: Arrays = {
        name: np.full((*window.shape, *more), variable.fill, dtype=variable.dtype)
        for name, (variable, more) in trial_variables(work.plan).items()
    }
    if all(kept):
        part = (slice(None), slice(None), slice(kept[0]), slice(kept[1]))
        for name, values in work.cube.read_region(window.region).items():
            arrays[name][part] = values[part]
    return arrays


def score(run: str, region: Region, marked: Sequence[None]) -> npt.NDArray[np.float64]:  # noqa: ARG001
    """Counters of a region, shape (task, params, counter), from what the cube holds.

    Parameters
    ----------
    marked
        The tasks that compare prompts: they come first.
    """
    work = workspace(run)
    work.cube.refresh()
    price_prompt, price_completion = work.context.prices[region.model]
    arrays = work.cube.read_region(region, VARIABLES)
    window = window_of(work.cube.sizes, region, work.cube.chunks)
    trials = slice(window.first_trial, window.first_trial + window.shape[2])
    return count_trials(
        {
            **arrays,
            "duplicate": work.cube.read_duplicates(trials)[..., None],
            "planned": work.planned().mask(window),  # an absent slot is no missing trial
        },
        price_prompt=price_prompt,
        price_completion=price_completion,
    )


def score_sum(parts: Sequence[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    """The sum of counters, in the order given."""
    return add_counters(parts)


def analyze(run: str, models: Sequence[int], counters: Sequence[npt.NDArray[np.float64]]) -> None:
    """Put the counters of some models into the cube; one such task runs at a time."""
    work = workspace(run)
    work.check_lease()
    work.cube.write_counters(dict(zip(models, counters, strict=True)))
