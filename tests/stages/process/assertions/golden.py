"""Vectors of oh-my-knowledge 0.54, and how its records are written as ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from stages.process.assertions import Context, Graded, ToolCall
from stages.process.assertions.model import layer_of

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "data" / "omk_process.json").read_text(encoding="utf-8")
)


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
