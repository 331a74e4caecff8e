import math
import re
from dataclasses import replace
from xml.dom import minidom

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.analyze.labelled.columns import sorted_by
from evalcube.stages.analyze.labelled.leaderboard import leaderboard
from evalcube.stages.analyze.labelled.pairing import compare_evaluations
from evalcube.stages.analyze.labelled.results import Estimate
from evalcube.stages.analyze.render import charts as figures
from evalcube.stages.analyze.render.report import render_report
from evalcube.stages.reply.status import COUNTERS
from tests.stages.analyze.synthetic import PROFILES, dataset

# With six decimals: what is drawn is never so small or so close that its span has no power of ten.
NUMBERS = st.floats(min_value=-1e6, max_value=1e6).map(lambda value: round(value, 6))


@given(st.lists(NUMBERS, min_size=1, max_size=9))
def test_axis_around__holds_all_values_between_few_round_ticks(values):
    axis = figures.axis_around([*values, math.nan])

    ticks = axis.ticks()

    assert axis.low <= min(values) <= max(values) <= axis.high
    assert 2 <= len(ticks) <= 12
    assert (ticks[0].at, ticks[-1].at) == (0, 100)


def test_axis_around__scores():
    assert [tick.label for tick in figures.axis_around([0, 692.3]).ticks()] == [
        "0",
        "100",
        "200",
        "300",
        "400",
        "500",
        "600",
        "700",
    ]
    assert figures.axis_around([]).ticks()[-1].label == "1"


@given(st.floats(0.01, 1e6), st.floats(1, 1e6))
def test_log2_ticks__few_and_inside(low, factor):
    ticks = figures.log2_ticks(low, low * factor)

    assert 1 <= len(ticks) <= 6
    assert ticks == sorted(set(ticks))
    assert low * 0.999999 <= ticks[0] <= ticks[-1] <= low * factor * 1.000001


def test_pins__labels_keep_apart_and_pins_stay():
    pins = figures.pins([(50.0, "E"), (1.0, "H"), (1.5, "M")])

    assert [pin.at for pin in pins] == [1.0, 1.5, 50.0]
    assert [pin.label_at for pin in pins] == [1.0, 3.6, 50.0]


@given(st.lists(st.floats(0.5, 5000), min_size=1, max_size=8, unique=True), st.integers(1, 6))
def test_curve_chart__everything_inside_the_box(difficulty, models):
    series = [
        (kind, f"m{kind}", [Estimate(0.5, 0.0, 1.0)] * len(difficulty), [False] * len(difficulty))
        for kind in range(models)
    ]

    chart = figures.curve_chart("task", sorted(difficulty), series)

    for line in chart.lines:
        for mark in line.marks:
            assert figures.LEFT - 6 <= mark.x <= figures.WIDTH - figures.RIGHT + 6
            assert figures.TOP <= mark.top <= mark.bottom <= figures.HEIGHT - figures.BOTTOM
    assert all(figures.LEFT <= tick.at <= figures.WIDTH for tick in chart.x_ticks)


def test_curve_chart__gap_where_nothing_was_measured():
    nothing = Estimate(math.nan, math.nan, math.nan)
    values = [Estimate(0.9, 0.8, 1.0), nothing, Estimate(0.2, 0.1, 0.3), Estimate(0.1, 0.0, 0.2)]

    line = figures.curve_chart("task", [1, 2, 4, 8], [(0, "a", values, [True, False, False, False])]).lines[0]

    assert [mark.cut for mark in line.marks] == [True, False, False]
    assert "truncated" in line.marks[0].title
    assert re.sub(r"[\d. ]", "", line.path) == "MML"


def test_mark__kinds_differ_in_shape():
    assert len({figures.mark(kind, 0, 0) for kind in range(6)}) == 6
    assert figures.mark(6, 1, 2) == figures.mark(0, 1, 2)


