from __future__ import annotations

import json
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.process.assertions import Context, Graded, Hooks, ToolCall, evaluate, parse_assertions
from tests.cases import with_cases
from tests.strategies import hostile_text


def grade(declared: dict[str, Any], context: Context | str, **options: Any) -> Graded:
    context = Context(context) if isinstance(context, str) else context
    (graded,) = evaluate(parse_assertions([declared], **options), context, **options)
    return graded


def passes(declared: dict[str, Any], context: Context | str, **options: Any) -> bool:
    return grade(declared, context, **options).passed


def test_length__counts_characters() -> None:
    assert passes({"type": "max_length", "value": 2}, "😀a")
    assert not passes({"type": "max_length", "value": 2}, "😀ab")


def test_regex__empty_flags_mean_case_matters() -> None:
    assert not passes({"type": "regex", "pattern": "^yes", "flags": ""}, "Yes")
    assert passes({"type": "regex", "pattern": "^yes"}, "Yes")


def test_equals__ignores_white_space_at_the_ends() -> None:
    assert passes({"type": "equals", "value": "Yes"}, "\ufeff Yes\n")
    assert not passes({"type": "equals", "value": "yes"}, "Yes")


BASH = Context(
    "x", tool_calls=(ToolCall.from_arguments("Bash", r'{"command": "\u0072m \"a b\""}', "done: 1"),)
)


def test_tool_input__escapes_do_not_hide_a_text() -> None:
    assert not passes({"type": "tool_input_not_contains", "value": "bash:rm"}, BASH)
    assert not passes({"type": "tool_input_not_contains", "value": 'bash:rm "a'}, BASH)
    assert passes({"type": "tool_input_not_contains", "value": "read:rm"}, BASH)


def test_tool_output__splits_at_the_first_colon() -> None:
    assert passes({"type": "tool_output_contains", "value": "bash:done: 1"}, BASH)


def test_from_arguments__text_that_is_no_json_stays() -> None:
    assert ToolCall.from_arguments("bash", "{'a'").input == "{'a'"
    assert ToolCall.from_arguments("bash", "[" * 100_000).input.startswith("[[")


@with_cases(
    "declared",
    [
        {"type": "cost_max", "value": 1},
        {"type": "latency_max", "value": 1},
        {"type": "turns_max", "value": 1},
        {"type": "turns_min", "value": 0},
        {"type": "mock_hit", "value": "Bash:1"},
    ],
)
@with_cases("negated", [False, True])
def test_evaluate__what_was_not_measured_never_passes(declared: dict[str, Any], negated: bool) -> None:
    graded = grade({**declared, "not": negated}, Context("x", cost=math.nan, latency=math.nan))

    assert not graded.passed
    assert graded.note.startswith("the trial ")


UNKNOWN = {"type": "cost_max", "value": 1}
TRUE = {"type": "contains", "value": "x"}
FALSE = {"type": "contains", "value": "y"}


@with_cases(
    ("mode", "children", "negated", "passed", "noted"),
    [
        ("any", [UNKNOWN, TRUE], False, True, False),
        ("any", [UNKNOWN, TRUE], True, False, False),
        ("any", [UNKNOWN, FALSE], False, False, True),
        ("any", [UNKNOWN, FALSE], True, False, True),
        ("all", [UNKNOWN, FALSE], False, False, False),
        ("all", [UNKNOWN, FALSE], True, True, False),
        ("all", [UNKNOWN, TRUE], False, False, True),
        ("all", [UNKNOWN, TRUE], True, False, True),
    ],
)
def test_evaluate__unknown_members_matter_where_the_others_do_not_decide(
    mode: str, children: list[dict[str, Any]], negated: bool, passed: bool, noted: bool
) -> None:
    graded = grade({"type": "assert-set", "mode": mode, "children": children, "not": negated}, "x")

    assert (graded.passed, bool(graded.note)) == (passed, noted)


def polite(context: Context) -> bool:
    return "please" in context.output


def overlap(context: Context, reference: str) -> float:
    return len(set(context.output) & set(reference)) / len(set(reference))


HOOKS = Hooks({"polite": polite}, {"semantic_similarity": overlap})


