"""What extensions make of the replies in the cache: take them over, ask further, put both replies together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from evalcube.flows.plan.extension import extended_reply, extended_request, further_request
from evalcube.flows.plan.targets import Block
from evalcube.flows.run.worker.workspace import Workspace
from evalcube.stages.infer.apis import Request

NOTHING = "no reply to extend: the cache lacks it"
"""Cause of a failure."""


def settle(work: Workspace, block: Block) -> None:
    """Store the replies of an extension for which nothing is to be asked, or has been asked by now."""
    if work.plan.evaluations[block.window.region.model].extended:
        work.keep(_made(work, block))


def further_requests(work: Workspace, block: Block, places: Sequence[int]) -> dict[int, Request]:
    """What is to be asked for some trials of a block, by index; of an extension, not where a reply is lost."""
    trials = work.opened(block)
    if not work.plan.evaluations[block.window.region.model].extended:
        return {i: trials[i].request for i in places}
    return {i: request for i, _, request in _steps(work, block, places) if request is not None}


def _made(work: Workspace, block: Block) -> Iterator[tuple[str, bytes]]:
    evaluation = work.plan.evaluations[block.window.region.model]
    keys = [item.request.digest for item in work.opened(block)]
    places = [i for i, known in enumerate(work.cached(keys)) if not known]
    for i, data, request in _steps(work, block, places):
        if request is None:
            yield keys[i], data
            continue
        (more,) = work.fetch([request.digest])
        with suppress(ValueError):  # no record of a reply, whatever it is
            if more is not None:
                yield keys[i], extended_reply(evaluation, data, more)


def _steps(
    work: Workspace, block: Block, places: Sequence[int]
) -> Iterator[tuple[int, bytes, Request | None]]:
    """The trials whose replies are there, each with what is to be asked after that, if anything is."""
    evaluation = work.plan.evaluations[block.window.region.model]
    trials = work.opened(block)
    asked = [(i, extended_request(work.plan, evaluation, trials[i])) for i in places]
    there = [(i, request.digest) for i, request in asked if request is not None]
    for (i, _), data in zip(there, work.fetch([key for _, key in there]), strict=True):
        with suppress(ValueError):
            if data is not None:
                yield i, data, further_request(work.plan, evaluation, trials[i], data)
