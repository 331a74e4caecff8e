"""A config in; what its sweep would ask and cost out, with nothing sent and nothing written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from flows.blocks import Block, Window, pending_positions
from flows.config.models import SweepConfig
from flows.home import Home, open_existing
from flows.plan import Plan, build_plan
from flows.worker import prepare_trials
from stages.process.reading import read_reply
from stages.record import Record
from storage.cache import Cache, open_cache
from storage.regions import Region
from storage.urls import directory_of

EXACT_LIMIT = 20_000
"""Up to so many requests per evaluation each is looked up in the cache; beyond, a sample of them."""

_CHARACTERS_PER_TOKEN = 4.0


@dataclass(frozen=True)
class EvaluationEstimate:
    """One evaluation of a dry run."""

    evaluation: str
    requests: int
    """Trials of the target, repeats included."""
    done: int
    """Recorded in the cube."""
    cached: int
    """Not recorded, but answered by the cache."""
    to_send: int
    exact: bool
    """Whether `cached` was counted or estimated from a sample."""
    prompt_tokens: int
    """Estimate for what is to send."""
    completion_tokens: int
    """Estimate for what is to send: the mean of cached replies, else the sampler's max_tokens."""
    completion_basis: str
    """Where the completion estimate comes from."""
    cost: float
    """USD, estimate for what is to send."""


@dataclass(frozen=True)
class SweepEstimate:
    """A dry run."""

    name: str
    cube: str
    cache: str
    cells: int
    """Per evaluation."""
    points: Mapping[str, Mapping[str, int]]
    """Number of points by task and tier; ``all`` counts each once."""
    trials: int
    repeats: int
    evaluations: tuple[EvaluationEstimate, ...]

    @property
    def requests(self) -> int:
        """Of the whole sweep."""
        return sum(row.requests for row in self.evaluations)

    @property
    def to_send(self) -> int:
        """Of the whole sweep."""
        return sum(row.to_send for row in self.evaluations)

    @property
    def cost(self) -> float:
        """USD."""
        return sum(row.cost for row in self.evaluations)

    def to_dict(self) -> dict[str, Any]:
        """The estimate as JSON values."""
        return {**asdict(self), "requests": self.requests, "to_send": self.to_send, "cost": self.cost}


def estimate(config: SweepConfig) -> SweepEstimate:
    """Work out what a run would do.

    Raises
    ------
    SweepError
        If the cube belongs to another config.
    """
    plan = build_plan(config)
    home = open_existing(plan, config.cube)
    cache = open_cache(config.cache) if directory_of(config.cache).is_dir() else None
    rows = tuple(_estimate_evaluation(plan, home, cache, model) for model in range(len(plan.evaluations)))
    points = {
        task.task.name: {
            "all": len(task.cells),
            **{tier: sum(1 for cell in task.cells if tier in cell.tiers) for tier in plan.tiers},
        }
        for task in plan.tasks
    }
    return SweepEstimate(
        config.name, config.cube, config.cache, plan.cells, points, plan.trials, plan.repeats, rows
    )


def _estimate_evaluation(
    plan: Plan, home: Home | None, cache: Cache | None, model: int
) -> EvaluationEstimate:
    evaluation = plan.evaluations[model]
    each = plan.cells * plan.trials * plan.repeats
    open_trials = _open_trials(plan, home, model)
    left = sum(len(positions) for _, positions in open_trials)
    sample, exact = _sample(open_trials, left)
    prompts, hits, lengths = [], 0, []
    for window, positions in sample:
        for item in prepare_trials(plan, Block(window, 0, positions)):
            prompts.append(len(item.request.body))
            data = cache.get(item.request.digest) if cache is not None else None
            if data is not None:
                hits += 1
                lengths.append(read_reply(Record.decode(data)).completion_tokens)
    seen = len(prompts)
    cached = hits if exact else round(left * hits / max(seen, 1))
    to_send = left - cached
    known = [length for length in lengths if length >= 0]
    limit = evaluation.sampler.get("max_tokens") or evaluation.sampler.get("max_completion_tokens")
    each_completion = float(np.mean(known)) if known else float(limit or 0)
    basis = (
        "mean of cached replies"
        if known
        else "max_tokens"
        if limit
        else "unknown: the sampler sets no max_tokens"
    )
    prompt_tokens = to_send * (sum(prompts) / max(seen, 1)) / _CHARACTERS_PER_TOKEN
    price_prompt, price_completion = plan.prices[model]
    return EvaluationEstimate(
        plan.labels[model],
        each,
        each - left,
        cached,
        to_send,
        exact,
        round(prompt_tokens),
        round(to_send * each_completion),
        basis,
        (prompt_tokens * price_prompt + to_send * each_completion * price_completion) / 1e6,
    )


def _open_trials(plan: Plan, home: Home | None, model: int) -> list[tuple[Window, Any]]:
    """Windows of one evaluation with the positions not yet recorded."""
    if home is not None:
        return [(task.window, task.positions) for task in home.tasks(model)]
    window = Window(Region(model, 0, 0), (len(plan.tasks), plan.slots, plan.trials, plan.repeats), 0, 0)
    return [(window, pending_positions(window, plan.valid(), None))]


def _sample(open_trials: list[tuple[Window, Any]], left: int) -> tuple[list[tuple[Window, Any]], bool]:
    if left <= EXACT_LIMIT:
        return open_trials, True
    step = -(-left // EXACT_LIMIT)
    return [(window, positions[::step]) for window, positions in open_trials], False
