"""The contract that every task passes by being in TASKS."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from stages.generate import TASKS, Cell, Task, Trial
from tests.strategies import bounds, choices, hostile_text, numeric_fields, params_of, random_params

GOLDEN = Path(__file__).parents[2] / "data" / "generate_golden.json"

ROOT = Path(__file__).parents[3]

GROWING = {
    "arithmetic": ["length", "max_depth", "max_number", "prob_dewhitespace"],
    "boolean": ["length", "max_depth", "prob_not", "prob_dewhitespace"],
    "brackets": ["length", "max_depth", "kinds"],
    "cars": ["cars", "moves", "confounders"],
    "dates": ["level", "offset"],
    "jsonpath": ["depth", "width", "wildcards", "filters"],
    "letters": ["target_letters", "min_word_length", "max_word_length", "target_words", "confounder_words"],
    "movies": ["reference_count", "choice_count"],
    "objects": ["target_items", "target_groups", "max_count", "distractor_count", "prob_adjective"],
    "sequence": ["rules", "terms", "max_constant"],
    "shapes": ["choices", "rotation", "scale", "offset", "noise"],
    "shuffle": ["length", "swaps", "confounders"],
    "sort": ["length", "run_length", "prob_mutation", "prob_duplication"],
    "tables": ["rows", "columns", "conditions", "max_value"],
}
"""Numeric dimensions along which the difficulty must not fall."""


@pytest.fixture(params=list(TASKS))
def task(request: pytest.FixtureRequest) -> Task:
    return TASKS[request.param]


def some_cells(task: Task, count: int, seed: int = 7) -> list[Cell]:
    rng = random.Random(seed)
    return [Cell(task, random_params(task, rng), rng.randrange(1000)) for _ in range(count)]


def shown(task: Task, params: Any, answer: str) -> str:
    """The reference answer in the words that the prompt asks for."""
    if task.name != "boolean":
        return answer
    true, false = params.format.split("/")
    return str(true if answer == "true" else false)


def test_tasks__declare_themselves(task: Task) -> None:
    assert TASKS[task.name] is task
    assert task.version >= 1
    assert task.summary
    assert task.guess_rule
    task.Params()  # every param has a default
    for field, info in task.Params.model_fields.items():
        assert info.description, field


def test_trial__same_after_pickling(task: Task) -> None:
    for cell in some_cells(task, 20):
        copy = pickle.loads(pickle.dumps(cell))  # noqa: S301

        assert copy == cell
        assert hash(copy) == hash(cell)
        assert [copy.trial(i) for i in range(3)] == [cell.trial(i) for i in range(3)]


def test_trial__independent_of_order(task: Task) -> None:
    for cell in some_cells(task, 10):
        forward = [cell.trial(i) for i in range(12)]
        order = list(range(12))
        random.Random(1).shuffle(order)

        scattered = {i: Cell(cell.task, cell.params, cell.seed).trial(i) for i in order}

        assert [scattered[i] for i in range(12)] == forward


DIGEST_SCRIPT = """
import hashlib
from stages.generate import TASKS, Cell
h = hashlib.sha256()
for task in TASKS.values():
    for i in range(40):
        h.update(repr(Cell(task, task.Params(), 5).trial(i)).encode())
