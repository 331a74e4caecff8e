"""Options that prompts list with letters, and where the right one stands."""

from types import SimpleNamespace

import pytest

from evalcube.stages.generate.foreign.lm_eval_letters import _are_letters, _options_of, add_letters
from tests.cases import with_cases

LISTED = "Which one?\nA. drum\nB. flute\nC. horn\nAnswer:"


def lettered(*rows):
    """What is noted of rows, each a prompt and its references."""
    made = [{"prompt": prompt, "target": list(target)} for prompt, *target in rows]
    add_letters(made)
    return [(row.get("letter"), row.get("choices")) for row in made]


@with_cases(
    ("prompt", "target", "letter"),
    [
        (LISTED, "B", "B"),
        (LISTED, " (C).", "C"),
        ("(A) drum (B) flute (C) horn\n?", "A", "A"),
        ("A) drum\nB) flute\nC) horn\n\nAnswer:", "C", "C"),
        ("A. this\nB. that\n\nNow:\nA. drum\nB. flute\nC. horn\n", "C", "C"),  # examples come first
    ],
)
def test_add_letters__has_the_texts_of_the_last_options(prompt, target, letter):
    assert lettered((prompt, target)) == [(letter, ["drum", "flute", "horn"])]


def test_add_letters__of_prompts_that_do_not_all_list_them_has_letters_alone():
    found = lettered((LISTED, "B"), ("Which one?", "A"))

    assert found == [("B", ["(A)", "(B)"]), ("A", ["(A)", "(B)"])]


@with_cases(
    "rows",
    [
        [(LISTED, "B"), (LISTED, "flute")],
        [(LISTED, "B"), (LISTED, "A", "B")],
        [("Which?", "A"), ("Which?", "A")],
        [("Which?", "A"), ("Which?", "C")],
        [("Which?", chr(65 + index)) for index in range(14)],
        [("A. drum", "A")],
        [("A. drum\nB. flute", "C")],
        [("A. drum\nB. ...\nC. horn", "B")],
    ],
)
def test_add_letters__of_references_that_are_not_all_letters_of_options_notes_nothing(rows):
    assert lettered(*rows) == [(None, None)] * len(rows)


def test_add_letters__takes_as_many_letters_as_half_the_alphabet():
    rows = [("Which?", chr(65 + index)) for index in range(13)]

    assert [letter for letter, _ in lettered(*rows)] == list("ABCDEFGHIJKLM")


@pytest.mark.parametrize(
    ("texts", "are"), [(["A", "B"], True), (["A", "C"], False), (["B", "A"], False), ([], True)]
)
def test_are_letters__in_their_order(texts, are):
    assert _are_letters(texts) == are


def options(text, target, choices):
    task = SimpleNamespace(
        doc_to_text=lambda _: text, doc_to_target=lambda _: target, doc_to_choice=lambda _: choices
    )
    return _options_of(task, {})


@with_cases(
    ("target", "right"), [(1, 1), ("horn", 1), ("tuba", -1), (["horn", "drum"], 1), ([0], 0), ([], -1)]
)
def test_options_of__has_the_place_of_the_right_one(target, right):
    assert options("Which?", target, ["drum", "horn"]) == ("Which?", ["drum", "horn"], right)


def test_options_of__whose_beginnings_differ_have_the_same_end():
    assert options(1, " fell.", ["He ", "She"]) == ("", ["He fell.", "She fell."], 1)
