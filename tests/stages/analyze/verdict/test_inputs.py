"""Scores of a comparison: every axis in place, or one message about what does not fit."""

import numpy as np
import pytest

from evalcube.stages.analyze.verdict.inputs import checked_scores
from tests.cases import with_cases

NAN = float("nan")
LAYERS = np.array([[[1.0, NAN, 5.0], [3.0, 4.0, 0.0]], [[2.0, 2.0, 2.0], [4.0, NAN, -1.0]]])
"""Of two variants and two units."""


def scores(layers=LAYERS, variants=("c", "t"), units=("u2", "u1"), **options):
    return checked_scores(layers, variants, units, **options)


def test_checked_scores__have_a_run_in_front_and_failed_readings_absent():
    found = scores(judges=[[[5.0, 0.0], [3.0, -1.0]], [[NAN, 1.0], [2.0, 2.0]]])

    assert found.layers.shape == (1, 2, 2, 3)
    assert np.isnan(found.layers[0, :, 1, 2]).all()
    assert np.isnan(found.judges[0]).tolist() == [
        [[False, True], [False, True]],
        [[True, False], [False, False]],
    ]
    assert found.judge_names == ("judge 1", "judge 2")
    assert (found.ok.all(), found.entries.all(), found.ok.shape) == (True, True, (1, 2, 2))
    assert found.shares.tolist() == [1.0, 1.0]
    assert found.clusters is found.due is None
    assert LAYERS[0, 1, 2] == 0.0  # what was given is left alone
    assert scores(np.stack([LAYERS] * 3)).layers.shape == (3, 2, 2, 3)


def test_checked_scores__take_the_mean_of_a_judges_readings():
    repeated = np.array([[[[5.0, 3.0]], [[1.0, 0.0]]], [[[0.0, 0.0]], [[2.0, 4.0]]]])

    found = scores(judges=repeated).judges[0, ..., 0]

    assert found.ravel().tolist() == pytest.approx([4.0, 1.0, NAN, 3.0], nan_ok=True)


def test_checked_scores__weigh_units_by_shares_that_are_one_on_average():
    assert scores(shares=[1e300, 3e300]).shares.tolist() == [0.5, 1.5]
    assert scores(shares=[0, 2]).shares.tolist() == [0.0, 2.0]
    assert scores(clusters=[0, 0]).clusters is None
    assert scores(clusters=[0, 7]).clusters.tolist() == [0, 7]
    assert scores(due=[True, False, True]).due.tolist() == [[True, False, True]] * 2


@pytest.mark.parametrize("value", [1.0 - 1e-12, 5.0 + 1e-12])
def test_checked_scores__take_rounding_for_what_it_is(value):
    assert scores(np.full((2, 2, 3), value)).layers.max() == value


@with_cases(
    ("options", "words"),
    [
        ({"layers": np.full((2, 2, 3), 5.1)}, "the score 5.1"),
        ({"layers": np.full((2, 2, 3), 0.9)}, "the score 0.9"),
        ({"judges": np.full((2, 2, 1), 6.0)}, "`judges` has the score 6"),
        ({"layers": np.empty((0, 2, 2, 3))}, "no run"),
        ({"layers": LAYERS[:1]}, "`layers` must be"),
        ({"layers": LAYERS[..., :2]}, "`layers` must be"),
        ({"layers": [["a"]]}, "must hold numbers"),
        ({"layers": [[[10**400] * 3] * 2] * 2}, "must hold numbers"),
        ({"judges": np.ones((2, 2))}, "`judges` must be"),
        ({"ok": np.ones((2, 2, 1))}, "`ok` must be"),
        ({"entries": np.ones((1, 2))}, "`entries` must be"),
        ({"judges": np.ones((2, 2, 1)), "judge_names": ["a", "b"]}, "must name 1 judges, got 2"),
        ({"variants": ("c", "c")}, "`variants` must differ"),
        ({"units": ()}, "`units` is empty"),
        ({"units": 5}, "`units` must be a list"),
        ({"shares": [1.0]}, "`shares` must be 2"),
        ({"shares": [0.0, 0.0]}, "`shares` must be 2"),
        ({"shares": [-1.0, 2.0]}, "`shares` must be 2"),
        ({"shares": [NAN, 2.0]}, "`shares` must be 2"),
        ({"clusters": [1]}, "`clusters` must be 2"),
        ({"clusters": [1, -1]}, "`clusters` must be 2"),
        ({"clusters": [1.0, 2.0]}, "`clusters` must be 2"),
    ],
)
def test_checked_scores__refuse_what_does_not_fit(options, words):
    with pytest.raises(ValueError, match="`") as caught:
        scores(**options)

    assert words in str(caught.value)


def test_by_unit__puts_all_axes_in_the_order_of_the_ids():
    flags = np.array([[True, False], [False, False]])
    found = scores(
        judges=[[[5.0], [3.0]], [[4.0], [2.0]]],
        ok=flags,
        entries=flags,
        shares=[1, 3],
        clusters=[4, 5],
        due=[[True] * 3, [False] * 3],
    ).by_unit()

    assert found.units == ("u1", "u2")
    assert found.layers[0, 0, :, 0].tolist() == [3.0, 1.0]
    assert found.judges[0, :, :, 0].tolist() == [[3.0, 5.0], [2.0, 4.0]]
    assert found.ok[0].tolist() == found.entries[0].tolist() == [[False, True], [False, False]]
    assert (found.shares.tolist(), found.clusters.tolist()) == ([1.5, 0.5], [5, 4])
    assert found.due[:, 0].tolist() == [False, True]
