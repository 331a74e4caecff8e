"""Tasks of lm-eval: what is refused and why, what its code may do, and how its replies are read."""

from __future__ import annotations

import json
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from evalcube.flows.plan.requests import with_defaults
from evalcube.stages.generate import TASKS, Cell, Trial
from evalcube.stages.generate.dataset.hub.address import shareable
from evalcube.stages.generate.errors import CodeError, TaskError
from evalcube.stages.generate.foreign import lm_eval
from evalcube.stages.generate.foreign.bounded import Failure
from evalcube.stages.generate.foreign.lm_eval import LmEvalParams, task
from evalcube.stages.infer.apis import APIS
from evalcube.stages.named_code import _NAMED, allow_code, folder_code
from tests.tiers import need

QUESTIONS = [
    {"question": "Two and two?", "answer": "It is 4.\n#### 4"},
    {"question": "Three times four?", "answer": "#### 12"},
]
PLAIN = {
    "task": "mine",
    "dataset_path": "json",
    "dataset_kwargs": {"data_files": {"test": "mine.jsonl"}},
    "test_split": "test",
    "doc_to_text": "{{question}}",
    "doc_to_target": "{{answer}}",
    "generation_kwargs": {"until": ["\n\n"], "max_gen_toks": 20},
    "metric_list": [{"metric": "exact_match", "regexes_to_ignore": ["(?s).*#### "]}],
    "filter_list": [
        {
            "name": name,
            "filter": [{"function": "regex", "regex_pattern": pattern}, {"function": "take_first"}],
        }
        for name, pattern in (("strict", "#### ([0-9]+)"), ("loose", "([0-9]+)"))
    ],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a task that a config of the user's names."""
    need("lm-eval", find_spec("lm_eval"), "pip install 'evalcube[lm-eval]'")
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in QUESTIONS))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    allow_code([folder_code(".")])
    return tmp_path


def resolved(folder, name="mine", changes=None, **params):
    (folder / "mine.yaml").write_text(json.dumps(PLAIN | (changes or {})))  # JSON is YAML
    return task(name).resolve(LmEvalParams(include_path=".", **params))


@pytest.mark.integration
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"output_type": "multiple_choice"}, "output type multiple_choice, which needs the probabilities"),
        ({"unsafe_code": True}, "unsafe_code"),
        ({"dataset_kwargs": {"trust_remote_code": True}}, "trust_remote_code"),
        ({"class": "Mine"}, "is a class of Python"),
        ({"repeats": 8}, "grades 8 replies to a question together"),
        ({"doc_to_image": "picture"}, "asks about images"),
        ({"use_prompt": "promptsource:*"}, "promptsource"),
        (
            {"metric_list": [{"metric": "exact_match", "hf_evaluate": True}]},
            "whose code is fetched from the hub",
        ),
        ({"metric_list": [{"metric": "some_metric"}]}, "metric some_metric, whose code is fetched"),
        ({"task": "other"}, "lm-eval:mine is not in"),
        ({"task": "other", "tag": "mine"}, "is a tag of several tasks, such as other"),
        ({"task": ["one", "two"], "group": "mine"}, "is a group of tasks: one, two"),
        ({"doc_to_text": "{{question.none.none}}"}, "it raised UndefinedError"),
    ],
)
def test_resolve__names_why_a_task_is_not_asked(folder, changes, why):
    with pytest.raises(TaskError) as refused:
        resolved(folder, changes=changes)

    assert why in str(refused.value)


@pytest.mark.integration
def test_resolve__runs_no_code_of_a_task_that_is_refused(folder):
    (folder / "code.py").write_text("open('ran', 'w').close()\n\ndef ask(doc):\n    return ''\n")
    text = json.dumps(PLAIN | {"unsafe_code": True}).replace('"{{question}}"', "!function code.ask")
    (folder / "mine.yaml").write_text(text)

    with pytest.raises(TaskError, match="unsafe_code"):
        task("mine").resolve(LmEvalParams(include_path="."))

    assert not (folder / "ran").exists()


@pytest.mark.integration
def test_resolve__finds_filter_metric_and_reader(folder):
    params = resolved(folder)
    loose = resolved(folder, filter="loose", graded_by="lm-eval", limit=1)

    assert (params.filter, params.metric, params.graded_by, params.rows) == (
        "strict",
        "exact_match",
        "number",
        2,
    )
    assert (loose.filter, loose.graded_by, loose.rows) == ("loose", "lm-eval", 1)
    assert params.sha256 != loose.sha256
    assert task("mine").resolve(LmEvalParams(include_path=".")) == params


@pytest.mark.integration
@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"filter": "none"}, "there is no filter none; the task has strict, loose"),
        ({"metric": "f1"}, "there is no metric f1; the task has exact_match"),
        ({"template": "{question}"}, "has no param template"),
        ({"sha256": "0" * 64}, "renders to the SHA-256"),
        ({"graded_by": "text"}, "kind text compares one line"),
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


@pytest.mark.integration
def test_theirs__runs_no_code_of_a_folder_that_only_a_cube_names(folder):
    cell = Cell(task("mine"), resolved(folder), 1)
    trial = cell.trial(0)
    _NAMED.discard(folder_code("."))

    with pytest.raises(CodeError, match="only the cube names it"):
        cell.task.theirs("#### 4", cell.params, trial)


def test_parse_reply__grades_a_reply_once(monkeypatch):
    said = iter([{"strict": {"left": "5", "scores": {"exact_match": 0.0}}}])
    monkeypatch.setattr(lm_eval, "ask", lambda *_: next(said, Failure("grader ran out of time")))
    params = LmEvalParams(filter="strict", metric="exact_match", graded_by="lm-eval")
    trial = Trial("", "4", extras={"lm_eval": {"task": {"sampler": {"stop": []}}, "doc": {}}})

    assert task("mine").parse_reply("#### 5", params, trial) == "5"
    assert task("mine").parse_reply("#### 5", params, trial) is None


def test_resolve__asks_for_the_extra(monkeypatch):
    monkeypatch.setattr(lm_eval, "find_spec", lambda _: None)

    with pytest.raises(TaskError, match=r"pip install 'evalcube\[lm-eval\]'"):
        TASKS["lm-eval:gsm8k"].resolve(LmEvalParams())


@pytest.mark.parametrize(
    ("api", "said", "sent"),
    [
        ("chat", {}, {"stop": ["\n"], "max_tokens": 9, "temperature": 0}),
        ("chat", {"temperature": 1}, {"stop": ["\n"], "max_tokens": 9, "temperature": 1}),
        (
            "chat",
            {"max_completion_tokens": 5},
            {"stop": ["\n"], "max_completion_tokens": 5, "temperature": 0},
        ),
        ("messages", {"stop_sequences": []}, {"stop_sequences": [], "max_tokens": 9, "temperature": 0}),
        ("responses", {"max_output_tokens": 5}, {"max_output_tokens": 5, "temperature": 0}),
    ],
)
def test_with_defaults__lets_the_sampler_win_and_leaves_out_what_an_api_has_not(api, said, sent):
    trial = Trial("", "", extras={"sampler": {"stop": ["\n"], "max_tokens": 9, "temperature": 0}})

    found = with_defaults(SimpleNamespace(api=api, sampler=SimpleNamespace(params=said)), trial)

    assert found == sent
    assert APIS[api].params(found)


def test_shareable__tells_nothing_of_this_machine():
    params = {"include_path": "/home/ada/tasks", "file": "/home/ada/a.jsonl", "sha256": "0" * 64}

    assert shareable(params) == {"include_path": "tasks", "file": "a.jsonl", "sha256": "0" * 64}
