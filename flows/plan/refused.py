"""Says what to write in the config where an endpoint does not take a parameter of its requests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from evalcube.flows.plan.evaluations import Evaluation
from evalcube.stages.infer.apis import APIS

_CAUSE = re.compile(r"http (?P<status>\d{3}): (?:(?P<name>\w+)(?:, |$))?(?:(?P<wanted>\w+) wanted)?")
_STREAM = frozenset({"stream", "stream_options"})
_PLAIN = re.compile(r"[A-Za-z_][\w./-]*")
_USUAL_LIMIT = 4096
"""Tokens, where a limit is wanted and none was given."""
_MOST_NAMED = 8
"""Models that a line names at most."""


def refusal_lines(evaluations: Iterable[Evaluation], causes: Mapping[int, Iterable[str]]) -> list[str]:
    """What to write in the config, a line for each evaluation whose parameters its endpoint does not take.

    Parameters
    ----------
    evaluations
        Of the plan, in its order.
    causes
        By place of the evaluation, why trials failed; see `evalcube.stages.reply.body`.
    """
    planned = list(evaluations)
    lines = []
    for place, named in causes.items():
        for match in filter(None, map(_CAUSE.fullmatch, named)):
            one, name, wanted = planned[place], match["name"] or "", match["wanted"] or ""
            what = f"refuses `{name}`" if name else f"wants `{wanted}`"
            lines.append(
                f"{one.model}: its endpoint {what} (http {match['status']}). {_advice(planned, one, name, wanted)}"
            )
    return list(dict.fromkeys(lines))


def _advice(planned: list[Evaluation], one: Evaluation, name: str, wanted: str) -> str:
    if name in _STREAM:
        return f"Write `stream: false` at the model {one.model}."
    if name in APIS[one.api].required and not wanted:
        return f"Write another value of `{name}` under samplers, {one.sampler.name}."
    before = dict(one.sampler.params)
    value = before.get(name, _USUAL_LIMIT)
    after = {key: kept for key, kept in before.items() if key != name} | ({wanted: value} if wanted else {})
    own, model = _named(one.sampler.name), _named(one.model)
    others = list(
        dict.fromkeys(e.model for e in planned if e.sampler.name == one.sampler.name and e.model != one.model)
    )
    if not others:
        return f"Write `samplers: {{{own}: {_flow(after)}}}`."
    # The others keep theirs: with other parameters all that they have answered would be asked again.
    new = _named(f"{one.sampler.name}-{one.model}")
    named = ", ".join(map(_named, others[:_MOST_NAMED])) + (", ..." if len(others) > _MOST_NAMED else "")
    return (
        f"Write `samplers: {{{own}: {_flow(before)}, {new}: {_flow(after)}}}` and `evaluations: "
        f"[{{models: [{named}], samplers: [{own}]}}, {{models: [{model}], samplers: [{new}]}}]`."
    )


def _flow(params: Mapping[str, Any]) -> str:
    """Parameters as a config has them."""
    return "{" + ", ".join(f"{_named(name)}: {json.dumps(value)}" for name, value in params.items()) + "}"


def _named(name: str) -> str:
    """A name as YAML has it."""
    return name if _PLAIN.fullmatch(name) else json.dumps(name)
