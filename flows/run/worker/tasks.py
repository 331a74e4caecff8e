"""The bodies of a sweep's Dask tasks. An edge carries an address, a small array or a receipt, never a prompt.

::

    generate ─ count ─> infer ─ Delivery ─> process ─ BlockResult ─> process (region) ─ Receipt ─> score ─> analyze
                          └─> infer (judges) ─┘

* ``generate`` makes a block's trials, and returns how many there are.
* ``infer`` asks those that the cache does not answer; replies go to the cache, and it returns what could not be
  delivered and why.
  Where the sweep has judges, a second task of this stage asks them about the answers.
* ``process`` reads the block's replies from the cache and grades them, a few bytes per trial; one more task of this
  stage gathers a region's blocks and writes whole chunks, the only writer of that region
  (`evalcube.flows.run.worker.region_tasks`).
* ``score`` counts a region's counters from what the cube now holds, and adds such counters.
* ``analyze`` puts the counters of some models into the cube.

Any task may run again anywhere: it finds its inputs by address and writes the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from distributed import get_worker, secede

from evalcube.deploy.simulator.truth import judge_headers, judged_quality, trial_headers
from evalcube.flows.events import KILLED, BlockDone, as_message, topic
from evalcube.flows.plan.evaluations import read_stored
from evalcube.flows.plan.grading import Arrays, LayerGrader, Prices, columns, grade_reading
from evalcube.flows.plan.requests import Prepared
from evalcube.flows.plan.targets import Block
from evalcube.flows.run.worker.plugin import workspace
from evalcube.flows.run.worker.poison import name_trials
from evalcube.flows.run.worker.quarantine import hold_if_in_doubt
from evalcube.flows.run.worker.workspace import Workspace
from evalcube.stages.infer.jobs import Job
from evalcube.stages.process.assertions import layered_scores
from evalcube.stages.process.grading import Outcome
from evalcube.stages.process.reading import Reading
from evalcube.stages.reply.body import UNKNOWN_END
from evalcube.stages.reply.status import Status
from evalcube.storage.cube.ledger import most_fingerprints


def truth_of_trial(item: Prepared) -> Mapping[str, str]:
    """Headers that let a simulated model answer a trial."""
    trial = item.trial
    # a simulated model that does not know picks any option: it has no strategies
    guess = 1 / len(trial.options) if trial.options else trial.guess_chance
    return trial_headers(trial.answer, tuple(trial.options), item.cell.difficulty, guess, item.repeat)


def truth_of_output(
    layers: LayerGrader, item: Prepared, reading: Reading, outcome: Outcome, prices: Prices, repeat: int
) -> Mapping[str, str]:
    """Headers that let a simulated judge rate an output."""
    scores = layered_scores(layers.graded_assertions(item, reading, prices))
    right = outcome.status == Status.CORRECT if item.trial.answer else None
    return judge_headers(judged_quality(right, (scores.fact, scores.behavior)), repeat)


NOT_RATED = "not rated: the cache lacks the answer"


@dataclass(frozen=True, eq=False)
class Delivery:
    """What became of the requests of a block."""

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
    rated: int = 0
    """Trials that were recorded before, of which nothing is left to be asked: all judges have rated them, or nobody
    can, since the cache has their answers no more."""
    fingerprints: dict[str, int] = field(default_factory=dict)
    """Trials by what the endpoint called the system that answered; of trials recorded before, none."""


def generate(run: str, block: Block) -> int:
    """Make a block's trials; return how many may have to be asked."""
    work = workspace(run)
    # A stop asks nothing more, and recorded ones were paid for once.
    return 0 if work.drained or block.recorded else len(work.open_block(block))


