"""Assertions and the trials that they are about, as values; the layer of each type, and which a sweep can measure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from evalcube.stages.process.assertions.documents import DocumentError, parse_document

Layer = Literal["fact", "behavior"]

FACT_TYPES = (
    "contains not_contains regex json_valid json_schema equals not_equals contains_all contains_any "
    "semantic_similarity tool_output_contains tool_input_contains tool_input_not_contains "
    "rouge_n_min bleu_min levenshtein_max faithfulness answer_relevancy context_recall"
).split()
"""Types that check what was said."""
BEHAVIOR_TYPES = (
    "starts_with ends_with min_length max_length word_count_min word_count_max cost_max latency_max "
    "turns_min turns_max tools_called tools_not_called tools_count_min tools_count_max custom mock_hit"
).split()
"""Types that check how it was said and done."""
SET = "assert-set"
"""Type of a set of assertions; it belongs to the layer of its leaves, a mixed one to none."""
SCORED = ("semantic_similarity", "faithfulness", "answer_relevancy", "context_recall")
"""Types whose number comes from a scorer that the user gives."""


def layer_of(kind: str) -> Layer | None:
    """Layer of a type of assertion; None for a set and for an unknown type."""
    return "fact" if kind in FACT_TYPES else "behavior" if kind in BEHAVIOR_TYPES else None


class DeclarationError(ValueError):
    """An assertion that cannot be: which field of which assertion, its value, the rule and the remedy."""

    def __init__(self, where: str, field: str, value: object, rule: str, remedy: str) -> None:
        path = f"{where}.{field}" if field else where
        super().__init__(f"{path}: {rule}; {remedy}")
        self.where = where
        self.field = field
        self.value = value
        self.rule = rule
        self.remedy = remedy

    def __reduce__(self) -> tuple[type[DeclarationError], tuple[str, str, object, str, str]]:
        return type(self), (self.where, self.field, self.value, self.rule, self.remedy)


class UnmeasuredError(Exception):
    """An assertion could be neither confirmed nor refuted; the text says why."""


@dataclass(frozen=True, slots=True)
class Assertion:
    """One declared assertion, checked; made by `parse.parse_assertions`. Fields that its type lacks are neutral."""

    type: str
    layer: Layer | None
    weight: float = 1.0
    negated: bool = False
    """Declared with ``not: true``."""
    text: str = ""
    """The ``value`` of a type that compares texts."""
    limit: float = 0.0
    """The ``value`` of a type that compares numbers; seconds for `latency_max`, USD for `cost_max`."""
    values: tuple[str, ...] = ()
    pattern: str = ""
    flags: str = "i"
    schema: Mapping[str, object] = field(default_factory=dict)
    reference: str = ""
    n: int = 1
    """Length of the n-grams of ROUGE, longest n-gram of BLEU."""
    threshold: float = 0.0
    fn: str = ""
    mode: str = "all"
    children: tuple[Assertion, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool by the model."""

    tool: str
    input: str = ""
    """The arguments as compact JSON; see `from_arguments`."""
    output: str = ""
    """What the tool answered."""

    @classmethod
    def from_arguments(cls, tool: str, arguments: str, output: str = "") -> ToolCall:
        r"""A call with its arguments as a model wrote them, in one canonical form.

        A model may write ``\u0072m`` for ``rm``; an assertion must not be dodged that way. Text that is no JSON
        stays as it is.

        Examples
        --------
        >>> ToolCall.from_arguments("bash", r'{"command": "\u0072m"}').input
        '{"command":"rm"}'
        """
        try:
            document = parse_document(arguments)
        except DocumentError:
            return cls(tool, arguments, output)
        return cls(tool, json.dumps(document, ensure_ascii=False, separators=(",", ":")), output)


@dataclass(frozen=True, slots=True)
class Context:
    """What a check or a scorer gets of a trial; None and NaN mean not measured."""

    output: str
    """The final answer, without the reasoning trace."""
    prompt: str = ""
    latency: float | None = None
    """Seconds."""
    cost: float | None = None
    """USD."""
    turns: int | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    mock_hits: Mapping[str, int] | None = None
    """How often each mock was called, by its name; None where no mocks were set up."""


NEED_TOOLS = frozenset(
    kind for kind in (*FACT_TYPES, *BEHAVIOR_TYPES) if kind.startswith(("tools_", "tool_input_", "turns_"))
)
"""Types about what a model does with tools: without any on offer, each holds always or never."""
NEVER: Mapping[str, str] = MappingProxyType(
    {
        "tool_output_contains": "a sweep runs no tool, so that none has an output",
        "mock_hit": "a sweep sets up no mocks",
    }
)
"""Types that no sweep can measure, and why."""


def unmeasurable(assertions: Sequence[Assertion], *, tools: bool) -> Iterator[tuple[str, str, str]]:
    """The types among assertions that cannot be measured, each with why and with a remedy."""
    for assertion in assertions:
        yield from unmeasurable(assertion.children, tools=tools)
        if assertion.type in NEVER:
            yield assertion.type, NEVER[assertion.type], "Remove it"
        elif assertion.type in NEED_TOOLS and not tools:
            yield (
                assertion.type,
                "not all requests offer tools, so that it would say nothing of the model",
                "Give each sampler `tools: [...]` as the API takes them, or remove the assertion",
            )
