"""What a model's API cannot carry is told with the config, at its line, before anything is sent."""

import pytest

from evalcube.flows.config.load import parse_config
from evalcube.flows.errors import ConfigError
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.plan import Plan
from evalcube.stages.infer.apis import APIS
from tests.cases import with_cases

BASE = """\
models:
  - {{name: a, endpoint: "http://host/v1", api: {api}}}
  - {{name: b, endpoint: "http://other/v1", measured: {other}}}
templates:
  plain: [{{role: user, content: "{{{{ prompt }}}}"}}]
{templates}
samplers:
  good: {{temperature: 0, max_tokens: 9}}
{samplers}
{more}
tasks:
  arithmetic: {{{task}manifold: [{{points: [{{length: 4}}], tiers: [easy]}}]}}
"""


def text(api="messages", templates="", samplers="", more="", task="", other="true"):
    return BASE.format(api=api, templates=templates, samplers=samplers, more=more, task=task, other=other)


def problems(source):
    with pytest.raises(ConfigError) as caught:
        parse_config(source, "c.yaml")
    return [str(problem) for problem in caught.value.problems]


TWO = '  two: [{role: system, content: x}, {role: user, content: "{{ prompt }}"}]'
TOOL = """  tool: [{role: assistant, content: "{{ prompt }}"}, {role: tool, content: x}]"""
RUBRIC = "rubric: x, "
BAD = {
    "unknown api": (
        text(api="telegraph"),
        ["models[0].api: must be one of 'chat', 'completions', 'messages' or 'responses'"],
    ),
    "no limit": (
        text(samplers="  bare: {temperature: 0}"),
        ["samplers.bare: 'max_tokens' is required by api: messages"],
    ),
    "no limit for two models": (
        text(
            api="messages}\n  - {name: c, endpoint: http://host/v1, api: messages",
            samplers="  bare: {temperature: 0}",
        ),
        ["samplers.bare: 'max_tokens' is required by api: messages"],
    ),
    "several parameters": (
        text(samplers="  odd: {seed: 1, max_tokens: 9, min_p: 0.1}"),
        [
            "samplers.odd.min_p: 'min_p' is no parameter",
            "samplers.odd.seed: 'seed' is no parameter of api: messages",
        ],
    ),
    "a parameter twice": (
        text(samplers="  odd: {max_tokens: 9, stop: a, stop_sequences: [b]}"),
        ["samplers.odd.stop_sequences: 'stop_sequences' and 'stop' are one parameter"],
    ),
    "system message": (
        text(api="completions", templates=TWO),
        ["c.yaml:6: templates.two: api: completions takes one text, and the template has system + user"],
    ),
    "role of a tool": (text(templates=TOOL), ["templates.tool: api: messages knows no role tool"]),
    "judge without system messages": (
        text(api="completions", more="judges: [{model: a}]", task=RUBRIC),
        ["judges[0].model: judges are asked with a system message, and api: completions knows none"],
    ),
    "judge's own sampler": (
        text(more="judges: [{model: a, sampler: {seed: 1}}]", task=RUBRIC),
        [
            "judges[0].sampler: 'max_tokens' is required by api: messages",
            "judges[0].sampler.seed: 'seed' is no parameter of api: messages",
        ],
    ),
    "whole address": (
        text().replace("http://host/v1", "http://host/v1/messages"),
        ["models[0].endpoint: must be the base URL, without /messages"],
    ),
}


@with_cases(("source", "expected"), BAD.values())
def test_parse_config__tells_each_mistake_once(source, expected):
    told = problems(source)

    assert len(told) == len(expected)
    for line, fragment in zip(sorted(told), sorted(expected), strict=True):
        assert fragment in line


GOOD = {
    "plain": text(),
    "what chat alone asks": text(
        templates=TWO,
        samplers="  odd: {seed: 1}",
        more="evaluations: [{models: [b]}, {models: [a], templates: [plain, two], samplers: [good]}]",
    ),
    "completions beside chat": text(
        api="completions",
        templates=TWO,
        more="evaluations: [{models: [b]}, {models: [a], templates: [plain]}]",
    ),
    "a judge with the default sampler": text(more="judges: [{model: a}]", task=RUBRIC),
}


@pytest.mark.parametrize("source", GOOD.values(), ids=GOOD)
def test_parse_config__lets_pass(source):
    assert parse_config(source, "c.yaml").models[0].api != "chat"


def test_build_plan__api_is_part_of_the_identity_and_stream_is_not():
    plans = {
        api: build_plan(parse_config(text(api=api), "c.yaml")) for api in ("chat", "completions", "messages")
    }
    streamed = build_plan(parse_config(text(api="chat, stream: true"), "c.yaml"))

    assert len({plan.evaluations[0].eval_id for plan in plans.values()}) == 3
    assert len({plan.evaluations[1].eval_id for plan in plans.values()}) == 1
    assert streamed.spec() == plans["chat"].spec()
    assert "api" not in plans["chat"].spec()["evaluations"][0]
    for plan in plans.values():
        assert Plan.from_spec(plan.spec(), plan.trials, plan.repeats).spec() == plan.spec()


def test_build_plan__a_judges_api_is_part_of_the_identity():
    source = text(more="judges: [{model: a}, {model: b}]", task=RUBRIC)
    plan = build_plan(parse_config(source.replace("other", "host"), "c.yaml"))

    assert [judge.api for judge in plan.judges] == ["messages", "chat"]
    assert "api" not in plan.judges[1].spec()
    assert Plan.from_spec(plan.spec(), plan.trials, plan.repeats).judges == plan.judges


@pytest.mark.parametrize("path", [api.path for api in APIS.values()])
def test_endpoint__is_a_base_url_and_no_address_of_an_api(path):
    assert any(
        f"must be the base URL, without {path}" in one
        for one in problems(text(other="true").replace("http://host/v1", f"http://host/v1{path}"))
    )