def test_custom__asks_the_named_function() -> None:
    declared = {"type": "custom", "fn": "polite"}

    assert passes(declared, "please", hooks=HOOKS)
    assert not passes(declared, "now", hooks=HOOKS)
    assert pickle.loads(pickle.dumps(HOOKS)).checks == HOOKS.checks  # noqa: S301 - our own bytes


@pytest.mark.parametrize("answer", ["yes", 1, None])
def test_custom__only_a_truth_value_is_an_answer(answer: object) -> None:
    hooks = Hooks({"odd": lambda _: answer})  # type: ignore[arg-type,return-value]

    assert "not a bool" in grade({"type": "custom", "fn": "odd"}, "x", hooks=hooks).note


def test_custom__numpy_truth_is_a_truth_value() -> None:
    assert passes({"type": "custom", "fn": "np"}, "x", hooks=Hooks({"np": lambda _: np.bool_(True)}))


def test_custom__function_that_raises_is_noted_without_the_output() -> None:
    def fail(context: Context) -> bool:
        raise KeyError(context.output)

    graded = grade({"type": "custom", "fn": "fail", "not": True}, "secret", hooks=Hooks({"fail": fail}))

    assert not graded.passed
    assert graded.note == "check 'fail' raised KeyError"


def test_scored__compares_with_the_threshold() -> None:
    declared = {"type": "semantic_similarity", "reference": "ab", "threshold": 0.5}

    assert passes(declared, "a", hooks=HOOKS)
    assert not passes(declared, "c", hooks=HOOKS)


def test_scored__nan_is_unmeasured() -> None:
    hooks = Hooks(scorers={"semantic_similarity": lambda *_: math.nan})
    declared = {"type": "semantic_similarity", "reference": "ab", "threshold": 0.5}

    assert grade(declared, "a", hooks=hooks).note == "scorer 'semantic_similarity' returned NaN"


EVERYTHING: list[dict[str, Any]] = [
    {"type": "contains", "value": "answer"},
    {"type": "contains_all", "values": ["a", "b"]},
    {"type": "equals", "value": "x"},
    {"type": "regex", "pattern": r"^(?!.*sorry)(\w+\s?)*$"},
    {"type": "json_valid"},
    {
        "type": "json_schema",
        "schema": {
            "type": "object",
            "properties": {"a": {"multipleOf": 0.1, "pattern": "^a+$"}},
            "patternProperties": {"^b": {"uniqueItems": True}},
            "additionalProperties": {"type": ["integer", "null"]},
        },
    },
    {"type": "starts_with", "value": "x"},
    {"type": "min_length", "value": 3},
    {"type": "word_count_max", "value": 3},
    {"type": "rouge_n_min", "reference": "a b c", "n": 2},
    {"type": "bleu_min", "reference": "a b c d e"},
    {"type": "levenshtein_max", "reference": "answer", "value": 5},
    {"type": "tool_input_contains", "value": "bash:x"},
    {"type": "tool_output_contains", "value": "bash:x"},
    {"type": "tools_called", "values": ["bash"]},
    {"type": "custom", "fn": "polite"},
    {"type": "semantic_similarity", "reference": "ab", "threshold": 0.5},
]
PARSED = parse_assertions(EVERYTHING, hooks=HOOKS)
OPPOSITE = parse_assertions([{**declared, "not": True} for declared in EVERYTHING], hooks=HOOKS)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["a", "b", "c"]) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(hostile_text() | JSON.map(json.dumps), hostile_text())
def test_evaluate__never_breaks_and_not_is_the_opposite(output: str, arguments: str) -> None:
    context = Context(output, tool_calls=(ToolCall.from_arguments("bash", arguments, output),))

    graded, negated = (evaluate(assertions, context, hooks=HOOKS) for assertions in (PARSED, OPPOSITE))

    for one, other in zip(graded, negated, strict=True):
        assert one.passed is not other.passed or one.note


def test_evaluate__assertions_survive_the_way_to_a_worker() -> None:
    assertions = parse_assertions(EVERYTHING, hooks=HOOKS)

    assert pickle.loads(pickle.dumps(assertions)) == assertions  # noqa: S301 - our own bytes
