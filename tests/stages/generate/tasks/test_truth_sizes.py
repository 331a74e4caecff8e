"""The declared difficulty grows where a size that can be measured in the question itself does."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Sequence
from datetime import date
from statistics import fmean
from typing import Any

import pytest

from evalcube.stages.generate import Cell, Trial
from evalcube.stages.generate.material.words import ADJECTIVES
from tests.stages.generate.family import FAMILY
from tests.stages.generate.solvers_documents import corners_of, read_table
from tests.stages.generate.solvers_lists import number_of

Measure = Callable[[Trial], float]


def part(number: int) -> Callable[[Trial], str]:
    return lambda trial: trial.prompt.split("\n\n")[number]


body, question = part(1), part(-1)


def matches(pattern: str, where: Callable[[Trial], str] = body) -> Measure:
    return lambda trial: len(re.findall(pattern, where(trial)))


def whole(trial: Trial) -> str:
    return trial.prompt


def nesting(opening: str, closing: str) -> Measure:
    def measure(trial: Trial) -> float:
        depth = deepest = 0
        for character in body(trial):
            depth += (character in opening) - (character in closing)
            deepest = max(deepest, depth)
        return deepest

    return measure


def mean_length(pattern: str, where: Callable[[Trial], str] = body) -> Measure:
    return lambda trial: fmean(map(len, re.findall(pattern, where(trial))))


def words_with_letters(trial: Trial) -> float:
    letters = re.findall('"([a-z])"', trial.prompt)
    return sum(any(letter in word for letter in letters) for word in body(trial).split(", "))


def days_counted(trial: Trial) -> float:
    (stated,) = re.findall(r"\d{4}-\d\d-\d\d", trial.prompt)
    return abs((date.fromisoformat(trial.answer) - date.fromisoformat(stated)).days)


def words_of_story(trial: Trial) -> float:
    """Words up to the question, without the conventions in brackets."""
    return len(re.findall(r"\w+", re.sub(r"\(.*?\)", "", trial.prompt.rsplit("\n", 2)[0])))


def document_depth(trial: Trial) -> float:
    def depth(value: Any) -> int:
        members = list(value.values()) if isinstance(value, dict) else value
        return 1 + max(map(depth, members)) if isinstance(members, list) else 0

    return depth(json.loads(body(trial)))


def sizes_of_containers(trial: Trial) -> float:
    return len(json.loads(body(trial)))


def largest_count(trial: Trial) -> float:
    return max(number_of(word) or 0 for word in re.findall("[a-z-]+", part(0)(trial)))


def adjectives(trial: Trial) -> float:
    return sum(word in ADJECTIVES for word in re.findall("[a-z]+", part(0)(trial)))


def magnitude(trial: Trial) -> float:
    return math.log1p(sum(abs(int(n)) for n in re.findall(r"-?\d+", body(trial))[:4]))


def tilt(trial: Trial) -> float:
    """Degrees between the first side of a rectangle and the nearest axis; 45 at most."""
    points = corners_of(body(trial))
    side = points[1] - points[0]
    angle = math.degrees(math.atan2(side.imag, side.real)) % 90
    return min(angle, 90 - angle)


def unequal(trial: Trial) -> float:
    """How much the opposite sides of a rectangle differ."""
    a, b, c, d = corners_of(body(trial))
    return abs(abs(a - b) - abs(c - d)) / abs(a - c)


def extent(trial: Trial) -> float:
    points = corners_of(body(trial))
    return max(abs(one - other) for one in points for other in points)


def distance(trial: Trial) -> float:
    points = corners_of(body(trial))
    return abs(sum(points) / len(points))


def shared_letters(trial: Trial) -> float:
    words = trial.answer.lower().split(", ")
    return sum(len(re.match(r"(\w*)\w*,\1", f"{a},{b}")[1]) for a, b in itertools.pairwise(words))  # type: ignore[index]


def changed_words(trial: Trial) -> float:
    return sum(not word.islower() for word in re.findall("[A-Za-z]+", body(trial)))


def table_size(trial: Trial) -> float:
    return len(read_table(body(trial)))


def table_width(trial: Trial) -> float:
    return len(read_table(body(trial))[0])


LINES = matches(r"\n", whole)
OFFERED = matches(r"\n- ", lambda trial: trial.prompt.split("\n\n")[1])
LIKED = matches(r"\n- ", part(0))
WORDS = matches(r"[A-Za-z]+")

SIZES: list[tuple[str, str, Sequence[float], Measure, dict[str, Any]]] = [
    ("arithmetic", "length", (3, 8, 20, 50), matches(r"\d+"), {}),
    ("arithmetic", "max_depth", (0, 2, 5, 8), nesting("(", ")"), {"length": 20}),
    ("arithmetic", "max_number", (9, 99, 999), mean_length(r"\d+"), {}),
    ("arithmetic", "min_number", (-9, -99, -999), mean_length(r"\d+"), {}),
    ("arithmetic", "prob_dewhitespace", (0, 0.3, 1), lambda t: -body(t).count(" "), {}),
    ("boolean", "length", (3, 8, 20, 40), matches("True|False"), {}),
    ("boolean", "max_depth", (0, 2, 5, 8), nesting("(", ")"), {"length": 20}),
    ("boolean", "prob_not", (0, 0.3, 0.6, 1), matches("not"), {}),
    ("boolean", "prob_dewhitespace", (0, 0.5, 1), lambda t: -body(t).count(" "), {"max_depth": 4}),
    ("brackets", "length", (1, 5, 20, 60), matches(r"[(\[{<]"), {}),
    ("brackets", "max_depth", (1, 4, 10, 20), nesting("([{<", ")]}>"), {"length": 60}),
    ("brackets", "kinds", (1, 2, 3, 4), lambda t: len(set(body(t))), {"length": 40}),
    ("cars", "cars", (3, 6, 12), lambda t: len(t.options), {}),
    ("cars", "moves", (1, 5, 30), LINES, {}),
    ("cars", "confounders", (0, 4, 10), LINES, {}),
    ("dates", "level", (1, 2, 3, 4), words_of_story, {}),
    ("dates", "offset", (1, 5, 20, 60), days_counted, {"kind": "days_ahead"}),
    ("dates", "offset", (1, 5, 20, 60), days_counted, {"kind": "months_ago"}),
    ("dates", "offset", (1, 5, 20, 60), days_counted, {"kind": "workdays_ahead"}),
    ("haystack", "length", (300, 1000, 5000), lambda t: len(t.prompt), {}),
    ("haystack", "distractors", (0, 5, 50), matches("is kept in box"), {}),
    ("jsonpath", "depth", (1, 3, 8), document_depth, {}),
    ("jsonpath", "width", (1, 3, 8), sizes_of_containers, {}),
    ("jsonpath", "wildcards", (1, 2, 3), lambda t: len(json.loads(t.answer)), {"depth": 5}),
    (
        "jsonpath",
        "filters",
        (0, 1, 2),
        lambda t: len(re.findall(r"\[\?@\.\w+ [<>] \d|\[\?@ [<>] \d", question(t))),
        {},
    ),
    ("letters", "target_letters", (1, 2, 4), matches('"', part(0)), {}),
    ("letters", "min_word_length", (3, 5, 8), mean_length("[a-z]+"), {}),
    ("letters", "max_word_length", (4, 8, 12), mean_length("[a-z]+"), {}),
    ("letters", "target_words", (1, 5, 30), words_with_letters, {}),
    ("letters", "confounder_words", (0, 5, 30), WORDS, {}),
    ("movies", "reference_count", (8, 3, 1), lambda t: -LIKED(t), {}),
    ("movies", "choice_count", (2, 5, 12), OFFERED, {}),
    ("objects", "target_items", (1, 5, 14), matches(r",| and ", part(0)), {}),
    ("objects", "target_groups", (1, 2, 4), matches(r",| and ", part(0)), {}),
    ("objects", "max_count", (1, 9, 99), largest_count, {}),
    ("objects", "distractor_count", (1, 10, 40), matches(r",| and ", part(0)), {}),
    ("objects", "prob_adjective", (0, 0.5, 1), adjectives, {}),
    ("sequence", "rules", (1, 2, 3, 4), matches(r"every \d", whole), {}),
    ("sequence", "terms", (1, 3, 8), lambda t: len(t.answer.split(", ")), {}),
    ("sequence", "max_constant", (3, 20, 99), magnitude, {}),
    ("shapes", "choices", (2, 6, 12), lambda t: len(t.options), {}),
    ("shapes", "rotation", (0, 10, 30), tilt, {"choices": 12, "noise": 0}),
    ("shapes", "scale", (1, 10, 100), extent, {"choices": 12}),
    ("shapes", "offset", (0, 100, 1000), distance, {"choices": 12}),
    ("shapes", "noise", (0, 0.5, 2), unequal, {"choices": 12, "scale": 10}),
    ("shuffle", "length", (3, 6, 12), lambda t: len(t.options), {}),
    ("shuffle", "swaps", (1, 5, 30), LINES, {}),
    ("shuffle", "confounders", (0, 4, 10), LINES, {}),
    ("sort", "length", (3, 10, 60), WORDS, {}),
    ("sort", "run_length", (1, 4, 20), shared_letters, {"length": 20}),
    ("sort", "prob_mutation", (0, 0.4, 1), changed_words, {}),
    ("sort", "prob_duplication", (0, 0.4, 1), WORDS, {}),
    ("tables", "rows", (4, 40, 400), table_size, {}),
    ("tables", "columns", (2, 5, 12), table_width, {}),
    ("tables", "conditions", (0, 1, 2), matches(r"where| and \w+ is ", question), {"operation": "max"}),
    ("tables", "max_value", (9, 99, 9999), mean_length(r"\b\d+\b"), {}),
    ("tables", "target_tokens", (200, 1000, 8000), lambda t: len(t.prompt), {}),
    ("tools", "tools", (1, 4, 16), matches("\n"), {}),
    ("tools", "distractors", (0, 4, 32), matches("\n"), {}),
    ("tools", "nesting", (0, 1, 3), nesting("{", "}"), {}),
    ("tools", "calls", (1, 2, 6), matches("\n", part(2)), {}),
]
"""Task, param, growing values, what grows in the question or its answer, other params."""


def measurable(task: str, field: str, trial: Trial) -> bool:
    """Some measures need a shape with four corners."""
    return task != "shapes" or field == "choices" or trial.answer == "rectangle"


@pytest.mark.parametrize(
    ("name", "field", "values", "measure", "others"),
    SIZES,
    ids=[f"{name}-{field}-{others.get('kind', '')}".rstrip("-") for name, field, _, _, others in SIZES],
)
def test_difficulty__grows_with_a_measurable_size(
    name: str, field: str, values: Sequence[float], measure: Measure, others: dict[str, Any]
) -> None:
    task = FAMILY[name]
    points = [task.Params(**others, **{field: value}) for value in values]
    count = 600 if name == "shapes" else 80
    cells = [Cell(task, params, 3) for params in points]
    sizes = [
        fmean([measure(t) for t in map(cell.trial, range(count)) if measurable(name, field, t)])
        for cell in cells
    ]
    difficulties = [task.difficulty(params) for params in points]

    assert sizes == sorted(set(sizes)), sizes
    assert difficulties == sorted(set(difficulties)), difficulties


def test_sizes__cover_every_numeric_param() -> None:
    growing = {(name, field) for name, field, *_ in SIZES} | {
        ("dates", "level"),
        ("arithmetic", "min_number"),
        ("haystack", "depth"),  # who reads all of a text finds it anywhere
    }

    for name, task in FAMILY.items():
        numeric = {f for f, info in task.Params.model_fields.items() if info.annotation in (int, float)}
        assert {field for task_name, field in growing if task_name == name} >= numeric
