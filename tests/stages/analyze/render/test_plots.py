"""Figures of results."""

import warnings
from dataclasses import replace

import pytest

from evalcube.stages.analyze.labelled.leaderboard import leaderboard
from evalcube.stages.analyze.render.plots import plot_board
from tests.stages.analyze.synthetic import PROFILES, dataset


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
