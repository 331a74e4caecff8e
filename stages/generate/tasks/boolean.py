"""Task `boolean`: the value of an expression over and, or, xor, not, in any of several pairs of truth words."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from pydantic import Field

from evalcube.stages.generate.answers.choices import truth_value
from evalcube.stages.generate.base import Task, TaskParams, Trial, param, second_paragraph
from evalcube.stages.generate.material import wordings
from evalcube.stages.generate.material.expressions import SPACE_AT_BRACKET, Shape, draw_shape, drop_spaces
from evalcube.stages.generate.stream import Stream

OPTIONS = ("true", "false")
"""The canonical answers, whatever words a prompt uses."""

_AND, _XOR, _OR = 0, 1, 2
_OPERATORS = (" and ", " xor ", " or ")

_SAY = wordings("boolean")


class BooleanParams(TaskParams):
    """Params of `Boolean`."""

    length: int = param(8, 3, 40, "Truth values in the expression; more values, more operations.")
    max_depth: int = param(0, 0, 8, "Levels of nested brackets, at most length - 2; more to keep in mind.")
    prob_not: float = param(0.3, 0, 1, "Chance that NOT precedes an operand; each is one more operation.")
    format: Literal["True/False", "T/F", "on/off", "1/0", "yes/no"] = Field(
        "True/False", description="Words for true and false; unusual ones are harder."
    )
    prob_dewhitespace: float = param(
        0.0, 0, 1, "Chance that a space at a bracket is left out; tokens run together."
    )

    @cached_property
    def floor(self) -> float:
        """How often who copies the commonest truth value of the expression is right, or the rarest where nots abound.

        Fitted to 2 500 expressions at each of 60 points, to 0.02; `test_floors.py` counts again.
        """
        if min(self.max_depth, self.length - 2) == 0:
            gain = 0.13 + 0.0023 * max(0, self.length - 12) + 0.009 * max(0, 6 - self.length)
        else:
            gain = 0.07 + 0.25 / self.length
        return round(0.5 + gain * float(abs(1 - 2 * self.prob_not) ** 0.85), 3)


class Boolean(Task[BooleanParams]):
    """Value of an expression over and, or, xor, not with nested brackets.

    The value is drawn first and the operands are made to give it, so that both answers are equally frequent
    at any length; a long chain of ``or`` with random operands would be true nearly always.
    """

    name = "boolean"
    version = 1
    summary = "value of a boolean expression with AND, OR, XOR, NOT and nested brackets"
    guess_rule = "0.5 to 0.7, by length, max_depth and prob_not: one truth value is more frequent"
    Params = BooleanParams

    def generate(self, params: BooleanParams, stream: Stream) -> Trial:
        """Draw the value, then an expression that has it."""
        true, false = params.format.split("/")
        value = stream.below(2) == 1
        shape = draw_shape(stream, params.length, params.max_depth)
        text = _write(shape, value, params.prob_not, (false, true), stream)
        text = drop_spaces(stream, text, SPACE_AT_BRACKET, params.prob_dewhitespace)
        words, closing = stream.choice(_SAY.words), stream.choice(_SAY.closings)
        prompt = (
            f"{stream.choice(_SAY.openings)}\n\n{text}\n\n{words.format(t=true, f=false)} "
            f"{stream.choice(_SAY.rules)} {closing.format(t=true, f=false)}"
        )
        return Trial(prompt, "true" if value else "false", params.floor, OPTIONS)

    parse = staticmethod(truth_value)
    """Read a truth value in any of the five formats."""

    problem = staticmethod(second_paragraph)
    """What is given, however it is introduced."""

    def difficulty(self, params: BooleanParams) -> float:
        """Operators and expected nots, a step per bracket level and up to a tenth for its lost spaces."""
        p = params
        depth = min(p.max_depth, p.length - 2)
        return (p.length - 1) + p.prob_not * p.length + depth + 0.1 * p.prob_dewhitespace * (1 + depth)


def _write(shape: Shape, target: bool, prob_not: float, words: tuple[str, str], stream: Stream) -> str:
    operators = [stream.below(3) for _ in range(len(shape) - 1)]
    pieces: list[str] = []
    for i, (operand, wanted) in enumerate(
        zip(shape, _operand_values(operators, target, stream), strict=True)
    ):
        if i:
            pieces.append(_OPERATORS[operators[i - 1]])
        value = wanted
        if prob_not and stream.chance(prob_not):
            pieces.append("not ")
            value = not wanted
        if operand is None:
            pieces.append(words[value])
        else:
            pieces.append(f"({_write(operand, value, prob_not, words, stream)})")
    return "".join(pieces)


def _operand_values(operators: list[int], target: bool, stream: Stream) -> list[bool]:
    """Values of the operands that make a chain of operators give `target`; and before xor before or."""
    clauses = [[1]]
    for operator in operators:
        if operator == _AND:
            clauses[-1][-1] += 1
        elif operator == _XOR:
            clauses[-1].append(1)
        else:
            clauses.append([1])
    values: list[bool] = []
    for conjunctions, wanted in zip(clauses, _some_true(len(clauses), target, stream), strict=True):
        for size, conjunction in zip(conjunctions, _parity(len(conjunctions), wanted, stream), strict=True):
            if size == 1:
                values.append(conjunction)
            else:  # a conjunction is false when some operand is: the dual of `_some_true`
                values += [not value for value in _some_true(size, not conjunction, stream)]
    return values


def _some_true(n: int, target: bool, stream: Stream) -> list[bool]:
    """Random values with at least one True if `target`, else all False."""
    if n == 1 or not target:
        return [target] * n
    return _bits(stream.between(1, (1 << n) - 1), n)


def _parity(n: int, target: bool, stream: Stream) -> list[bool]:
    """Random values whose exclusive or is `target`."""
    if n == 1:
        return [target]
    mask = stream.below(1 << (n - 1))
    return [*_bits(mask, n - 1), target ^ (mask.bit_count() & 1 == 1)]


def _bits(mask: int, n: int) -> list[bool]:
    # one draw for a whole chain: the stream's cost would dominate otherwise
    return [mask >> i & 1 == 1 for i in range(n)]
