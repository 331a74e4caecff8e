"""The checks behind fact assertions: whether what an output says is so."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from evalcube.stages.process.assertions import patterns, similarity
from evalcube.stages.process.assertions.documents import DocumentError, parse_document
from evalcube.stages.process.assertions.model import Assertion, Context
from evalcube.stages.process.assertions.whitespace import trimmed

Check = Callable[[Assertion, Context], bool]
"""May raise `UnmeasuredError`."""


def _contains(assertion: Assertion, context: Context) -> bool:
    return assertion.text.lower() in context.output.lower()


def _contains_all(assertion: Assertion, context: Context) -> bool:
    output = context.output.lower()
    return all(text.lower() in output for text in assertion.values)


def _contains_any(assertion: Assertion, context: Context) -> bool:
    output = context.output.lower()
    return any(text.lower() in output for text in assertion.values)


def _equals(assertion: Assertion, context: Context) -> bool:
    return trimmed(context.output) == trimmed(assertion.text)


def _regex(assertion: Assertion, context: Context) -> bool:
    return patterns.search(assertion.pattern, assertion.flags, context.output, seconds=patterns.SECONDS)


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


def _rouge(assertion: Assertion, context: Context) -> bool:
    return similarity.rouge_n(context.output, assertion.reference, assertion.n) >= assertion.threshold


def _bleu(assertion: Assertion, context: Context) -> bool:
    return similarity.bleu(context.output, assertion.reference, assertion.n) >= assertion.threshold


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
    "contains_all": _contains_all,
    "contains_any": _contains_any,
    "equals": _equals,
    "not_equals": _not(_equals),
    "regex": _regex,
    "json_valid": _json_valid,
    "json_schema": _json_schema,
    "tool_output_contains": _tool_output,
    "tool_input_contains": _tool_input,
    "tool_input_not_contains": _not(_tool_input),
    "rouge_n_min": _rouge,
    "bleu_min": _bleu,
    "levenshtein_max": _levenshtein,
}
"""Fact types but the scored ones, which need a function of the user."""
