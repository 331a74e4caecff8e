"""Dates as models write them."""

from datetime import date

from hypothesis import given, settings
from hypothesis import strategies as st

from evalcube.stages.generate.answers.dates import MONTHS, last_date
from tests.cases import with_cases
from tests.strategies import hostile_text


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
        ("1ᵉʳ juin 2021", "2021-06-01"),
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


READ_DATES: list[tuple[str, str | None]] = [
    ("Answer: 2021-03-05", "2021-03-05"),
    ("Answer: 2021-3-5.", "2021-03-05"),
    ("Answer: 2021/03/05", "2021-03-05"),
    ("Answer: March 5, 2021", "2021-03-05"),
    ("**Answer:** Friday, March 5th, 2021", "2021-03-05"),
    ("Answer: 5 March 2021", "2021-03-05"),
    ("Answer: the 5th of March, 2021", "2021-03-05"),
    ("Answer: Mar. 5 2021", "2021-03-05"),
    ("Answer: Sept 5, 2021", "2021-09-05"),
    ("Answer: 05-Mar-2021", "2021-03-05"),
    ("Answer: 25.12.2020", "2020-12-25"),
    ("Answer: 12/25/2020", "2020-12-25"),
    ("Answer: 03/03/2020", "2020-03-03"),
    ("Answer: 03/05/2021", None),
    ("Answer: 2021-02-29", None),
    ("Answer: 2021-13-01", None),
    ("Answer: 2021\u201103\u201105", "2021-03-05"),
    ("Answer: 2021-03-05 (5 days after 2021-02-28)", "2021-03-05"),
    ("Answer: 2021-02-28 + 5 days = 2021-03-05", "2021-03-05"),
    ("Answer: 5 days after 2021-02-28 is 2021-03-05", "2021-03-05"),
    ("Answer: the test is on 2021-03-05, not 2021-03-06", "2021-03-05"),
    ("Answer: 2021-03-05 or 2021-03-06", None),
    ("Antwort: 5. März oder 6. März 2021", None),
    ("Answer: 2021-03-04\nNo. Answer: 2021-03-05", "2021-03-05"),
    ("Answer: see below\n2021-03-05", "2021-03-05"),
    ("\\boxed{\\text{March 5, 2021}}", "2021-03-05"),
    ("It is on **Friday, 2021-03-05**, a week after 2021-02-26.", "2021-03-05"),
    ("Today is 2021-03-01, so it is on 2021-03-05.", "2021-03-05"),
    ("Answer: 2021-03-05T00:00:00Z", "2021-03-05"),
    ("Answer: \u017fep 5, 2021", None),
    ("Answer: Marching 5, 2021", None),
    ("Answer: 12021-03-05", None),
    ("Answer: <YYYY-MM-DD>", None),
    ("Answer: March 2021", None),
    ("Answer: 20210305", "2021-03-05"),
]


@with_cases(("text", "expected"), READ_DATES)
def test_last_date__reads_answer_lines(text: str, expected: str | None) -> None:
    assert last_date(text) == expected


@given(day=st.dates(date(1000, 1, 1)))
def test_last_date__reads_every_way_to_write_a_date(day: date) -> None:
    name = day.strftime("%B")
    for text in (
        f"{day}",
        f"{name} {day.day}, {day.year}",
        f"{day.day} {name[:3]} {day.year}",
        f"the {day.day}th of {name}, {day.year}",
        f"{day.year} {name} {day.day}",
    ):
        assert last_date(text) == day.isoformat(), text
        assert last_date(f"Answer: {text}.") == day.isoformat(), text


@settings(deadline=None)
@given(text=hostile_text(), day=st.dates(date(1000, 1, 1)))
def test_last_date__explicit_last_line_wins(text: str, day: date) -> None:
    assert last_date(f"{text}\nAnswer: {day}") == day.isoformat()
