from __future__ import annotations

import contextlib
import pickle
from typing import Any

import pytest
import tblib.pickling_support
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.process.assertions import DeclarationError, Hooks, parse_assertions
from evalcube.stages.process.assertions.hooks import installed_hooks
from evalcube.stages.process.assertions.model import BEHAVIOR_TYPES, FACT_TYPES, SCORED
from tests.cases import with_cases

# As Dask does: an error is sent with its causes and its context, so these must survive, too.
tblib.pickling_support.install()

HOOKS = Hooks(checks={"polite": lambda _: True}, scorers={"semantic_similarity": lambda *_: 1.0})

MISTAKES = [
    ("contains", "assertions", "must be a list of assertions, not 'contains'"),
    ([3], "assertions[0]", "must be a mapping, not 3; write e.g. {type: contains, value: Paris}"),
    ([{"value": "x"}], "assertions[0].type", "unknown type nothing"),
    ([{"type": "containz"}], "assertions[0].type", "did you mean 'contains'?"),
    ([{"type": "contains"}], "assertions[0].value", "contains needs a text, not nothing"),
    ([{"type": "contains", "value": True}], "assertions[0].value", 'write it in quotes, e.g. value: "yes"'),
    ([{"type": "contains", "value": ""}], "assertions[0].value", "an empty text is in every output"),
    ([{"type": "contains", "valeu": "x"}], "assertions[0].valeu", "did you mean 'value'?"),
    ([{"type": "contains", "value": "x", "weight": 0}], "assertions[0].weight", "number above 0, not 0"),
    ([{"type": "contains", "value": "x", "weight": "2"}], "assertions[0].weight", "not '2'"),
    (
        [{"type": "contains", "value": "x", "not": "no"}],
        "assertions[0].not",
        "must be true or false, not 'no'",
    ),
    ([{"type": "contains_any", "values": []}], "assertions[0].values", "needs a list of texts"),
    ([{"type": "contains_any", "values": "x"}], "assertions[0].values", "needs a list of texts, not 'x'"),
    (
        [{"type": "contains_any", "values": ["x", None]}],
        "assertions[0].values[1]",
        "needs a text, not nothing",
    ),
    ([{"type": "min_length", "value": -1}], "assertions[0].value", "whole number of at least 0, not -1"),
    ([{"type": "min_length", "value": 1.5}], "assertions[0].value", "whole number of at least 0, not 1.5"),
    ([{"type": "min_length", "value": float("nan")}], "assertions[0].value", "not nan"),
    ([{"type": "turns_max", "value": 10**400}], "assertions[0].value", "not a huge number"),
    ([{"type": "regex", "pattern": "(a"}], "assertions[0].pattern", "'(a' is no pattern"),
    ([{"type": "regex", "pattern": "a", "flags": "q"}], "assertions[0].flags", "unknown flag 'q'"),
    ([{"type": "json_schema", "schema": []}], "assertions[0].schema", "must be a JSON schema, not a list"),
    ([{"type": "json_schema", "schema": {"type": "objekt"}}], "assertions[0].schema", "not a JSON schema"),
    ([{"type": "json_schema", "schema": {"$ref": "http://x/y"}}], "assertions[0].schema", "leads out of"),
    (
        [{"type": "json_schema", "schema": {"$schema": "http://x/"}}],
        "assertions[0].schema",
        "unknown dialect",
    ),
    ([{"type": "json_schema", "schema": {"pattern": "("}}], "assertions[0].schema", "pattern '(' is none"),
    ([{"type": "tool_input_contains", "value": "force"}], "assertions[0].value", 'value: "bash:--force"'),
    (
        [{"type": "rouge_n_min", "reference": "x", "threshold": 2}],
        "assertions[0].threshold",
        "at most 1, not 2",
    ),
    ([{"type": "rouge_n_min", "reference": "x", "n": 0}], "assertions[0].n", "of at least 1"),
    ([{"type": "levenshtein_max", "value": 3}], "assertions[0].reference", "needs a text, not nothing"),
    (
        [{"type": "levenshtein_max", "reference": "x" * 20_001, "value": 3}],
        "assertions[0].reference",
        "has 20001 characters, more than 20000",
    ),
    ([{"type": "levenshtein_max", "reference": "x", "value": 1e6}], "assertions[0].value", "at most 20000"),
    ([{"type": "custom", "fn": "rude"}], "assertions[0].fn", "no check named 'rude' (polite known)"),
    ([{"type": "faithfulness", "reference": "x", "threshold": 3}], "assertions[0].type", "hooks=scorers"),
    ([{"type": "semantic_similarity", "reference": "x"}], "assertions[0].threshold", "needs a number"),
    ([{"type": "assert-set", "children": []}], "assertions[0].children", "needs at least one"),
    ([{"type": "assert-set", "mode": "one"}], "assertions[0].mode", "must be all or any, not 'one'"),
    (
        [{"type": "assert-set", "children": [{"type": "contains"}]}],
        "assertions[0].children[0].value",
        "needs a text",
    ),
]


