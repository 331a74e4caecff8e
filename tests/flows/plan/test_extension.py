"""What extensions ask after replies, what they make of both, and when."""

import json
from dataclasses import replace

import numpy as np
import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.evaluations import token_limit
from evalcube.flows.plan.extension import (
    Extending,
    extended_plan,
    extended_reply,
    extended_request,
    further_request,
)
from evalcube.flows.plan.part import Fixed, Only
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.requests import Prepared, trial_request
from evalcube.flows.plan.targets import SampleTargets
from evalcube.stages.process.reading import read_reply
from evalcube.stages.reply.forms import Record
from evalcube.stages.reply.status import COUNTERS


def plan_of(api="completions", limit=300, **params):
    config = {
        "models": [{"name": "m", "endpoint": "http://127.0.0.1:1/v1", "api": api}],
        "samplers": {"s": {"max_tokens": 100, **params}},
        "tasks": {"arithmetic": {"manifold": [{"grid": {"length": [3, 4]}}]}},
    }
    return extended_plan(build_plan(from_mapping(config)), limit)


def item_of(plan, repeat=0):
    cell = plan.tasks[0].cells[0].cell
    trial = cell.trial(0)
    return Prepared(cell, trial, trial_request(plan.evaluations[1], cell, trial, repeat), repeat, 0)


def reply(text="so far", finish="length", tokens=100, status=200, **more):
    usage = {} if tokens is None else {"usage": {"prompt_tokens": 9, "completion_tokens": tokens}}
    body = {"choices": [{"text": text, "finish_reason": finish, **more}], **usage}
    return Record(status, 1.5, json.dumps(body).encode(), api="completions").encode()


def asked(plan, data, repeat=0):
    request = further_request(plan, plan.evaluations[1], item_of(plan, repeat), data)
    return None if request is None else json.loads(request.body)


def test_extended_plan__adds_evaluations_that_say_in_name_and_identity_what_they_are():
    plan = plan_of(api="chat")
    base, more = plan.evaluations

    assert (more.sampler.name, more.sampler.params) == ("s upper bound at 300", {"max_tokens": 300})
    assert (more.extended, more.extends) == ("anew", base.eval_id)
    assert len({base.eval_id, more.eval_id, replace_mark(more).own_id}) == 3
    assert more.own_id == more.eval_id
    assert Plan.from_spec(plan.spec(), 1, 1).evaluations == plan.evaluations
    item, plain = item_of(plan), replace_mark(more)
    assert item.request.body == trial_request(plain, item.cell, item.trial, 0).body
    assert item.request.digest != trial_request(plain, item.cell, item.trial, 0).digest


def replace_mark(evaluation):
    return evaluation.model_copy(update={"extended": "", "extends": ""})


def test_extended_plan__continues_text_completions_whose_penalties_do_not_go_by_what_was_said():
    assert [plan_of().evaluations[1].extended, plan_of().evaluations[1].sampler.name] == [
        "continued",
        "s continued to 300",
    ]
    assert plan_of(frequency_penalty=0.5).evaluations[1].extended == "anew"
    assert plan_of("responses").evaluations[1].extended == "anew"


@pytest.mark.parametrize("limit", [0, 100, 300])
def test_extended_plan__refuses_what_would_extend_nothing(limit):
    with pytest.raises(SweepError, match=f"{limit} tokens are no more .* 300"):
        plan_of(limit=limit, max_tokens=300)


def test_further_request__has_what_was_said_in_its_prompt_and_what_is_left_of_the_limit():
    plan = plan_of(seed=7)
    item = item_of(plan, repeat=1)
    first = json.loads(extended_request(plan, plan.evaluations[1], item).body)
    further = asked(plan, reply("so far…\ufffd", tokens=90), repeat=1)

    assert further["prompt"] == first["prompt"] + "so far…"
    assert (further["max_tokens"], first["max_tokens"]) == (210, 100)
    assert len({7, first["seed"], further["seed"]}) == 3  # the draws of what was said are not drawn again


@pytest.mark.parametrize(
    "data",
    [
        reply(finish="stop"),
        reply(text=""),
        reply(tokens=300),
        reply(text="4", reasoning="two and two"),  # which no prompt can go on from
        reply(status=400),  # the prompt alone fills the context
    ],
)
def test_further_request__is_none_where_the_reply_is_taken_over(data):
    assert asked(plan_of(), data) is None


def test_further_request__counts_the_whole_limit_where_no_usage_is_reported():
    assert asked(plan_of(), reply(tokens=None))["max_tokens"] == 200


def test_further_request__anew_is_the_request_of_an_evaluation_with_that_limit():
    plan = plan_of(api="chat")
    item, evaluation = item_of(plan), plan.evaluations[1]
    body = {"choices": [{"message": {"content": "so"}, "finish_reason": "length"}]}
    data = Record(200, 1.0, json.dumps(body).encode()).encode()
    more = Record(200, 2.0, b"{}").encode()

    request = further_request(plan, evaluation, item, data)

    assert request == trial_request(replace_mark(evaluation), item.cell, item.trial, 0)
    assert extended_reply(evaluation, data, more) == more


def test_extended_reply__is_as_if_it_had_been_said_at_once():
    evaluation = plan_of().evaluations[1]
    data, more = reply("<think>so\ufffd", logprobs={}), reply("…</think>4", "stop", 11, logprobs={})
    record = Record.decode(extended_reply(evaluation, data, more))
    reading = read_reply(record)

    assert (reading.answer, reading.reasoning, reading.finish) == ("4", "so…", "stop")
    assert (reading.prompt_tokens, reading.completion_tokens, reading.latency) == (9, 111, 3.0)
    assert b"logprobs" not in record.body
    unknown = Record.decode(extended_reply(evaluation, data, reply(tokens=None)))
    assert read_reply(unknown).completion_tokens == -1


def test_extended_reply__stays_cut_where_the_context_is_full():
    assert extended_reply(plan_of().evaluations[1], reply(), reply(status=400)) == reply()


def test_extending__wants_each_cell_once_all_of_it_is_answered():
    plan = replace(plan_of(), trials=8)
    sampling = Extending(Fixed(8, 1))
    nothing = SampleTargets.uniform(plan, 0, 0)
    counters = np.zeros((*nothing.trials.shape, len(COUNTERS)))

    first = sampling.targets(plan, nothing, counters)
    counters[0, 0, :, COUNTERS.index("trials")] = 8, 7  # one is a transport error
    then = sampling.targets(plan, first, counters)

    assert first.trials[:, 0].tolist() == [[8, 8], [0, 0]]
    assert then.trials[:, 0].tolist() == [[8, 8], [8, 0]]
    assert Only().whole(plan, plan).trials[:, 0].tolist() == [[8, 8], [0, 0]]


@pytest.mark.parametrize(
    ("written", "limit"), [(64, 64), (True, 1), ("64", 0), (10**400, 2**53), (-(10**400), 0)]
)
def test_token_limit__is_one_that_an_array_holds(written, limit):
    assert token_limit({"max_tokens": written}) == limit
