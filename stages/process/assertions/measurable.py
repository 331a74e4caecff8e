"""Which assertions a sweep can measure: it asks once, runs no tool, and may offer some to the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from evalcube.stages.process.assertions.model import BEHAVIOR_TYPES, FACT_TYPES, Assertion

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
    """The types among assertions that cannot be measured, each with why and with a remedy.

    Parameters
    ----------
    assertions
        With sets, whose members count.
    tools
        Whether all requests offer tools.
    """
    for one in assertions:
        yield from unmeasurable(one.children, tools=tools)
        if one.type in NEVER:
            yield one.type, NEVER[one.type], "Remove it"
        elif one.type in NEED_TOOLS and not tools:
            yield (
                one.type,
                "not all requests offer tools, so that it would say nothing of the model",
                "Give each sampler `tools: [...]` as the API takes them, or remove the assertion",
            )