@with_cases(("declared", "place", "text"), MISTAKES)
def test_parse_assertions__names_the_place_the_rule_and_the_remedy(
    declared: Any, place: str, text: str
) -> None:
    with pytest.raises(DeclarationError) as caught:
        parse_assertions(declared, hooks=HOOKS)

    message = str(caught.value)
    assert message.startswith(f"{place}: ")
    assert text in message
    assert caught.value.remedy
    assert str(pickle.loads(pickle.dumps(caught.value))) == message  # noqa: S301 - our own bytes


def test_parse_assertions__nesting_is_bounded() -> None:
    declared: dict[str, object] = {"type": "json_valid"}
    for _ in range(30):
        declared = {"type": "assert-set", "children": [declared]}

    with pytest.raises(DeclarationError, match="nested deeper than 20"):
        parse_assertions([declared])


MINIMAL: list[tuple[str, dict[str, object]]] = [
    ("min_length max_length word_count_min word_count_max cost_max latency_max", {"value": 1}),
    ("turns_min turns_max tools_count_min tools_count_max", {"value": 1}),
    ("contains_all contains_any tools_called tools_not_called", {"values": ["x"]}),
    ("tool_output_contains tool_input_contains tool_input_not_contains", {"value": "bash:x"}),
    ("contains not_contains equals not_equals starts_with ends_with mock_hit", {"value": "x"}),
    ("semantic_similarity faithfulness context_recall", {"reference": "x", "threshold": 3}),
    ("answer_relevancy", {"threshold": 3}),
    ("regex", {"pattern": "x"}),
    ("json_valid", {}),
    ("json_schema", {"schema": {}}),
    ("rouge_n_min", {"reference": "x"}),
    ("bleu_min", {"value": "x"}),
    ("levenshtein_max", {"reference": "x", "value": 1}),
    ("custom", {"fn": "polite"}),
]


@with_cases("kind", [*FACT_TYPES, *BEHAVIOR_TYPES])
def test_parse_assertions__accepts_the_fields_of_each_type(kind: str) -> None:
    hooks = Hooks(HOOKS.checks, dict.fromkeys(SCORED, lambda *_: 0.0))

    (fields,) = (fields for kinds, fields in MINIMAL if kind in kinds.split())

    (assertion,) = parse_assertions([{"type": kind, **fields}], hooks=hooks)

    assert assertion.type == kind
    assert assertion.layer == ("fact" if kind in FACT_TYPES else "behavior")


def test_parse_assertions__whole_number_is_a_text() -> None:
    assert parse_assertions([{"type": "contains", "value": 42}])[0].text == "42"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = "value values pattern flags schema reference n threshold fn mode children weight not".split()
ROWS = st.fixed_dictionaries(
    {"type": st.sampled_from([*FACT_TYPES, *BEHAVIOR_TYPES, "assert-set", "x"])},
    optional=dict.fromkeys(FIELDS, JSON),
)


@given(JSON | st.lists(ROWS, max_size=3))
def test_parse_assertions__refuses_or_accepts_but_never_breaks(declared: object) -> None:
    with contextlib.suppress(DeclarationError):
        parse_assertions(declared, hooks=HOOKS)


def test_installed_hooks__none_by_default() -> None:
    hooks = installed_hooks()

    assert not hooks.checks
    assert not pickle.loads(pickle.dumps(hooks)).scorers  # noqa: S301 - our own bytes
