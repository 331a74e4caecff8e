"""Words around an answer: what denies it, takes it back or breaks off."""

from __future__ import annotations

from evalcube.stages.generate.answers.choices import read_choice
from evalcube.stages.generate.answers.documents import read_json
from evalcube.stages.generate.answers.numbers import read_number
from evalcube.stages.generate.answers.texts import read_text
from tests.cases import with_cases


def test_read_final__takes_back_free_text_where_a_cue_says_so() -> None:
    taken_back = [
        f"Answer: Lima\n\n{cue}" for cue in ("Wait, it's Quito.", "Correction: Quito", "Scratch that.")
    ]

    assert [read_text(text) for text in taken_back] == [None] * 3
    assert read_text("Answer: Lima\n\nIt lies on the coast, unlike Quito.") == "Lima"


def test_read_number__of_text_that_breaks_off_is_none() -> None:
    assert read_number("17 times 20 is 340. 17 times 3 is 51") == "51"
    assert read_number("17 times 20 is 340. 17 times") is None
    assert read_number("Answer: 5,") is None
    assert read_number("17 times 20 is 340. 17 times\n\n[Response truncated]") is None
    assert read_number("Flour costs $3 and sugar $2.\n\nThen we add the butter, which costs") is None
    assert read_number('I have to end with "Answer: …". The problem has 3 parts.') is None


def test_readers__take_no_value_behind_a_request_for_what_is_missing() -> None:
    assert (
        read_json('Please send me the table. The result will look like this:\n\n```json\n{"a": 1}\n```')
        is None
    )
    assert (
        read_number("Which of the two do you mean? The first costs $30.\n\n**$40** is the second one.")
        is None
    )
    assert read_number("I don't know, but let me try. 5 + 7 = 12.") == "12"


@with_cases(
    "answer",
    [
        "5 (placeholder, for now)",
        "5 [TODO: compute]",
        "[your answer here]\n\nSo 24 / 6 = 4.",
        "x, where x is half of 8",
    ],
)
def test_read_number__of_a_placeholder_is_none(answer: str) -> None:
    assert read_number(f"Answer: {answer}") is None


@with_cases(
    "tail",
    ["I cannot say which.", "I have no figure for that.", "It could not be solved.",
     "The true value remains to be found.", "So no total can be given here.",
     "I'm not sure whether this is right.", "I forgot 3 of the apples.", "Actually, it would be 45.",
     "I assumed the wrong rate, so the answer above is wrong.", "There is no solution, and 42 must be struck out.",
     "Please send me the right file.", "Could you provide the missing rate?", "Let me know which of the two you mean.",
     "Das lässt sich so nicht bestimmen.", "No puedo responder.", "Je n'ai pas pu le calculer.",
     "решить задачу не смог.", "无法确定。", "请重新上传图片。", "分かりません。"],
)  # fmt: skip
def test_read_number__of_a_reply_that_takes_it_back_or_says_that_it_has_none_is_none(tail: str) -> None:
    assert read_number(f"Answer: 42\n\n{tail}") is None


@with_cases(
    "tail",
    ["Please send me the next one!", "Please tell me if you want the steps.", "Let me know what you think.",
     "The sum cannot be found faster by hand.", "Das kann ich gern erklären.", "El 41 no puede ser primo.",
     "43无法被6整除。", "I don't know why the colour is mentioned.", "I can't give medical advice.", "It cannot be 43.",
     "The price is not known.", "If that is wrong, tell me.", "It's impossible to tell from the photo who won.",
     "I cannot access current prices, so they may have changed.", "I have no doubt about this.",
     "It can't be simplified.", "Can you provide feedback?", "グラフは表示できません。",
     "I needed no calculator.", "I found nothing better.", "I don't know if you wanted units.", "No data is missing.",
     "43은 6으로 나눌 수 없습니다.", "In months it would be 3 instead, but days were asked for."],
)  # fmt: skip
def test_read_number__with_a_remark_on_something_else_stands(tail: str) -> None:
    assert read_number(f"Answer: 42\n\n{tail}") == "42"


def test_read__what_is_said_to_be_the_answer() -> None:
    assert read_number("42 is the answer, because the base is 7.") == "42"
    assert read_choice("B is my final answer. A was close.", "AB", ["x", "x"]) == "B"
    assert read_text("Paris is the answer, because it is the capital.") == "Paris"


def test_read_choice__of_an_option_that_nothing_is_known_stands_with_its_reason() -> None:
    options = ["more", "less", "as much", "It cannot be determined"]

    assert read_choice("Answer: D\n\nAs the rate is missing, it can't be known.", "ABCD", options) == "D"
    assert read_choice("Answer: C\n\nAs the rate is missing, it can't be known.", "ABCD", options) is None
    assert read_text("Answer: unknown\n\nThe author cannot be determined.") == "unknown"


@with_cases(
    "text",
    ["5 A", "vitamin A", "A-C", "B+A", "AかB", "AまたはB", "Aかもしれません", "A是错的",
     "both A and B", "not A", "hardly A", "none of these, not even A", "A (but I now think B)", "was A, is now B",
     "A or B", "A / B", "almost A", "unlikely A", "neither A nor B", "A would be right if it were soft"],
)  # fmt: skip
@with_cases("frame", ["Answer: {}", "**Answer: {}**", "The answer is {}."])
def test_read_choice__of_hedges_and_denials_is_none_of_theirs(frame: str, text: str) -> None:
    assert read_choice(frame.format(text), "ABCD", ["iron", "tin", "zinc", "lead"]) != "A"
