"""Task `sequence`: the next terms of an integer sequence.

A sequence is a main rule of one of four kinds plus fixed additions to every k-th term. The prompt names the
four kinds and the periods k. All such sequences with the same periods lie in one linear space, spanned by
1, n, n^2, 2^n, two Fibonacci sequences and one indicator per period, and enough terms are shown that two
members which agree on them are equal: the continuation is unique.
"""

from __future__ import annotations

from functools import lru_cache
from math import log2

from evalcube.stages.generate.answers.lists import integer_list
from evalcube.stages.generate.base import Task, TaskParams, Trial, param, second_paragraph
from evalcube.stages.generate.material import wordings
from evalcube.stages.generate.material.words import ordinal
from evalcube.stages.generate.stream import Stream

PERIODS = (2, 3, 4, 5)
"""Periods of the interference rules."""

_SAY = wordings("sequence")


class SequenceParams(TaskParams):
    """Params of `Sequence`."""

    rules: int = param(2, 1, 4, "Number of rules, the main one included; more to tell apart.")
    terms: int = param(3, 1, 8, "Terms the model must give; each is another step to calculate.")
    max_constant: int = param(9, 3, 99, "Largest fixed number in a rule; larger numbers to calculate with.")


class Sequence(Task[SequenceParams]):
    """Next terms of an integer sequence with a main rule and interference rules."""

    name = "sequence"
    version = 1
    summary = "next terms of an integer sequence, made by a main rule and additions to every k-th term"
    guess_rule = "0"
    Params = SequenceParams

    def generate(self, params: SequenceParams, stream: Stream) -> Trial:
        """Run a main rule, add the interference, show the beginning and ask for the rest."""
        count = shown_terms(params.rules)
        values = _main_rule(count + params.terms, params.max_constant, stream)
        periods = tuple(sorted(stream.sample(PERIODS, params.rules - 1)))
        for period in periods:
            amount = _constant(params.max_constant, stream)
            for i in range(period - 1, len(values), period):
                values[i] += amount
        rule_text = f"{stream.choice(_SAY.main)}"
        if periods:
            rule_text += f" {_interference(periods)} {stream.choice(_SAY.carry)}"
        question = "Which term comes next?" if params.terms == 1 else f"Which {params.terms} terms come next?"
        form = "<integer>" if params.terms == 1 else "<integers separated by commas>"
        prompt = (
            f"{stream.choice(_SAY.openings)}\n\n{', '.join(map(str, values[:count]))}, ...\n\n{rule_text} "
            f"{question} {stream.choice(_SAY.closings).format(form=form)}"
        )
        return Trial(prompt, ", ".join(map(str, values[count:])))

    parse = staticmethod(integer_list)
    """Read the last list of integers, an explicit answer first."""

    problem = staticmethod(second_paragraph)
    """What is given, however it is introduced."""

    def difficulty(self, params: SequenceParams) -> float:
        """The shown terms once per rule, and each term asked, weighted by the size of the constants."""
        return (shown_terms(params.rules) * params.rules / 2 + params.terms) * (
            1 + 0.1 * log2(params.max_constant)
        )

    def grade(self, answer: str, reference: str) -> bool:
        """Whether the integers are the same; one integer may be written with thousands separators."""
        return answer == reference or ("," not in reference and _ungroup(answer) == reference)


def shown_terms(rules: int) -> int:
    """Terms shown for a number of rules: enough to make the continuation unique."""
    return 6 + 2 * rules


def _main_rule(count: int, limit: int, stream: Stream) -> list[int]:
    kind = stream.below(4)
    first = stream.between(-limit, 2 * limit)
    step = _constant(limit, stream)
    if kind == 0:
        return [first + step * i for i in range(count)]
    growth = _constant(max(3, limit // 3), stream)
    if kind == 1:
        return [first + step * i + growth * (i * (i - 1) // 2) for i in range(count)]
    values = [first, step + first]
    if kind == 2:
        # term = 2^i * factor - offset; a small factor keeps the numbers small
        return [growth * 2**i - step for i in range(count)]
    while len(values) < count:
        values.append(values[-1] + values[-2])
    return values


def _constant(limit: int, stream: Stream) -> int:
    """A number from -limit to limit, never 0."""
    value = stream.between(1, 2 * limit)
    return value if value <= limit else limit - value


@lru_cache(maxsize=64)
def _interference(periods: tuple[int, ...]) -> str:
    """What the interference rules do, in words, without their amounts."""
    rules = [
        f"every {ordinal(k)} term (the {ordinal(k)}, {ordinal(2 * k)}, {ordinal(3 * k)} and so on)"
        for k in periods
    ]
    rule_text = f"On top of that, a fixed number, positive or negative, is added to {rules[0]}"
    for rule in rules[1:]:
        rule_text += f", another one to {rule}"
    return rule_text + (". Where several fall on one term, all are added." if len(rules) > 1 else ".")


def _ungroup(answer: str) -> str:
    """The integer that groups of digits make; the answer itself where they are no thousands."""
    first, *groups = answer.split(", ")
    if all(len(group) == 3 and group.isdigit() for group in groups) and 1 <= len(first.lstrip("-")) <= 3:
        return first + "".join(groups)
    return answer
