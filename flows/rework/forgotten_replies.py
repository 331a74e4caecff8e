"""The cached replies behind results that are to be forgotten: their keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from evalcube.flows.plan.blocks import Block, Window
from evalcube.flows.plan.criteria import CriteriaBook
from evalcube.flows.plan.judges import Judge, judge_keys
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.requests import Prepared, prepare_trials
from evalcube.stages.process.rubric import judge_prompt_digest
from evalcube.storage.cache.cache import ManagedCache
from evalcube.storage.cube.regions import Region

_AT_ONCE = 512


class Part(Protocol):
    """Some results of one region."""

    @property
    def region(self) -> Region:
        """Which one."""

    @property
    def window(self) -> Window:
        """The part of it that exists."""

    @property
    def mask(self) -> npt.NDArray[np.bool_]:
        """Which of its trials, in the window's shape."""


def trial_request_keys(plan: Plan, parts: Sequence[Part]) -> Iterator[str]:
    """Keys of the requests of all trials."""
    for part in parts:
        for item in _prepared(plan, part):
            yield item.request.digest


def judge_request_keys(plan: Plan, parts: Sequence[Part], cache: ManagedCache) -> Iterator[str]:
    """Keys of what judges were asked about the answers that a cache holds, in a sweep or to check them for length."""
    if not plan.judges:
        return
    book = CriteriaBook(plan.tasks)
    judges = [*plan.judges, *(variant for judge in plan.judges for variant in _variants(judge))]
    for part in parts:
        for item in _prepared(plan, part):
            rubric = book.of(item.task, item.trial).rubric
            if rubric:
                reply = cache.get(item.request.digest)
                keys = list(judge_keys(judges, rubric, item.trial.prompt, reply))
                yield from (
                    key for key, there in zip(keys, cache.contents(keys), strict=True) if there is not None
                )


def _prepared(plan: Plan, part: Part) -> Iterator[Prepared]:
    """The trials, some in memory at a time."""
    positions = np.flatnonzero(part.mask)
    for begin in range(0, len(positions), _AT_ONCE):
        some = positions[begin : begin + _AT_ONCE]
        yield from prepare_trials(plan, Block(part.window, 0, 0, some))


def _variants(judge: Judge) -> list[Judge]:
    """The judge with another prompt than in the sweep: with the sentence about length, or without it."""
    prompts = (judge_prompt_digest(length_debias=debias) for debias in (True, False))
    return [judge.model_copy(update={"prompt": prompt}) for prompt in prompts if prompt != judge.prompt]
