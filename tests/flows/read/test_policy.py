"""Policies: what is still allowed, what is not, and what was not measured."""

import numpy as np
import pytest
import xarray as xr

from evalcube.flows.config.load import load_policy, parse_config
from evalcube.flows.config.views import Policy
from evalcube.flows.errors import ConfigError
from evalcube.flows.read.policy import _checks, _unknown, allowed, decide
from evalcube.flows.read.sides import Point, Side, SideBySide
from evalcube.stages.reply.status import Status
from tests.flows.config.sources import text

RIGHT, WRONG, CUT, LOST = Status.CORRECT, Status.INCORRECT, Status.TRUNCATED, Status.MISSING


def sides(control, treatment):
    """Two sides with one task of two points, easy and hard, and as many trials of each as outcomes are given."""
    status = np.array([[control], [treatment]], np.uint8)[..., np.newaxis]
    dataset = xr.Dataset(
        {"status": (("model", "task", "params", "trial", "repeat"), status)},
        {
            "model_name": ("model", ["old", "new"]),
            "task": ["sort"],
            "tier": ["easy", "hard"],
            "in_tier": (("tier", "task", "params"), np.eye(2, dtype=bool)[:, np.newaxis]),
        },
    )
    points = ((Point("sort", "a", "{}"), Point("sort", "b", "{}")),)
    both = [Side("cube.zarr", name, name, dataset) for name in ("old", "new")]
    return SideBySide(*both, "", (), points, dataset, np.ones(status.shape, bool))


def outcomes(right, total=100):
    return [[RIGHT] * right + [WRONG] * (total - right), [RIGHT] * total]


def judged(policy, control, treatment):
    found = Policy.model_validate(policy)
    two = sides(control, treatment)
    checks = [
        check for level in ("critical", "supporting", "advisory") for check in _checks(two, found, level)
    ]
    return decide(checks), checks


@pytest.mark.parametrize(
    ("rule", "right", "outcome"),
    {
        "at the absolute limit": ({"drop": 0.2}, 60, "within"),
        "beyond it": ({"drop": 0.2}, 59, "beyond"),
        "at the relative limit": ({"relative_drop": 0.25}, 60, "within"),
        "beyond that": ({"relative_drop": 0.25}, 59, "beyond"),
        "the smaller limit holds": ({"drop": 0.3, "relative_drop": 0.1}, 71, "beyond"),
        "no drop at all is allowed, and none there": ({"drop": 0}, 80, "within"),
        "a gain": ({"drop": 0}, 100, "within"),
        "its interval goes further": ({"drop": 0.2, "certain": True}, 65, "unsure"),
        "nor does its interval": ({"drop": 0.4, "certain": True}, 65, "within"),
    }.values(),
    ids=str,
)
def test_policy__limits_themselves_are_allowed(rule, right, outcome):
    decision, (check,) = judged({"critical": [{"tiers": ["easy"], **rule}]}, outcomes(80), outcomes(right))

    assert check.outcome == outcome
    assert (check.control, check.treatment) == pytest.approx((0.8, right / 100))
    assert decision == ("GO" if outcome == "within" else "NO-GO")


@pytest.mark.parametrize(
    ("level", "decision"), [("critical", "NO-GO"), ("supporting", "REVIEW"), ("advisory", "GO")]
)
def test_policy__levels_say_how_much_a_drop_matters(level, decision):
    assert judged({level: [{"drop": 0.1}]}, outcomes(80), outcomes(20))[0] == decision


@pytest.mark.parametrize(
    ("level", "decision"), [("critical", "NO-GO"), ("supporting", "NO-GO"), ("advisory", "GO")]
)
def test_policy__what_was_not_measured_is_no_go(level, decision):
    for rule in ({"tasks": "letters", "drop": 0.1}, {"tiers": ["medium"], "drop": 0.1}):
        found, (check,) = judged({level: [rule]}, outcomes(80), outcomes(80))

        assert (found, check.outcome, check.questions) == (decision, "missing", 0)


@pytest.mark.parametrize(("share", "decision"), [(0.0, "NO-GO"), (0.029, "NO-GO"), (0.03, "GO")])
def test_policy__missing_answers_are_no_go_up_to_the_share_that_is_allowed(share, decision):
    some = [[RIGHT] * 97 + [LOST] * 3, [RIGHT] * 100]

    found, (check,) = judged(
        {"missing": share, "critical": [{"tiers": ["easy"], "drop": 0}]}, outcomes(97), some
    )

    assert (found, check.lacking, check.questions) == (decision, 3, 97)


