"""Where an answer stands within a text."""

from __future__ import annotations

from evalcube.stages.generate.answers.texts import place_of_answer, read_text, same_text, stated_in
from tests.cases import with_cases
from tests.growth import grows_in_proportion


@with_cases(
    ("text", "answer", "stands"),
    [
        ("价格是北京的", "北京", True), ("トヨタ自動車", "トヨタ", True), ("กรุงเทพมหานคร", "กรุงเทพ", True),
        ("서울은 수도이다", "서울", True), ("ប្រទេសកម្ពុជា", "កម្ពុជា", True), ("Einstein's theory", "Einstein", True),
        ("l'Italie", "Italie", True), ("the Post Office", "post-office", True), ("42%", "42", True),
        ("U.S.", "US", True), ("C++ is it", "C++", True), ("Straße", "strasse", True), ("Rome (Italy)", "Rome", True),
        ("42.5", "42", False), ("1,042", "42", False), ("-42", "42", False), ("It is C++", "C", False),
        ("C#", "C", False), ("Coca-Cola", "Cola", False), ("Parisian", "Paris", False), ("not Paris", "Paris", False),
        ("5th", "5", False), ("C", "C++", False),
    ],
)  # fmt: skip
def test_place_of_answer__is_between_edges_of_words(text: str, answer: str, stands: bool) -> None:
    assert (place_of_answer(text, [answer], frozenset(), first=False) == answer) is stands


def test_place_of_answer__takes_time_in_proportion() -> None:
    assert grows_in_proportion(
        lambda size: place_of_answer("a b " * (size // 4), ["a c"], frozenset(), first=False), 4_000
    )


@with_cases(
    ("reply", "reference", "right"),
    [
        ("Answer: The answer is Portuguese.", "Portuguese", True),
        ("Answer: Portuguese\nSo the answer is Spanish.", "Portuguese", False),
        ("No.\n\nThe year 1900 had no 29 February.", "no", True),
        ("No, but yes for 1904.", "no", False),
        ("Yes, I can help you with that! Please share the text.", "yes", False),
        ("Réponse : « la photosynthèse »", "la photosynthèse", True),
        ("The metal is soft. It is called lead.", "lead", True),
        ("[Answer: lead]", "lead", True),
        ("$$\\textbf{Answer: lead}$$", "lead", True),
        ("Answer: lead ←", "lead", True),
    ],
)
def test_read_text__takes_what_a_statement_within_an_answer_line_or_one_word_states(reply, reference, right):
    answer = read_text(reply)

    stated = stated_in(answer or "", [reference], frozenset())
    assert same_text(stated, reference, frozenset()) is right
