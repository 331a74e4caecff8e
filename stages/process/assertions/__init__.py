"""Assertions about a trial: declared beside a task or in its rows, checked once, graded for every answer."""

from stages.process.assertions.evaluate import Graded, evaluate
from stages.process.assertions.hooks import Hooks
from stages.process.assertions.measurable import unmeasurable
from stages.process.assertions.model import Assertion, Context, DeclarationError, ToolCall
from stages.process.assertions.parse import parse_assertions
from stages.process.assertions.scores import LayeredScores, layered_scores

__all__ = [
    "Assertion",
    "Context",
    "DeclarationError",
    "Graded",
    "Hooks",
    "LayeredScores",
    "ToolCall",
    "evaluate",
    "layered_scores",
    "parse_assertions",
    "unmeasurable",
]
