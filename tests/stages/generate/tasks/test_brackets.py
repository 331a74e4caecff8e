"""Brackets: the prefix has the stated size and kinds."""

from __future__ import annotations

import itertools

import pytest

from tests.cases import with_cases
from tests.stages.generate.tasks.trials import body, trials


@with_cases("length", [1, 2, 7, 60])
@with_cases("depth", [1, 2, 5, 20])
def test_brackets__prefix_has_the_stated_size(length: int, depth: int) -> None:
    deepest = min(length, depth)
    for trial in trials("brackets", 60, length=length, max_depth=depth, kinds=4):
        levels = list(itertools.accumulate(1 if c in "([{<" else -1 for c in body(trial)))

        assert sum(c in "([{<" for c in body(trial)) == length
        assert max(levels) == deepest
        assert levels[-1] == len(trial.answer)
        assert (deepest + 1) // 2 <= len(trial.answer) <= deepest


@pytest.mark.parametrize(("kinds", "used"), [(1, "()"), (2, "()[]"), (3, "()[]{}"), (4, "()[]{}<>")])
def test_brackets__kinds_in_play(kinds: int, used: str) -> None:
    assert set("".join(body(t) + t.answer for t in trials("brackets", 200, kinds=kinds))) == set(used)