def infer(run: str, block: Block, made: int = 0) -> Delivery:  # noqa: ARG001 - where they were made, they are at hand
    """Ask what the cache does not answer; every reply is durable in the cache before this returns."""
    work = workspace(run)
    if work.drained:
        return Delivery(skipped=frozenset(range(block.size)), asked=block.size)
    if block.recorded:
        return Delivery()
    trials = work.open_block(block)
    evaluation = work.plan.evaluations[block.window.region.model]
    # Here, not where they are made: of a worker that was killed while it asked them, some were answered.
    cached = work.cached([item.request.digest for item in trials])
    indices = [i for i, is_cached in enumerate(cached) if not is_cached]
    work.begun.add(block.key)
    if not indices:
        return Delivery()
    jobs = [_job(work, block, trials[i]) for i in indices]
    del trials  # a batch takes hours: what waits for it should be small
    # Waiting is not work: give the thread back, so that this worker keeps many blocks in flight.
    worker = get_worker()
    secede()
    results = work.ask(evaluation.model, jobs, worker.get_current_task())
    hold_if_in_doubt(work, evaluation.model, results, worker)
    if len(results) == block.size and all(result.kind == "skipped" for result in results):
        work.begun.discard(block.key)  # nothing will come of it: the run stops
    asked = dict(zip(indices, results, strict=True))
    work.meter.add(evaluation.model, requests=sum(result.attempts for result in asked.values()))
    failed = {i: result for i, result in asked.items() if result.kind == "failed"}
    return Delivery(
        {i: result.cause for i, result in failed.items()},
        frozenset(i for i, result in asked.items() if result.kind == "skipped"),
        len(asked),
        {result.cause: result.detail for result in failed.values()},
        tuple(i for i, result in asked.items() if result.kind == "stored"),
    )


def _job(work: Workspace, block: Block, item: Prepared) -> Job:
    """The job of a request for a prepared trial; the truth goes along only to the project's own simulator."""
    evaluation = work.plan.evaluations[block.window.region.model]
    headers = truth_of_trial(item) if work.context.routes[evaluation.model].simulated else None
    return Job(item.request.digest, item.request.body, headers, evaluation.sampler.name)


def process(run: str, block: Block, delivery: Delivery) -> BlockResult:
    """Read a block's replies from the cache and grade them."""
    work = workspace(run)
    causes = Counter(delivery.failed.values())
    skipped, failed = Outcome(Status.MISSING), Outcome(Status.TRANSPORT)
    outcomes = [skipped if i in delivery.skipped else failed for i in range(block.size)]
    done, lost = [], 0
    fingerprints: Counter[str] = Counter()
    for i, item, reading, outcome in graded_replies(work, block, delivery):
        graded: Outcome | None = outcome
        if reading is not None and outcome is not None and work.plan.layers:
            graded = _with_layers(work, block, item, reading, outcome)
        if graded is not None:
            outcomes[i] = graded
            done.append(i)
            if reading is not None:
                ending = reading.ending and UNKNOWN_END + reading.ending
                fingerprints.update(filter(None, (reading.fingerprint, ending)))
        elif block.recorded:
            # What is recorded of it stays: without its answer, no judge can rate it.
            lost += reading is None
            causes.update([NOT_RATED] if reading is None else ())
        else:
            # Lost or damaged between infer and here: not an answer, so the next run asks again.
            causes["cache damaged"] += 1
    work.forget(block)
    if block.recorded:
        rated = columns(work.plan, [outcomes[i] for i in done])
        _report_recorded(run, work, block, delivery, causes)
        return BlockResult(block.positions[done], rated, dict(causes), len(done) + lost)
    most = most_fingerprints([fingerprints])
    result = BlockResult(block.positions, columns(work.plan, outcomes), dict(causes), fingerprints=most)
    _report(run, work, block, delivery, result)
    return result


def graded_replies(
    work: Workspace, block: Block, delivery: Delivery
) -> Iterator[tuple[int, Prepared, Reading | None, Outcome | None]]:
    """The trials that were answered and their indices, what each reply says, and its outcome; None for a lost reply."""
    answered = [i for i in range(block.size) if i not in delivery.failed and i not in delivery.skipped]
    # What a stop left out is not even made: there may be many such blocks, and whoever stops waits for them.
    trials = work.open_block(block) if answered else []
    replies = work.fetch([trials[i].request.digest for i in answered])
    for i, data in zip(answered, replies, strict=True):
        item = trials[i]
        reading = read_stored(data, item.trial)
        second = work.plan.tasks[item.task].second
        outcome = None if reading is None else grade_reading(reading, item.cell, item.trial, second)
        yield i, item, reading, outcome


def _with_layers(
    work: Workspace, block: Block, item: Prepared, reading: Reading, outcome: Outcome
) -> Outcome | None:
    requests = work.layers.judge_requests(item, reading.answer)
    judged = [[work.cache.get(request.digest) for request in each] for each in requests]
    return work.layers.with_layers(item, reading, outcome, work.prices(block), judged)


