"""Tasks of lm-eval: what is refused and why, what its code may do, and how its replies are read."""

from __future__ import annotations

import json

import pytest

from evalcube.stages.generate import Cell, Trial
from evalcube.stages.generate.errors import CodeError, TaskError
from evalcube.stages.generate.foreign import lm_eval
from evalcube.stages.generate.foreign.bounded import Failure
from evalcube.stages.generate.foreign.lm_eval import LmEvalParams, task
from evalcube.stages.named_code import _NAMED, folder_code
from tests.stages.generate.foreign.lm_eval_tasks import PLAIN, resolved


@pytest.mark.integration
@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"filter": "none"}, "there is no filter none; the task has strict, loose"),
        ({"metric": "f1"}, "there is no metric f1; the task has exact_match"),
        ({"template": "{question}"}, "has no param template"),
        ({"sha256": "0" * 64}, "renders to the SHA-256"),
        ({"graded_by": "text"}, "is one line of at most"),
    ],
)
def test_resolve__refuses_params_that_cannot_be(folder, params, why):
    with pytest.raises(TaskError) as refused:
        resolved(folder, **params)

    assert why in str(refused.value)


@pytest.mark.integration
def test_cell__reads_each_reply_twice(folder):
    own = Cell(task("mine"), resolved(folder, order="file"), 1)
    theirs = Cell(task("mine"), resolved(folder, order="file", graded_by="lm-eval"), 1)
    trial, same = own.trial(0), theirs.trial(0)

    def read(cell, trial, reply):
        parsed = cell.parse(reply, trial)
        right = None if parsed is None else cell.grade(parsed, trial)
        return right, cell.task.theirs(reply, cell.params, trial)

    assert own.task.second_reader(own.params) == "lm-eval strict"
    assert theirs.task.second_reader(theirs.params) == ""
    assert trial.extras["sampler"] == {"stop": ["\n\n"], "max_tokens": 20, "temperature": 0}
    assert read(own, trial, "The answer is 4.") == (True, None)
    assert read(theirs, same, "The answer is 4.") == (None, None)
    assert [read(cell, trial, "#### 4") for cell in (own, theirs)] == [(True, 1.0)] * 2
    assert read(theirs, same, "#### 5") == (False, 0.0)
    assert read(own, trial, "I wonder.\n\n#### 4") == (None, None)  # after the stop sequence


CHOICES = [
    {"query": "What burns?", "says": ["Ice", "Wood", "Sand"], "gold": 1},
    {"query": "What flows?", "says": ["Water", "Stone"], "gold": 0},
    {"query": "What is none?", "says": ["This", "That"], "gold": -100},
]
CHOSEN = {
    "output_type": "multiple_choice",
    "dataset_kwargs": {"data_files": {"test": "choices.jsonl"}},
    "description": "Choose well.\n\n",
    "doc_to_text": "Q: {{query}}\nAnswer:",
    "doc_to_choice": "{{says}}",
    "doc_to_target": "{{gold}}",
    "metric_list": [{"metric": "acc"}],
    "filter_list": None,
}


