"""Boolean: both answers and all operators occur."""

from __future__ import annotations

from collections import Counter

import pytest

from evalcube.stages.generate import TASKS, Cell


@pytest.mark.parametrize("params", [{}, {"length": 40, "max_depth": 8}, {"length": 3, "prob_not": 0}])
def test_boolean__both_answers_are_equally_frequent(params: dict[str, int]) -> None:
    task = TASKS["boolean"]
    cell = Cell(task, task.Params(**params), 11)
    share = sum(cell.trial(i).answer == "true" for i in range(1000)) / 1000

    assert share == pytest.approx(0.5, abs=0.07)  # 4.4 standard errors


def test_boolean__all_operators_and_nots_occur() -> None:
    task = TASKS["boolean"]
    cell = Cell(task, task.Params(length=40, prob_not=0.25), 11)
    words = Counter(w for i in range(300) for w in cell.trial(i).prompt.split("\n\n")[1].split())

    assert words["not"] / (300 * 40) == pytest.approx(0.25, abs=0.02)
    for operator in ("and", "or", "xor"):
        assert words[operator] / (300 * 39) == pytest.approx(1 / 3, abs=0.02)
