"""The contract that every task passes by being in TASKS."""

from __future__ import annotations

import hashlib
import json
import math
import os
import pickle
import random
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evalcube.stages.generate import TASKS, Cell, Task, Trial
from tests.stages.generate.family import FAMILY, LARGE, OWN_TEXT
from tests.stages.generate.solvers import SOLVERS
from tests.stages.generate.solvers_documents import DOCUMENT_SOLVERS
from tests.stages.generate.solvers_lists import LIST_SOLVERS
from tests.stages.generate.solvers_stories import STORY_SOLVERS
from tests.strategies import (
    bounds,
    choices,
    hostile_text,
    index_of,
    listed_fields,
    numeric_fields,
    params_of,
    params_with,
    random_params,
)

GOLDEN = Path(__file__).parents[3] / "data" / "generate_golden.json"

ROOT = Path(__file__).parents[4]

GROWING = {
    "arithmetic": ["length", "max_depth", "max_number", "prob_dewhitespace"],
    "boolean": ["length", "max_depth", "prob_not", "prob_dewhitespace"],
    "brackets": ["length", "max_depth", "kinds"],
    "cars": ["cars", "moves", "confounders"],
    "constraints": ["rules"],
    "dataset": [],  # nothing is known of how hard a file's rows are
    "dates": ["level", "offset"],
    "haystack": ["length", "distractors"],
    "jsonpath": ["depth", "width", "wildcards", "filters"],
    "letters": ["target_letters", "min_word_length", "max_word_length", "target_words", "confounder_words"],
    "movies": ["choice_count"],
    "objects": ["target_items", "target_groups", "max_count", "distractor_count", "prob_adjective"],
    "sequence": ["rules", "terms", "max_constant"],
    "shapes": ["choices", "rotation", "scale", "offset", "noise"],
    "shuffle": ["length", "swaps", "confounders"],
    "sort": ["length", "run_length", "prob_mutation", "prob_duplication"],
    "tables": ["rows", "columns", "max_value"],
    "tools": ["tools", "distractors", "nesting", "calls"],
}
"""Numeric dimensions along which the difficulty must not fall; a few make a task easier."""


WRITTEN_IN = {"brackets", "constraints", "haystack", "letters", "objects", "sort"}
"""Tasks that draw their answers evenly from few ones, without listing them; `test_floors` holds their guess chances."""


@pytest.fixture(params=list(TASKS))
def task(request: pytest.FixtureRequest) -> Task:
    return TASKS[request.param]


@cache
def _cells(name: str) -> list[Cell]:
    rng, task = random.Random(7), TASKS[name]
    return [Cell(task, random_params(task, rng), rng.randrange(1000)) for _ in range(60)]


def some_cells(task: Task, count: int) -> list[Cell]:
    return _cells(task.name)[:count]


@cache
def _first_trials(name: str) -> list[tuple[Cell, Trial]]:
    return [(cell, cell.trial(0)) for cell in _cells(name)]


def some_trials(task: Task, count: int) -> list[tuple[Cell, Trial]]:
    """The first trials of some cells."""
    return _first_trials(task.name)[:count]


def shown(task: Task, params: Any, answer: str) -> str:
    """The reference answer in the words that the prompt asks for."""
    if task.name != "boolean":
        return answer
    true, false = params.format.split("/")
    return str(true if answer == "true" else false)


def test_family__is_complete() -> None:
    assert set(LARGE) == set(TASKS)
    assert len(FAMILY) == 16


def test_tasks__declare_themselves(task: Task) -> None:
    assert TASKS[task.name] is task
    assert task.version >= 1
    assert task.summary
    assert task.guess_rule
    assert isinstance(task.example(), task.Params)
    for field, info in task.Params.model_fields.items():
        assert not info.is_required(), field
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
import hashlib, json, sys
from evalcube.stages.generate import TASKS, Cell
cells, order = json.loads(sys.argv[1]), json.loads(sys.argv[2])
for name, params in cells if order[0] else reversed(cells):
    task = TASKS[name]
    cell = Cell(task, task.Params(**params), 5)
    made = {i: repr(cell.trial(i)) for i in order if cell.size is None or i < cell.size}
    text = "".join(made[i] for i in sorted(made))
    print(name, params, hashlib.sha256(text.encode()).hexdigest())
