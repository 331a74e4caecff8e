"""Assertions, rubrics and judges in a config: every mistake with its place and what to do."""

import pytest

from evalcube.flows.config.load import parse_config
from evalcube.flows.errors import ConfigError
from tests.cases import with_cases
from tests.flows.config.rules.judged import MODELS, judged
from tests.flows.config.sources import problems, text


def test_parse_config__models_of_the_command_line_leave_the_judges():
    config = parse_config(judged(), models=[{"name": "b", "endpoint": "sim:"}])

    assert [model.name for model in config.models] == ["b", "j"]


@with_cases(
    ("judges", "field", "fragments"),
    [
        ("[{model: jj}]", "judges[0].model", ["unknown model 'jj'", "Did you mean 'j'?"]),
        ("[{model: j, sampler: gredy}]", "judges[0].sampler", ["unknown sampler", "'greedy'"]),
        ("[{model: j, sampler: {model: x}}]", "judges[0].sampler.model", ["cannot be a sampler's"]),
        ("[{model: j, sampler: {max_tokens: 0}}]", "judges[0].sampler.max_tokens", ["at least 1"]),
        ("[{model: j}, {model: j, repeats: 2}]", "judges[1].model", ["different names"]),
        ("[{model: j, repeats: 0}]", "judges[0].repeats", ["at least 1"]),
        ("[{modle: j}]", "judges[0].modle", ["Did you mean 'model'?"]),
    ],
)
def test_parse_config__wrong_judges_are_told(judges, field, fragments):
    (line,) = problems(judged(judges))

    assert line.startswith(f"c.yaml:8: {field}: ")
    assert all(fragment in line for fragment in fragments)


@pytest.mark.parametrize(
    ("task", "field", "fragment"),
    [
        ("assertions: [{type: contans, value: x}]", "[0].type", "Did you mean 'contains'?"),
        ("assertions: [{type: contains}]", "[0].value", "needs a text"),
        ("assertions: [{type: contains, value: x, wieght: 2}]", "[0].wieght", "'weight'"),
        (
            "assertions: [{type: json_valid}, {type: assert-set, children: [{type: regex, pattern: '('}]}]",
            "[1].children[0].pattern",
            "is no pattern",
        ),
        ("assertions: [{type: custom, fn: mine}]", "[0].fn", "entry point 'mine'"),
        ("assertions: [4]", "[0]", "must be a mapping"),
    ],
)
def test_parse_config__wrong_assertions_are_told_at_their_place(task, field, fragment):
    (line,) = problems(judged("[]", task))

    assert line.startswith("c.yaml:6: tasks.arithmetic.assertions" + field)
    assert fragment in line


def test_parse_config__each_wrong_assertion_of_each_task_is_told():
    tasks = (
        "{arithmetic: {params: {length: 4}, assertions: [{type: contans}, {type: json_valid}, {type: contains}]}, "
        "sort: {params: {length: 4}, assertions: [{type: tools_called, values: [a]}]}}"
    )
    found = problems(text(models=MODELS, tasks=tasks))

    fields = [line.split(": ")[1] for line in found]
    assert fields == [
        "tasks.arithmetic.assertions[0].type",
        "tasks.arithmetic.assertions[2].value",
        "tasks.sort.assertions[0]",
    ]


@with_cases(
    "declared",
    [
        "{type: tools_not_called, values: [rm]}",
        "{type: tools_count_max, value: 1}",
        "{type: turns_max, value: 3}",
        "{type: turns_min, value: 1, not: true}",
        '{type: tool_input_not_contains, value: "sh:rm"}',
        "{type: assert-set, mode: any, children: [{type: json_valid}, {type: tools_called, values: [a]}]}",
    ],
)
@with_cases(
    ("samplers", "offered"),
    [
        ("{s: {max_tokens: 5}}", False),
        ("{s: {tools: []}}", False),
        ("{s: {tools: 5}}", False),
        ("{s: {tools: [{type: function, function: {name: a}}]}}", True),
        ("{s: {tools: [{type: function, function: {name: a}}]}, t: {max_tokens: 5}}", False),
    ],
)
def test_parse_config__assertions_on_tools_need_tools_on_offer(declared, samplers, offered):
    config = judged("[]", f"assertions: [{{type: json_valid}}, {declared}]", samplers=samplers)

    if offered:
        parse_config(config)
        return
    (line,) = problems(config)
    assert line.startswith("c.yaml:6: tasks.arithmetic.assertions[1]: t")
    assert "requests offer tools" in line


@pytest.mark.parametrize(
    ("declared", "fragment"),
    [
        ('{type: tool_output_contains, value: "sh:ok", not: true}', "a sweep runs no tool"),
        ("{type: mock_hit, value: m}", "a sweep sets up no mocks"),
    ],
)
def test_parse_config__what_no_sweep_measures_is_refused_with_tools_too(declared, fragment):
    samplers = "{s: {tools: [{type: function, function: {name: a}}]}}"

    (line,) = problems(judged("[]", f"assertions: [{declared}]", samplers=samplers))

    assert f"cannot be measured: {fragment}" in line


def test_parse_config__a_secret_in_an_assertion_is_not_shown():
    (line,) = problems(judged("[]", "assertions: [{type: sk-abcdef123456}]"))

    assert "abcdef" not in line


def test_parse_config__a_rubric_needs_a_judge():
    (line,) = problems(judged("[]"))

    assert line == (
        "c.yaml:6: tasks.arithmetic.rubric: nobody judges by it. "
        "Add judges: [{model: NAME}], or give `judges` with the models, or remove the rubric"
    )


@pytest.mark.parametrize(
    ("sections", "fragment"),
    [
        ({"models": '[{name: j, endpoint: "sim:", measured: false}]'}, "no model is measured"),
        ({"models": MODELS, "evaluations": "[{models: [j]}]"}, "has `measured: false`"),
    ],
)
def test_parse_config__something_must_be_measured(sections, fragment):
    with pytest.raises(ConfigError, match=fragment):
        parse_config(text(**sections))
