"""The checks behind assertions: whether what an output says is so, how it says it, and what was done to reach it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from evalcube.stages.process.assertions import patterns, similarity
from evalcube.stages.process.assertions.documents import DocumentError, parse_document
from evalcube.stages.process.assertions.model import Assertion, Context, UnmeasuredError
from evalcube.stages.process.assertions.similarity import trimmed, word_count

Check = Callable[[Assertion, Context], bool]
"""May raise `UnmeasuredError`."""


def _contains(assertion: Assertion, context: Context) -> bool:
    return assertion.text.lower() in context.output.lower()


def _within(context: Context, texts: Sequence[str]) -> Iterator[bool]:
    output = context.output.lower()
    return (text.lower() in output for text in texts)


def _equals(assertion: Assertion, context: Context) -> bool:
    return trimmed(context.output) == trimmed(assertion.text)


def _json_valid(_assertion: Assertion, context: Context) -> bool:
    try:
        parse_document(context.output)
    except DocumentError:
        return False
    return True


def _json_schema(assertion: Assertion, context: Context) -> bool:
    from evalcube.stages.process.assertions import schemas  # `jsonschema` takes a while

    try:
        document = parse_document(context.output)
    except DocumentError:
        return False
    return schemas.conforms(document, assertion.schema)


def _tool_output(assertion: Assertion, context: Context) -> bool:
    tool, colon, text = assertion.text.lower().partition(":")
    return bool(tool and colon) and any(
        call.tool.lower() == tool and text in call.output.lower() for call in context.tool_calls
    )


def _tool_input(assertion: Assertion, context: Context) -> bool:
    """Arguments are JSON, so a text with a quote or a line end is looked for in its JSON spelling, too."""
    tool, colon, text = assertion.text.lower().partition(":")
    spellings = (text, json.dumps(text, ensure_ascii=False)[1:-1])
    return bool(tool and colon) and any(
        call.tool.lower() == tool and any(spelling in call.input.lower() for spelling in spellings)
        for call in context.tool_calls
    )


def _levenshtein(assertion: Assertion, context: Context) -> bool:
    # The distance is at least the difference in length: an endless output costs nothing.
    if abs(len(context.output) - len(assertion.reference)) > assertion.limit:
        return False
    return similarity.levenshtein(context.output, assertion.reference) <= assertion.limit


def _not(check: Check) -> Check:
    return lambda assertion, context: not check(assertion, context)


FACTS: Mapping[str, Check] = {
    "contains": _contains,
    "not_contains": _not(_contains),
    "contains_all": lambda said, context: all(_within(context, said.values)),
    "contains_any": lambda said, context: any(_within(context, said.values)),
    "equals": _equals,
    "not_equals": _not(_equals),
    "regex": lambda said, context: patterns.search(
        said.pattern, said.flags, context.output, seconds=patterns.SECONDS
    ),
    "json_valid": _json_valid,
    "json_schema": _json_schema,
    "tool_output_contains": _tool_output,
    "tool_input_contains": _tool_input,
    "tool_input_not_contains": _not(_tool_input),
    "rouge_n_min": lambda said, context: (
        similarity.rouge_n(context.output, said.reference, said.n) >= said.threshold
    ),
    "bleu_min": lambda said, context: (
        similarity.bleu(context.output, said.reference, said.n) >= said.threshold
    ),
    "levenshtein_max": _levenshtein,
}
"""Fact types but the scored ones, which need a function of the user."""


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
