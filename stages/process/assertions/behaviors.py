"""The checks behind behavior assertions: how an output was said, and what was done to reach it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from evalcube.stages.process.assertions.facts import Check
from evalcube.stages.process.assertions.model import Assertion, Context, UnmeasuredError
from evalcube.stages.process.assertions.whitespace import word_count


def _starts_with(assertion: Assertion, context: Context) -> bool:
    return context.output.lower().startswith(assertion.text.lower())


def _ends_with(assertion: Assertion, context: Context) -> bool:
    return context.output.lower().endswith(assertion.text.lower())


def _min_length(assertion: Assertion, context: Context) -> bool:
    return len(context.output) >= assertion.limit


def _max_length(assertion: Assertion, context: Context) -> bool:
    return len(context.output) <= assertion.limit


def _words_min(assertion: Assertion, context: Context) -> bool:
    return word_count(context.output) >= assertion.limit


def _words_max(assertion: Assertion, context: Context) -> bool:
    return word_count(context.output) <= assertion.limit


def _cost_max(assertion: Assertion, context: Context) -> bool:
    return _measured("cost", context.cost) <= assertion.limit


def _latency_max(assertion: Assertion, context: Context) -> bool:
    return _measured("latency", context.latency) <= assertion.limit


def _turns_max(assertion: Assertion, context: Context) -> bool:
    return _measured("turns", context.turns) <= assertion.limit


def _turns_min(assertion: Assertion, context: Context) -> bool:
    return _measured("turns", context.turns) >= assertion.limit


def _tools_called(assertion: Assertion, context: Context) -> bool:
    called = {call.tool.lower() for call in context.tool_calls}
    return all(tool.lower() in called for tool in assertion.values)


def _tools_not_called(assertion: Assertion, context: Context) -> bool:
    called = {call.tool.lower() for call in context.tool_calls}
    return not any(tool.lower() in called for tool in assertion.values)


def _tools_min(assertion: Assertion, context: Context) -> bool:
    return len(context.tool_calls) >= assertion.limit


def _tools_max(assertion: Assertion, context: Context) -> bool:
    return len(context.tool_calls) <= assertion.limit


def _mock_hit(assertion: Assertion, context: Context) -> bool:
    if context.mock_hits is None:
        raise UnmeasuredError("the trial ran without mocks")
    return context.mock_hits.get(assertion.text, 0) >= assertion.threshold


def _measured(name: str, value: float | None) -> float:
    if value is None or math.isnan(value):
        raise UnmeasuredError(f"the trial has no {name}")
    return value


BEHAVIORS: Mapping[str, Check] = {
    "starts_with": _starts_with,
    "ends_with": _ends_with,
    "min_length": _min_length,
    "max_length": _max_length,
    "word_count_min": _words_min,
    "word_count_max": _words_max,
    "cost_max": _cost_max,
    "latency_max": _latency_max,
    "turns_min": _turns_min,
    "turns_max": _turns_max,
    "tools_called": _tools_called,
    "tools_not_called": _tools_not_called,
    "tools_count_min": _tools_min,
    "tools_count_max": _tools_max,
    "mock_hit": _mock_hit,
}
"""Behavior types but `custom`, which needs a function of the user."""
