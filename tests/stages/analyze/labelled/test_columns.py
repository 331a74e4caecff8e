import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.analyze.labelled.columns import COLUMNS, MODEL, by_lead, columns, sorted_by
from evalcube.stages.analyze.labelled.leaderboard import leaderboard
from evalcube.stages.analyze.labelled.results import Estimate
from evalcube.stages.analyze.render.board_spec import leaderboard_spec
from evalcube.stages.analyze.render.report import render_report
from evalcube.stages.analyze.render.table import left_out
from tests.stages.analyze.synthetic import PROFILES, dataset


@pytest.fixture(scope="module")
def few():
    """Ordered by a rate, with incomplete rows."""
    return leaderboard(dataset(gaps=True), draws=50)


@pytest.fixture(scope="module")
def scored():
    return leaderboard(dataset(PROFILES, trials=200), draws=50)


def by_token(board, values):
    """The board with other values of what a token brings."""
    rows = [
        replace(row, score_per_token=Estimate(value, value, value))
        for row, value in zip(board.rows, values, strict=True)
    ]
    return replace(board, rows=tuple(rows))


@pytest.mark.parametrize("name", ["few", "scored"])
def test_sorted_by__every_column_that_it_lists_and_the_best_first(name, request):
    board = request.getfixturevalue(name)

    for column, by in columns(board).items():
        found = sorted_by(board, column)
        whole = [by.value(row) for row in found.rows if not row.incomplete and not row.others]
        there = [value for value in whole if not math.isnan(value)]

        assert found.sort == column
        assert there == sorted(there, reverse=by.higher_first)
        assert whole[: len(there)] == there  # those without a value come last
        assert {id(row) for row in found.rows} == {id(row) for row in board.rows}


@pytest.mark.parametrize("refused", [0.0, 0.5])
def test_columns__tables_and_the_report_have_all_of_them_in_one_order(refused):
    ds = dataset(PROFILES[:2], trials=200)
    board = leaderboard(ds, draws=5)
    board = replace(board, rows=tuple(replace(row, refused=refused, unique=0.5) for row in board.rows))

    heads = [column.head for column in leaderboard_spec(board).columns]
    page = render_report(ds, board, facts={})

    defined = [column for column in COLUMNS if column.is_plain(board)]
    assert {"tokens", "refused", "unique", "v1"} <= {column.head for column in defined}
    assert heads[-len(defined) + (not refused) :] == [
        column.head for column in defined if refused or column.head != "refused"
    ]
    places = [
        page.index('<th scope="col">' + (column.long_head or column.head).replace("\n", "<br>"))
        for column in defined
    ]
    assert places == sorted(places)


def test_sorted_by__incomplete_rows_stay_below_complete_ones(few):
    found = sorted_by(few, "tokens")

    places = [row.incomplete for row in found.rows]

    assert places == sorted(places)
    assert any(places)


def test_sorted_by__takes_the_names_of_json_and_of_models(few):
    assert sorted_by(few, "tokens_per_trial").rows == sorted_by(few, "tokens").rows
    assert sorted_by(few, "rate").sort == few.mode
    names = [row.model_name for row in sorted_by(few, MODEL).rows]
    assert names == sorted(names)


def test_sorted_by__unknown_column_lists_those_that_are_there(few):
    with pytest.raises(
        ValueError, match=r"no column 'speed'.* has: model, easy, medium, hard, rank, score"
    ) as told:
        sorted_by(few, "speed")

    assert "\n" not in str(told.value)
    assert "guesser" not in str(told.value)  # no row has one here


def test_sorted_by__the_column_is_shown_at_any_width(scored):
    spec = leaderboard_spec(sorted_by(scored, "trials"))

    assert "trials" not in left_out(spec, width=60)
    assert "trials" in left_out(leaderboard_spec(scored), width=60)
    assert any(note.startswith("Sorted by trials;") for note in spec.notes)


@given(st.permutations(range(len(PROFILES))))
def test_remarks__say_when_score_per_token_orders_otherwise(scored, order):
    board = by_token(scored, [float(len(order) - place) for place in order])

    told = [text for text in board.remarks if text.startswith("The order by score per token")]

    assert bool(told) == (list(order) != sorted(order))
    if told:
        assert board.rows[order.index(0)].model_name in told[0].split(":")[1].split(",")[0]


def test_by_lead__ranks_are_those_of_what_leads(scored):
    again = by_lead(sorted_by(scored, "tokens"))

    assert again.rows == scored.rows
    assert [row.rank for row in again.rows] == list(range(1, len(PROFILES) + 1))


def test_leaderboard__correct_answers_by_token_are_those_of_the_counters():
    ds = dataset(PROFILES[:1])
    board = leaderboard(ds, draws=5)
    labels = ds["counter"].values.tolist()
    correct, tokens = (
        ds["counters"].isel(counter=labels.index(name)).sum().item() for name in ("correct", "tokens_sum")
    )

    found = board.rows[0].correct_per_1000_tokens

    assert found.value == pytest.approx(1000 * correct / tokens, rel=0.05)  # tasks weigh alike here
    assert found.lower < found.value < found.upper


def test_ceiling__is_what_a_model_that_is_always_right_scores(scored):
    ds = dataset(PROFILES[:1], trials=200)
    labels = ds["counter"].values.tolist()
    counters = ds["counters"].copy()
    full = counters[..., labels.index("trials")]
    for name in ("correct", "completed"):
        counters[..., labels.index(name)] = full
    for name in ("truncated", "invalid", "refused"):
        counters[..., labels.index(name)] = 0
    board = leaderboard(ds.assign(counters=counters).drop_vars("status", errors="ignore"), draws=400)

    (row,) = board.rows

    assert row.score_v1 == pytest.approx(1000)
    assert row.score.value == pytest.approx(board.ceiling, abs=1.5)
    assert board.ceiling < 1000
    assert board.ceiling_text in board.remarks
    assert leaderboard(ds, version="v1", draws=5).ceiling == 1000
    assert scored.ceiling_text not in scored.remarks
    assert scored.ceiling_text in leaderboard_spec(scored).notes
