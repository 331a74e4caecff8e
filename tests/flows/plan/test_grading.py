"""What outputs must be: rows checked before anything is sent, identity of a sweep, judges' replies read."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from evalcube.deploy.simulator.truth import Truth, decode, encode
from evalcube.flows.config.load import from_mapping
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.evaluations import score_in
from evalcube.flows.plan.grading import LayerGrader, grade_reading
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.requests import CriteriaBook
from evalcube.flows.run.in_flight import InFlightLimit, JudgeLimit
from evalcube.stages.generate import Trial
from evalcube.stages.process.reading import read_reply
from evalcube.stages.reply.forms import Record
from evalcube.stages.reply.status import Status
from tests.cases import with_cases
from tests.flows.judging import judged_config, write_rows
from tests.flows.support import sweep_config

NOWHERE = "http://127.0.0.1:9/v1"


def plan_of(config):
    return build_plan(from_mapping(config))


def test_build_plan__without_criteria_nothing_is_added(tmp_path):
    plan = plan_of(sweep_config(tmp_path, NOWHERE))

    assert plan.layers == {}
    assert set(plan.spec()) == {"format", "seed", "evaluations", "tasks"}
    assert set(plan.spec()["tasks"][0]) == {"label", "name", "version", "points"}
    assert set(plan.sizes) == {"model", "task", "params", "trial", "repeat"}
    assert "quality" not in encode(Truth("7"))


def test_build_plan__layers_and_judges_survive_the_spec(tmp_path):
    plan = plan_of(judged_config(tmp_path, NOWHERE))

    again = Plan.from_spec(json.loads(json.dumps(plan.spec())), plan.trials, plan.repeats)

    assert plan.layers == {"fact": (), "behavior": (), "judge": (), "judge_readings": (2, 2)}
    assert again.layers == plan.layers
    assert again.judges == plan.judges
    assert again.spec() == plan.spec()
    assert [row.model for row in plan.evaluations] == ["before", "after"]


@pytest.mark.parametrize(
    "reader",
    [
        {"name": "exact_match", "own": True},
        {
            "name": "strict",
            "pattern": "#### (.*)",
            "group": 1,
            "take": "last",
            "ignore": [","],
            "case": False,
        },
        {"name": "grade", "grader": "graders:grade"},
    ],
)
def test_from_spec__takes_a_second_reader_as_it_was_written(tmp_path, reader):
    spec = plan_of(sweep_config(tmp_path, NOWHERE)).spec()
    spec["tasks"][0]["reader"] = reader

    assert Plan.from_spec(spec, 1, 1).spec() == spec


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda row: {**row, "assertions": [*row["assertions"], {"type": "contans", "value": "x"}]},
            r"tasks.dataset: .*rows.jsonl, row \d+: assertions\[2\].type: unknown type 'contans'. Did you mean",
        ),
        (
            lambda row: {**row, "assertions": [{"type": "regex", "pattern": "("}]},
            r"rows.jsonl, row \d+: assertions\[0\].pattern: .* is no pattern",
        ),
    ],
)
def test_build_plan__a_wrong_row_is_told_with_its_place(tmp_path, change, message):
    write_rows(tmp_path / "rows.jsonl", lambda row: change(row) if row["id"] == "peru" else row)

    with pytest.raises(SweepError, match=message):
        plan_of(judged_config(tmp_path, NOWHERE))


def test_build_plan__rubrics_and_judges_need_each_other(tmp_path):
    config = judged_config(tmp_path, NOWHERE)

    with pytest.raises(SweepError, match="nobody judges"):
        plan_of({**config, "judges": []})
    with pytest.raises(SweepError, match="no task has"):
        plan_of({**config, "tasks": {"arithmetic": {"params": {"length": 3}}}})


def test_build_plan__refuses_judges_that_would_share_every_reply(tmp_path):
    judges = [{"model": "grader", "name": "x", "repeats": 2}, {"model": "grader", "name": "y"}]

    with pytest.raises(SweepError, match="'x' and 'y'"):
        plan_of(judged_config(tmp_path, NOWHERE, judges=judges))


def test_plan__prices_are_part_of_the_identity_where_assertions_look_at_costs(tmp_path):
    config = sweep_config(tmp_path, NOWHERE)
    dear = json.loads(json.dumps(config))
    dear["models"][0]["prices"] = {"prompt": 1.0, "completion": 2.0}
    assert plan_of(config).spec() == plan_of(dear).spec()
    for one in (config, dear):
        one["tasks"]["boolean"]["assertions"] = [
            {"type": "assert-set", "children": [{"type": "cost_max", "value": 1}]}
        ]

    assert plan_of(config).spec()["asserted_prices"] == [[0.0, 0.0]]
    assert plan_of(dear).spec()["asserted_prices"] == [[1.0, 2.0]]


def test_criteria_book__joins_task_and_row_and_parses_each_list_once(tmp_path, monkeypatch):
    config = sweep_config(tmp_path, NOWHERE)
    config["tasks"]["boolean"]["assertions"] = [{"type": "json_valid"}]
    book = CriteriaBook(plan_of(config).tasks)
    from evalcube.flows.plan import requests

    parsed, parse = [], requests.parse_assertions
    monkeypatch.setattr(
        requests, "parse_assertions", lambda rows, **more: parsed.append(rows) or parse(rows, **more)
    )
    trial = Trial("p", "a", extras={"assertions": [{"type": "contains", "value": "x"}], "rubric": "own"})

    found = [book.of(1, trial) for _ in range(5)]
    task_only = book.of(1, Trial("p", "a"))

    assert [one.type for one in found[0].assertions] == ["json_valid", "contains"]
    assert (found[0].rubric, task_only.rubric) == ("own", "")
    assert [one.type for one in task_only.assertions] == ["json_valid"]
    assert len(parsed) == 2
    assert book.of(0, Trial("p", "a")).assertions == ()


def record(content, finish="stop", status=200):
    body = {"choices": [{"message": {"content": content}, "finish_reason": finish}]}
    return Record(status, 0.1, json.dumps(body).encode()).encode()


@with_cases(
    ("reply", "score"),
    [
        (record('{"score": 4, "reason": "ok"}'), 4),
        (record('<think>{"score": 1}</think>{"score": 5}'), 5),
        (record('{"score": 4}', "length"), None),
        (record('{"score": 4}', "content_filter"), None),
        (record('{"score": 0}'), None),
        (record('{"score": 3.5}'), None),
        (record("__import__('os').system('true')"), None),
        (record("fine"), None),
        (record(None), None),
        (Record(400, 0.1, b'{"error": {"code": "content_filter"}}').encode(), None),
    ],
)
def test_score_in__what_has_no_score_is_missing_and_never_zero(reply, score):
    found = score_in(reply)

    assert np.isnan(found) if score is None else found == score


def test_judge_budget__bounds_blocks_only_where_shares_cannot():
    assert JudgeLimit(1, 1, workers=4).depth == 1
    assert JudgeLimit(4, 1, workers=4).depth > 10**6
    assert InFlightLimit(8, 16, workers=2).depth < 10


def test_truth__carries_a_quality_for_judges_only():
    assert decode(encode(Truth("", quality=0.25))).quality == 0.25
    assert decode(encode(Truth("7"))).quality is None


CALLING = [{"type": "tools_called", "values": ["add"]}, {"type": "tools_count_max", "value": 1}]
TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]


def calling_config(folder, tools):
    write_rows(folder / "rows.jsonl", lambda row: {**row, "assertions": CALLING})
    return judged_config(folder, NOWHERE, samplers={"greedy": {"max_tokens": 200, **tools}})


def test_build_plan__rows_that_ask_for_tools_that_nobody_offers_are_refused(tmp_path):
    with pytest.raises(SweepError, match=r"rows\.jsonl, row \d+: tools_called"):
        plan_of(calling_config(tmp_path, {}))


@pytest.mark.parametrize(
    ("calls", "held"),
    [
        ([("add", '{"x": 1}')], [True, True]),
        ([("ADD", "{}"), ("add", "{}")], [True, False]),
        ([("sub", "{}")], [False, True]),
        ([], [False, True]),
    ],
)
def test_graded_assertions__tools_are_measured_from_the_reply(tmp_path, calls, held):
    plan = plan_of(calling_config(tmp_path, {"tools": TOOLS}))
    trial = plan.tasks[0].cells[0].cell.trial(0)
    message = {
        "content": "",
        "tool_calls": [
            {"id": str(place), "function": {"name": name, "arguments": said}}
            for place, (name, said) in enumerate(calls)
        ],
    }
    body = json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]}).encode()
    reading = read_reply(Record(200, 0.5, body))

    graded = LayerGrader(plan).graded_assertions(SimpleNamespace(task=0, trial=trial), reading, (0.0, 0.0))

    assert [one.passed for one in graded] == held


def decided_plan(tmp_path, **changes):
    """A sweep of which two readings of a judge say what is right."""
    params = {"file": str(tmp_path / "rows.jsonl"), "match": "judge"}
    task = {"task": "dataset", "params": params, "rubric": "Gives {reference}."} | changes
    write_rows(tmp_path / "rows.jsonl")
    config = judged_config(
        tmp_path, NOWHERE, tasks={"capitals": task}, judges=[{"model": "grader", "repeats": 2}]
    )
    return plan_of(config)


def said(text):
    body = {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}
    return Record(200, 0.5, json.dumps(body).encode())


@pytest.mark.parametrize(
    ("scores", "status"),
    [
        (("5", "5"), Status.CORRECT),
        (("5", "2"), Status.CORRECT),
        (("5", "1"), Status.INCORRECT),
        (("?", "5"), Status.CORRECT),
        (("?", "?"), Status.INVALID),
    ],
)
def test_with_layers__judges_say_what_is_right(tmp_path, scores, status):
    plan = decided_plan(tmp_path)
    cell = plan.tasks[0].cells[0].cell
    item = SimpleNamespace(task=0, trial=cell.trial(0), cell=cell)
    reading = read_reply(said("Who can know?"))
    replies = [said(f'{{"score": {score}}}').encode() for score in scores]

    graded = LayerGrader(plan).with_layers(
        item, reading, grade_reading(reading, cell, item.trial), (0.0, 0.0), [replies]
    )

    assert graded.status == status


def test_with_layers__what_is_cut_stays_cut_whatever_judges_say(tmp_path):
    plan = decided_plan(tmp_path)
    cell = plan.tasks[0].cells[0].cell
    item = SimpleNamespace(task=0, trial=cell.trial(0), cell=cell)
    body = json.dumps({"choices": [{"message": {"content": "It is"}, "finish_reason": "length"}]}).encode()
    reading = read_reply(Record(200, 0.5, body))
    replies = [said('{"score": 5}').encode()] * 2

    graded = LayerGrader(plan).with_layers(
        item, reading, grade_reading(reading, cell, item.trial), (0.0, 0.0), [replies]
    )

    assert graded.status == Status.TRUNCATED


def test_criteria__a_rubric_names_the_reference(tmp_path):
    plan = decided_plan(tmp_path)
    trial = plan.tasks[0].cells[0].cell.trial(0)

    assert CriteriaBook(plan.tasks).of(0, trial).rubric == f"Gives {trial.answer}."


def test_build_plan__judges_cannot_decide_without_a_rubric(tmp_path):
    with pytest.raises(SweepError, match=r"tasks\.capitals: `match: judge`"):
        decided_plan(tmp_path, rubric=None)
