"""Recipes of known data sets: each on rows of its source's form, written here; several at once; as a task."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from evalcube.flows.config.load import from_mapping, parse_config
from evalcube.flows.config.models import Sweep
from evalcube.flows.config.recipes import (
    joined_suites,
    recipe_names,
    suite_section,
    suite_text,
    unverified,
    with_suites,
)
from evalcube.flows.config.suites import load_suite, load_sweep
from evalcube.flows.errors import ConfigError, SweepError
from evalcube.flows.plan.build import build_plan
from evalcube.stages.generate.errors import TaskError
from evalcube.stages.generate.foreign import lm_eval
from tests.cases import with_cases

MODELS = [{"name": "a", "endpoint": "sim:"}]
SUBJECT = {"category": "law", "cot_content": "A: So it is. The answer is (J)."}
ROWS: dict[str, list[dict[str, Any]]] = {
    "gsm8k": [{"question": "Two and two?", "answer": "It is 2+2=<<2+2=4>>4.\n#### 4"}],
    "aime24": [{"ID": "2024-I-1", "Problem": "Nine and nine?", "Solution": "Add.", "Answer": 18}],
    "aime25": [{"problem": "Nine and eight?", "answer": "17", "id": "0"}],
    "gpqa-diamond": [
        {
            "Question": "What is heavy?",
            "Correct Answer": "Lead\n",
            **{f"Incorrect Answer {place}": name for place, name in enumerate(("Air", "Foam", "Fog"), 1)},
            "Record ID": "rec1",
        }
    ],
    "mmlu-pro": [
        {"question_id": 7, "question": "Which?", "options": list("qrstuvwxyz"), "answer": "J", **SUBJECT},
        {"question_id": 8, "question": "Who?", "options": ["he", "she", "he"], "answer": "B", **SUBJECT},
    ],
    "math500": [{"problem": "Half?", "solution": "So.", "answer": "\\frac{1}{2}", "unique_id": "test/1"}],
    "simpleqa-verified": [
        {"original_index": 3, "problem": "Who was it?", "answer": "Ann Bell", "topic": "Art"}
    ],
    "musr": [
        {
            "narrative": "A tale.",
            "question": "Who did it?",
            "choices": "['Ann', \"Bob's aunt\"]",
            "answer_index": 1,
        }
    ],
}


def as_task(name: str, tmp_path: Path, **more: Any) -> Sweep:
    """A sweep whose one task is a suite's, on our rows."""
    file = tmp_path / f"{name}.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS[name]))
    rows: dict[str, Any] = {"params": {"file": str(file)}}
    if shots := suite_section(name)["tasks"][name]["params"].get("fewshot"):
        examples = tmp_path / "examples.jsonl"
        examples.write_text(json.dumps({**ROWS[name][0], "question": "Another one?"}) + "\n")
        rows["params"]["fewshot"] = {**shots, "n": 1, "from": {"file": str(examples)}}
    judges = [{"model": "j"}] if "rubric" in suite_section(name)["tasks"][name] else []
    models = [*MODELS, *({"name": one["model"], "endpoint": "sim:", "measured": False} for one in judges)]
    if "manifold" in suite_section(name)["tasks"][name]:
        rows = {"manifold": [{"points": [{"file": str(file)}]}]}
    tasks = {"mine": {"suite": name, **rows, **more}}
    return from_mapping(
        {"models": models, "trials": 5, "tasks": tasks, **({"judges": judges} if judges else {})}
    )


# What math-verify compares is compared in a process of its own.
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.cluster) if name == "math500" else name for name in sorted(ROWS)],
)
def test_recipe__asks_and_reads_rows_of_its_sources_form(name: str, tmp_path: Path) -> None:
    cell = build_plan(as_task(name, tmp_path)).tasks[0].cells[0].cell
    trials = [cell.trial(number) for number in range(len(ROWS[name]))]

    for trial in trials:
        form = re.sub("<[a-z]+>", trial.answer, trial.prompt.splitlines()[-1])  # as the prompt asks for it
        answer = cell.parse(f"Thus it is so.\n{form if trial.answer in form else trial.answer}", trial)
        assert answer is not None
        assert cell.grade(answer, trial)


def test_rows__are_of_each_recipe() -> None:
    assert sorted(ROWS) == recipe_names()


@with_cases("name", recipe_names())
def test_recipe__says_where_it_is_from_and_that_nobody_verified_it(name: str) -> None:
    section = suite_section(name)
    (task,) = section["tasks"].values()
    recipe = task["recipe"]
    files = [task["params"].get("file")] + [
        point["file"] for entry in task.get("manifold", ()) for point in entry["points"]
    ]

    assert section["name"] == name
    assert recipe["sources"]
    assert recipe["verified"] is False
    # A pin stands with whence it is copied, and no pin without.
    assert all(("@" in file) == bool(recipe.get("revision")) for file in files if file)
    assert "\nmodels:" not in suite_text(name)
    if shots := task["params"].get("fewshot"):
        assert shots["stop"]  # else a model goes on with questions of its own


