"""Vectors of oh-my-knowledge 0.54, how its records are written as ours, and where we differ from it on purpose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evalcube.stages.analyze.verdict.composite import half_away
from evalcube.stages.process.assertions import Context, Graded, ToolCall
from evalcube.stages.process.assertions.model import layer_of

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "data" / "omk_process.json").read_text(encoding="utf-8")
)

REFUSED = {"nocolon"}
"""Values of tool assertions that the tool takes for what can never hold, and that are refused here."""
OURS: dict[str, list[bool]] = {
    "length_counts_utf16_units": [False, True],  # characters, not UTF-16 code units
    "cost_latency_turns_absent_fail": [False]
    * 5,  # unmeasured never passes; to the tool no turns are 0 turns
}
"""What passes here of vectors of ``assertion_eval`` where that is not what passes there, with the reason."""


def context_of(output: str, record: dict[str, Any]) -> Context:
    """A trial of the tool. It counts milliseconds, in `latency_max` too, so that the unit does not matter."""
    calls = (
        ToolCall(call["tool"], json.dumps(call["input"], separators=(",", ":")), call["output"])
        for call in record.get("toolCalls", [])
    )
    return Context(
        output,
        latency=record.get("durationMs"),
        cost=record.get("costUSD"),
        turns=record.get("numTurns"),
        tool_calls=tuple(calls),
        mock_hits=record["mockStats"]["perMock"] if "mockStats" in record else None,
    )


def graded_of(details: list[dict[str, Any]] | None) -> list[Graded]:
    return [
        Graded(one["type"], one.get("layer") or layer_of(one["type"]), one["weight"], one["passed"])
        for one in details or []
    ]


def rounded(value: float | None, digits: int = 2) -> float | None:
    """A score as the tool writes it, which rounds wherever it hands one on; ours keep full precision."""
    return None if value is None else half_away(value, digits)
