"""Declared assertions and what a trial gave -> which of them hold, and the fact and behavior scores."""

from stages.process.assertions.evaluate import Graded, evaluate
from stages.process.assertions.hooks import Hooks
from stages.process.assertions.model import Assertion, Context, DeclarationError, ToolCall
from stages.process.assertions.parse import parse_assertions
from stages.process.assertions.profile import Profile
from stages.process.assertions.scores import (
    LayeredScores,
    Layers,
    flat_score,
    layered_scores,
    with_fact_check,
)

__all__ = [
    "Assertion",
    "Context",
    "DeclarationError",
    "Graded",
    "Hooks",
    "LayeredScores",
    "Layers",
    "Profile",
    "ToolCall",
    "evaluate",
    "flat_score",
    "layered_scores",
    "parse_assertions",
    "with_fact_check",
]
