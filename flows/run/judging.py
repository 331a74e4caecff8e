"""A block's answers in; the judge requests that they need, and then their layer scores, out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from deploy.simulator.truth import HEADER, Truth, encode
from flows.plan.judges import score_in
from flows.plan.plan import Plan
from flows.run.worker import Prepared, Workspace
from stages.infer.jobs import Job
from stages.infer.request import Request
from stages.process.assertions import Context, evaluate, layered_scores
from stages.process.assertions.evaluate import Graded
from stages.process.grading import Outcome
from stages.process.judging import combine_judges
from stages.process.reading import Reading
from stages.reply.status import Status
from storage.cube.schema import LAYERS, VARIABLES, Variable

Arrays = dict[str, npt.NDArray[np.generic]]
Prices = tuple[float, float]


def trial_variables(plan: Plan) -> dict[str, tuple[Variable, tuple[int, ...]]]:
    """The arrays of a plan's regions, with the sizes of the dims that they have beyond a trial's."""
    layers = {name: (LAYERS[name], more) for name, more in plan.layers.items()}
    return {**layers, **{name: (variable, ()) for name, variable in VARIABLES.items()}}


def columns(plan: Plan, outcomes: Sequence[Outcome]) -> Arrays:
    """A block's outcomes as arrays, shape (trial of the block,), readings (trial, judge, repeat)."""
    arrays: Arrays = {}
    for name, (variable, more) in trial_variables(plan).items():
        values = [getattr(row, name) for row in outcomes]
        if not more:
            arrays[name] = np.array(values, dtype=variable.dtype)
            continue
        arrays[name] = column = np.full((len(values), *more), variable.fill, dtype=variable.dtype)
        for row, readings in enumerate(values):
            for judge, scores in enumerate(readings):
                column[row, judge, : len(scores)] = scores
    return arrays


def judge_requests(work: Workspace, item: Prepared, reading: Reading) -> list[list[Request]]:
    """What is to be asked about an answer: a list for each judge; none without a rubric."""
    rubric = work.criteria.of(item.task, item.trial).rubric
    if not rubric:
        return []
    return [judge.requests(rubric, item.trial.prompt, reading.answer) for judge in work.plan.judges]


def judge_jobs(
    work: Workspace, item: Prepared, reading: Reading, outcome: Outcome, prices: Prices
) -> Iterator[tuple[int, Job]]:
    """The requests about an answer that the cache does not answer, each with the judge's place."""
    for place, requests in enumerate(judge_requests(work, item, reading)):
        simulated = work.context.routes[work.plan.judges[place].model].simulated
        for repeat, request in enumerate(requests):
            if work.cache.get(request.digest) is not None:
                continue
            headers: Mapping[str, str] | None = None
            if simulated:
                quality = _quality(item, outcome, _graded(work, item, reading, prices))
                headers = {HEADER: encode(Truth("", quality=quality, repeat=repeat))}
            yield place, Job(request.digest, request.body, headers)


def with_layers(
    work: Workspace, item: Prepared, reading: Reading, outcome: Outcome, prices: Prices
) -> Outcome | None:
    """An outcome with its layer scores; None if the cache lacks a judge's reply.

    Every finished trial is scored on the text that it gave, a cut or refused one too: no output gains by ending early.
    """
    readings = []
    for requests in judge_requests(work, item, reading):
        replies = [work.cache.get(request.digest) for request in requests]
        found = [reply for reply in replies if reply is not None]
        if len(found) < len(replies):
            return None
        try:
            readings.append(tuple(score_in(reply) for reply in found))
        except ValueError:  # whole, but no record
            return None
    scores = layered_scores(_graded(work, item, reading, prices), combine_judges(readings))
    return replace(
        outcome,
        fact=_or_nan(scores.fact),
        behavior=_or_nan(scores.behavior),
        judge=_or_nan(scores.judge),
        judge_readings=tuple(readings),
    )


def _graded(work: Workspace, item: Prepared, reading: Reading, prices: Prices) -> tuple[Graded, ...]:
    assertions = work.criteria.of(item.task, item.trial).assertions
    if not assertions:
        return ()
    context = Context(
        reading.answer,
        prompt=item.trial.prompt,
        latency=reading.latency,
        cost=_cost(reading, prices),
        turns=1,
    )
    return evaluate(assertions, context, hooks=work.hooks)


def _cost(reading: Reading, prices: Prices) -> float | None:
    """USD; None if the endpoint does not tell the tokens."""
    if reading.prompt_tokens < 0 or reading.completion_tokens < 0:
        return None
    return (reading.prompt_tokens * prices[0] + reading.completion_tokens * prices[1]) / 1e6


def _quality(item: Prepared, outcome: Outcome, graded: Sequence[Graded]) -> float:
    """What a simulated judge finds, from 0 to 1: mean of the answer being right and of the assertions' layers."""
    scores = layered_scores(graded)
    parts = [(score - 1) / 4 for score in (scores.fact, scores.behavior) if score is not None]
    if item.trial.answer:
        parts.append(float(outcome.status == Status.CORRECT))
    return sum(parts) / len(parts) if parts else 0.5


def _or_nan(score: float | None) -> float:
    return float("nan") if score is None else score
