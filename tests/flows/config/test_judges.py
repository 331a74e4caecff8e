"""Judges and composites in a config."""

from evalcube.flows.config.load import parse_config
from tests.cases import with_cases
from tests.flows.config.rules.judged import judged
from tests.flows.config.sources import problems


def test_parse_config__a_judge_is_not_measured_and_has_defaults():
    config = parse_config(judged("[{model: j}, {model: a, name: k, repeats: 3, sampler: greedy}]"))

    assert [model.name for model, _, _ in config.combinations()] == ["a"]
    first, second = config.judges
    assert (first.name, first.repeats, first.sampler) == ("j", 1, {"temperature": 0, "max_tokens": 1024})
    assert (second.name, second.model, second.sampler) == ("k", "a", "greedy")


@with_cases(
    ("composite", "field", "fragments"),
    [
        ("{control: b}", "composite.control", ["unknown evaluation 'b'", "a"]),
        ("{control: a / other}", "composite.control", ["unknown evaluation"]),
        ("{weights: {facts: 1}}", "composite.weights.facts", ["unknown field 'facts'", "'fact'"]),
        ("{weights: {fact: 0}}", "composite.weights", ["no layer any weight", "{fact: 2, judge: 1}"]),
        ("{weights: {fact: -1}}", "composite.weights.fact", ["-1"]),
        ("{weights: {}}", "composite.weights", ["no layer any weight"]),
    ],
)
def test_parse_config__composites_are_weighed_and_compared_as_they_can_be(composite, field, fragments):
    found = problems(judged(composite=composite))

    assert field in found[0]
    assert all(fragment in found[0] for fragment in fragments)


def test_parse_config__the_control_of_several_evaluations_is_named_in_full():
    templates = "{t: [{role: user, content: '{{ prompt }}'}], u: [{role: user, content: '{{ prompt }}!'}]}"
    found = problems(judged(templates=templates, composite="{control: a}"))

    assert "evaluations are called 'a'" in found[0]
    assert "a / t / " in found[0]
    named = parse_config(judged(templates=templates, composite="{control: a / u}"))
    assert named.composite.control == "a / u"


def test_parse_config__models_of_the_command_line_leave_no_control_that_is_gone():
    config = parse_config(
        judged(composite="{control: a, weights: {fact: 1}}"), models=[{"name": "b", "endpoint": "sim:"}]
    )

    assert config.composite.control is None
    assert config.composite.weights.fact == 1