def lettered(folder, rows=CHOICES, changes=None, **params):
    (folder / "choices.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    params = resolved(folder, "lettered:mine", CHOSEN | (changes or {}), order="file", **params)
    cell = Cell(task("lettered:mine"), params, 1)
    return cell, [cell.trial(number) for number in range(params.rows)]


@pytest.mark.integration
def test_lettered__asks_for_a_letter_and_reads_it(folder):
    cell, trials = lettered(folder)

    assert [trial.prompt for trial in trials] == [
        f"Choose well.\n\nQ: {question}\n\n{options}\n\nWhich option answers or continues this best? End with a last "
        "line of the form\nAnswer: <letter>"
        for question, options in (
            ("What burns?", "A) Ice\nB) Wood\nC) Sand"),
            ("What flows?", "A) Water\nB) Stone"),
        )
    ]
    assert [trial.answer for trial in trials] == ["B", "A"]
    assert [trial.guess_chance for trial in trials] == [1 / 3, 1 / 2]
    replies = ["Thus.\nAnswer: B", "The answer is (B).", "Answer: wood", "Answer: C", "I do not know"]
    read = [cell.parse(reply, trials[0]) for reply in replies]
    assert read == ["B", "B", "B", "C", None]
    assert [answer and cell.grade(answer, trials[0]) for answer in read] == [True, True, True, False, None]
    assert cell.task.second_reader(cell.params) == ""


@pytest.mark.integration
def test_lettered__shows_examples_as_they_are_to_be_answered(folder):
    _, trials = lettered(folder, CHOICES[:2], {"fewshot_split": "test", "num_fewshot": 1})
    assert trials[1].prompt.count("Answer: <letter>") == 2
    assert "\nAnswer: <letter>\n\nAnswer: B\n\nQ: What flows?" in trials[1].prompt


@pytest.mark.integration
def test_lettered__moves_options_whose_right_one_is_always_the_first(folder):
    rows = [{"query": f"{n}?", "says": [f"yes {n}", f"no {n}", f"maybe {n}"], "gold": 0} for n in range(30)]
    _, trials = lettered(folder, rows)

    assert {trial.answer for trial in trials} == set("ABC")
    assert all(trial.extras["choices"]["ABC".index(trial.answer)].startswith("yes") for trial in trials)


@pytest.mark.integration
def test_lettered__leaves_options_in_the_text_where_they_are(folder):
    text = "{{query}}\nA. {{says[0]}}\nB. {{says[1]}}\nAnswer:"
    _, trials = lettered(folder, CHOICES[1:2], {"doc_to_text": text, "doc_to_choice": ["A", "B"]})

    assert trials[0].prompt.startswith("Choose well.\n\nWhat flows?\nA. Water\nB. Stone\n\nWhich option")
    assert trials[0].extras["choices"] == ["Water", "Stone"]


@pytest.mark.integration
def test_lettered__joins_beginnings_with_what_follows_all_of_them(folder):
    changes = {"doc_to_text": "{{gold}}", "doc_to_target": "flows.", "doc_to_choice": "{{says}}"}
    _, trials = lettered(folder, CHOICES[:2], changes)

    assert trials[1].extras["choices"] == ["Water flows.", "Stone flows."]
    assert trials[1].answer == "A"


@pytest.mark.integration
@pytest.mark.parametrize(
    ("changes", "params", "why"),
    [
        (PLAIN, {}, "has no options; leave out lettered:"),
        ({"process_results": "!function code.results"}, {}, "several right options"),
        ({}, {"graded_by": "text"}, "only graded_by choice reads them"),
        ({}, {"filter": "strict"}, "there is no filter strict"),
    ],
)
def test_lettered__says_what_it_cannot_ask(folder, changes, params, why):
    with pytest.raises(TaskError, match=why):
        lettered(
            folder,
            changes={"output_type": "generate_until", **changes} if changes is PLAIN else changes,
            **params,
        )


@pytest.mark.integration
@pytest.mark.parametrize(
    ("text", "targets", "reader", "options"),
    [
        ("{{query}}\n(A) {{says[0]}}\n(B) {{says[1]}}\nA:", ["(B)", "(A)"], "choice", ["Ice", "Wood"]),
        ("{{query}} A. {{says[0]}} B. {{says[1]}}", ["B", "A"], "choice", ["Ice", "Wood"]),
        ("{{query}} Say A, B or C.", ["A", "B", "C"], "choice", ["(A)", "(B)", "(C)"]),
        ("Which letter begins {{query}}", ["W", "B"], "text", None),
        ("{{query}}\n(A) {{says[0]}}\n(B) {{says[1]}}", ["B", "Wood"], "text", None),
    ],
)
def test_resolve__takes_references_that_are_letters_of_options_as_choices(
    folder, text, targets, reader, options
):
    rows = [{**CHOICES[0], "target": target} for target in targets]
    (folder / "choices.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    changes = {"dataset_kwargs": CHOSEN["dataset_kwargs"], "doc_to_text": text, "doc_to_target": "{{target}}"}
    params = resolved(folder, changes={**changes, "filter_list": None}, order="file")
    cell = Cell(task("mine"), params, 1)
    trial = cell.trial(0)

    assert params.graded_by == reader
    assert trial.extras.get("choices") == options
    if options:
        right = targets[0].strip("()")
        assert (trial.answer, trial.guess_chance) == (right, 1 / len(options))
        assert cell.parse(f"Hence **({right})**.", trial) == right
        assert cell.task.theirs(targets[0], cell.params, trial) == 1.0
    else:
        with pytest.raises(TaskError, match="letters of options"):
            resolved(folder, changes={**changes, "filter_list": None}, graded_by="choice")


@pytest.mark.integration
def test_theirs__runs_no_code_of_a_folder_that_only_a_cube_names(folder):
    cell = Cell(task("mine"), resolved(folder), 1)
    trial = cell.trial(0)
    _NAMED.discard(folder_code("."))

    with pytest.raises(CodeError, match="only the cube"):
        cell.task.theirs("#### 4", cell.params, trial)


def test_parse_reply__grades_a_reply_once(monkeypatch):
    graded = [("5", 0.0), ("four", 1.0), ("4", 0.5), ("[invalid]", 1.0), (" ", 1.0)]
    said = iter([{"strict": {"left": left, "scores": {"exact_match": score}}} for left, score in graded])
    monkeypatch.setattr(lm_eval, "ask", lambda *_: next(said, Failure("grader ran out of time")))
    params = LmEvalParams(filter="strict", metric="exact_match", graded_by="lm-eval")
    trial = Trial("", "4", extras={"lm_eval": {"task": {"sampler": {"stop": []}}, "doc": {}}})

    assert task("mine").parse_reply("#### 5", params, trial) == "5"
    # The reference if it is right, however it is written, and never if it is not.
    assert task("mine").parse_reply("#### four", params, trial) == "4"
    assert task("mine").parse_reply("#### 4", params, trial) not in ("4", None)
    assert [task("mine").parse_reply("", params, trial) for _ in range(3)] == [None] * 3
