import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evalcube.stages.analyze.labelled.additions import (
    PEOPLE_RIGHT,
    PEOPLE_SCORE,
    with_accuracy_by_people,
    with_composites,
    with_gaps,
)
from evalcube.stages.analyze.labelled.leaderboard import leaderboard
from evalcube.stages.analyze.render.board_spec import leaderboard_spec
from evalcube.stages.analyze.verdict import verdict
from evalcube.stages.reply.status import Status
from tests.stages.analyze.synthetic import PROFILES, dataset

TRIAL = ("model", "task", "params", "trial", "repeat")
SCORES = st.one_of(st.just(math.nan), st.floats(1, 5))


def layered(values, status=None):
    """A dataset of two evaluations with layers (layer, model, trial, repeat) at one point."""
    ds = dataset(PROFILES[:2], tasks=1, points=1)
    values = np.asarray(values, dtype=float)
    shape = (*(ds.sizes[dim] for dim in TRIAL[:3]), *values.shape[2:])
    made = {}
    for name, layer in zip(("fact", "behavior", "judge"), values, strict=True):
        array = np.full(shape, math.nan)
        array[:, 0, 0] = layer
        made[name] = (TRIAL, array)
    codes = np.full(shape, int(Status.MISSING), np.uint8)
    codes[:, 0, 0] = int(Status.CORRECT) if status is None else status
    dropped = [name for name in ds.variables if {"trial", "repeat"} & set(ds[name].dims)]
    return ds.drop_vars(dropped).assign({**made, "status": (TRIAL, codes)})


def board_of(ds):
    arrays = [name for name in ds.data_vars if "trial" in ds[name].dims]
    return leaderboard(ds.drop_vars(arrays), draws=200)


@given(arrays(float, (3, 2, 6, 2), elements=SCORES))
def test_with_composites__are_those_of_the_verdict(values):
    ds = layered(values)

    board = with_composites(board_of(ds), ds, dict.fromkeys(("fact", "behavior", "judge"), 1.0))

    # the same answers as runs of a comparison
    expected = verdict(
        values.transpose(3, 1, 2, 0), ["a", "b"], [f"u{place}" for place in range(6)], draws=200
    )
    found = {row.model_name: row.composite for row in board.rows}
    for profile, arm in zip(PROFILES[:2], expected.arms, strict=True):
        one = found[profile.name]
        assert (one is None) == (not arm.units)
        if one is not None:
            assert one.score.value == pytest.approx(arm.composite)
            # The number in front is rounded, and may lie halfway between two.
            assert one.shown.partition(" ")[2] == arm.shown.partition(" ")[2]
            assert (one.gate_passed, one.units) == (arm.gate_passed, arm.units)
            assert dict(one.layers) == pytest.approx(dict(arm.layers))
            assert 1 <= one.score.lower <= one.score.value + 1e-9
            assert one.score.value <= one.score.upper + 1e-9
            assert one.score.upper <= 5


def test_with_composites__right_and_wrong_alone_have_none():
    values = np.full((3, 2, 6, 1), math.nan)
    values[0] = 5.0
    plain = layered(values)
    values[1, 0, 0] = 3.0
    layers = layered(values)

    boards = [with_composites(board_of(ds), ds) for ds in (plain, layers)]

    assert [{row.composite is None for row in board.rows} for board in boards] == [{True}, {False}]


def test_with_composites__questions_of_a_cluster_are_one_draw():
    score = np.repeat([1.0, 2, 3, 4, 5, 3], 8)[:, np.newaxis]
    ds = layered(np.stack([np.stack([score, score])] * 3))
    drawn = np.zeros(ds["status"].shape, np.int64)
    drawn[:, 0, 0] = np.repeat(np.arange(1, 7), 8)[:, np.newaxis]

    alone, both = (with_composites(board_of(one), one) for one in (ds, ds.assign(cluster=(TRIAL, drawn))))

    ends = [board.rows[0].composite for board in (alone, both)]
    assert ends[0].score.value == pytest.approx(ends[1].score.value)
    assert ends[0].units == ends[1].units == 48
    widths = [one.score.upper - one.score.lower for one in ends]
    assert widths[1] > 2 * widths[0]


def test_with_composites__weights_are_declared_and_said():
    ds = layered(np.stack([np.full((2, 8, 1), score) for score in (5.0, 1.0, 3.0)]))

    board = with_composites(board_of(ds), ds, {"fact": 3.0, "judge": 1.0})

    assert [row.composite.score.value for row in board.rows] == [4.5, 4.5]
    # A layer without weight is not behind the composite; the gate sees it all the same.
    assert board.rows[0].composite.shown == "4.50 (fact + judge)"
    assert (board.rows[0].composite.layers["behavior"], board.rows[0].composite.gate_passed) == (1.0, False)
    assert any("fact 3, judge 1" in text for text in board.remarks)
    assert {"composite", "fact", "behavior", "judge"} <= {
        column.head for column in leaderboard_spec(board).columns
    }


