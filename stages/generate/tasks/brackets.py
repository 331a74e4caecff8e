"""Task `brackets`: the part that closes an unfinished bracket sequence."""

from __future__ import annotations

from bisect import bisect
from itertools import accumulate

from evalcube.stages.generate.answers.brackets import closing_brackets
from evalcube.stages.generate.base import Task, TaskParams, Trial, param, second_paragraph
from evalcube.stages.generate.material import wordings
from evalcube.stages.generate.stream import Stream

KINDS = (("(", ")", "round"), ("[", "]", "square"), ("{", "}", "curly"), ("<", ">", "angle"))
"""Opening bracket, closing bracket and name of each kind, in the order in which they come into play."""

_TRIES = 8

_SAY = wordings("brackets")


class BracketsParams(TaskParams):
    """Params of `Brackets`."""

    length: int = param(8, 1, 60, "Pairs of brackets, closed ones included; more to go through.")
    max_depth: int = param(
        4, 1, 20, "Largest number of brackets open at once, at most length; more to remember."
    )
    kinds: int = param(3, 1, 4, "Kinds of brackets: round, then square, curly and angle; more to tell apart.")


class Brackets(Task[BracketsParams]):
    """Closing sequence of an open bracket prefix.

    The prefix reaches the stated depth exactly; at its end between half of that depth and all of it is open, so that
    every sequence of the kinds in play of such a length is equally likely to be the answer. Where the length allows it,
    the open brackets are neither the first nor the last of the opening ones.
    """

    name = "brackets"
    version = 2
    summary = "the brackets that close an unfinished bracket sequence"
    guess_rule = "1 / number of possible closing sequences, which are equally frequent"
    Params = BracketsParams

    def generate(self, params: BracketsParams, stream: Stream) -> Trial:
        """Walk up and down between depth 0 and the deepest; what is open at the end is the answer."""
        pieces: list[str] = []
        pending: list[str] = []
        depth = min(params.max_depth, params.length)
        sizes = [params.kinds**left_open for left_open in range((depth + 1) // 2, depth + 1)]
        # Each number as often as there are answers of its length.
        left_open = (depth + 1) // 2 + bisect(list(accumulate(sizes)), stream.below(sum(sizes)))
        for opens in _hidden_walk(params.length, depth, left_open, stream):
            if opens:
                left, right, _ = KINDS[stream.below(params.kinds)]
                pieces.append(left)
                pending.append(right)
            else:
                pieces.append(pending.pop())
        prompt = (
            f"{stream.choice(_SAY.openings)}\n\n{''.join(pieces)}\n\n{stream.choice(_SAY.questions)} "
            f"{stream.choice(_SAY.rules)} {stream.choice(_SAY.closings)}"
        )
        return Trial(prompt, "".join(reversed(pending)), 1 / sum(sizes))

    parse = staticmethod(closing_brackets)
    """Read the last sequence of closing brackets, an explicit answer first; spaces do not matter."""

    problem = staticmethod(second_paragraph)
    """What is given, however it is introduced."""

    def difficulty(self, params: BracketsParams) -> float:
        """A step per pair and per level, weighted by the kinds to tell apart."""
        return (params.length + 2 * min(params.max_depth, params.length)) * (0.75 + 0.25 * params.kinds)


def _hidden_walk(opens: int, depth: int, left_open: int, stream: Stream) -> list[bool]:
    """A walk at whose end the open brackets are not simply the first or the last ones, where there is such a walk."""
    for _ in range(_TRIES):
        steps = _walk(opens, depth, left_open, stream)
        if all(steps[-left_open:]):
            steps = _with_late_pair(steps, depth)
        if not all(steps[-left_open:]) and min(_open_counts(steps)[left_open:]) < left_open:
            break
    return steps


def _with_late_pair(steps: list[bool], depth: int) -> list[bool]:
    """The walk with a pair that closes at once moved to before its last step, if it touches the depth then too."""
    for i in range(len(steps) - 2):
        if steps[i] and not steps[i + 1]:
            moved = [*steps[:i], *steps[i + 2 : -1], True, False, steps[-1]]
            if max(_open_counts(moved)) == depth:
                return moved
    return steps


def _open_counts(steps: list[bool]) -> list[int]:
    """How many brackets are open before each step and at the end."""
    return list(accumulate((1 if up else -1 for up in steps), initial=0))


def _walk(opens: int, depth: int, left_open: int, stream: Stream) -> list[bool]:
    """Steps of a random walk, True up, with `opens` steps up and `left_open` more than down.

    It touches `depth` and never exceeds it.
    """
    level = 0
    closes = opens - left_open
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
