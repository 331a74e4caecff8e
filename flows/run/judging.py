"""The Dask task that asks judges about a block's answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from distributed import get_worker, secede

from evalcube.flows.plan.blocks import Block
from evalcube.flows.plan.requests import Prepared
from evalcube.flows.run.dedup import ask
from evalcube.flows.run.doubts import hold_if_in_doubt
from evalcube.flows.run.plugin import workspace
from evalcube.flows.run.simulated import truth_of_output
from evalcube.flows.run.tasks import Delivery, graded_replies
from evalcube.flows.run.worker import Workspace
from evalcube.stages.infer.jobs import Job
from evalcube.stages.process.grading import Outcome
from evalcube.stages.process.reading import Reading


def judge(run: str, block: Block, delivery: Delivery) -> Delivery:
    """Ask the judges about a block's answers; every reply is durable in the cache before this returns.

    An answer whose judges cannot be asked is a transport error: it is in the cache, and the next run asks them only.
    """
    work = workspace(run)
    jobs = _jobs_by_judge(work, block, delivery)
    if not jobs:
        return delivery
    task = get_worker().get_current_task()
    # Waiting is not work: give the thread back, so that this worker keeps many blocks in flight.
    secede()
    failed, details, skipped = dict(delivery.failed), dict(delivery.details), set(delivery.skipped)
    for place, asked in jobs.items():
        judged_by = work.plan.judges[place]
        results, _ = ask(work, judged_by.model, [job for _, job in asked], task)
        hold_if_in_doubt(work, judged_by.model, results, get_worker())
        work.meter.add(judged_by.model, requests=sum(one.attempts for one in results if one is not None))
        for (i, _), result in zip(asked, results, strict=True):
            if result is None:
                continue  # another run has had it answered
            if result.kind == "failed":
                failed[i] = f"judge {judged_by.name}: {result.cause}"
                details[failed[i]] = result.detail
            elif result.kind == "skipped":
                skipped.add(i)
    return replace(delivery, failed=failed, details=details, skipped=frozenset(skipped))


def _jobs_by_judge(work: Workspace, block: Block, delivery: Delivery) -> dict[int, list[tuple[int, Job]]]:
    """What is to be asked, by the judge's place: indices of trials with a job each."""
    jobs: dict[int, list[tuple[int, Job]]] = {}
    for i, reading, outcome in graded_replies(work, block, delivery):
        if reading is None or outcome is None:
            continue
        item = work.opened(block)[i]
        if work.layers.is_judged(item):
            for place, job in _judge_jobs(work, block, item, reading, outcome):
                jobs.setdefault(place, []).append((i, job))
    return jobs


def _judge_jobs(
    work: Workspace, block: Block, item: Prepared, reading: Reading, outcome: Outcome
) -> Iterator[tuple[int, Job]]:
    """The requests about an answer that the cache does not answer, each with the judge's place."""
    for place, requests in enumerate(work.layers.judge_requests(item, reading.answer)):
        simulated = work.context.routes[work.plan.judges[place].model].simulated
        for repeat, request in enumerate(requests):
            if work.cache.get(request.digest) is not None:
                continue
            headers = (
                truth_of_output(work.layers, item, reading, outcome, work.prices(block), repeat)
                if simulated
                else None
            )
            sampler = f"judge {work.plan.judges[place].name}"
            yield place, Job(request.digest, request.body, headers, sampler)
