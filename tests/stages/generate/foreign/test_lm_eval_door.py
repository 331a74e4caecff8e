"""Which tasks of lm-eval are asked, and why others are not."""

from __future__ import annotations

import json

import pytest
import yaml

from evalcube.stages.generate.errors import TaskError
from evalcube.stages.generate.foreign import lm_eval_kept
from evalcube.stages.generate.foreign.lm_eval import LmEvalParams, task
from tests.stages.generate.foreign.lm_eval_tasks import PLAIN, resolved


@pytest.mark.integration
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"output_type": "loglikelihood"}, "output type loglikelihood, which needs the probabilities"),
        ({"output_type": "multiple_choice"}, "lm-eval:lettered:mine asks for the letter of an option"),
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
        ({"task": "other", "tag": "mine"}, "is a group or tag of other; name one"),
        ({"task": ["one", "two"], "group": "mine"}, "is a group or tag of one, two; name one"),
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
def test_members__are_the_tasks_of_a_group_or_a_tag(folder):
    tasks = {"one": {"tag": "easy"}, "two": {"tag": ["easy", "far"]}, "three": {}}
    for name, more in tasks.items():
        (folder / f"{name}.yaml").write_text(json.dumps({"task": name, **more}))
    groups = {
        "all": ["three", {"group": "inner", "task": [{"task": "one", "task_alias": "1"}]}, "tagged"],
        "tagged": ["easy"],
        "loop": ["loop", "three"],
        "odd": [{"task": "one", "num_fewshot": 3}],
    }
    for name, listed in groups.items():
        (folder / f"group_{name}.yaml").write_text(yaml.safe_dump({"group": name, "task": listed}))
    (folder / "easy.yaml").write_text("task: four\ntag:\n  - easy\n")
    (folder / "after.yaml").write_text("include: easy.yaml\ntask: five\n")
    root = str(folder)

    assert lm_eval_kept.members("all", root) == ["three", "one", "five", "four", "two"]
    assert lm_eval_kept.members("easy", root) == ["five", "four", "one", "two"]
    assert lm_eval_kept.members("loop", root) == ["three"]
    assert lm_eval_kept.members("one", root) == lm_eval_kept.members("nothing", root) == []
    with pytest.raises(TaskError, match="lists one, with num_fewshot"):
        lm_eval_kept.members("odd", root)
