"""Evaluations that give cut replies of others a larger limit of tokens: continued where the API can, else asked anew.

An extension is an evaluation of its own. What was not cut under the other's limit it takes over as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from evalcube.flows.errors import SweepError, need_number
from evalcube.flows.plan.evaluations import (
    LIMITS,
    AskedModel,
    Evaluation,
    NamedSampler,
    read_answered,
    token_limit,
)
from evalcube.flows.plan.part import Counters, Sampling
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.requests import (
    Prepared,
    messages_request,
    trial_messages,
    trial_request,
    with_defaults,
)
from evalcube.flows.plan.targets import SampleTargets
from evalcube.stages.infer.apis import Request, repeat_seed
from evalcube.stages.process.reading import read_reply, split_reasoning
from evalcube.stages.reply.body import parse_body
from evalcube.stages.reply.forms import COMPLETIONS, Record
from evalcube.stages.reply.status import COUNTERS

if TYPE_CHECKING:
    from evalcube.storage.cache.cache import Cache

_OF_OUTPUT = ("frequency_penalty", "presence_penalty")
"""Go by what was said in this reply: there is none of it yet where a prompt has what was said before."""
_TORN = "\ufffd"
"""Ends a text that was cut within a character."""


def extended_plan(plan: Plan, limit: int | None) -> Plan:
    """A config's plan with an extension of each evaluation whose limit of completion tokens is smaller; None is none.

    Raises
    ------
    SweepError
        There is no such evaluation.
    """
    if limit is None:
        return plan
    need_number("extend_truncated", limit, whole=True)
    limits = [token_limit(row.sampler.params) for row in plan.evaluations]
    places = [place for place, own in enumerate(limits) if own < limit]
    if not places:
        raise SweepError(
            f"`extend_truncated`: {limit} tokens are no more than the samplers allow already, {min(limits)}",
            "Give more, as it is the limit of all that a reply says, what was recorded included",
        )
    rows = (*range(len(limits)), *places)
    return replace(
        plan,
        evaluations=(*plan.evaluations, *(_extension(plan.evaluations[place], limit) for place in places)),
        prices=tuple(plan.prices[row] for row in rows),
        facets=tuple(plan.facets[row] for row in rows),
        asserted_prices=tuple(plan.asserted_prices[row] for row in rows if plan.asserted_prices),
    )


def _extension(row: Evaluation, limit: int) -> Evaluation:
    continued = row.api == COMPLETIONS and not any(row.sampler.params.get(name) for name in _OF_OUTPUT)
    said = "continued to" if continued else "upper bound at"
    return Evaluation.of(
        row.template,
        NamedSampler(
            name=f"{row.sampler.name} {said} {limit}", params=_with_limit(row.sampler.params, limit)
        ),
        extended="continued" if continued else "anew",
        extends=row.eval_id,
        **{name: getattr(row, name) for name in AskedModel.model_fields},
    )


def _with_limit(params: Mapping[str, Any], limit: int) -> dict[str, Any]:
    own = [name for name in LIMITS if params.get(name)] or LIMITS[:1]
    return {**params, **dict.fromkeys(own, limit)}


def extended_request(plan: Plan, evaluation: Evaluation, item: Prepared) -> Request | None:
    """The request whose reply an extension is about; None where the plan has that evaluation no more."""
    found = (row for row in plan.evaluations if row.eval_id == evaluation.extends)
    return next((trial_request(row, item.cell, item.trial, item.repeat) for row in found), None)


def further_request(plan: Plan, evaluation: Evaluation, item: Prepared, data: bytes) -> Request | None:
    """What an extension asks after a reply; None where it takes that over: it was not cut, or cannot go on.

    Raises
    ------
    ValueError
        If `data` is no record of a reply.
    """
    record, reading = read_answered(data, item.trial)
    base = next(row for row in plan.evaluations if row.eval_id == evaluation.extends)
    limit = token_limit(evaluation.sampler.params)
    allowed = token_limit(with_defaults(base, item.trial))
    if reading.finish != "length" or allowed >= limit:
        return None
    if evaluation.extended == "anew":
        plain = evaluation.model_copy(update={"extended": "", "extends": ""})
        return trial_request(plain, item.cell, item.trial, item.repeat)
    used, text = reading.completion_tokens if reading.completion_tokens > 0 else allowed, _text(record)
    whole = split_reasoning(text) == (reading.answer, reading.reasoning)  # nothing was said beside the text
    if not text or not whole or not 0 < used < limit:
        return None
    params = _with_limit(base.sampler.params, limit - used)
    if isinstance(seed := params.get("seed"), int):
        params["seed"] = repeat_seed(seed, used)  # the same would draw once more what the text was drawn by
    going_on = base.model_copy(update={"sampler": NamedSampler(name=base.sampler.name, params=params)})
    (message,) = trial_messages(base, item.cell, item.trial)
    messages = [{**message, "content": message["content"] + text.rstrip(_TORN)}]
    return messages_request(going_on, item.cell, item.trial, messages, item.repeat)


def further_key(plan: Plan, evaluation: Evaluation, item: Prepared, cache: Cache) -> str:
    """The key of what an extension has asked after the reply in a cache; empty if there is nothing."""
    before = extended_request(plan, evaluation, item)
    data = None if before is None else cache.get(before.digest)
    with suppress(ValueError):  # no record of a reply
        more = None if data is None else further_request(plan, evaluation, item, data)
        return more.digest if more is not None and cache.get(more.digest) is not None else ""
    return ""


def extended_reply(evaluation: Evaluation, data: bytes, more: bytes) -> bytes:
    """The record of an extension's reply, from the one that was cut and the one to `further_request`.

    Raises
    ------
    ValueError
        If either is no record of a reply.
    """
    first, second = Record.decode(data), Record.decode(more)
    if evaluation.extended == "anew":
        return more
    if second.status >= 300:  # the prompt and what was said fill the model's context
        return data
    choice = {name: value for name, value in _choice(second).items() if name != "logprobs"}
    choice["text"] = _text(first).rstrip(_TORN) + _text(second)
    before, after = read_reply(first), read_reply(second)
    usage: dict[str, object] = {"prompt_tokens": before.prompt_tokens}
    usage["prompt_tokens_details"] = {"cached_tokens": before.cached_tokens}
    if before.completion_tokens >= 0 and after.completion_tokens >= 0:
        usage["completion_tokens"] = before.completion_tokens + after.completion_tokens
    document = parse_body(second.body)
    rest = document if isinstance(document, dict) else {}
    body = json.dumps({**rest, "choices": [choice], "usage": usage}).encode()
    latency = first.latency + second.latency
    return Record(second.status, latency, body, first.first_token, second.api).encode()


def _choice(record: Record) -> dict[str, Any]:
    document = parse_body(record.body)
    choices = document.get("choices") if isinstance(document, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _text(record: Record) -> str:
    text = _choice(record).get("text")
    return text if isinstance(text, str) else ""


class Extending(Sampling):
    """Another sampling, and after it the extensions: of each cell, once all of it that is planned is answered."""

    def __init__(self, inner: Sampling) -> None:
        self._inner = inner
        self.selection = inner.selection

    def targets(self, plan: Plan, planned: SampleTargets, counters: Counters) -> SampleTargets:
        """Those of the other sampling, and for extensions what is planned of the evaluations that they extend."""
        wanted = self._inner.targets(plan, planned, counters)
        trials, repeats = wanted.trials.copy(), wanted.repeats.copy()
        answered: Any = counters[..., COUNTERS.index("trials")] == planned.trials * planned.repeats
        chosen = self.selection.mask(plan)
        for place, base in _pairs(plan):
            ready = answered[base] & (chosen[base] | chosen[place])
            trials[place] = np.where(ready, planned.trials[base], 0)
            repeats[place] = np.where(ready, planned.repeats[base], 0)
        return SampleTargets(trials, repeats)

    def notes(self) -> Mapping[str, object]:
        """Those of the other sampling."""
        return self._inner.notes()


def _pairs(plan: Plan) -> Iterator[tuple[int, int]]:
    """Places of the extensions that are asked, and of what they extend."""
    places = {row.eval_id: place for place, row in enumerate(plan.evaluations)}
    for place in np.flatnonzero(plan.named_cells.any(axis=(1, 2))).tolist():
        row = plan.evaluations[place]
        if row.extended and row.extends in places:
            yield place, places[row.extends]