print(h.hexdigest())
"""


def test_trial__same_in_another_process_with_another_hash_seed() -> None:
    def digest(hash_seed: str) -> str:
        environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", DIGEST_SCRIPT]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    assert digest("1") == digest("4242") != ""


def test_trial__streams_of_neighbours_differ(task: Task) -> None:
    params = task.Params()
    prompts = {seed: [Cell(task, params, seed).trial(i).prompt for i in range(30)] for seed in range(4)}

    for seed in range(3):
        assert len(set(prompts[seed])) > 25
        assert not set(prompts[seed]) & set(prompts[seed + 1])


def test_trial__stream_depends_on_task_name_and_version(task: Task) -> None:
    class Renamed(type(task)):  # type: ignore[misc]
        name = "renamed"

    class Raised(type(task)):  # type: ignore[misc]
        version = task.version + 1

    cells = [Cell(t, task.Params(), 42) for t in (task, Renamed(), Raised())]

    assert len({cell.id for cell in cells}) == 3
    assert len({cell.trial(0).prompt for cell in cells}) == 3


def test_trial__guess_chance_agrees_with_options(task: Task) -> None:
    for cell in some_cells(task, 60):
        trial = cell.trial(0)
        if trial.options:
            assert trial.guess_chance == pytest.approx(1 / len(trial.options))
            assert len(set(trial.options)) == len(trial.options)
            assert trial.answer in trial.options
        else:
            assert trial.guess_chance == 0


def test_trial__prompt_states_the_format(task: Task) -> None:
    for cell in some_cells(task, 30):
        prompt = cell.trial(0).prompt

        assert prompt.splitlines()[-1].startswith("Answer: <")
        assert prompt.isascii()
        assert "{" not in prompt or task.name in {"brackets", "jsonpath", "tables"}


@pytest.mark.parametrize(
    "frame",
    [
        "Answer: {}",
        "**Answer:** {}",
        "answer: **{}**.",
        "The answer is {}.",
        "$\\boxed{{{}}}$",
        "First 3 of 12 steps, maybe true, maybe the lamp or the drum.\n\nAnswer: {}",
        "Answer: 999\nWait, Answer: false? Answer: lamp? No: I had that wrong.\n\nAnswer: {}\n",
        "Steps:\n1. a\n2. b\n\n### Answer\n\n{}",
        "{}",
    ],
)
def test_parse__reads_the_reference_answer(task: Task, frame: str) -> None:
    for cell in some_cells(task, 40):
        trial = cell.trial(0)
        text = frame.format(shown(task, cell.params, trial.answer))

        parsed = task.parse(text)

        assert parsed is not None, text
        assert task.grade(parsed, trial.answer), text


def test_parse__reference_and_options_parse_to_themselves(task: Task) -> None:
    for cell in some_cells(task, 40):
        trial = cell.trial(0)
        for option in {trial.answer, *trial.options}:
            assert task.parse(f"Answer: {option}") == option


def wrong_answer(cell: Cell, trial: Trial) -> str:
    """Another option, the next integer, the answer of another trial, or else a bracket too many."""
    if trial.options:
        return next(option for option in trial.options if option != trial.answer)
    if trial.answer.lstrip("-").isdigit():
        return str(int(trial.answer) + 1)
    others = (cell.trial(i).answer for i in range(1, 50))
    return next((answer for answer in others if answer != trial.answer), f"{trial.answer})")


def test_parse__wrong_answer_is_not_graded_right(task: Task) -> None:
    for cell in some_cells(task, 40):
        trial = cell.trial(0)
        wrong = wrong_answer(cell, trial)

        parsed = task.parse(f"Answer: {wrong}")

        assert parsed is not None
        assert not task.grade(parsed, trial.answer)


@pytest.mark.parametrize(
    "text", ["", " \n", "I do not know.", "Answer:", "Answer: <value>", "((((", "\x00\ud800"]
)
def test_parse__refuses_no_answer(task: Task, text: str) -> None:
    assert task.parse(text) is None


def test_parse__echo_of_the_prompt_is_no_answer(task: Task) -> None:
    for cell in some_cells(task, 20):
        closing = cell.trial(0).prompt.splitlines()[-1]

        assert task.parse(closing) is None


@settings(max_examples=150, deadline=None)
@given(text=hostile_text())
def test_parse__never_raises(text: str) -> None:
    for task in TASKS.values():
        answer = task.parse(text)
        assert answer is None or answer


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_trial__answer_is_canonical(data: st.DataObject) -> None:
    task = data.draw(st.sampled_from(list(TASKS.values())))
    cell = Cell(task, data.draw(params_of(task)), data.draw(st.integers(0, 2**32)))
    index = data.draw(st.integers(0, 10**9))
    trial = cell.trial(index)

    assert task.parse(f"Answer: {trial.answer}") == trial.answer
    assert cell.trial(index) == trial


def with_limit(task: Task, field: str, value: Any) -> Any:
    """Params with one value set, and its partner field out of the way."""
    partner = {
        "min_number": {"max_number": 999},
        "max_number": {"min_number": -999},
        "min_word_length": {"max_word_length": 12},
        "max_word_length": {"min_word_length": 3},
    }
    return task.Params(**partner.get(field, {}), **{field: value})


def test_params__limits_are_accepted_and_one_beyond_is_refused(task: Task) -> None:
    for field in numeric_fields(task):
        low, high = bounds(task, field)
        for value in (low, high):
            assert Cell(task, with_limit(task, field, value), 1).trial(0).prompt
        for value in (low - 1, high + 1):
            with pytest.raises(ValidationError, match=field):
                with_limit(task, field, value)


def test_params__listed_values_are_accepted_and_others_refused(task: Task) -> None:
    for field in set(task.Params.model_fields) - set(numeric_fields(task)):
        for value in choices(task, field):
            assert Cell(task, task.Params(**{field: value}), 1).trial(0).prompt
        with pytest.raises(ValidationError, match=field):
            task.Params(**{field: "klingon"})


def test_params__unknown_field_is_refused(task: Task) -> None:
    with pytest.raises(ValidationError, match="lenght"):
        task.Params(lenght=4)


def test_params__of_another_task_are_refused(task: Task) -> None:
    other = next(t for t in TASKS.values() if t is not task)

    with pytest.raises(TypeError, match="another task"):
        Cell(task, other.Params(), 1).trial(0)


def test_difficulty__grows_along_each_dimension(task: Task) -> None:
    for cell in some_cells(task, 60):
        base = task.difficulty(cell.params)
        assert base > 0
        for field in GROWING[task.name]:
            value = getattr(cell.params, field)
            high = bounds(task, field)[1]
            try:
                harder = task.Params(**{**cell.params.model_dump(), field: min(high, value + 1)})
            except ValidationError:
                continue
            assert task.difficulty(harder) >= base, field


def test_difficulty__differs_along_each_dimension(task: Task) -> None:
    for field in GROWING[task.name]:
        default = getattr(task.Params(), field)
        harder = task.Params(**{field: default + (0.5 if isinstance(default, float) else 1)})

        assert task.difficulty(harder) > task.difficulty(task.Params()), field


LARGE: dict[str, dict[str, Any]] = {
    "arithmetic": {"length": 30, "max_depth": 5, "max_number": 99, "prob_dewhitespace": 0.5},
    "boolean": {"length": 30, "max_depth": 5, "format": "on/off", "prob_dewhitespace": 0.5},
    "brackets": {"length": 40, "max_depth": 12, "kinds": 4},
    "cars": {"cars": 9, "moves": 12, "confounders": 6, "reference": "attribute", "question": "car"},
    "dates": {"level": 4, "offset": 45, "format": "european"},
    "jsonpath": {"depth": 6, "width": 5, "wildcards": 2, "filters": 1},
    "letters": {"letters": "rare", "target_letters": 3, "target_words": 12, "confounder_words": 9},
    "movies": {"reference_count": 7, "choice_count": 11, "hint": "none"},
    "objects": {
        "target_items": 6,
        "target_groups": 3,
        "max_count": 40,
        "distractor_count": 20,
        "prob_adjective": 0.5,
    },
    "sequence": {"rules": 4, "terms": 6, "max_constant": 50},
    "shapes": {"choices": 12, "rotation": 180, "scale": 20, "offset": 200, "noise": 1.5},
    "shuffle": {"length": 9, "swaps": 12, "confounders": 6, "anchors": "roman"},
    "sort": {"length": 40, "run_length": 5, "prob_mutation": 0.5, "prob_duplication": 0.2},
    "tables": {"rows": 40, "columns": 7, "conditions": 3, "format": "json", "operation": "mean"},
}
"""The second cell of the golden digests."""


def golden_digests(task: Task) -> list[str]:
    cells = [Cell(task, params, 42) for params in (task.Params(), task.Params(**LARGE[task.name]))]
    trials = [cell.trial(i) for cell in cells for i in range(5)]
    return [hashlib.sha256(f"{t.prompt}\0{t.answer}".encode()).hexdigest()[:16] for t in trials]


def test_trial__equals_golden_digests(task: Task) -> None:
    """A difference here means that `version` must be raised and the file rewritten."""
    stored = json.loads(GOLDEN.read_text())[task.name]

    assert {"version": task.version, "digests": golden_digests(task)} == stored
