"""What judges will be asked about the trials that are still open."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalcube.flows.plan.evaluations import read_answered
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.requests import CriteriaBook, Prepared
from evalcube.flows.plan.targets import SampleTargets
from evalcube.storage.cache.cache import Cache


@dataclass
class JudgeCount:
    """Requests of one judge about all evaluations."""

    requests: int = 0
    """Of all trials that it judges."""
    left: int = 0
    """Of those that are not recorded in the cube."""
    to_send: float = 0.0
    """Of these, those that the cache does not answer; all, where it lacks the answer to be judged."""
    characters: float = 0.0
    """Of the bodies to send, those of answers left out that are not known yet."""
    assumed_tokens: float = 0.0
    """Of these answers."""
    exact: bool = True


@dataclass
class _Sampled:
    hits: int = 0
    misses: int = 0
    unknown: int = 0
    """Requests about answers that are not known yet."""
    characters: int = 0


class JudgeTally:
    """Counts judge requests, evaluation by evaluation; of a sample, where not all trials are looked at."""

    def __init__(self, plan: Plan, cache: Cache | None) -> None:
        self.counts = [JudgeCount() for _ in plan.judges]
        """By judge."""
        self._plan, self._cache = plan, cache
        self._book = CriteriaBook(plan.tasks)
        self._sampled = [_Sampled() for _ in plan.judges]

    def add(self, item: Prepared, data: bytes | None) -> None:
        """Take in an open trial of the present evaluation, with its reply if the cache has one."""
        rubric = self._book.of(item.task, item.trial).rubric if self.counts else ""
        if not rubric:
            return
        output = "" if data is None else read_answered(data, item.trial)[1].answer
        for judge, sampled in zip(self._plan.judges, self._sampled, strict=True):
            for request in judge.requests(rubric, item.trial.prompt, output):
                if (
                    data is not None
                    and self._cache is not None
                    and self._cache.get(request.digest) is not None
                ):
                    sampled.hits += 1
                    continue
                sampled.misses += data is not None
                sampled.unknown += data is None
                sampled.characters += len(request.body)

    def end(self, model: int, scale: float, assumed: float, *, exact: bool) -> None:
        """End an evaluation.

        Parameters
        ----------
        scale
            Open trials for each that was looked at.
        assumed
            Tokens of an answer that is not known yet.
        """
        trials = self._judged_trials(model)
        samples, self._sampled = self._sampled, [_Sampled() for _ in self.counts]
        for judge, count, sampled in zip(self._plan.judges, self.counts, samples, strict=True):
            open_requests = sampled.hits + sampled.misses + sampled.unknown
            count.requests += trials * judge.repeats
            count.left += round(open_requests * scale)
            count.to_send += (sampled.misses + sampled.unknown) * scale
            count.characters += sampled.characters * scale
            count.assumed_tokens += sampled.unknown * scale * assumed
            count.exact &= exact

    def _judged_trials(self, model: int) -> int:
        plan = self._plan
        judged = np.zeros(plan.sources.shape, dtype=bool)
        for row, task in zip(judged, plan.tasks, strict=True):
            row[: len(task.cells)] = task.judged_points
        targets = SampleTargets.uniform(plan, plan.trials, plan.repeats)
        return int((targets.trials[model].astype(np.int64) * targets.repeats[model] * judged).sum())
