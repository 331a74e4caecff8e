"""What a sweep would ask and cost, worked out without sending or writing anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evalcube import known_as
from evalcube.flows.config.load import as_config
from evalcube.flows.config.models import Model, Sweep
from evalcube.flows.config.near_names import did_you_mean
from evalcube.flows.config.recipes import unverified
from evalcube.flows.config.secrecy import show
from evalcube.flows.config.views import doubts
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.evaluations import Judge, token_limit
from evalcube.flows.plan.part import Only
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.requests import prepare_trials
from evalcube.flows.plan.targets import Block, Positions, SampleTargets, Window
from evalcube.flows.read.judge_estimate import JudgeCount, JudgeTally
from evalcube.flows.state.beside_config import Unnamed, find_unnamed
from evalcube.flows.state.open_trials import OpenTrials, open_trials, pending_beside, unbegun
from evalcube.flows.state.store import SweepStore, existing_store
from evalcube.stages.analyze.render.shown import Shown
from evalcube.stages.generate.dataset import Dataset, DatasetParams
from evalcube.stages.process.reading import read_reply
from evalcube.stages.reply.forms import Record
from evalcube.stages.reply.status import COUNTERS
from evalcube.storage.cache.cache import Cache, find_cache

if TYPE_CHECKING:
    from evalcube.stages.analyze.verdict.rules import Power

FloatArray = npt.NDArray[np.float64]

EXACT_LIMIT = 20_000
"""Up to so many requests of a sweep each is looked up in the cache; beyond, a sample of them."""
SMALLEST_SAMPLE = 200
"""Requests of an evaluation that are looked up at least: a share of one half is then known to ± 7%."""

LIMITED = "max_tokens"
"""Basis of an estimate that takes each answer for as long as it may be."""
_UNLIMITED = "nothing, as the sampler sets no max_tokens"
_CHARACTERS_PER_TOKEN = 4.0


@known_as("evalcube.results")
@dataclass(frozen=True)
class EvaluationEstimate:
    """One evaluation in the estimate of a sweep."""

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
    completion_tokens: int | None
    """Estimate for what is to send: the mean of the cell's answers so far, else of cached replies, else max_tokens,
    which is the most that they can be; None where nobody knows, as the sampler sets none."""
    completion_basis: str
    """Where the completion estimate comes from."""
    cost: float | None
    """USD, estimate for what is to send; None where the config declares no prices, or nobody knows the tokens."""
    prompt_cost: float | None = None
    """USD of the prompts alone."""
    in_batches: bool = False
    """Whether the config sends these requests in batches, which `cost` is for."""
    other_cost: float | None = None
    """USD if they were sent the other way, live or in batches; None where the config gives no price for both."""

    @property
    def at_most(self) -> bool:
        """Whether tokens and cost of the answers are what they are at most, and no estimate."""
        return self.completion_basis == LIMITED


@known_as("evalcube.results")
@dataclass(frozen=True)
class SweepEstimate(Shown):
    """What a run would ask and cost."""

    name: str
    cube: str
    cache: str
    cells: int
    """Number of cells (points) of each evaluation."""
    points: Mapping[str, Mapping[str, int]]
    """Number of points by task and tier; ``all`` counts each once."""
    totals: Mapping[str, int]
    """Number of points of all tasks by tier; ``all`` counts each once."""
    trials: int
    """Number of trials of a cell; with `precision`, of its first round."""
    most_trials: int
    """Largest number of trials of a cell; above `trials` if `precision` may ask for more."""
    repeats: int
    evaluations: tuple[EvaluationEstimate, ...]
    judges: tuple[EvaluationEstimate, ...] = ()
    """The same for the requests to judges."""
    pending: int = 0
    """Trials of the plan and of the cube that are not done, and that this run would not ask."""
    unnamed: Unnamed | None = None
    """What the cube has and the config does not name."""
    power: Power | None = None
    """Difference of composites that the planned questions detect; None if answers have no layer scores."""
    worth: float = 0.0
    """Questions in equal shares that those of each model are worth in a comparison, where tasks have equal weight."""
    limiting: str = ""
    """The task whose small number of questions reduces `worth` most; empty if there is none."""
    few_problems: Mapping[str, int] = field(default_factory=dict)
    """By task, how many of its easiest points repeat a problem in more than half of their trials."""
    notes: tuple[str, ...] = ()
    """Remarks about these numbers, a sentence each."""

    @property
    def rows(self) -> tuple[EvaluationEstimate, ...]:
        """Evaluations and judges."""
        return (*self.evaluations, *self.judges)

    @property
    def requests(self) -> int:
        """Number of requests of the whole sweep, including answered ones."""
        return sum(row.requests for row in self.rows)

    @property
    def to_send(self) -> int:
        """Number of requests that a run would send."""
        return sum(row.to_send for row in self.rows)

    @property
    def cost(self) -> float | None:
        """USD of the requests to send, for models with declared prices; None if no model has any."""
        costs = [row.cost for row in self.rows if row.cost is not None]
        return sum(costs) if costs else None

    def records(self) -> list[dict[str, Any]]:
        """Evaluations and judges, as plain values."""
        return [asdict(row) for row in self.rows]

    def _notes(self) -> tuple[str, ...]:
        return self.notes

    def to_dict(self) -> dict[str, Any]:
        """The estimate as JSON values."""
        return {**asdict(self), "requests": self.requests, "to_send": self.to_send, "cost": self.cost}


def estimate(
    config: Sweep | Mapping[str, Any] | str | Path,
    *,
    cube: str | Path | None = None,
    cache: str | Path | None = None,
    only: Sequence[str] = (),
    trials: str | None = None,
    repeats: int | None = None,
) -> SweepEstimate:
    """Work out what a run would ask and cost, without asking.

    Parameters
    ----------
    config
        A config: an `evalcube.Sweep`, a mapping of the same form, or the path of a YAML file.
    cube, cache
        Addresses of the results and of the response cache; default: those in the config.
    only, trials
        The part of the plan that a run would ask, as for `evalcube.run`; default: all of it.
    repeats
        How often each question is asked; default: as the config says.

    Returns
    -------
    SweepEstimate
        Cells, requests, tokens and cost (USD) of what is left to ask, and how much the cube and the cache have already.

    Raises
    ------
    ConfigError
        If the config has problems.
    SweepError
        If the cube contradicts the config, or `only` or `trials` is not a part of the plan.

    Examples
    --------
    >>> import evalcube as ec
    >>> ec.plan("sweep.yaml").requests
    64
    """
    config = as_config(config, cube=cube, cache=cache, repeats=repeats)
    part = Only.of(only, trials)
    own = plan = build_plan(config)
    if part is not None and part.trials is not None:
        own = plan = replace(plan, trials=part.trials)
    store = existing_store(plan, config.cube)
    plan = plan if store is None else replace(store.plan, trials=own.trials, repeats=own.repeats)
    whole = SampleTargets.uniform(plan, plan.trials, plan.repeats)
    targets = whole if part is None else part.targets(plan)
    cache_store = find_cache(config.cache)
    store = store and SweepStore(store.cube, store.plan, targets, store.found)
    left = _open_trials(plan, store, targets)
    limit = _sample_size(left)
    tally = JudgeTally(plan, cache_store)
    models = {model.name: model for model in config.models}
    counters = None if store is None else store.counters()
    lengths = _lengths(plan, counters)
    rows = tuple(
        _estimate_evaluation(
            plan, parts, cache_store, i, limit, tally, targets.counts[i], models[row.model], lengths[i]
        )
        for i, (row, parts) in enumerate(zip(plan.evaluations, left, strict=True))
        if plan.named is None or plan.named.evaluations[i]
    )
    points = _points(own)
    most = max(plan.trials, config.precision.max if config.precision else 0)
    return SweepEstimate(
        config.name,
        config.cube,
        config.cache,
        own.cells,
        points,
        {name: sum(counts[name] for counts in points.values()) for name in ("all", *own.tiers)},
        plan.trials,
        most,
        plan.repeats,
        rows,
        tuple(
            _judge_row(config, judge, count)
            for judge, count in zip(plan.judges, tally.counts, strict=True)
            if judge.identity in {planned.identity for planned in own.judges}
        ),
        _pending(store, whole, left),
        None if store is None or counters is None else find_unnamed(store.plan, counters),
        _power(plan),
        *min(map(plan.worth, targets.trials), default=(0.0, "")),
        own.few_problems(most),
        tuple(dict.fromkeys(_remarks(config, own))),
    )


def _remarks(config: Sweep, plan: Plan) -> Iterator[str]:
    """What to know before the sweep is run, a sentence each."""
    yield from unverified(config.model_dump(include={"tasks"})["tasks"])
    yield from _same_tiers(plan)
    for task in plan.tasks:
        for planned in task.cells:
            source, params = planned.cell.task, planned.cell.params
            if isinstance(source, Dataset) and isinstance(params, DatasetParams):
                yield from source.remarks(params)
    yield from doubts(config.policy)


def _same_tiers(plan: Plan) -> Iterator[str]:
    """A sentence for each two tiers that hold the same points, so that one of them says nothing."""
    for (tier, first), (twin, second) in combinations(zip(plan.tiers, plan.in_tier, strict=True), 2):
        if (first == second).all():
            yield f"the tiers {tier} and {twin} hold the same points"


def _sample_size(left: Sequence[list[OpenTrials]]) -> int:
    """Trials of each evaluation that are looked up in the cache: all that are left, where these are few."""
    if sum(map(_count, left)) <= EXACT_LIMIT:
        return EXACT_LIMIT
    return max(SMALLEST_SAMPLE, EXACT_LIMIT // max(1, sum(map(bool, left))))


def _points(plan: Plan) -> dict[str, dict[str, int]]:
    """Number of points by task, all and of each tier."""
    return {
        task.label: {
            "all": len(task.cells),
            **{tier: sum(1 for cell in task.cells if tier in cell.tiers) for tier in plan.tiers},
        }
        for task in plan.tasks
    }


def _power(plan: Plan) -> Power | None:
    """What the planned questions are enough for; None where nothing is scored in layers, or nothing compared."""
    units = sum(len(task.cells) for task in plan.tasks if task.graded) * plan.trials
    if not units or len(plan.evaluations) < 2:
        return None
    from evalcube.stages.analyze.verdict.rules import power  # with scipy, which takes a while

    return power(units)


@dataclass(frozen=True)
class PlannedPoint:
    """One point of a task, as a sweep would measure it."""

    params: Mapping[str, object]
    tiers: tuple[str, ...]
    difficulty: float
    """Elementary steps."""


def planned_points(config: Sweep, label: str) -> list[PlannedPoint]:
    """The points of one task of a sweep, in their order in the cube."""
    for task in build_plan(config).tasks:
        if task.label == label:
            return [
                PlannedPoint(planned.cell.params.canonical(), planned.tiers, planned.cell.difficulty)
                for planned in task.cells
            ]
    raise SweepError(
        f"the sweep has no task {show(label)}", did_you_mean(label, list(config.tasks), "Its tasks")
    )


def _estimate_evaluation(
    plan: Plan,
    parts: Sequence[OpenTrials],
    cache: Cache | None,
    model: int,
    limit: int,
    tally: JudgeTally,
    each: int,
    asked: Model,
    lengths: FloatArray,
) -> EvaluationEstimate:
    left = _count(parts)
    exact = left <= limit
    scale = left / max(1, min(left, limit))  # as many as each that is looked at stands for
    size, cached_lengths = 0, []
    for window, positions in _chosen(parts, None if exact else limit):
        for item in prepare_trials(plan, Block(window, 0, 0, positions)):
            size += len(item.request.body)
            data = cache.get(item.request.digest) if cache is not None else None
            tally.add(item, data, scale)
            if data is not None:
                cached_lengths.append(read_reply(Record.decode(data)).completion_tokens)
    cached = round(len(cached_lengths) * scale)
    to_send = left - cached
    longest = token_limit(plan.evaluations[model].sampler.params)
    lengths_known = [length for length in cached_lengths if length >= 0]
    each_completion, basis = _completion(parts, lengths, lengths_known, longest)
    prompt_tokens = to_send * size * scale / max(left, 1) / _CHARACTERS_PER_TOKEN
    tally.end(model, each_completion, exact=exact)
    counts = (each, each - left, cached, to_send)
    return _row(plan.labels[model], counts, exact, prompt_tokens, (each_completion, basis), asked)


def _row(
    name: str,
    counts: tuple[int, int, int, int],
    exact: bool,
    prompt_tokens: float,
    answer: tuple[float, str],
    asked: Model,
) -> EvaluationEstimate:
    """The estimate, with costs, from its counts, `requests` to `to_send`, and the mean length of an answer."""
    each, basis = answer
    counted, batch = not counts[-1] or not basis.endswith(_UNLIMITED), asked.batch is not None
    tokens = counts[-1] * each
    prompts = cost = other_way = None
    if asked.priced:
        prompt, completion, _ = asked.paid
        prompts = prompt_tokens * prompt / 1e6
        # Answers that cost nothing cost nothing at any length.
        cost = prompts + tokens * completion / 1e6 if counted or not completion else None
        part = asked.prices.batch
        other_way = None if cost is None or part is None else cost / part if batch else cost * part
    completion_tokens = round(tokens) if counted else None
    return EvaluationEstimate(
        name, *counts, exact, round(prompt_tokens), completion_tokens, basis, cost, prompts, batch, other_way
    )


def _lengths(plan: Plan, counters: FloatArray | None) -> FloatArray:
    """Mean completion tokens of the trials that each cell has (model, task, params); NaN where it has none."""
    if counters is None:
        return np.full((len(plan.evaluations), len(plan.tasks), plan.slots), np.nan)
    tokens, trials = (counters[..., COUNTERS.index(name)] for name in ("tokens_sum", "trials"))
    return np.divide(tokens, trials, out=np.full_like(tokens, np.nan), where=trials > 0)


def _completion(
    parts: Sequence[OpenTrials], lengths: FloatArray, cached: Sequence[int], longest: int
) -> tuple[float, str]:
    """Mean completion tokens of what is to send, and where that is known from."""
    if cached:
        otherwise, basis = float(np.mean(cached)), "mean of cached replies"
    else:
        otherwise, basis = float(longest), LIMITED if longest else _UNLIMITED
    each = sum((part.by_cell() for part in parts), np.zeros(lengths.shape, np.int64))
    expected, each = lengths[each > 0], each[each > 0]
    measured = np.isfinite(expected)
    if not measured.any():
        return otherwise, basis
    basis = "mean of answers so far" + ("" if measured.all() else f"; of points without any: {basis}")
    return float(np.average(np.where(measured, expected, otherwise), weights=each)), basis


def _judge_row(config: Sweep, judge: Judge, count: JudgeCount) -> EvaluationEstimate:
    asked = next(model for model in config.models if model.name == judge.model)
    prompt_tokens = count.characters / _CHARACTERS_PER_TOKEN + count.assumed_tokens
    left, to_send = round(count.left), round(count.to_send)
    longest = token_limit(judge.sampler)
    counts = (count.requests, count.requests - left, left - to_send, to_send)
    answer = (longest, LIMITED if longest else _UNLIMITED)
    return _row(f"judge {judge.name}", counts, count.exact, prompt_tokens, answer, asked)


def _open_trials(plan: Plan, store: SweepStore | None, targets: SampleTargets) -> list[list[OpenTrials]]:
    """What of the targets is not yet recorded, by evaluation."""
    models = range(len(plan.evaluations))
    targets.refuse_too_many()
    if store is None:
        shape = (len(plan.tasks), plan.slots, plan.trials, plan.repeats)
        return [[unbegun(targets, shape, model)] for model in models]
    return [list(open_trials(store, model)) for model in models]


def _pending(store: SweepStore | None, whole: SampleTargets, parts: Sequence[list[OpenTrials]]) -> int:
    """How many trials of a whole plan are not done, and not among those that are asked now."""
    left = sum(map(_count, parts))
    return sum(whole.counts) - left if store is None else pending_beside(store, whole, left)


def _count(parts: Sequence[OpenTrials]) -> int:
    return sum(part.count for part in parts)


def _chosen(parts: Sequence[OpenTrials], size: int | None) -> Iterator[tuple[Window, Positions]]:
    """`size` of the open trials, each as likely as any other, as a stride could skip whole cells; None for all."""
    count, random, first = _count(parts), np.random.default_rng(0), 0
    chosen = np.arange(count) if size is None else np.sort(random.choice(count, size, replace=False))
    for part in parts:
        begin, end = np.searchsorted(chosen, (first, first + part.count))
        if begin < end:
            yield part.window, part.at(chosen[begin:end] - first)
        first += part.count
