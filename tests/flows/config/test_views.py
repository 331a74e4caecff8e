"""Named views: what they filter by, and what is said about coordinates that the sweep does not have."""

from __future__ import annotations

import math

import pytest

from evalcube.flows.config.load import parse_config
from evalcube.flows.config.views import PolicyRule, View, find_view
from evalcube.flows.errors import ConfigError, SweepError
from tests.cases import with_cases
from tests.flows.config.sources import problems, text

MODELS = '- {name: a, endpoint: "sim:", facets: {family: x, size: 7}}'
TASKS = "arithmetic: {manifold: [{grid: {length: [4, 8]}, tiers: [easy, hard]}]}\n  boolean: {params: {}}"


def sweep(view: str) -> str:
    return text(models=MODELS, tasks=TASKS, views=f"v: {view}")


@with_cases(
    ("where", "expected"),
    [
        ("{}", {}),
        ("{task: arithmetic}", {"task": "arithmetic"}),
        (
            "{task: [arithmetic, boolean], tier: [default]}",
            {"task": ["arithmetic", "boolean"], "tier": ["default"]},
        ),
        ("{param_length: [4, 8]}", {"param_length": [4, 8]}),
        ("{param_length: {min: 4, max: 8}}", {"param_length": (4, 8)}),
        ("{param_length: {min: 4}}", {"param_length": (4, math.inf)}),
        ("{param_length: [4, null]}", {"param_length": (4, math.inf)}),
        ("{param_prob_not: [null, 0.5]}", {"param_prob_not": (-math.inf, 0.5)}),
        ("{family: x, size: {max: 10}}", {"family": "x", "size": (-math.inf, 10)}),
        (
            "{model_name: [a], template: plain, sampler: greedy, tier: hard}",
            {"model_name": ["a"], "template": "plain", "sampler": "greedy", "tier": "hard"},
        ),
    ],
)
def test_where__values_lists_and_ranges(where: str, expected: dict[str, object]) -> None:
    assert parse_config(sweep(f"{{where: {where}}}")).view("v").where() == expected


def test_view__is_a_frozen_record() -> None:
    view = parse_config(sweep("{where: {tier: easy}, trials: 8, unique_only: true}")).view("v")

    assert view == View("v", {"tier": "easy"}, 8, True)
    assert parse_config(sweep("{}")).view("v") == View("v", {}, None, False)


def test_view__unknown_name() -> None:
    config = parse_config(text(models=MODELS, tasks=TASKS, views="hardest: {where: {tier: hard}}"))

    with pytest.raises(SweepError, match="mean 'hardest'"):
        config.view("hadest")


WHERE = "c.yaml:9: views.v.where"
BAD = {
    "unknown coordinate": (
        "{where: {teir: easy}}",
        f"{WHERE}.teir: unknown coordinate 'teir'. Did you mean 'tier'?",
    ),
    "unknown param": (
        "{where: {param_lenght: 4}}",
        f"{WHERE}.param_lenght: unknown coordinate 'param_lenght'. Did you mean 'param_length'?",
    ),
    "param that is a text": (
        "{where: {param_format: T/F}}",
        None,
    ),
    "unknown label": (
        "{where: {task: [boolean, aritmetic]}}",
        f"{WHERE}.task[1]: unknown task 'aritmetic'. Did you mean 'arithmetic'?",
    ),
    "unknown tier": (
        "{where: {tier: medium}}",
        f"{WHERE}.tier: unknown tier 'medium'. Known: easy, hard, default",
    ),
    "range of labels": (
        "{where: {tier: {min: 1}}}",
        f"{WHERE}.tier: tier is a label, so that it has no range. List its values",
    ),
    "empty list": ("{where: {tier: []}}", f"{WHERE}.tier: must not be empty. Give at least one value"),
    "list in a list": (
        "{where: {param_length: [[4, 8]]}}",
        (
            f"{WHERE}.param_length[0]: must be a text, a finite number, true or false, got a list. "
            "Write a range as {min: 4}"
        ),
    ),
    "range the wrong way round": (
        "{where: {param_length: {min: 8, max: 4}}}",
        f"{WHERE}.param_length: max must be at least min (8), is 4. Exchange them",
    ),
    "number that no array holds": (
        f"{{where: {{param_length: {{min: {10**400}}}}}}}",
        (
            f"{WHERE}.param_length: a range must be {{min: NUMBER, max: NUMBER}} or one of the two, got a mapping. "
            "Write {min: 4, max: 8}"
        ),
    ),
    "range without numbers": (
        "{where: {param_length: {min: a}}}",
        (
            f"{WHERE}.param_length: a range must be {{min: NUMBER, max: NUMBER}} or one of the two, got a mapping. "
            "Write {min: 4, max: 8}"
        ),
    ),
    "no trials": ("{trials: 0}", "c.yaml:9: views.v.trials: must be at least 1, got 0"),
    "unknown field": ("{were: {}}", "c.yaml:9: views.v.were: unknown field 'were'. Did you mean 'where'?"),
}


@with_cases(("view", "expected"), BAD.values())
def test_parse_config__tells_one_mistake_once(view: str, expected: str | None) -> None:
    told = problems(sweep(view))

    assert len(told) == 1
    assert expected is None or told == [expected]


def test_find_view__of_a_config_without_views_says_that_there_are_none():
    with pytest.raises(SweepError, match="no view 'hard'") as refusal:
        find_view({}, "hard")

    assert refusal.value.remedy == "Views: none"


@pytest.mark.parametrize(("written", "kept"), [(5, 5.0), (0.5, 0.5), ("5%", "5%"), ("2.50 %", "2.5%")])
def test_policy_rule__margins_are_points_or_shares(written: object, kept: object) -> None:
    assert PolicyRule(noninferior=written).noninferior == kept


@with_cases("written", [True, -1, 101, "5", "101%"])
def test_policy_rule__refuses_other_margins(written: object) -> None:
    with pytest.raises(ConfigError, match="noninferior"):
        PolicyRule(noninferior=written)
