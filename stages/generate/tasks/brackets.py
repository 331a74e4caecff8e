"""Task `brackets`: the part that closes an unfinished bracket sequence."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from stages.generate.answers.brackets import closing_brackets
from stages.generate.base import Task, TaskParams, Trial
from stages.generate.stream import Stream

KINDS = (("(", ")", "round"), ("[", "]", "square"), ("{", "}", "curly"), ("<", ">", "angle"))
"""Opening bracket, closing bracket and name of each kind, in the order in which they come into play."""

_OPENINGS = (
    "Complete this bracket sequence.",
    "The following sequence of brackets is not finished.",
    "Some brackets below are still open.",
    "Here is the beginning of a well-formed bracket sequence.",
)
_QUESTIONS = (
    "Which brackets, in which order, close everything that is still open?",
    "Write only the missing closing brackets, in the order in which they have to come.",
    "Give the shortest continuation that leaves every bracket properly closed.",
)
_RULES = (
    "A bracket is closed by one of its own kind, the one opened last first.",
    "Every opening bracket needs its own closing bracket of the same kind, and pairs must not cross.",
)
_CLOSINGS = (
    "End with a last line of the form\nAnswer: <closing brackets>",
    "Do not repeat the beginning. Finish with one line that reads\nAnswer: <closing brackets>",
    "Write the closing brackets, and nothing else, on a last line of its own:\nAnswer: <closing brackets>",
)


class BracketsParams(TaskParams):
    """Params of `Brackets`."""

    length: int = Field(
        8, ge=1, le=60, description="Pairs of brackets, closed ones included; more to go through."
    )
    max_depth: int = Field(
        4,
        ge=1,
        le=20,
        description="Deepest nesting, in brackets open at once, at most length; more to remember.",
    )
    kinds: int = Field(
        3,
        ge=1,
        le=4,
        description="Kinds of brackets: round, then square, curly and angle; more to tell apart.",
    )


class Brackets(Task):
    """Closing sequence of an open bracket prefix.

    The prefix reaches the stated depth exactly; at its end between half of that depth and all of it is open.
    """

    name: ClassVar[str] = "brackets"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "the brackets that close an unfinished bracket sequence"
    guess_rule: ClassVar[str] = "0: any sequence of closing brackets may be the answer"
    Params: ClassVar[type[TaskParams]] = BracketsParams

    def generate(self, params: TaskParams, stream: Stream) -> Trial:
        """Walk up and down between depth 0 and the deepest; what is open at the end is the answer."""
        p = BracketsParams.of(params)
        pieces: list[str] = []
        pending: list[str] = []
        for opens in _walk(p.length, min(p.max_depth, p.length), stream):
            if opens:
                left, right, _ = KINDS[stream.below(p.kinds)]
                pieces.append(left)
                pending.append(right)
            else:
                pieces.append(pending.pop())
        prompt = (
            f"{stream.choice(_OPENINGS)}\n\n{''.join(pieces)}\n\n{stream.choice(_QUESTIONS)} "
            f"{stream.choice(_RULES)} {stream.choice(_CLOSINGS)}"
        )
        return Trial(prompt, "".join(reversed(pending)))

    def parse(self, text: str) -> str | None:
        """Read the last sequence of closing brackets, an explicit answer first; spaces do not matter."""
        return closing_brackets(text)

    def difficulty(self, params: TaskParams) -> float:
        """A step per pair and per level, weighted by the kinds to tell apart."""
        p = BracketsParams.of(params)
        return (p.length + 2 * min(p.max_depth, p.length)) * (0.75 + 0.25 * p.kinds)


def _walk(opens: int, depth: int, stream: Stream) -> list[bool]:
    """Steps of a random walk, True up, with `opens` steps up that touches `depth` and never exceeds it."""
    level = 0
    closes = opens - stream.between((depth + 1) // 2, depth)
    reached = False
    steps: list[bool] = []
    while opens or closes:
        if not opens or level == depth:
            up = False
        elif level == 0 or not closes or not (reached or opens > depth - level):
            up = True
        else:
            up = stream.below(5) < 3
        steps.append(up)
        if up:
            opens -= 1
            level += 1
            reached = reached or level == depth
        else:
            closes -= 1
            level -= 1
    return steps
