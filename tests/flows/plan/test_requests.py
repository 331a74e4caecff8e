"""What is said before a question is part of its request, and the files of examples go with the cube."""

from types import SimpleNamespace

import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.requests import trial_messages, trial_request, with_defaults
from evalcube.flows.state.questions import data_sets
from evalcube.stages.generate import Trial
from evalcube.stages.infer.apis import APIS
from tests.cases import with_cases
from tests.flows.support import sweep_config
from tests.hub import GSM, jsonl


@pytest.fixture
def files(tmp_path):
    for name, rows in (("test", GSM[:9]), ("train", GSM[9:])):
        (tmp_path / f"{name}.jsonl").write_bytes(jsonl(rows))
    return tmp_path


def plan_of(folder, api="chat", templates=None, **shots):
    fewshot = {"n": 2, "as": "turns", "from": {"file": str(folder / "train.jsonl")}} | shots
    params = {
        "file": str(folder / "test.jsonl"),
        "prompt": "question",
        "kind": "number",
        "answer_after": "####",
    }
    tasks = {"sums": {"task": "dataset", "params": {**params, "fewshot": fewshot}}}
    config = sweep_config(folder, "http://127.0.0.1:1/v1", tasks=tasks)
    model = {"name": "m", "endpoint": "http://127.0.0.1:1/v1", "api": api}
    more = {"templates": templates} if templates else {}
    return build_plan(from_mapping({**config, "models": [model], **more}))


def first(plan):
    cell = plan.tasks[0].cells[0].cell
    return plan.evaluations[0], cell, cell.trial(0)


def test_trial_messages__have_earlier_turns_before_the_question(files):
    system = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "{{ prompt }} Think."}]

    messages = trial_messages(*first(plan_of(files, templates={"brief": system})))

    assert [message["role"] for message in messages] == ["system", *["user", "assistant"] * 2, "user"]
    assert messages[-1]["content"].endswith("Think.")


def test_trial_request__another_example_is_another_key(files):
    found = {trial_request(*first(plan_of(files, seed=seed)), 0).digest for seed in (0, 0, 1)}

    assert len(found) == 2


def test_build_plan__refuses_turns_that_an_api_cannot_carry(files):
    with pytest.raises(SweepError, match="model 'm'"):
        plan_of(files, api="completions")

    assert plan_of(files, api="completions", **{"as": "text"})
    assert plan_of(files, api="messages")


def test_data_sets__has_the_files_of_examples(files):
    plan = plan_of(files)

    assert {str(files / "train.jsonl"), str(files / "test.jsonl")} == set(plan.files.values())
    assert set(data_sets(plan)) == set(plan.files)


def test_from_spec__finds_the_files_of_examples_elsewhere(files):
    plan = plan_of(files)
    moved = {digest: f"/elsewhere/{digest}.jsonl" for digest in plan.files}

    again = Plan.from_spec(plan.spec(), plan.trials, plan.repeats, moved)

    assert again.files == moved
    assert again.tasks[0].cells[0].cell.id == plan.tasks[0].cells[0].cell.id


@with_cases(
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

    params = with_defaults(SimpleNamespace(api=api, sampler=SimpleNamespace(params=said)), trial)

    assert params == sent
    assert APIS[api].params(params)
