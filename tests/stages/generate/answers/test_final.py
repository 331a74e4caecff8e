"""What follows an answer lets it stand or takes it back: rates over phrasings."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from evalcube.stages.generate.answers.brackets import closing_brackets
from evalcube.stages.generate.answers.choices import ChoiceReader, read_choice, truth_value
from evalcube.stages.generate.answers.dates import last_date
from evalcube.stages.generate.answers.documents import read_json
from evalcube.stages.generate.answers.lists import integer_list, word_list
from evalcube.stages.generate.answers.numbers import last_integer
from evalcube.stages.generate.answers.texts import read_text
from tests.growth import grows_in_proportion

Read = Callable[[str], str | None]

KINDS: dict[str, tuple[Read, str, str]] = {
    "integer": (last_integer, "48", "52"),
    "truth": (truth_value, "false", "true"),
    "date": (last_date, "2003-11-09", "2003-11-10"),
    "words": (word_list, "fig, kiwi, plum", "kiwi, fig, plum"),
    "integers": (integer_list, "14, 17, 20", "14, 17, 21"),
    "option": (ChoiceReader(["clock", "vase", "sofa"]).read_option, "vase", "sofa"),
    "label": (lambda text: read_choice(text, "ABCD", ["iron", "tin", "zinc", "lead"]), "C", "D"),
    "brackets": (closing_brackets, ")]>", "]>)"),
    "json": (read_json, "[3, 4]", "[4, 4]"),
}
MARKS = ("Answer: {a}", "**Answer:** {a}.", "The answer is {a}.", "$\\boxed{{{a}}}$")
GAPS = ("\n\n", "\n")
STANDS = (
    "I worked backwards from the last rule.",
    "Everything else was ruled out by the second hint, {b} for instance.",
    "It is not {b}, because the third hint forbids it.",
    "An earlier draft of mine had {b}; that draft ignored a hint.",
    "Had the third hint been missing, I would have said {b}.",
    "Some readers will object and propose {b}. The third hint refutes them.",
    "The closest rival, {b}, breaks the third hint.",
    "Proof: assume {b}. Then the third hint is violated, a contradiction.",
    "Just to be safe I ran through it a second time: {a} once more.",
    "So no, {b} was never an option, and {a} stands.",
    "Certainty: 97 %",
    "Tell me if you want to see why {b} fails.",
    "Is {b} possible too? It is not.",
    "I hesitated between {a} and {b}, yet the third hint decides for the former.",
    "It differs from {b} in one place only.",
    "Sorry if that was too terse.",
    "The intermediate value, {b}, is even.",
    "{b} (the other one) is a common misconception.",
    "Explanation: without the last hint the drawing shows {b}.",
)


def rate(read: Read, first: str, other: str, templates: tuple[str, ...]) -> tuple[float, list[str]]:
    """How often the first answer is read, and what of."""
    texts = [
        (mark + gap + template).format(a=first, b=other)
        for mark, gap, template in product(MARKS, GAPS, templates)
    ]
    kept = [text for text in texts if read(text) == read(f"Answer: {first}")]
    return len(kept) / len(texts), kept


@pytest.mark.parametrize("kind", KINDS)
def test_read_final__lets_an_explained_answer_stand(kind: str) -> None:
    share, kept = rate(*KINDS[kind], STANDS)

    assert share >= 0.98, kept


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "filler", ["-> ", "wait, it is 5, ", "31 or ", "no. ", "true and ", "]) ", '{"a": ', "a, b, "]
)
def test_read_final__takes_time_in_proportion_to_a_hostile_reply(kind: str, filler: str) -> None:
    read, answer, _ = KINDS[kind]

    assert grows_in_proportion(
        lambda size: read(f"Answer: {answer}, 32\n\n" + filler * (size // len(filler))), 60_000
    )


def test_read__a_value_in_the_first_paragraph_stands_before_its_explanation():
    assert read_choice("C\n\nExplanation: it galvanises; iron (A) would rust.", "ABCD", list("wxyz")) == "C"
    assert last_integer("**25**\n\nHere is how: 3 * 8 is 24 and 24 + 1 gives 25, as 24 - 6 is 18.") == "25"
    assert last_integer("24\n\nThat is off by one, so 25.") is None


def test_read_text__takes_time_in_proportion_to_signs_that_stand_otherwise_in_the_reply():
    assert grows_in_proportion(lambda size: read_text(f"Answer: x {'+ ' * size}the x\n\nThat is all."), 24)


TAKEN_BACK = (
    "Rats, {b}.",
    "I transposed two of them. {b} is the real one.",
    "Taking the overlooked hint into account leaves {b}.",
    "The line above should be {b}.",
    "Not {a}: {b}.",
    "{a} is nonsense, it's {b}.",
    "Kindly grade {b} instead.",
    "(fixed: {b})",
    "My pen slipped. The outcome is {b}.",
    "I was careless there and must say {b}.",
    "Disregard the line above.",
    "That was not right.",
)


@pytest.mark.parametrize("kind", KINDS)
def test_read_final__lets_no_answer_stand_that_is_taken_back(kind: str) -> None:
    share, kept = rate(*KINDS[kind], TAKEN_BACK)

    assert share <= 0.01, kept
