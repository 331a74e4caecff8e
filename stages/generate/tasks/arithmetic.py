"""Task `arithmetic`: the value of an integer expression over + - *."""

from __future__ import annotations

from math import log10

from pydantic import ValidationInfo, field_validator

from evalcube.stages.generate.answers.numbers import last_integer
from evalcube.stages.generate.base import Task, TaskParams, Trial, param, second_paragraph
from evalcube.stages.generate.material import wordings
from evalcube.stages.generate.material.expressions import ANY_SPACE, Shape, draw_shape, drop_spaces
from evalcube.stages.generate.stream import Stream

LARGEST_PRODUCT = 1_000_000
"""No product in an expression exceeds this: the task is about reasoning, not about long multiplication."""

_SAY = wordings("arithmetic")


class ArithmeticParams(TaskParams):
    """Params of `Arithmetic`."""

    length: int = param(8, 3, 50, "Terms in the expression; more terms, more operations.")
    max_depth: int = param(0, 0, 8, "Levels of nested brackets, at most length - 2; more to keep in mind.")
    min_number: int = param(-9, -999, 998, "Smallest term; a wider range has more digits.")
    max_number: int = param(9, -998, 999, "Largest term, above min_number.")
    prob_dewhitespace: float = param(0.0, 0, 1, "Chance that a space is left out; tokens run together.")

    @field_validator("max_number")
    @classmethod
    def _above_min(cls, value: int, info: ValidationInfo) -> int:
        low = info.data.get("min_number")
        if low is not None and value <= low:
            raise ValueError(f"must be greater than min_number ({low})")
        return value


class Arithmetic(Task[ArithmeticParams]):
    """Value of an expression over +, - and * with nested brackets.

    Python's precedence holds. Negative terms are written with a bare sign (``3 - -7``); as there are no
    powers, every reading of a sign gives the same value, with and without spaces.
    """

    name = "arithmetic"
    version = 1
    summary = "value of an expression over +, - and * with nested brackets"
    guess_rule = "0"
    Params = ArithmeticParams

    def generate(self, params: ArithmeticParams, stream: Stream) -> Trial:
        """Make one expression; its value is computed while it is written."""
        shape = draw_shape(stream, params.length, params.max_depth)
        text, value = _write(shape, params.min_number, params.max_number, stream)
        text = drop_spaces(stream, text, ANY_SPACE, params.prob_dewhitespace)
        prompt = (
            f"{stream.choice(_SAY.openings)}\n\n{text}\n\n"
            f"{stream.choice(_SAY.rules)} {stream.choice(_SAY.closings)}"
        )
        return Trial(prompt, str(value))

    parse = staticmethod(last_integer)
    """Read the last integer, an explicit answer first."""

    problem = staticmethod(second_paragraph)
    """What is given, however it is introduced."""

    def difficulty(self, params: ArithmeticParams) -> float:
        """Operations weighted by their digits, one step per bracket level, a quarter step per lost space."""
        p = params
        digits = log10(1 + max(abs(p.min_number), abs(p.max_number)))
        operations = (p.length - 1) * (0.5 + 0.5 * digits)
        return operations + min(p.max_depth, p.length - 2) + 0.25 * p.prob_dewhitespace * (p.length - 1)


def _write(shape: Shape, low: int, high: int, stream: Stream) -> tuple[str, int]:
    pieces: list[str] = []
    total = product = 0
    for operand in shape:
        if operand is None:
            value = stream.between(low, high)
            text = str(value)
        else:
            inner, value = _write(operand, low, high, stream)
            text = f"({inner})"
        if pieces:
            draw = stream.below(6)
            if draw < 2 and abs(product * value) <= LARGEST_PRODUCT:
                product *= value
                pieces.append("*")
            else:
                total += product
                product = -value if draw & 1 else value
                pieces.append("-" if draw & 1 else "+")
        else:
            product = value
        pieces.append(text)
    return " ".join(pieces), total + product
