"""Dates as models write them."""

from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.generate.answers.dates import MONTHS, last_date
from tests.cases import with_cases


@with_cases(
    ("text", "value"),
    [
        ("2021-03-05", "2021-03-05"),
        ("2021/3/5", "2021-03-05"),
        ("2021.03.05", "2021-03-05"),
        ("2021-03-05T10:00:00Z", "2021-03-05"),
        ("20210305", "2021-03-05"),
        ("2021년 3월 5일", "2021-03-05"),
        ("2021年3月5日", "2021-03-05"),
        ("March 5th, 2021", "2021-03-05"),
        ("Mar. 5, 2021", "2021-03-05"),
        ("March the 5th 2021", "2021-03-05"),
        ("Sept 5 2021", "2021-09-05"),
        ("the 5th day of March, 2021", "2021-03-05"),
        ("Friday, 5 March 2021", "2021-03-05"),
        ("5. März 2021", "2021-03-05"),
        ("5 de marzo de 2021", "2021-03-05"),
        ("1er juin 2021", "2021-06-01"),
        ("2021 March 5", "2021-03-05"),
        ("05.03.2021", "2021-03-05"),
        ("13.03.2021", "2021-03-13"),
        ("03.13.2021", "2021-03-13"),
        ("25/12/2020", "2020-12-25"),
        ("12/25/2020", "2020-12-25"),
        ("05-05-2021", "2021-05-05"),
        ("03/05/2021", None),
        ("from 3 to 5 March 2021", None),
        ("03-05-2021", None),
        ("2021-02-29", None),
        ("2020-02-29", "2020-02-29"),
        ("30 February 2021", None),
        ("5 jui 2021", None),
        ("5 Marchy 2021", None),
        ("13/13/2020", None),
        ("12 апреля 1961 года", "1961-04-12"),
        ("它倒塌的日期是1989年11月9日。", "1989-11-09"),
        ("file 2020-05-01.log holds it", None),
        ("no later than 2022-06-30", None),
        ("12 or 13 August 1961", None),
    ],
)
def test_last_date__reads(text, value):
    assert last_date(f"Answer: {text}") == value


@given(st.dates())
def test_last_date__reads_every_day_in_each_order(day):
    if day.year < 1000:
        return
    month = MONTHS[day.month - 1]
    named = (f"{month} {day.day}, {day.year}", f"{day.day} {month} {day.year}")
    for text in (day.isoformat(), f"{day.day}.{day.month}.{day.year}", *named):
        assert last_date(f"Answer: {text}") == day.isoformat()
