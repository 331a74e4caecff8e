"""What judges will be asked about the trials that are still open."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalcube.flows.plan.evaluations import read_stored
from evalcube.flows.plan.grading import judged_points
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.requests import CriteriaBook, Prepared
from evalcube.flows.plan.targets import SampleTargets
from evalcube.storage.cache.cache import Cache


@dataclass
class JudgeCount:
    """Requests of one judge about all evaluations."""

    requests: int = 0
    """Of all trials that it judges."""
    left: float = 0.0
    """Of those that are not recorded in the cube."""
    to_send: float = 0.0
    """Of these, those that the cache does not answer; all, where it lacks the answer to be judged."""
    characters: float = 0.0
    """Of the bodies to send, those of answers left out that are not known yet."""
    unknown: float = 0.0
    """Of the evaluation that is looked at, those about answers that are not known yet."""
    assumed_tokens: float = 0.0
    """Of these answers."""
    exact: bool = True


class JudgeTally:
    """Counts judge requests, evaluation by evaluation; of a sample, where not all trials are looked at."""

    def __init__(self, plan: Plan, cache: Cache | None) -> None:
        self.counts = [JudgeCount() for _ in plan.judges]
        """By judge."""
        self._plan, self._cache = plan, cache
        self._book = CriteriaBook(plan.tasks)

    def add(self, item: Prepared, data: bytes | None, scale: float) -> None:
        """Count what judges are asked about a trial with its cached reply, that stands for so many of its kind."""
        rubric = self._book.of(item.task, item.trial).rubric if self.counts else ""
        if not rubric:
            return
        reading = read_stored(data, item.trial)
        output = "" if reading is None else reading.answer
        for judge, count in zip(self._plan.judges, self.counts, strict=True):
            for request in judge.requests(rubric, item.trial.prompt, output):
                count.left += scale
                if reading is None or self._cache is None or self._cache.get(request.digest) is None:
                    count.to_send += scale
                    count.characters += scale * len(request.body)
                    count.unknown += scale * (reading is None)

    def end(self, model: int, assumed: float, *, exact: bool) -> None:
        """Close an evaluation, of whose unknown answers each is taken for so many tokens."""
        trials = self._judged_trials(model)
        for judge, count in zip(self._plan.judges, self.counts, strict=True):
            count.requests += trials * judge.repeats
            count.assumed_tokens += count.unknown * assumed
            count.unknown = 0.0
            count.exact &= exact

    def _judged_trials(self, model: int) -> int:
        plan = self._plan
        judged = judged_points(plan.tasks, plan.slots)
        targets = SampleTargets.uniform(plan, plan.trials, plan.repeats)
        return int((targets.trials[model].astype(np.int64) * targets.repeats[model] * judged).sum())
