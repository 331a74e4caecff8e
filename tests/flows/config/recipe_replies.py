"""Sixty rows in the form of each known data set, written here, and replies to them in many ways.

What each reply says is known by how it was made, and not by reading it: that is the judgement which a recipe must agree
with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from evalcube.stages.generate import Cell, Trial

ROWS = 60
NUMBERS, CHOICES, FORMULAS = ("gsm8k", "aime24", "aime25"), ("gpqa-diamond", "mmlu-pro", "musr"), ("math500",)
RECIPES = (*NUMBERS, *CHOICES, *FORMULAS)
_TEXTS = "amber basalt cedar delta ember flint grove heron ivory jade".split()
_STATED = [
    "Let me think. {y} comes first to mind.\n\n{asked}",
    "First step.\n\n**{asked}**",
    "So that is it.\n\nThe answer is {x}.",
    "Thus we have it.\n\n**Answer:** {x}",
    "It follows that the result is $\\boxed{{{x}}}$.",
    "We count them.\n\n### Final answer\n\n{x}",
    "Working it out.\n\n{wrong_asked}\n\nWait, that is not right, I left one out.\n\n{asked}",
    "Therefore, the final answer is **{x}**.",
    "<answer>{x}</answer>",
    "Steps:\n1. Look at {y}.\n2. Go on.\n\n{asked}\n",
]
"""Replies of which the last statement is `x`; `asked` is as the prompt asks for it."""
_OF_KIND = {
    "number": ["So 3 and 4 make it.\n\nAnswer: {x}.00", "We add.\n\nThe answer is ${x}."],
    "choice": [
        "Of all these,\n\nAnswer: {x}) {text}",
        "Option {y} is incorrect.\n\nThe correct option is ({x}).",
    ],
    "math": ["We simplify.\n\nThe answer is ${x}$.", "Hence\n\n$$\\boxed{{{x}}}$$"],
}
_UNSTATED = ["I am sorry, but I cannot help with that.", "I do not know, and will not guess."]
_CUT = ["Let us see. First we take {y} and", "Working on it: from {y} and then {x} we"]


@dataclass(frozen=True)
class Case:
    """A reply to a trial, and what it is by how it was made."""

    recipe: str
    trial: Trial
    reply: str
    status: str
    """``correct``, ``incorrect``, ``invalid``, or ``truncated`` for one that was cut."""
    right: str
    """The right value as the recipe's prompt asks for it."""


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of a recipe's source, in its form."""
    return [_row(name, number) for number in range(ROWS)]


def _row(name: str, n: int) -> dict[str, Any]:
    options = [f"{_TEXTS[(n + place) % 10]} {n}" for place in range(10 if name == "mmlu-pro" else 4)]
    number, letter = 18 + 29 * n, n * 7 % len(options)
    return {
        "gsm8k": {
            "question": f"Ann has {n} pens and gets {number - n} more. How many has she?",
            "answer": f"She has {n}+{number - n}=<<{n}+{number - n}={number}>>{number}.\n#### {number:,}",
        },
        "aime24": {
            "ID": f"2024-I-{n}",
            "Problem": f"Find $x-{n}$.",
            "Solution": "So.",
            "Answer": 1 + 16 * n % 999,
        },
        "aime25": {"problem": f"Find $x+{n}$.", "answer": str(16 * n % 1000), "id": str(n)},
        "gpqa-diamond": {
            "Question": f"What is heavy, {n}?",
            "Correct Answer": options[0] + "\n",
            **{f"Incorrect Answer {place}": options[place] for place in (1, 2, 3)},
            "Record ID": f"rec{n}",
        },
        "mmlu-pro": {
            "question_id": n,
            "question": f"Which one, {n}?",
            "options": options,
            "answer": "ABCDEFGHIJ"[letter],
            "category": "law",
            "cot_content": "A: Let us think. The answer is (C).",
        },
        "musr": {
            "narrative": f"Tale {n}.",
            "question": "Who did it?",
            "choices": repr(options),
            "answer_index": letter,
        },
        "math500": {"problem": f"Simplify number {n}.", "answer": _formula(n), "unique_id": f"test/{n}"},
    }[name]


def _formula(n: int, more: int = 0) -> str:
    """A formula, and another one of the same form that is not equal."""
    whole, part = n + 2 + more, Fraction(n + 1 + more, n + 3)
    forms = [
        str(whole),
        f"\\frac{{{part.numerator}}}{{{part.denominator}}}",
        f"{whole}\\sqrt{{2}}",
        f"({whole}, {n + 5})",
        f"{whole}\\pi",
        f"x^2 + {whole}x",
        f"2^{{{whole}}}",
        f"[{n}, {whole + 1})",
    ]
    return forms[n % len(forms)]


def cases(name: str, cell: Cell) -> Iterator[Case]:
    """A reply to each trial of a recipe's cell: stated rightly or wrongly in turn, not at all, or cut."""
    kind = "number" if name in NUMBERS else "choice" if name in CHOICES else "math"
    ways = [*_STATED, *_OF_KIND[kind]]
    for n in range(ROWS):
        trial = cell.trial(n)
        right, wrong = _values(kind, trial)
        last = trial.prompt.splitlines()[-1]
        choices: Sequence[str] = trial.extras.get("choices", ())  # type: ignore[assignment]

        def reply(way: str, x: str, y: str, last: str = last, choices: Sequence[str] = choices) -> str:
            text = choices["ABCDEFGHIJ".index(x)] if choices else ""
            asked, wrong_asked = (_as_asked(last, each) for each in (x, y))
            return way.format(x=x, y=y, asked=asked, wrong_asked=wrong_asked, text=text)

        if n % 10 == 8:
            yield Case(name, trial, _UNSTATED[n // 10 % 2], "invalid", right)
        elif n % 10 == 9:
            yield Case(name, trial, reply(_CUT[n // 10 % 2], right, wrong), "truncated", right)
        else:
            said, denied = (right, wrong) if n % 3 else (wrong, right)
            status = "correct" if n % 3 else "incorrect"
            yield Case(name, trial, reply(ways[n % len(ways)], said, denied), status, right)


def _values(kind: str, trial: Trial) -> tuple[str, str]:
    """The right value and a wrong one."""
    if kind == "choice":
        letters = "ABCDEFGHIJ"[: len(trial.options)]
        return trial.answer, letters[letters.index(trial.answer) - 1]
    if kind == "number":
        return trial.answer, str(int(trial.answer.replace(",", "")) + 7)
    number = int(trial.prompt.split("number ")[1].split(".")[0])
    return _formula(number), _formula(number, 1)


def _as_asked(last: str, value: str) -> str:
    """A value as the last line of a prompt asks for it."""
    return last[: last.index("<")] + value + last[last.index(">") + 1 :]