@pytest.mark.parametrize(("value", "text"), [(3.0, "3"), (9999.0, "9999"), (16384.0, "16.4k"), (2e9, "2G")])
def test_short__tick_labels(value, text):
    assert figures.short(value) == text


def test_render_report__an_endpoint_that_counts_no_tokens_leaves_the_bars_of_others():
    ds = dataset(PROFILES[:2], tasks=2)
    place = list(COUNTERS).index("tokens_sum")
    ds["counters"].values[0, ..., place : place + 2] = 0.0

    page = render_report(ds, leaderboard(ds, draws=5), facts={"title": "t"})

    assert "width:nan%" not in page
    assert page.count('<span class="gauge">') == 2


def test_tracks__have_no_dot_without_a_value_and_else_lie_on_the_axis():
    board = leaderboard(dataset(PROFILES[:2], tasks=2), draws=20)
    nothing = Estimate(math.nan, math.nan, math.nan)
    first, second = board.rows
    unknown = replace(second, **dict.fromkeys(("score", "accuracy"), nothing))

    axis, (known, empty) = figures.tracks(replace(board, rows=(first, unknown)))

    lead = board.leading(first).scaled(1.0 if board.lead == "score" else 100.0)
    assert (known.dot, known.left) == (axis.at(lead.value), axis.at(lead.lower))
    assert known.left + known.width == pytest.approx(axis.at(lead.upper))
    assert (empty.dot, empty.pins) == (None, ())


@pytest.mark.parametrize("name", ["a & <b>", "_hidden", "$x^2$", "模型", "begin-" + "x" * 112 + "-end"])
def test_board_picture__any_name_is_text_and_stays_inside(name):
    board = leaderboard(dataset(PROFILES[:2], tasks=2), draws=5)
    first, *others = board.rows

    picture = figures.board_picture(replace(board, rows=(replace(first, model_name=name), *others)))

    page = minidom.parseString(picture)  # noqa: S318 (our own text)
    texts = [item.firstChild.data for item in page.getElementsByTagName("text")]
    label = next(text for text in texts if text[:5] == name[:5])
    assert label == name or (len(label) == 43 and label.endswith("-end"))
    width = float(page.documentElement.getAttribute("width"))
    spots = [float(mark.getAttribute("cx")) for mark in page.getElementsByTagName("circle")]
    assert len(spots) == 2
    assert all(0 < spot < width for spot in spots)


def test_board_picture__marks_of_rows_without_a_rank_are_open_and_none_without_a_value():
    board = leaderboard(dataset(PROFILES[:3], tasks=2), draws=5)
    first, second, third = board.rows
    nothing = Estimate(math.nan, math.nan, math.nan)
    rows = (first, replace(second, rank=None), replace(third, score=nothing, rate=nothing))

    picture = figures.board_picture(replace(board, rows=rows))

    assert re.findall(r'<circle [^>]*fill="(.*?)"', picture) == ["#0b5c94", "white"]
    assert "nan" not in picture


def test_board_picture__draws_the_column_that_rows_are_sorted_by():
    board = leaderboard(dataset(tasks=2), draws=2)

    picture = str(figures.board_picture(sorted_by(board, "tokens")))

    assert "tokens (95% intervals)" in picture
    assert "tokens" not in str(figures.board_picture(board))
    assert str(figures.board_picture(sorted_by(board, "model"))) != picture


def test_difference_picture__has_a_line_at_zero():
    ds = dataset(PROFILES[:2], tasks=1)
    status = np.ones((2, 1, *ds["counters"].shape[2:3], 8, 1), np.uint8)
    status[1, :, :, :6] = 0
    pairs = compare_evaluations(
        ds.assign(status=(("model", "task", "params", "trial", "repeat"), status)), [0, 1]
    )

    picture = figures.difference_picture(pairs)

    assert picture.count('stroke="#565f6b"') == 1
    assert picture.count("<circle") == 2
