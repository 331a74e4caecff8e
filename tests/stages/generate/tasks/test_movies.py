"""Films and movies: counts are as stated, and no cheap rule finds the answer."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from evalcube.stages.generate import TASKS, Cell
from evalcube.stages.generate.tasks.movies import GENRES, THEMES, TITLES
from tests.stages.generate.solvers_stories import GENRE_WORDS, THEME_WORDS, film, named

MOVIES = TASKS["movies"]


def test_films__show_one_genre_and_one_theme_each() -> None:
    for table, words in ((GENRES, GENRE_WORDS), (THEMES, THEME_WORDS)):
        for name, sentences in table.items():
            assert len(set(sentences)) == 5
            assert {named(sentence, words) for sentence in sentences} == {name}


def test_films__no_title_is_part_of_another() -> None:
    assert len(TITLES) >= 20
    for title in TITLES:
        assert [other for other in TITLES if title.lower() in other.lower()] == [title]


def parts(prompt: str) -> tuple[list[str], list[str]]:
    liked, offered = prompt.split("\n\n")[:2]
    return liked.splitlines()[1:], offered.splitlines()[1:]


def test_movies__has_the_stated_counts_and_no_repeated_sentence() -> None:
    cell = Cell(MOVIES, MOVIES.Params(reference_count=8, choice_count=12), 3)
    for i in range(100):
        liked, offered = parts(cell.trial(i).prompt)
        told = [
            {s.strip() for line in part for s in line.split(": ", 1)[1].split(". ", 1)}
            for part in (liked, offered)
        ]

        assert (len(liked), len(offered)) == (8, 12)
        assert not told[0] & told[1]


def words(text: str) -> set[str]:
    return {word for word in re.findall("[a-z]+", text.lower()) if len(word) > 2}


def guesses(prompt: str) -> dict[str, str]:
    """Titles that cheap rules pick: none of them understands a sentence."""
    liked, offered = parts(prompt)
    films = dict(map(film, offered))  # title -> genre and theme
    genres, themes = (Counter(kind[axis] for kind in films.values()) for axis in (0, 1))
    told = {title: line.split(": ", 1)[1] for title, line in zip(films, offered, strict=True)}
    known = Counter(word for line in liked for word in words(line.split(": ", 1)[1]))
    common = Counter(word for text in told.values() for word in words(text))

    def shared(title: str) -> int:
        return sum(known[word] for word in words(told[title]))

    return {
        "most frequent genre and theme": max(films, key=lambda t: genres[films[t][0]] + themes[films[t][1]]),
        "rarest genre and theme": min(films, key=lambda t: genres[films[t][0]] + themes[films[t][1]]),
        "most words in common with the references": max(films, key=shared),
        "fewest words in common with the references": min(films, key=shared),
        "rare words in common with the references": max(
            films, key=lambda t: sum(known[word] / common[word] for word in words(told[t]))
        ),
        "words that the choices share": max(films, key=lambda t: sum(common[w] for w in words(told[t]))),
        "title like the references": max(films, key=lambda t: len(words(t) & words(" ".join(liked)))),
        "longest": max(films, key=lambda t: len(told[t])),
        "first": next(iter(films)),
    }


@pytest.mark.long
@pytest.mark.parametrize(("choices", "references"), [(2, 1), (8, 3), (12, 8)])
def test_movies__no_cheap_rule_finds_the_answer(choices: int, references: int) -> None:
    cell = Cell(MOVIES, MOVIES.Params(choice_count=choices, reference_count=references, hint="none"), 3)
    right: Counter[str] = Counter()
    for trial in map(cell.trial, range(400)):
        right.update(rule for rule, title in guesses(trial.prompt).items() if title == trial.answer)

    chance = 1 / choices
    noise = 4 * (chance * (1 - chance) / 400) ** 0.5
    assert {rule: n / 400 for rule, n in right.items() if n / 400 > chance + 0.02 + noise} == {}


@pytest.mark.parametrize("count", [3, 4, 7, 8, 12])
def test_movies__choices_differ_and_some_share_genre_or_theme_with_the_right_one(count: int) -> None:
    cell = Cell(MOVIES, MOVIES.Params(choice_count=count), 3)
    shared: Counter[tuple[bool, bool]] = Counter()
    for trial in map(cell.trial, range(300)):
        films = dict(map(film, parts(trial.prompt)[1]))
        genre, theme = films[trial.answer]
        shared.update((g == genre, t == theme) for g, t in films.values())

        assert len(set(films.values())) == count

    assert shared[True, True] == 300
    assert 300 * (count - 1) * 0.15 < shared[True, False] < 300 * (count - 1) * 0.5
    assert 300 * (count - 1) * 0.15 < shared[False, True] < 300 * (count - 1) * 0.5