"""


@pytest.mark.cluster
def test_trial__same_in_another_process_and_order_with_another_hash_seed() -> None:
    cells = [(n, p.canonical()) for n, t in TASKS.items() for p in (t.example(), params_with(t, **LARGE[n]))]

    def digests(hash_seed: str, order: list[int]) -> list[str]:
        environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", DIGEST_SCRIPT, json.dumps(cells), json.dumps(order)]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        return sorted(done.stdout.splitlines())

    found = digests("1", list(range(30)))

    assert len(found) == len(set(found)) == 2 * len(TASKS)
    assert digests("4242", [29, 7, *range(8, 29), *range(7)]) == found


def test_trial__smaller_sample_is_the_start_of_a_larger_one(task: Task) -> None:
    for cell in some_cells(task, 3):
        larger = [cell.trial(i) for i in reversed(range(cell.size or 64))][::-1]

        smaller = [Cell(task, cell.params, cell.seed).trial(i) for i in range(min(16, len(larger)))]

        assert smaller == larger[:16]


def test_trial__streams_of_neighbours_differ(task: Task) -> None:
    params = task.example()
    prompts = {seed: [Cell(task, params, seed).trial(i).prompt for i in range(30)] for seed in range(4)}

    for seed in range(3):
        assert len(set(prompts[seed])) > 25
        if task.size(params) is None:
            assert not set(prompts[seed]) & set(prompts[seed + 1])
        else:  # few trials: the same ones in another order
            assert prompts[seed] != prompts[seed + 1]


def test_trial__stream_depends_on_task_name_and_version(task: Task) -> None:
    class Renamed(type(task)):  # type: ignore[misc]
        name = "renamed"

    class Raised(type(task)):  # type: ignore[misc]
        version = task.version + 1

    cells = [Cell(t, task.example(), 42) for t in (task, Renamed(), Raised())]

    assert len({cell.id for cell in cells}) == 3
    assert len({cell.trial(0).prompt for cell in cells}) == 3


def test_trial__guess_chance_agrees_with_options(task: Task) -> None:
    for _, trial in some_trials(task, 60):
        if trial.options:
            assert 1 / len(trial.options) - 1e-9 <= trial.guess_chance < 1
            assert task.name == "boolean" or trial.guess_chance == pytest.approx(1 / len(trial.options))
            assert len(set(trial.options)) == len(trial.options)
            assert trial.answer in trial.options
        elif task.name in WRITTEN_IN:
            assert 0 <= trial.guess_chance <= 1
        else:
            assert trial.guess_chance == 0


def test_trial__prompt_states_the_format(task: Task) -> None:
    for _, trial in some_trials(task, 30):
        prompt = trial.prompt

        assert prompt.splitlines()[-1].startswith("Answer: <")
        assert prompt.isascii()
        assert "{" not in prompt or task.name in {"brackets", "jsonpath", "tables", "tools"}


FRAMES = [
    "Answer: {}",
    "**Answer:** {}",
    "answer: **{}**.",
    "The answer is {}.",
    "$\\boxed{{{}}}$",
    "First 3 of 12 steps, maybe true, maybe the lamp or the drum.\n\nAnswer: {}",
    "Answer: 999\nWait, Answer: false? Answer: lamp? No: I had that wrong.\n\nAnswer: {}\n",
    "Steps:\n1. a\n2. b\n\n### Answer\n\n{}",
    "{}",
]


def test_parse__reads_the_reference_answer(task: Task) -> None:
    if task.name in OWN_TEXT:
        pytest.skip("only what stands behind the mark is the model's text")
    for cell, trial in some_trials(task, 40):
        for frame in FRAMES:
            text = frame.format(shown(task, cell.params, trial.answer))

            parsed = cell.parse(text, trial)

            assert parsed is not None, text
            assert cell.grade(parsed, trial), text


def test_parse__reference_and_options_parse_to_themselves(task: Task) -> None:
    for cell, trial in some_trials(task, 40):
        for option in {trial.answer, *trial.options}:
            assert cell.parse(f"Answer: {option}", trial) == option


def wrong_answer(cell: Cell, trial: Trial) -> str:
    """Another option, the next integer not tolerated, the answer of another trial, or else a bracket too many."""
    if trial.options:
        return next(option for option in trial.options if option != trial.answer)
    if trial.answer.lstrip("-").isdigit():
        number = int(trial.answer)
        relative = getattr(cell.params, "relative_tolerance", 0)
        return str(number + 1 + math.ceil(getattr(cell.params, "tolerance", 0) + relative * abs(number)))
    others = (cell.trial(i).answer for i in range(1, 50))
    return next((answer for answer in others if answer != trial.answer), f"{trial.answer})")


def test_parse__wrong_answer_is_not_graded_right(task: Task) -> None:
    for cell, trial in some_trials(task, 40):
        wrong = wrong_answer(cell, trial)

        parsed = cell.parse(f"Answer: {wrong}", trial)

        assert parsed is not None
        assert not cell.grade(parsed, trial)


def test_parse__refuses_no_answer(task: Task) -> None:
    for text in ("", " \n", "I do not know.", "Answer:", "Answer: <value>", "((((", "\x00\ud800"):
        assert task.parse(text) is None, text
        for cell, trial in some_trials(task, 10):
            assert cell.parse(text, trial) is None, text


def test_parse__echo_of_the_prompt_is_no_answer(task: Task) -> None:
    for cell, trial in some_trials(task, 20):
        closing = trial.prompt.splitlines()[-1]

        assert cell.parse(closing, trial) is None


@given(text=hostile_text())
def test_parse__never_raises(text: str) -> None:
    for task in TASKS.values():
        answer = task.parse(text)
        assert answer is None or answer


@given(data=st.data())
def test_trial__answer_is_canonical(data: st.DataObject) -> None:
    task = data.draw(st.sampled_from(list(TASKS.values())))
    cell = Cell(task, data.draw(params_of(task)), data.draw(st.integers(0, 2**32)))
    index = data.draw(st.integers(0, 10**9))
    index = index_of(task, cell.params, index)
    trial = cell.trial(index)

    assert cell.parse(f"Answer: {trial.answer}", trial) == trial.answer
    assert cell.trial(index) == trial


def with_limit(task: Task, field: str, value: Any) -> Any:
    """Params with one value set, and its partner field out of the way."""
    partner = {
        "min_number": {"max_number": 999},
        "max_number": {"min_number": -999},
        "min_word_length": {"max_word_length": 12},
        "max_word_length": {"min_word_length": 3},
        "target_tokens": {"columns": 12, "format": "json"},
    }
    return params_with(task, **partner.get(field, {}), **{field: value})


def test_params__limits_are_accepted_and_one_beyond_is_refused(task: Task) -> None:
    for field in numeric_fields(task):
        low, high = bounds(task, field)
        for value in (low, high):
            assert Cell(task, with_limit(task, field, value), 1).trial(0).prompt
        for value in (low - 1, high + 1):
            with pytest.raises(ValidationError, match=field):
                with_limit(task, field, value)


def test_params__listed_values_are_accepted_and_others_refused(task: Task) -> None:
    for field in listed_fields(task):
        for value in choices(task, field):
            assert Cell(task, params_with(task, **{field: value}), 1).trial(0).prompt
        with pytest.raises(ValidationError, match=field):
            params_with(task, **{field: "klingon"})


def test_params__unknown_field_is_refused(task: Task) -> None:
    with pytest.raises(ValidationError, match="lenght"):
        task.Params(lenght=4)


def test_params__of_another_task_are_refused(task: Task) -> None:
    other = next(t for t in TASKS.values() if t is not task)

    with pytest.raises(TypeError, match="another task"):
        Cell(task, other.example(), 1).trial(0)


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
        default = getattr(task.example(), field)
        harder = params_with(task, **{field: default + (0.5 if isinstance(default, float) else 1)})

        assert task.difficulty(harder) > task.difficulty(task.example()), field


def golden_digests(task: Task) -> list[str]:
    cells = [Cell(task, params, 42) for params in (task.example(), params_with(task, **LARGE[task.name]))]
    trials = [cell.trial(i) for cell in cells for i in range(5)]
    return [hashlib.sha256(f"{t.prompt}\0{t.answer}".encode()).hexdigest()[:16] for t in trials]


def test_trial__equals_golden_digests(task: Task) -> None:
    """A difference here means that `version` must be raised and the file rewritten."""
    stored = json.loads(GOLDEN.read_text())[task.name]

    assert {"version": task.version, "digests": golden_digests(task)} == stored


def test_trial__of_a_cell_of_earlier_versions_is_what_it_was() -> None:
    task = TASKS["dataset"]
    params = task.example().model_copy(update={"draws": "place"})
    trials = [Cell(task, params, 42).trial(i) for i in range(3)]

    digests = [hashlib.sha256(f"{t.prompt}\0{t.answer}".encode()).hexdigest()[:16] for t in trials]

    assert digests == ["581ae686f4861478", "71f64ca9d193755b", "0f33f6c7b02bb79a"]


ALL_SOLVERS = SOLVERS | LIST_SOLVERS | STORY_SOLVERS | DOCUMENT_SOLVERS


@pytest.mark.long
@pytest.mark.parametrize("name", list(FAMILY))
def test_answer__equals_the_solvers(name: str) -> None:
    task = TASKS[name]
    rng = random.Random(99)
    for number in range(250):
        params = random_params(task, rng)
        if getattr(params, "rows", 0) > 100 and number % 10:
            continue  # one large table takes as long as a hundred small ones
        trial = Cell(task, params, rng.randrange(10**6)).trial(rng.randrange(10**6))

        assert ALL_SOLVERS[name](trial.prompt) == trial.answer, trial.prompt
