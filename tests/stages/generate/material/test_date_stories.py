"""The story tasks beyond the contract: balance, conventions, kinds, and readers of dates and cars."""

from __future__ import annotations

import re
from collections import Counter
from datetime import date
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from evalcube.stages.generate import TASKS, Cell
from evalcube.stages.generate.answers.choices import ChoiceReader
from evalcube.stages.generate.answers.dates import last_date
from evalcube.stages.generate.material.date_stories import (
    STORIES,
    months,
    weekday_after,
    weekday_before,
    workdays,
)
from evalcube.stages.generate.tasks.dates import EARLIEST, LATEST, Kind
from evalcube.stages.generate.tasks.movies import GENRES, THEMES, TITLES
from tests.cases import with_cases
from tests.growth import grows_in_proportion
from tests.stages.generate.solvers_stories import GENRE_WORDS, THEME_WORDS, film, named, solve_dates
from tests.strategies import choices, hostile_text

CARS, DATES, MOVIES = TASKS["cars"], TASKS["dates"], TASKS["movies"]

# ---- cars


@pytest.mark.parametrize("question", ["position", "car"])
@pytest.mark.parametrize("reference", ["absolute", "relative", "attribute"])
def test_cars__answers_are_spread_over_the_line(question: str, reference: str) -> None:
    cell = Cell(CARS, CARS.Params(cars=4, moves=6, question=question, reference=reference), 3)
    places = Counter(trial.options.index(trial.answer) for trial in map(cell.trial, range(2000)))

    for place in range(4):
        assert places[place] / 2000 == pytest.approx(0.25, abs=0.045)


@pytest.mark.parametrize("reference", ["absolute", "relative", "attribute"])
def test_cars__tells_the_stated_number_of_events(reference: str) -> None:
    cell = Cell(CARS, CARS.Params(moves=7, confounders=5, reference=reference), 3)
    for i in range(100):
        _, _, *events, _, _ = cell.trial(i).prompt.splitlines()
        idle = [e for e in events if re.search("honks|flashes|nearly|gets out|windows|rain", e)]

        assert len(events) == 12
        assert len(idle) == 5
        assert any(re.search(r"position", e) for e in events) == (reference == "absolute")


@with_cases(
    ("text", "expected"),
    [
        ("Answer: position 3", "3"),
        ("Answer: 3rd", "3"),
        ("Answer: the third place", "3"),
        ("Answer: 3 (the red car)", "3"),
        ("Answer: 3, the red car", "3"),
        ("Answer: red, in position 3", "red"),
        ("Answer: the Red car", "red"),
        ("Answer: red or blue", None),
        ("Answer: 2 or 3", None),
        ("So the red car is in position 3.", "3"),
        ("So the car in position 3 is the red one.", "red"),
        ("Answer: 13\nOn reflection, Answer: 4", "4"),
        ("\\boxed{\\text{teal}}", "teal"),
        ("Answer: <color>", None),
    ],
)
def test_cars_parse__reads(text: str, expected: str | None) -> None:
    assert CARS.parse(text) == expected


# ---- movies


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


@pytest.mark.parametrize("task", [CARS, DATES, MOVIES], ids=["cars", "dates", "movies"])
def test_difficulty__follows_the_declared_order_of_listed_values(task: object) -> None:
    orders = {
        "cars": ("reference", ["absolute", "relative", "attribute"]),
        "dates": ("kind", ["days_ahead", "months_ahead", "workdays_ahead", "chain"]),
        "movies": ("hint", ["labels", "lists", "none"]),
    }
    field, values = orders[task.name]  # type: ignore[attr-defined]
    sizes = [task.difficulty(task.Params(**{field: value})) for value in values]  # type: ignore[attr-defined]

    assert sizes == sorted(set(sizes))


# ---- dates


def test_stories__are_the_kinds() -> None:
    assert get_args(Kind) == ("any", *STORIES)
    assert len(STORIES) >= 24
    assert {story.level for story in STORIES.values()} == {1, 2, 3, 4}