def test_with_composites__only_finished_answers_count():
    values = np.full((3, 2, 4, 1), 2.0)
    values[:, :, 0] = 4.0
    status = np.full((2, 4, 1), int(Status.TRANSPORT), np.uint8)
    status[:, 0] = int(Status.TRUNCATED)
    ds = layered(values, status)

    board = with_composites(board_of(ds), ds)

    assert [(row.composite.score.value, row.composite.units) for row in board.rows] == [(4.0, 1), (4.0, 1)]
    assert (board.rows[0].composite.score.lower, board.rows[0].composite.score.upper) == (1.0, 5.0)


def test_with_composites__without_layers_the_board_stays():
    ds = dataset(PROFILES[:2], tasks=1)
    board = leaderboard(ds, draws=5)

    assert with_composites(board, ds) is board
    assert not any("composite" in text for text in board.remarks)


def test_with_composites__scores_off_the_scale_are_damage():
    ds = layered(np.full((3, 2, 4, 1), 9.0))

    with pytest.raises(ValueError, match="1 to 5: the cube"):
        with_composites(board_of(ds), ds)


def test_to_dict__a_composite_is_plain():
    ds = layered(np.full((3, 2, 4, 1), 4.0))
    board = with_composites(board_of(ds), ds)

    found = board.to_dict()["rows"][0]["composite"]

    assert found["score"]["value"] == 4.0
    assert (found["shown"], found["layers"]["judge"]) == ("4.00 (3/3)", 4.0)


def said_of(ds, values):
    """What people say (model, trial) of the answers at the one point of `layered`."""
    array = np.full([ds.sizes[dim] for dim in TRIAL[:4]], math.nan)
    array[:, 0, 0] = values
    return (TRIAL[:4], array)


def test_with_composites__are_as_people_rate():
    judge = np.random.default_rng(1).integers(2, 6, (2, 80, 1)).astype(float)
    none = np.full_like(judge, math.nan)
    ds = layered([none, none, judge])
    people = np.where(np.arange(80) < 60, judge[..., 0] - 1, math.nan)

    board = with_composites(board_of(ds), ds.assign({PEOPLE_SCORE: said_of(ds, people)}))

    plain = with_composites(board_of(ds), ds)
    for row, before in zip(board.rows, plain.rows, strict=True):
        assert row.composite.score.value == pytest.approx(before.composite.score.value - 1)
        assert row.composite.rated == 60
    assert plain.cautions == board_of(ds).cautions == board.cautions[:-1]
    assert any("Composites as people's ratings correct them" in note for note in board.notes)


def test_with_accuracy_by_people__takes_the_graders_errors_out():
    status = np.full((2, 200, 1), int(Status.CORRECT), np.uint8)
    ds = layered(np.full((3, 2, 200, 1), 3.0), status)
    right = np.where(np.arange(200) < 120, np.arange(200) % 4 > 0, math.nan)  # a quarter is wrong, and passed
    status[:, 150:] = int(Status.INCORRECT)
    ds = layered(np.full((3, 2, 200, 1), 3.0), status)
    said = np.where((np.arange(200) >= 150) & (np.arange(200) < 190), 0.0, right)

    board = with_accuracy_by_people(board_of(ds), ds.assign({PEOPLE_RIGHT: said_of(ds, [said, said])}))
    few = with_accuracy_by_people(
        board_of(ds), ds.assign({PEOPLE_RIGHT: said_of(ds, [said * math.nan, right[:200]])})
    )

    for row, before in zip(board.rows, board_of(ds).rows, strict=True):
        assert row.accuracy.lower < row.accuracy.value < row.accuracy.upper
        assert row.accuracy.value < before.accuracy.value
    assert any("Accuracy as 320 labels of people correct it" in note for note in board.notes)
    assert few.records() != board_of(ds).records()


def test_with_accuracy_by_people__few_labels_correct_nothing():
    ds = layered(np.full((3, 2, 60, 1), 3.0))
    said = np.where(np.arange(60) < 30, 1.0, math.nan)

    board = with_accuracy_by_people(board_of(ds), ds.assign({PEOPLE_RIGHT: said_of(ds, [said, said])}))

    assert board.records() == board_of(ds).records()
    assert any("People called 60 answers right or wrong; from 100 on" in note for note in board.notes)


def test_with_gaps__are_those_of_what_both_readers_read():
    ds = layered(np.full((3, 2, 8, 1), 4.0))
    second = np.full(ds["status"].shape, int(Status.MISSING), np.uint8)
    second[0, 0, 0, :, 0] = [Status.CORRECT] * 5 + [
        Status.INCORRECT
    ] * 3  # who read nothing of the second model

    read = ds.assign_coords(second_reader=("task", ["strict"])).assign(status_theirs=(TRIAL, second))

    board = with_gaps(board_of(ds), read)

    found = {row.model_name: row.gap for row in board.rows}
    names = ds["model_name"].values.tolist()
    assert board.readers == {"arithmetic": "strict"}
    assert found[names[0]].difference.value == pytest.approx(3 / 8)
    assert found[names[1]] is None
    assert with_gaps(board, ds) is board
