"""Who errs now and then is right no more often where the declared difficulty is higher."""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Sequence
from math import sqrt
from operator import attrgetter
from statistics import fmean, pvariance
from typing import Any

import pytest

from evalcube.stages.generate import Cell, Trial
from tests.stages.generate.family import FAMILY
from tests.stages.generate.solvers_documents import meets, read_table
from tests.stages.generate.solvers_stories import film
from tests.stages.generate.tasks.test_truth_sizes import (
    LINES,
    SIZES,
    WORDS,
    Measure,
    body,
    document_depth,
    matches,
    measurable,
    part,
    shared_letters,
    sizes_of_containers,
    words_of_story,
)
from tests.strategies import choices, listed_fields

pytestmark = pytest.mark.long

ERROR = 0.01
"""Chance of an error at one step."""
DIGITS = matches(r"\d")


def counted(trial: Trial) -> float:
    """What a story about a date counts, in its own units; years are not counted."""
    return sum(map(int, re.findall(r"\b\d{1,2}\b", trial.prompt)))


def almost_asked(trial: Trial) -> float:
    """Facts that have two words of the question."""
    facts = re.findall(r"The (\w+) (\w+) of (\w+) is kept", trial.prompt)
    return sum(sum(word in trial.prompt.rpartition("\n\n")[2] for word in fact) > 1 for fact in facts)


STEPS: dict[str, Measure] = {
    "arithmetic": matches(r"[\d+*-]"),
    "boolean": matches(r"\w+"),
    "brackets": lambda t: len(body(t)) + len(t.answer),  # to read, and to write
    "cars": lambda t: LINES(t) + len(t.options),
    "dates": lambda t: words_of_story(t) + counted(t),
    "haystack": lambda t: matches(r"\.")(t) + almost_asked(t),
    "jsonpath": lambda t: sizes_of_containers(t) * document_depth(t) + len(re.findall(r"[^\s,]+", t.answer)),
    "letters": lambda t: matches("[a-z]")(t) * matches('"', part(0))(t),  # each with each
    "objects": matches("[a-z]+", part(0)),
    "sequence": lambda t: DIGITS(t) + len(t.answer),
    "shapes": lambda t: DIGITS(t) + len(t.options),
    "shuffle": lambda t: LINES(t) + len(t.options),
    "sort": lambda t: WORDS(t) + shared_letters(t),
    "tools": lambda t: matches('"name"')(t) + matches(r'"\w+":', attrgetter("answer"))(t),
}
"""Steps of a trial, any of which spoils it; what luck adds is corrected for."""


def misread(kind: tuple[str, str], rng: random.Random) -> tuple[str, str]:
    one, other = (str(rng.random()) if rng.random() < 10 * ERROR else name for name in kind)
    return one, other


def outvoted(trial: Trial, rng: random.Random) -> float:
    """Reads genre and theme of each film, takes the commonest of those that set them, and the film nearest to it."""
    liked, offered = (
        [film(line) for line in text.splitlines()[1:]] for text in trial.prompt.split("\n\n")[:2]
    )
    genres, themes = zip(*[misread(kind, rng) for _, kind in liked], strict=True)
    wanted = [Counter(rng.sample(names, len(names))).most_common(1)[0][0] for names in (genres, themes)]
    seen = [
        (sum(map(str.__eq__, misread(kind, rng), wanted)), rng.random(), title) for title, kind in offered
    ]
    return max(seen)[2] == trial.answer


def filtered(trial: Trial, rng: random.Random) -> float:
    """Checks one condition after the other in each row until one fails, then reads or adds up what is left."""
    _, text, asked = trial.prompt.split("\n\n")
    where = re.search(r"the rows where (.*?)[.?]", asked)
    conditions = where[1].split(" and ") if where else []
    column = re.search(r"(?:(?:value|sum|mean|minimum|maximum) of|Add up) (\w+)", asked)

    def result(error: float) -> float | None:
        rows = [
            row
            for row in read_table(text)
            if all(meets(row, each) != (rng.random() < error) for each in conditions)
        ]
        if column is None:
            return sum(1 + (rng.random() < error) for _ in rows)
        cells = [row[column[1]] for row in rows]
        values = [int(c) + (rng.random() < error * (1 + len(c))) * rng.choice((-10, -1, 1)) for c in cells]
        if re.search("largest|maximum", asked):
            return max(values, default=None)
        if re.search("smallest|minimum", asked):
            return min(values, default=None)
        return sum(values) / (len(values) if "mean" in asked else 1) if values else None

    return result(ERROR) == result(0)


def success(name: str, trial: Trial, rng: random.Random) -> float:
    if name == "movies":
        return outvoted(trial, rng)
    return filtered(trial, rng) if name == "tables" else (1 - ERROR) ** STEPS[name](trial)


EXCEPT = {
    ("dates", "kind"): "the steps of a story lie in its sense (days, working days, years), not in its words",
    ("dates", "format"): "a format costs an effort of reading, not a step",
}
"""Knobs without a simple number of steps, and why."""
COUNTED = [(name, field, values, others) for name, field, values, _, others in SIZES]
LISTED = [
    (name, field, values, {})
    for name, task in FAMILY.items()
    for field in listed_fields(task)
    if (name, field) not in EXCEPT
    if (values := [value for value in choices(task, field) if (name, value) != ("tables", "lookup")])
]
FILTERED = [
    ("tables", "conditions", range(5), {"operation": each}) for each in ("count", "sum", "mean", "min")
]
MORE = [("movies", "reference_count", (1, 2, 4, 8), {"choice_count": 8}), *FILTERED]
KNOBS: list[tuple[str, str, Sequence[Any], dict[str, Any]]] = [*COUNTED, *LISTED, *MORE]


@pytest.mark.parametrize(
    ("name", "field", "values", "others"),
    KNOBS,
    ids=["-".join(map(str, (name, field, *others.values()))) for name, field, _, others in KNOBS],
)
def test_difficulty__is_no_higher_where_a_noisy_solver_is_right_more_often(
    name: str, field: str, values: Sequence[Any], others: dict[str, Any]
) -> None:
    task, rng = FAMILY[name], random.Random(11)
    found = []
    for value in values:
        params = task.Params(**others, **{field: value})
        trials = map(Cell(task, params, 3).trial, range(100))
        rights = [success(name, trial, rng) for trial in trials if measurable(name, field, trial)]
        found.append((task.difficulty(params), fmean(rights), pvariance(rights) / len(rights), value))

    better = [
        (hard[-1], easy[-1], hard[1] - easy[1])
        for easy, hard in itertools.permutations(found, 2)
        if hard[0] > easy[0] and hard[1] - easy[1] > 3 * sqrt(easy[2] + hard[2]) + 1e-9
    ]
    assert better == []
