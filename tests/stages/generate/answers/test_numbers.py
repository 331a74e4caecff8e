from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evalcube.stages.generate.answers.numbers import last_integer
from tests.strategies import hostile_text

INTEGERS: list[tuple[str, str | None]] = [
    ("Answer: 42", "42"),
    ("answer is **-7**.", "-7"),
    ("**Answer:** 1,234", "1234"),
    ("**Answer**: 5", "5"),
    ("\\boxed{1{,}234}", "1234"),
    ("$\\boxed{\\text{-12}}$", "-12"),
    ("So 12 - 5 = 7", "7"),
    ("Answer: 3 + 4 = 7", "7"),
    ("Answer: 42 (40+2=42, see step 3)", "42"),
    ("The answer is 42. I checked 3 times.", "42"),
    ("### Answer\n\n17", "17"),
    ("Final answer\n**17**", "17"),
    ("Answer: - 7", "-7"),
    ("Answer: \u22127", "-7"),
    ("x = 3\ny = 3.5", None),
    ("x = 3\ny = 3", "3"),
    ("3.50", None),
    ("7.00", "7"),
    ("1,2,3", None),
    ("a-3", None),
    ("2nd", None),
    ("Answer: <integer>", None),
    ("Answer: 5\n\nFinish with Answer: <integer>", "5"),
    ("Answer: $1\\,234$", "1234"),
    ("negative 5", "-5"),
    ("Answer: -0", "0"),
    ("007", "7"),
    ("Answer: 5 or 6", None),
    ("the answer to the question is: 12.", "12"),
    ("Answer = 12", "12"),
    ("Answer: 12[1][2]\n\n[1] A page", "12"),
    ("Answer: 12 m [1]", "12"),
    ("Answer: **12**【4†source】", "12"),
    ("Answer: see step 4", None),
    ("Answer: +1 (555) 010-2234", None),
    ("Answer:\n12", "12"),
    ("Answer: 12345678901234567890123", "12345678901234567890123"),
    ("(-5)", "-5"),
    ("= -5", "-5"),
    ("5-3", None),
    ("5 - 3", None),
    ("Answer: `8`", "8"),
    ("The answer isn't 5. It's 6", "6"),
    ("**9**\nHope that helps, you have 2 options", "9"),
    ("Answer: **3 + 4 = 7**", "7"),
    ("Answer: \\(7\\)", "7"),
    ("Answer: 7!", None),
    ("answer: 7%", "7"),
    ("", None),
    ("\u0663", "3"),
    ("Answer: (-7)", "-7"),
    ("Answer: 3 times 4 = 12", "12"),
    ("Answer: 2+2=4", "4"),
    ("**Answer: -3**", "-3"),
    ("Answer: 10\u202f000", "10000"),
    ("**Answer**\n\n5", "5"),
    ("Answer - 5", "5"),
    ("Final Answer 5", "5"),
    ("The answer is not 5 but 7.", "7"),
    ("Answer: 5\nBut then again, the answer is 6", None),
    ("Answer: 201\nThe answer is obtained by adding 40 and 2.", "201"),
    ("Answer: 42\nConfidence in the answer: 90 %", "42"),
    ("Confidence in the answer: 90 %", None),
    ("Answer: 12 345", "12345"),
    ("Answer: 12_345", "12345"),
    ("Answer: seven", "7"),
    ("Answer: minus twelve", "-12"),
    ("Answer: Twelve apples.", "12"),
    ("Answer: thirteen", "13"),
    ("Answer: ninety-nine", "99"),
    ("Answer: a hundred", None),
    ("One of them is odd", None),
    ("Answer: ４２", "42"),
    ("Answer: 3 + 4", None),
    ("Answer: at least 5", None),
    ("Answer: 5 to 7", None),
    ("Answer: 5, 7", None),
    ("Answer: see above\nAnswer is 8\n", "8"),
    ("covid-19", None),
    ("the value is -12", "-12"),
    ("list:\n- 7", "7"),
    ("It is 9 -3", None),
    ("minus 4", "-4"),
]


def test_last_integer__reads() -> None:
    read = [(text, last_integer(text)) for text, _ in INTEGERS]

    assert read == INTEGERS


@given(value=st.integers())
def test_last_integer__reads_every_way_to_write_a_number(value: int) -> None:
    for text in (
        f"{value}",
        f"{value:,}",
        f"Answer: {value:_}.",
        f"so it is {value}.0",
        f"= {value}",
        f"${value:,}$",
    ):
        assert last_integer(text) == str(value), text


@settings(deadline=None)
@given(text=hostile_text(), value=st.integers(-999, 999))
def test_last_integer__explicit_last_line_wins(text: str, value: int) -> None:
    assume("boxed" not in text)  # two final forms that differ are no answer
    assert last_integer(f"{text}\nAnswer: {value}") == str(value)


def test_last_integer__reads_numbers_beyond_the_limit_of_int() -> None:
    digits = "7" * 5000

    assert last_integer(f"Answer: -{digits}") == f"-{digits}"
    assert last_integer(digits) == digits
