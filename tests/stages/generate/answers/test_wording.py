"""Words around an answer: what denies it, takes it back or breaks off."""

from __future__ import annotations

from evalcube.stages.generate.answers.choices import read_choice
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


@with_cases(
    "answer", ["5 (placeholder, for now)", "5 [TODO: compute]", "[your answer here]\n\nSo 24 / 6 = 4."]
)
def test_read_number__of_a_placeholder_is_none(answer: str) -> None:
    assert read_number(f"Answer: {answer}") is None


@with_cases(
    "text",
    ["5 A", "vitamin A", "A-C", "B+A", "AかB", "AまたはB", "Aかもしれません", "A是错的",
     "both A and B", "not A", "hardly A", "none of these, not even A", "A (but I now think B)", "was A, is now B",
     "A or B", "A / B", "almost A", "unlikely A", "neither A nor B", "A would be right if it were soft"],
)  # fmt: skip
@with_cases("frame", ["Answer: {}", "**Answer: {}**", "The answer is {}."])
def test_read_choice__of_hedges_and_denials_is_none_of_theirs(frame: str, text: str) -> None:
    assert read_choice(frame.format(text), "ABCD", ["iron", "tin", "zinc", "lead"]) != "A"
