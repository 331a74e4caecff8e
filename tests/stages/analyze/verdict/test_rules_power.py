from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.analyze.verdict.rules import power
from tests.cases import with_cases

BANDS = ["UNDERPOWERED", "large differences", "medium differences", "small differences"]


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_power__more_questions_find_smaller_differences(one, other):
    fewer, more = sorted((power(one), power(other)), key=lambda found: found.units)

    assert BANDS.index(fewer.band) <= BANDS.index(more.band)
    assert fewer.found >= more.found


@with_cases(
    ("units", "band"),
    [(19, BANDS[0]), (20, BANDS[1]), (48, BANDS[1]), (49, BANDS[2]), (192, BANDS[2]), (193, BANDS[3])],
)
def test_power__bands(units, band):
    found = power(units)

    assert found.band == band
    assert f"{units} questions" in found.text
    assert band in found.text
