"""Shapes: kinds, disturbances, and usual ways to answer."""

from __future__ import annotations

from collections import Counter

import pytest

from evalcube.stages.generate import TASKS
from evalcube.stages.generate.tasks.shapes import KINDS
from tests.stages.generate.solvers_documents import corners_of
from tests.stages.generate.tasks.trials import body, trials


def test_shapes__all_kinds_are_equally_frequent() -> None:
    kinds = Counter(trial.answer for trial in trials("shapes", 3000, choices=4))

    assert set(kinds) == set(KINDS)
    for kind in KINDS:
        assert kinds[kind] / 3000 == pytest.approx(1 / 12, abs=0.022)  # 4.4 standard errors


def test_shapes__without_disturbance_sides_are_upright() -> None:
    for trial in trials("shapes", 300, choices=12, rotation=0, scale=1, offset=0):
        points = corners_of(body(trial))
        if trial.answer == "rectangle":
            assert len({point.real for point in points}) == 2
        assert max(map(abs, points)) < 13


def test_shapes__stay_where_they_are_put() -> None:
    points = [p for t in trials("shapes", 300, scale=1, offset=1000) for p in corners_of(body(t))]

    assert 950 < max(abs(point.real) for point in points) < 1013
    assert 950 < max(abs(point.imag) for point in points) < 1013


@pytest.mark.parametrize(
    "text", ["Answer: a Circle.", "It is no ellipse but a **circle**", "Answer: <circle>"]
)
def test_shapes_parse__reads_usual_answers(text: str) -> None:
    assert TASKS["shapes"].parse(text) == "circle"
