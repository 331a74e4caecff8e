"""The checks behind behavior assertions: how an output was said, and what was done to reach it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from evalcube.stages.process.assertions.facts import Check
from evalcube.stages.process.assertions.model import Assertion, Context, UnmeasuredError
from evalcube.stages.process.assertions.whitespace import word_count


def _called(context: Context) -> set[str]:
    return {call.tool.lower() for call in context.tool_calls}


def _mock_hit(assertion: Assertion, context: Context) -> bool:
    if context.mock_hits is None:
        raise UnmeasuredError("the trial ran without mocks")
    return context.mock_hits.get(assertion.text, 0) >= assertion.threshold


def _measured(name: str, value: float | None) -> float:
    if value is None or math.isnan(value):
        raise UnmeasuredError(f"the trial has no {name}")
    return value


BEHAVIORS: Mapping[str, Check] = {
    "starts_with": lambda said, context: context.output.lower().startswith(said.text.lower()),
    "ends_with": lambda said, context: context.output.lower().endswith(said.text.lower()),
    "min_length": lambda said, context: len(context.output) >= said.limit,
    "max_length": lambda said, context: len(context.output) <= said.limit,
    "word_count_min": lambda said, context: word_count(context.output) >= said.limit,
    "word_count_max": lambda said, context: word_count(context.output) <= said.limit,
    "cost_max": lambda said, context: _measured("cost", context.cost) <= said.limit,
    "latency_max": lambda said, context: _measured("latency", context.latency) <= said.limit,
    "turns_min": lambda said, context: _measured("turns", context.turns) >= said.limit,
    "turns_max": lambda said, context: _measured("turns", context.turns) <= said.limit,
    "tools_called": lambda said, context: {tool.lower() for tool in said.values} <= _called(context),
    "tools_not_called": lambda said, context: _called(context).isdisjoint(map(str.lower, said.values)),
    "tools_count_min": lambda said, context: len(context.tool_calls) >= said.limit,
    "tools_count_max": lambda said, context: len(context.tool_calls) <= said.limit,
    "mock_hit": _mock_hit,
}