def test_policy__truncated_answers_are_wrong():
    cut = [[CUT] * 30 + [RIGHT] * 70, [RIGHT] * 100]

    assert judged({"critical": [{"drop": 0.1}]}, outcomes(100), cut)[0] == "NO-GO"


def test_policy__each_takes_every_task_and_tier_by_itself():
    _, checks = judged(
        {"critical": [{"tasks": "each", "tiers": "each", "drop": 0.1}]}, outcomes(80), outcomes(60)
    )

    assert [(check.task, check.tier, check.outcome) for check in checks] == [
        ("sort", "easy", "beyond"),
        ("sort", "hard", "within"),
    ]


@pytest.mark.parametrize(
    ("rule", "places"),
    [
        ({"tasks": "each", "tiers": ["easy", "esay"]}, [("sort", "easy"), ("", "esay")]),
        ({"tasks": ["sort", "sorrt"], "tiers": "each"}, [("sort", "easy"), ("sort", "hard"), ("sorrt", "")]),
        ({"tasks": "each", "tiers": ["esay"]}, [("", "esay")]),
    ],
)
def test_policy__no_name_of_a_rule_is_passed_over(rule, places):
    decision, checks = judged({"critical": [rule | {"drop": 0.1}]}, outcomes(80), outcomes(80))

    assert [(check.task, check.tier) for check in checks] == places
    assert (decision, checks[-1].outcome) == ("NO-GO", "missing")


def test_policy__names_that_neither_side_has_are_told_with_the_one_that_is_near():
    found = Policy.model_validate({"critical": [{"tasks": ["sorrt", "sort"], "tiers": "hrad", "drop": 0}]})

    told = list(_unknown(sides(outcomes(80), outcomes(80)), found))

    assert [("sorrt" in told[0], "'sort'" in told[0]), ("hrad" in told[1], "'hard'" in told[1])] == [
        (True, True)
    ] * 2


def test_decide__without_a_check_nothing_may_go():
    assert decide([]) == "NO-GO"


@pytest.mark.parametrize("field", ["tasks", "tiers"])
def test_load_policy__refuses_a_rule_of_nothing(field, tmp_path):
    file = tmp_path / "policy.yaml"
    file.write_text(f"policy: {{critical: [{{{field}: [], drop: 0}}]}}")

    with pytest.raises(ConfigError) as caught:
        load_policy(file)

    assert len(caught.value.problems) == 1
    assert f"{field}: names nothing" in str(caught.value).replace("'", "")


def test_allowed__of_a_control_that_is_never_right_is_nothing():
    (rule,) = Policy.model_validate({"critical": [{"relative_drop": 0.5}]}).critical

    assert allowed(rule, 0.0) == 0


def test_load_policy__reads_a_section_of_any_config_and_names_what_is_wrong(tmp_path):
    good, bad, empty = (tmp_path / name for name in ("good.yaml", "bad.yaml", "empty.yaml"))
    good.write_text("models: [whatever]\npolicy:\n  critical:\n    - {tasks: sort, drop: 0.02}\n")
    bad.write_text("policy:\n  critical:\n    - {drp: 0.02}\n    - {tasks: sort}\n    - {drop: 2}\n")
    empty.write_text("policy: {missing: 0}\n")

    assert load_policy(good).critical[0].tasks == ("sort",)
    with pytest.raises(ConfigError) as told:
        load_policy(bad)
    problems = [str(problem).partition("bad.yaml")[2] for problem in told.value.problems]
    assert problems[0] == ":3: policy.critical[0].drp: unknown field 'drp'. Did you mean 'drop'?"
    assert problems[1].startswith(":4: policy.critical[1]: must bound drop or relative_drop")
    assert problems[2] == ":5: policy.critical[2].drop: must be at most 1, got 2"
    with pytest.raises(ConfigError, match="has no rule"):
        load_policy(empty)


def test_config__may_hold_a_policy():
    config = parse_config(text(policy="{advisory: [{relative_drop: 0.1}]}"), "c.yaml")

    assert config.policy.advisory[0].relative_drop == 0.1