def test_gpqa__letters_are_shuffled(tmp_path: Path) -> None:
    ROWS["many"] = [{**ROWS["gpqa-diamond"][0], "Question": f"What is heavy, {n}?"} for n in range(40)]
    config = as_task("gpqa-diamond", tmp_path)
    (tmp_path / "gpqa-diamond.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS.pop("many")))
    cell = build_plan(from_mapping(config.model_dump(exclude_unset=True))).tasks[0].cells[0].cell

    assert {cell.trial(number).answer for number in range(40)} == set("ABCD")


# As a task of an own sweep


def test_suite_of_a_task__what_stands_beside_it_wins(tmp_path: Path) -> None:
    config = as_task("gsm8k", tmp_path, reader={"name": "mine", "pattern": "x"})
    task = config.tasks["mine"]

    assert task.task == "dataset"
    assert task.suite is None  # what the cube notes stands by itself
    assert task.params is not None
    assert task.params["answer_after"] == "####"
    assert task.params["file"].endswith("gsm8k.jsonl")
    assert task.reader is not None
    assert task.reader.name == "mine"


def test_suite_of_a_task__of_a_suite_with_several_the_one_of_that_name() -> None:
    own = {"letters": {"suite": "m12"}, "easy": {"suite": "m12", "task": "sort"}}
    config = from_mapping({"models": MODELS, "tasks": own})

    assert config.manifold("letters")[0] == "letters"
    assert config.manifold("easy")[0] == "sort"
    assert len(config.tasks["easy"].manifold or ()) == 2


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("{suite: m13}", "tasks.sums.suite: there is no suite 'm13'. Did you mean 'm15'?"),
        ("{suite: m12}", "tasks.sums.suite: has no task 'sums'"),
        ("{suite: 7}", "tasks.sums.suite: must be a text"),
    ],
)
def test_suite_of_a_task__a_wrong_one_is_told(task: str, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_config(f"tasks:\n  sums: {task}\n", "own.yaml", models=MODELS)

    assert f"own.yaml:2: {said}" in str(raised.value)


def test_with_suites__takes_a_group_of_lm_eval_as_its_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    def members_of(name: str, folder: str) -> list[str]:
        if name == "lm-eval:odd":
            raise TaskError("lm-eval:odd lists one, with num_fewshot of its own")
        return [f"lm-eval:{folder}{member}" for member in "ab"] if "group" in name else []

    monkeypatch.setattr(lm_eval, "members_of", members_of)
    tasks = {
        "lm-eval:group": None,
        "mine": {"task": "lm-eval:group", "params": {"limit": 3, "include_path": "f/"}},
        "lm-eval:one": {},
        "lm-eval:odd": {},
    }

    raw, (finding,) = with_suites({"tasks": tasks})

    params = tasks["mine"]["params"]  # type: ignore[index]
    assert raw["tasks"] == {
        "lm-eval:a": {"task": "lm-eval:a"},
        "lm-eval:b": {"task": "lm-eval:b"},
        "mine f/a": {"task": "lm-eval:f/a", "params": params},
        "mine f/b": {"task": "lm-eval:f/b", "params": params},
        "lm-eval:one": {},
        "lm-eval:odd": {},
    }
    assert finding.path == ("tasks", "lm-eval:odd")


def test_with_suites__leaves_what_is_no_mapping_to_the_rules() -> None:
    assert with_suites({"tasks": 7}) == ({"tasks": 7}, [])
    assert with_suites({"tasks": {"a": None}}) == ({"tasks": {"a": None}}, [])


# Several at once


def test_joined_suites__are_one_sweep_in_any_order() -> None:
    one, other = (joined_suites(sorted(names)) for names in (("gsm8k", "musr"), ("musr", "gsm8k")))

    assert one == other
    assert one["name"] == "gsm8k musr"
    assert set(one["tasks"]) == {"gsm8k", "musr"}
    assert one["trials"] == 1319  # all rows of each


def test_load_suite__refuses_those_that_are_asked_otherwise() -> None:
    with pytest.raises(SweepError, match="aime25 and gsm8k"):
        load_suite(["gsm8k", "aime25"], ["sim:"])


def test_load_sweep__several_are_suites() -> None:
    with pytest.raises(ConfigError, match=r"'own\.yaml': only suites"):
        load_sweep(["gsm8k", "own.yaml"], ["sim:"])


# What nobody verified


def test_unverified__names_the_tasks() -> None:
    tasks = {"a": {"recipe": {"verified": False}}, "b": {"recipe": {"verified": True}}, "c": {}, "d": 7}

    (text,) = unverified(tasks)

    assert text.startswith("verified: no (a). ")
    assert unverified({"c": {}}) == unverified(None) == ()
