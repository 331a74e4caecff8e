"""The cached replies behind results that are to be forgotten: their keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from evalcube.flows.plan.blocks import Block
from evalcube.flows.plan.criteria import CriteriaBook
from evalcube.flows.plan.judges import judge_keys
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.requests import Prepared, prepare_trials
from evalcube.flows.rework.to_forget import Chosen
from evalcube.storage.cache.cache import ManagedCache

_AT_ONCE = 512


def trial_request_keys(plan: Plan, parts: Sequence[Chosen]) -> Iterator[str]:
    """Keys of the requests of all trials."""
    for part in parts:
        for item in _prepared(plan, part):
            yield item.request.digest


def judge_request_keys(plan: Plan, parts: Sequence[Chosen], cache: ManagedCache) -> Iterator[str]:
    """Keys of what judges were asked about the answers that a cache holds."""
    if not plan.judges:
        return
    book = CriteriaBook(plan.tasks)
    for part in parts:
        for item in _prepared(plan, part):
            rubric = book.of(item.task, item.trial).rubric
            if rubric:
                reply = cache.get(item.request.digest)
                keys = list(judge_keys(plan.judges, rubric, item.trial.prompt, reply))
                yield from (
                    key for key, there in zip(keys, cache.contents(keys), strict=True) if there is not None
                )


def _prepared(plan: Plan, part: Chosen) -> Iterator[Prepared]:
    """The trials, some in memory at a time."""
    positions = np.flatnonzero(part.mask)
    for begin in range(0, len(positions), _AT_ONCE):
        some = positions[begin : begin + _AT_ONCE]
        yield from prepare_trials(plan, Block(part.window, 0, 0, some))
