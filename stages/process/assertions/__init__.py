"""Assertions about a trial: declared beside a task or in its rows, checked once, graded for every answer."""

from evalcube.stages.process.assertions.evaluate import Graded, LayeredScores, evaluate, layered_scores
from evalcube.stages.process.assertions.hooks import Hooks
from evalcube.stages.process.assertions.model import (
    Assertion,
    Context,
    DeclarationError,
    ToolCall,
    unmeasurable,
)
from evalcube.stages.process.assertions.parse import parse_assertions

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
