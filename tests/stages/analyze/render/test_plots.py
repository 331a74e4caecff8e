"""Figures of results."""

import math
import warnings
from dataclasses import replace
from xml.dom import minidom

import pytest

from evalcube.stages.analyze.labelled.forensics import FrontRow
from evalcube.stages.analyze.labelled.leaderboard import leaderboard
from evalcube.stages.analyze.render.plots import (
    Series,
    compression_figure,
    draw,
    pareto_figure,
    picture,
    plot_board,
)
from tests.stages.analyze.synthetic import PROFILES, dataset

pytestmark = pytest.mark.long


def test_plot_board__long_names_are_cut_in_the_middle_and_leave_room():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    board = leaderboard(dataset(PROFILES[:2], tasks=2), draws=5)
    rows = [
        replace(row, model_name=f"begin-{place}-{'x' * 112}-end-{place}")
        for place, row in enumerate(board.rows)
    ]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        axes = plot_board(replace(board, rows=tuple(rows)))
        axes.figure.canvas.draw()

    labels = [label.get_text() for label in axes.get_yticklabels()]
    pyplot.close("all")
    assert [label[:7] + label[-6:] for label in labels] == ["begin-0-end-0", "begin-1-end-1"]
    assert max(map(len, labels)) <= 43


def words(figure):
    pytest.importorskip("matplotlib")
    page = minidom.parseString(picture(figure, "svg"))  # noqa: S318 (our own text)
    return [item.firstChild.data for item in page.getElementsByTagName("text") if item.firstChild]


def marks(figure):
    return [line for line in figure.axes[0].get_lines() if line.get_marker() != "None"]


def front_row(name, score, tokens, *, on):
    return FrontRow(name, "plain", "greedy", name, score, tokens, math.nan, on, False, on)


@pytest.mark.parametrize("name", ["a & <b>", "_hidden", "$x^2$", "\\frac", "模型"])
def test_draw__any_name_is_text_in_the_legend(name):
    pytest.importorskip("matplotlib")
    nan = math.nan

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = draw(
            [Series(name, [1, 2, 3], [0.1, nan, 0.3], [0.0, nan, 0.2], [0.2, nan, 0.4])],
            x_label="",
            y_label="",
        )
        found = words(figure)

    assert name in found
    assert picture(figure, "svg") == picture(figure, "svg")


def test_pareto_figure__marks_all_and_joins_the_front():
    pytest.importorskip("matplotlib")
    rows = [front_row("a", 800.0, 900.0, on=True), front_row("b", 500.0, 100.0, on=True)]
    rows.append(front_row("c", 400.0, 950.0, on=False))

    figure = pareto_figure(rows)

    front = figure.axes[0].get_lines()[0]
    assert front.get_xydata().tolist() == [[100.0, 500.0], [900.0, 800.0]]
    assert front.get_drawstyle() == "steps-post"  # right, then up: nothing between the two is reached
    assert [line.get_alpha() for line in marks(figure)] == [1.0, 1.0, 0.35]
    assert "a (not shown: no price)" in words(pareto_figure(rows, against="cost"))


def test_pareto_figure__no_two_of_many_look_alike():
    pytest.importorskip("matplotlib")
    rows = [front_row(f"{place}", 10.0 * place, 100.0 + place, on=True) for place in range(36)]

    figure = pareto_figure(rows)

    assert len({(line.get_marker(), line.get_color()) for line in marks(figure)}) == 36


def test_compression_figure__colour_is_the_model_and_shape_the_outcome():
    pytest.importorskip("matplotlib")
    rows = [
        {"model": model, "outcome": outcome, "ratio": ratio, "bytes_per_token": 4.0}
        for model, outcome, ratio in (("a", "correct", 0.4), ("a", "truncated", 0.3), ("b", "correct", 0.5))
    ]

    found = marks(compression_figure(rows))

    assert found[0].get_color() == found[1].get_color() != found[2].get_color()
    assert found[0].get_marker() == found[2].get_marker() != found[1].get_marker()