def give_up(run: str, block: Block) -> BlockResult:
    """Record trials that kill their worker as transport errors; they are not even made, as that may be what kills."""
    work = workspace(run)
    failed = columns(work.plan, [Outcome(Status.TRANSPORT)] * block.size)
    if block.recorded:
        _report_recorded(run, work, block, Delivery(), {KILLED: block.size})
        none = {name: column[:0] for name, column in failed.items()}
        return BlockResult(block.positions[:0], none, {KILLED: block.size})
    result = BlockResult(block.positions, failed, {KILLED: block.size})
    asked = Delivery(asked=block.size, details={KILLED: name_trials(work.plan, block)})
    _report(run, work, block, asked, result)
    return result


def _report_recorded(
    run: str, work: Workspace, block: Block, delivery: Delivery, causes: Mapping[str, int]
) -> None:
    """Notify subscribers of a block whose trials were done before: none of them is done once more."""
    empty = replace(block, positions=block.positions[:0])
    details = {cause: text for cause, text in delivery.details.items() if cause in causes}
    result = BlockResult(empty.positions, columns(work.plan, []), dict(causes))
    _report(run, work, empty, Delivery(details=details), result)


def _report(run: str, work: Workspace, block: Block, delivery: Delivery, result: BlockResult) -> None:
    """Notify subscribers of what was graded; for display only, results travel along the graph."""
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
    )
    seconds = result.arrays["latency"][list(delivery.answered)]
    work.meter.add(
        work.plan.evaluations[event.model].model,
        answers=int(np.isfinite(seconds).sum()),
        seconds=float(np.nansum(seconds)),
    )
    get_worker().log_event(topic(run), as_message(event))


def judge(run: str, block: Block, delivery: Delivery) -> Delivery:
    """Ask the judges about a block's answers; every reply is durable in the cache before this returns.

    An answer whose judges cannot be asked is a transport error: it is in the cache, and the next run asks them only.
    """
    work = workspace(run)
    jobs = _jobs_by_judge(work, block, delivery)
    if not jobs:
        return delivery
    work.begun.add(block.key)
    task = get_worker().get_current_task()
    # Waiting is not work: give the thread back, so that this worker keeps many blocks in flight.
    secede()
    failed, details, skipped = dict(delivery.failed), dict(delivery.details), set(delivery.skipped)
    for index, asked in jobs.items():
        judged_by = work.plan.judges[index]
        results = work.ask(judged_by.model, [job for _, job in asked], task)
        hold_if_in_doubt(work, judged_by.model, results, get_worker())
        work.meter.add(judged_by.model, requests=sum(result.attempts for result in results))
        for (i, _), result in zip(asked, results, strict=True):
            if result.kind == "failed":
                failed[i] = f"judge {judged_by.name}: {result.cause}"
                details[failed[i]] = result.detail
            elif result.kind == "skipped":
                skipped.add(i)
    return replace(delivery, failed=failed, details=details, skipped=frozenset(skipped))


def _jobs_by_judge(work: Workspace, block: Block, delivery: Delivery) -> dict[int, list[tuple[int, Job]]]:
    """What is to be asked, by the judge's place: indices of trials with a job each."""
    jobs: dict[int, list[tuple[int, Job]]] = {}
    for i, item, reading, outcome in graded_replies(work, block, delivery):
        if reading is None or outcome is None:
            continue
        if work.layers.is_judged(item):
            for index, job in _judge_jobs(work, block, item, reading, outcome):
                jobs.setdefault(index, []).append((i, job))
    return jobs


def _judge_jobs(
    work: Workspace, block: Block, item: Prepared, reading: Reading, outcome: Outcome
) -> Iterator[tuple[int, Job]]:
    """The requests about an answer that the cache does not answer, each with the judge's place."""
    for index, requests in enumerate(work.layers.judge_requests(item, reading.answer)):
        simulated = work.context.routes[work.plan.judges[index].model].simulated
        for repeat, request in enumerate(requests):
            if work.cache.get(request.digest) is not None:
                continue
            headers = (
                truth_of_output(work.layers, item, reading, outcome, work.prices(block), repeat)
                if simulated
                else None
            )
            sampler = f"judge {work.plan.judges[index].name}"
            yield index, Job(request.digest, request.body, headers, sampler)