@pytest.mark.parametrize("kind", list(STORIES))
def test_dates__answers_of_each_kind_equal_the_solvers_and_lie_in_range(kind: str) -> None:
    for style in choices(DATES, "format"):
        for offset in (1, 7, 60):
            cell = Cell(DATES, DATES.Params(kind=kind, offset=offset, format=style), 3)
            for trial in map(cell.trial, range(25)):
                assert solve_dates(trial.prompt) == trial.answer, trial.prompt
                assert EARLIEST <= date.fromisoformat(trial.answer).year <= LATEST


def test_dates__level_mixes_its_kinds() -> None:
    cell = Cell(DATES, DATES.Params(level=1, offset=60), 3)
    seen = {
        (unit, "ago" in text or "earlier" in text)
        for text in (cell.trial(i).prompt for i in range(200))
        for unit in re.findall(r"\d+ (day|week)s", text)
    }

    assert seen == {("day", False), ("day", True), ("week", False), ("week", True)}


def test_dates__offsets_are_in_the_upper_half() -> None:
    cell = Cell(DATES, DATES.Params(kind="days_ahead", offset=40), 3)
    counts = {int(n) for i in range(500) for n in re.findall(r"(\d+) days", cell.trial(i).prompt)}

    assert counts == set(range(20, 41))


def test_dates__month_ends_and_leap_days_occur() -> None:
    cell = Cell(DATES, DATES.Params(kind="months_ahead", offset=60), 3)
    trials = [cell.trial(i) for i in range(3000)]

    assert any(re.search(r"-(29|30|31)\b", t.prompt) and "-02-2" in t.answer for t in trials)
    assert any(t.answer.endswith("-02-29") for t in trials)


def test_dates_params__named_kind_brings_its_level() -> None:
    params = DATES.Params(kind="chain")

    assert params == DATES.Params(kind="chain", level=4)
    assert params.canonical()["level"] == 4
    with pytest.raises(ValidationError, match="must be 4 for kind chain"):
        DATES.Params(kind="chain", level=2)


@with_cases(
    ("found", "expected"),
    [
        (months(date(2023, 12, 31), 2), "2024-02-29"),
        (months(date(2024, 2, 29), 12), "2025-02-28"),
        (months(date(2024, 3, 31), -1), "2024-02-29"),
        (months(date(2024, 1, 15), -13), "2022-12-15"),
        (workdays(date(2021, 3, 5), 1), "2021-03-08"),
        (workdays(date(2021, 3, 6), 5), "2021-03-12"),
        (workdays(date(2021, 3, 7), -10), "2021-02-22"),
        (workdays(date(2021, 3, 8), 5), "2021-03-15"),
        (weekday_after(date(2021, 3, 5), 4, 1), "2021-03-12"),
        (weekday_before(date(2021, 3, 5), 4, 2), "2021-02-19"),
        (weekday_after(date(2021, 3, 5), 5, 1), "2021-03-06"),
    ],
)
def test_steps__follow_the_stated_conventions(found: date, expected: str) -> None:
    assert found.isoformat() == expected


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
def test_last_date__reads(text: str, expected: str | None) -> None:
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


def test_choice_reader__survives_letters_that_only_look_alike() -> None:
    assert ChoiceReader(["scarf"]).read_option("Answer: \u017fcarf") is None
    assert CARS.parse("Answer: \u017filver") is None
    assert MOVIES.parse("Answer: \u017filver Po\u017ftman") is None


PIECES = [
    "1",
    "1-",
    "2021-",
    "2021-03-05",
    "2021-03-05 or ",
    "March ",
    "mar",
    "5 of ",
    "5th ",
    "the ",
    "on the ",
    "answer: 2021-03-05 ",
    "answer: March ",
    "**2021-03-05** ",
    "**Friday, ",
    "(",
    " ",
    "\n",
    "red ",
    "red or ",
    "3 ",
    "third ",
    "answer: red ",
    "Silver ",
    "Silver Postman",
]


@pytest.mark.long
@pytest.mark.parametrize("ending", ["a", "\n1a"], ids=ascii)
def test_parse__takes_linear_time(ending: str) -> None:
    slow = [
        (task, piece)
        for piece in PIECES
        for task in (CARS, DATES, MOVIES)
        if not grows_in_proportion(
            lambda size, read=task.parse, piece=piece: read(piece * (size // len(piece)) + ending), 6_000
        )
    ]

    assert slow == []
