from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.process.assertions.checks import bleu, levenshtein, rouge_n, tokens

TEXTS = st.text("ab c", max_size=40)
WORDS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=12).map(" ".join)


def distance(first: str, second: str) -> int:
    """The textbook's table."""
    row = list(range(len(second) + 1))
    for i, left in enumerate(first, 1):
        corner, row[0] = row[0], i
        for j, right in enumerate(second, 1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (left != right))
    return row[-1]


@given(TEXTS, TEXTS)
def test_levenshtein__is_the_textbooks(first: str, second: str) -> None:
    assert levenshtein(first, second) == distance(first, second)


@given(st.text("abcd", min_size=60, max_size=150), st.text("abcd", min_size=60, max_size=150))
def test_levenshtein__is_symmetric_beyond_a_machine_word(first: str, second: str) -> None:
    assert levenshtein(first, second) == levenshtein(second, first) == distance(first, second)


@given(WORDS, WORDS, st.integers(1, 4))
def test_rouge_n__lies_from_nought_to_one_and_finds_itself(first: str, second: str, n: int) -> None:
    assert 0 <= rouge_n(first, second, n) <= 1
    assert rouge_n(first, first, n) == (len(first.split()) >= n)


@given(WORDS, WORDS, st.integers(1, 4))
def test_bleu__lies_from_nought_to_one_and_finds_itself(first: str, second: str, n: int) -> None:
    assert 0 <= bleu(first, second, n) <= 1
    assert bleu(first, first, n) == (len(first.split()) >= n)


def test_bleu__short_candidate_is_punished() -> None:
    assert bleu("a b", "a b c d e f g h", 2) < bleu("a b c d", "a b c d e f g h", 2)


def test_tokens__know_every_script() -> None:
    assert tokens("Привет мир_2, café 東京カ") == ["привет", "мир", "2", "café", "東", "京", "カ"]
