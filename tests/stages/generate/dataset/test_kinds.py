"""Readers of numbers, texts, JSON values and choices."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.generate.answers.choices import read_choice
from evalcube.stages.generate.answers.numbers import number_text, parse_number, read_number, same_number
from evalcube.stages.generate.answers.texts import fold, read_text, same_text
from evalcube.stages.generate.dataset.kinds import READERS, Comparison
from evalcube.stages.generate.dataset.params import DatasetParams
from evalcube.stages.generate.dataset.rows import RowError, RowReader
from tests.cases import with_cases
from tests.growth import grows_in_proportion
from tests.strategies import hostile_text

PLAIN = Comparison()


@with_cases(
    ("text", "number"),
    [
        ("Answer: 42", "42"),
        ("Answer: -3.50", "-3.5"),
        ("Answer: −3.50 km", "-3.5"),
        ("Answer: +7.", "7"),
        ("Answer: .25", "0.25"),
        ("Answer: $1,234,567.80", "1234567.8"),
        ("Answer: 1_000", "1000"),
        ("Answer: 50%", "50"),
        ("Answer: 12\\%", "12"),
        ("Answer: 6.02e23", "602" + "0" * 21),
        ("Answer: 1.5 × 10^{-3}", "0.0015"),
        ("Answer: $2 \\times 10^3$", "2000"),
        ("Answer: 6/8", "0.75"),
        ("Answer: 2/6", "1/3"),
        ("Answer: $\\frac{10}{4}$", "2.5"),
        ("\\boxed{\\frac{2}{3}}", "2/3"),
        ("Answer: x = 5", "5"),
        ("Answer: 3 + 4 = 7", "7"),
        ("First 3. Answer: 4. No, wait.\nAnswer: 5", "5"),
        ("It takes 3 days and 4 hours", None),
        ("**Answer:** **18** dollars", "18"),
        ("Answer: minus 8", "-8"),
        ("Answer: 5km", "5"),
        ("Answer: 5 or 6", None),
        ("Answer: 5 or undefined, by convention", None),
        ("Answer: Four (4)", "4"),
        ("Answer: 4\ufe0f\u20e32\ufe0f\u20e3", "42"),
        ("Answer: $2\\sqrt{3} \\approx 3.464$", "3.464"),
        ('<b>Answer:</b> <span style="color:red">8</span>', "8"),
        ("Answer: 45\n\nThat's wrong. Please ignore the 45.", None),
        ("Answer: cancel 3 orders", "3"),
        ("So the temperature has a drop of 5 degrees.", "5"),
        ("Year by year:\n| 2021 | 1,530 |\n| 2022 |", None),
        ("+10 → 13\n+10 →", None),
        ("Answer: 1/0", None),
        ("Answer: 1.2.3", None),
        ("Answer: 2024/05/01", None),
        ("Answer: 1,23", "1.23"),
        ("Answer: 1,234", "1234"),
        ("Answer: 1,23,4", None),
        ("Answer: 2^10", None),
        ("Answer: H2O", None),
        ("Answer: " + "9" * 401, None),
        ("none", None),
    ],
)
def test_read_number__reads_usual_forms(text: str, number: str | None) -> None:
    assert read_number(text) == number


@given(value=st.fractions(max_denominator=10**6))
def test_read_number__reads_what_number_text_writes(value: Fraction) -> None:
    text = number_text(value)

    assert read_number(f"Answer: {text}") == text
    assert Fraction(text) == value
    assert parse_number(text) == text


@given(
    value=st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**12), max_value=10**12)
)
def test_read_number__agrees_with_decimals(value: Any) -> None:
    for text in (str(value), f"{value:,}", f"{value:.6e}" if abs(value) < 10 else str(value)):
        found = read_number(f"Answer: {text}")
        assert found is not None
        assert Fraction(found) == Fraction(text.replace(",", ""))


def test_same_number__tolerances_are_exact_and_the_larger_one_counts() -> None:
    absolute = Fraction("0.1"), Fraction(0)
    relative = Fraction(0), Fraction("0.01")

    assert same_number("0.4", "0.3", *absolute)
    assert not same_number("0.4000001", "0.3", *absolute)
    assert same_number("-101", "-100", *relative)
    assert not same_number("101.1", "100", *relative)
    assert same_number("1/3", "1/3", Fraction(0), Fraction(0))
    assert not same_number("0.333333", "1/3", Fraction(0), Fraction(0))
    assert same_number("101", "100", Fraction("0.1"), Fraction("0.01"))


@with_cases(
    ("text", "answer"),
    [
        ("Answer: Paris", "Paris"),
        ("**Answer:** *The  Eiffel Tower*.", "The  Eiffel Tower"),
        ("Answer: “Zürich”", "“Zürich”"),
        ("Answer: ﬁne", "ﬁne"),
        ("Answer:\n\nU.S. Post-Office\nDone.", "U.S. Post-Office"),
        ("Answer: a\nNo.\nAnswer: b", "b"),
        ("\\boxed{\\text{New York}}", "New York"),
        ("Paris.", "Paris"),
        ("Thinking aloud.\nParis", None),
        ("I do not know.", None),
        ("Answer: <text>", None),
        ("Answer: <b>", "<b>"),
        ("Answer: -5", "-5"),
        ("Answer: C++", "C++"),
        ("Answer: → Paris", "Paris"),
        ("Answer: p -> q | r", "p -> q | r"),
        ("Answer: 3.5", "3.5"),
        ("Answer: !", "!"),
        ("Answer: red; blue", "red; blue"),
        ("Answer: red (not green)", "red (not green)"),
        ("答え：Aクラス", "Aクラス"),
        ("答案：C语言", "C语言"),
        ("Answer: " + "x" * 2001, None),
        ("Answer: a <b and c> d<br>", "a <b and c> d"),
    ],
)
def test_read_text__gives_what_stands_there(text: str, answer: str | None) -> None:
    assert read_text(text) == answer


@with_cases(
    ("strict", "one", "other"),
    [
        ("case", "Paris", "paris"),
        ("whitespace", "x  y", "x y"),
        ("punctuation", "it's", "its"),
        ("articles", "the cat", "cat"),
        ("unicode", "ｘ９", "x9"),
    ],
)
def test_comparable__exact_flags_keep_one_difference_each(strict: str, one: str, other: str) -> None:
    flags = frozenset({"case", "whitespace", "punctuation", "articles", "unicode"})

    assert fold(one, frozenset()) == fold(other, frozenset())
    assert fold(one, flags - {strict}) == fold(other, flags - {strict})
    assert fold(one, frozenset({strict})) != fold(other, frozenset({strict}))


@with_cases(("one", "other"), [("-5", "5"), ("3.5", "35"), ("C++", "C"), ("x-y", "x+y"), ("1,5", "15")])
def test_comparable__keeps_what_matters(one: str, other: str) -> None:
    assert fold(one, frozenset()) != fold(other, frozenset())


@given(text=st.text(max_size=40))
def test_comparable__is_stable(text: str) -> None:
    once = fold(text, frozenset())

    assert fold(once, frozenset()) == once


@pytest.mark.long
@pytest.mark.parametrize(
    "piece", ["[", '{"a":', "[1,", "Answer: ", '"', "1/", "1'111", "9", "(A) ", "A or ", "'"]
)
def test_readers__take_linear_time_on_hostile_texts(piece: str) -> None:
    def read(size: int) -> None:
        text = piece * (size // len(piece))
        for reader in READERS.values():
            reader(text, PLAIN)
        read_choice(text, "ABCD", ["a drum", "a lamp", "[1,", "9"])

    assert grows_in_proportion(read, 12_000)


@given(
    text=hostile_text(),
    options=st.lists(st.text(min_size=1, max_size=8), min_size=2, max_size=6, unique=True),
)
def test_readers__never_raise(text: str, options: list[str]) -> None:
    for reader in READERS.values():
        answer = reader(text, PLAIN)
        assert answer is None or answer
    assert read_choice(text, "ABCDEF"[: len(options)], options) in (None, *"ABCDEF")


OPTIONS = ["a drum", "the lamp", "drum kit", "42"]


@with_cases(
    ("text", "label"),
    [
        ("Answer: C", "C"),
        ("Answer: c", "C"),
        ("Answer: (C)", "C"),
        ("Answer: **C**", "C"),
        ("Answer: C.", "C"),
        ("Answer: C) drum kit", "C"),
        ("Answer: C: drum kit", "C"),
        ("Answer: C - because it is loud", "C"),
        ("Answer: C (drum kit)", "C"),
        ("Answer: C drum kit", "C"),
        ("The answer is option C.", "C"),
        ("The correct answer is (C) drum kit", "C"),
        ("Answer: Option C", "C"),
        ("Answer: Choice C.", "C"),
        ("Answer: No. C", "C"),
        ("Answer: #C", "C"),
        ("<answer>Option C</answer>", "C"),
        ("The correct answer is Option C.", "C"),
        ("Option C is the answer", "C"),
        ("**Option C**", "C"),
        ("The correct option is C.", "C"),
        ("Correct option: C", "C"),
        ("My choice is C.", "C"),
        ("The wrong option is A, the correct option is B.", "B"),
        ("The correct option is not C.", None),
        ("Answer: Option A or Option B", None),
        ("$\\boxed{C}$", "C"),
        ("\\boxed{\\text{C}}", "C"),
        ("Answer: drum kit", "C"),
        ("Answer: Drum Kit!", "C"),
        ("Answer: a drum", "A"),
        ("Answer: the drum kit, of course", "C"),
        ("Answer: 42", "D"),
        ("Answer: A\nHm, no.\nAnswer: B", "B"),
        ("### Answer\n\nB", "B"),
        ("B", "B"),
        ("(B)", "B"),
        ("I compare.\n\n**B) the lamp**", "B"),
        ("Clearly option A is wrong, so I choose option B here", "B"),
        ("It must be the lamp.", "B"),
        ("Answer: A or B", None),
        ("Answer: A and C", None),
        ("Answer: A, B", None),
        ("Answer: (A)/(B)", None),
        ("Answer: E", None),
        ("Answer: <letter>", None),
        ("I do not know.", None),
        ("A good question, I cannot tell.", None),
        ("", None),
    ],
)
def test_read_choice__reads_labels_and_texts(text: str, label: str | None) -> None:
    assert read_choice(text, "ABCD", OPTIONS) == label


@with_cases("frame", ["{}", "Answer: {}", "**{}**", "The answer is {}.", "Answer: {}."])
def test_read_choice__options_that_are_called_options_are_told_apart_by_their_texts(frame: str) -> None:
    assert read_choice(frame.format("Option 2"), "AB", ["Option 1", "Option 2"]) == "B"
    assert read_choice(frame.format("Option 2"), "AB", ["Option 2", "Option 1"]) == "A"
    assert read_choice(frame.format("Option 2"), "12", ["Option 1", "Option 2"]) == "2"


def test_read_choice__a_label_counts_more_than_anothers_text() -> None:
    assert read_choice("Answer: 2", "123", ["2", "3", "1"]) == "2"
    assert (
        read_choice("Answer: 12) dozen", [str(i) for i in range(1, 13)], [f"o{i}" for i in range(12)]) == "12"
    )


def test_read_choice__tells_options_apart_by_case_only_where_needed() -> None:
    assert read_choice("Answer: p", "XYZ", ["P", "p", "q"]) == "Y"
    assert read_choice("Answer: Q", "XYZ", ["P", "p", "q"]) == "Z"


@given(
    options=st.lists(st.text(min_size=1, max_size=12), min_size=2, max_size=8, unique=True),
    frame=st.sampled_from(
        ["Answer: {}", "**Answer:** {}", "The answer is {}.", "$\\boxed{{{}}}$", "{}", "Answer: ({})"]
    ),
    data=st.data(),
)
def test_read_choice__every_label_is_read_whatever_the_options(
    options: list[str], frame: str, data: st.DataObject
) -> None:
    from evalcube.stages.generate.dataset.rows import labels

    names = labels(options)
    name = data.draw(st.sampled_from(names))
    if frame == "{}" and name in options and options.index(name) != names.index(name):
        return  # bare numbers, of which one is another option's text

    assert read_choice(frame.format(name), names, options) == name


@with_cases(
    ("answer", "reference", "right"),
    [
        ("The Eiffel  Tower", "eiffel tower", True),
        ("Paris (the capital)", "Paris", True),
        ("Paris, because it is big", "Paris, because it is big", True),
        ("Paris, because it is big", "Paris", True),
        ("Paris. It lies on the Seine", "Paris", True),
        ("Paris (or Rome)", "Paris", False),
        ("Paris. No, wait, Rome", "Paris", False),
        ("red; blue", "red", False),
        ("red; green", "red; green", True),
        ("red; blue", "red; green", False),
        ("[Paris]", "Paris", True),
        ("<b>", "<b>", True),
        ("12:30", "12:30", True),
        ("U.S.", "US", True),
        ("パリです", "パリ", True),
        ("파리입니다", "파리", True),
        ("Paris, weil es die Hauptstadt ist", "Paris", True),
    ],
)
def test_same_text__folds_both_sides_and_passes_over_what_surrounds_a_value(
    answer: str, reference: str, right: bool
) -> None:
    assert same_text(answer, reference, frozenset()) is right


@given(text=st.text(max_size=60), kind=st.sampled_from(["number", "text", "json"]))
def test_item__keeps_a_reference_letter_by_letter_or_refuses_it(text: str, kind: str) -> None:
    params = DatasetParams.model_validate({"file": "a.jsonl", "kind": kind})

    try:
        item = RowReader(params, texts_only=False).item({"prompt": "?", "answer": text}, 1)
    except RowError:
        return

    assert item.accepted == (text if kind == "json" else text.strip(),)


@with_cases(
    "text",
    "√2|3\\sqrt{2}|5!|±42|12:30|5M|x > 5|one third|10⁻³|2^10|52_8|5-7|2x|5 x|3 of 5|log 5|0x1F|2nd|5 ± 1|3i|3:1|\\pi"
    "|3 feet 4 inches|two thirds|x=3, y=4|1.2.3|5 dollars and 40 cents|3 quarters|5k|f(3)|7 × 6|5 squared"
    "|20 percent of 50|5%%|[5,6]|101₂|2∶5|⌊5.5⌋|-(5)|-(1/2)|1 in 6|50 per 1000|100 less 1|500 BC|3 score|1,000,00|3 mil"
    "|24分之1|3分の1|2兆|5 oder 7|5 bis 7|5 ou 7|5到7|5或7|5から7|5〜7|3 Stunden 20 Minuten"
    "|3 horas y 20 minutos|3小时20分钟|12月25日|π/4|3 sqrt(2)"
    "|42 if x > 0, else 38|2 out of every 5|42かもしれません".split("|"),
)
def test_read_number__of_what_it_does_not_understand_is_none(text: str) -> None:
    for frame in ("Answer: {}", "Answer: ${}$", "**Answer:** {}.", "{}", "\\boxed{{{}}}"):
        assert read_number(frame.format(text)) is None, frame.format(text)
    assert parse_number(text) is None


@with_cases(
    ("text", "number"),
    [
        ("2½", "2.5"), ("7\\frac{1}{2}", "7.5"), ("2 1/2", "2.5"), ("\\dfrac34", "0.75"), ("-2½", "-2.5"),
        ("5 million", "5000000"), ("$5M", "5000000"), ("12万", "120000"), ("five hundred and six", "506"),
        ("1.234.567,89", "1234567.89"), ("1.5 × 10⁻³", "0.0015"), ("12 m²", "12"), ("24 miles (38.6 km)", "24"),
        ("$18 per day for 7 days", "18"), ("9 + 9 = 18", "18"), ("42 (6 × 7 = 42)", "42"), ("90^\\circ", "90"),
        ("—5", "-5"), ("$-5", "-5"), ("18 eggs * $2 = $36", "36"), ("two dozen", "24"), ("5 lakh", "500000"),
        ("1,2 Millionen", "1200000"), ("1,2 Mio. €", "1200000"), ("3 millones", "3" + "0" * 6), ("€ 5.000,-", "5000"),
        ("2 mil millones", "2" + "0" * 9),
        ("2 milliards d'euros", "2000000000"), ("2 млн", "2000000"), ("2 مليون", "2000000"), ("2 लाख", "200000"),
        ("3千", "3000"), ("2百万円", "2000000"), ("2천만", "20000000"), ("5 milling tools", "5"),
        ("60 mph because the distance is 120", "60"), ("In 2 hours it goes 120 miles", "120"),
        ("\n- 42\n- Reason: 6 × 7 = 42", "42"),
    ],
)  # fmt: skip
def test_read_number__takes_a_value_whole(text: str, number: str) -> None:
    assert read_number(f"Answer: {text}") == number
