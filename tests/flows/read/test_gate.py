"""A gate: what is shown of a treatment, what is refuted, what stays open, and what was not measured."""

import math
import re

import numpy as np
import pytest
import xarray as xr

from evalcube.flows.config.load import parse_config
from evalcube.flows.config.views import LEVELS, Policy, load_policy
from evalcube.flows.errors import ConfigError
from evalcube.flows.read.gate import PolicyLine, conclude, decide, gate, judge
from evalcube.flows.read.sides import Side, SideBySide, SidePoint
from evalcube.stages.reply.status import Status
from tests.flows.config.sources import text

RIGHT, WRONG, CUT, LOST = Status.CORRECT, Status.INCORRECT, Status.TRUNCATED, Status.MISSING


def sides(control, treatment, planned=None):
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
    points = ((SidePoint("sort", "a", "{}"), SidePoint("sort", "b", "{}")),)
    both = [Side("cube.zarr", name, name, dataset) for name in ("old", "new")]
    asked = np.ones(status.shape, bool) if planned is None else planned
    dataset["planned_trials"] = (("model", "task", "params"), asked[..., 0].sum(axis=-1))
    return SideBySide(*both, "", (), points, dataset, asked)


def outcomes(right, total=1000):
    return [[RIGHT] * right + [WRONG] * (total - right), [RIGHT] * total]


def found(policy, two):
    """The decision of a policy, and its lines."""
    rules = Policy.model_validate(policy)
    lines = [line for role in LEVELS for line in judge(two, rules, role)]
    return decide(lines)[0], lines


@pytest.mark.parametrize(
    ("claim", "right", "outcome"),
    {
        "no change, and a drop of 2 is excluded": ({"noninferior": 2}, 800, "shown"),
        "but not one of 0": ({"noninferior": 0}, 800, "open"),
        "a drop of 5, where 2 are allowed": ({"noninferior": 2}, 750, "refuted"),
        "where 5 are": ({"noninferior": 5}, 750, "open"),
        "where 8 are": ({"noninferior": 8}, 750, "shown"),
        "where a tenth of the control's 80% is": ({"noninferior": "10%"}, 750, "shown"),
        "where a fiftieth is": ({"noninferior": "2%"}, 750, "refuted"),
        "no change, and neither a drop nor a gain of 2": ({"equivalent": 2}, 800, "shown"),
        "a gain of 5, where 2 are allowed": ({"equivalent": 2}, 850, "refuted"),
        "a gain of 5, where that is the border": ({"equivalent": 5}, 850, "open"),
        "a gain": ({"superior": 0}, 850, "shown"),
        "a gain of 5, where more than 8 is asked for": ({"superior": 8}, 850, "refuted"),
        "no gain": ({"superior": 0}, 800, "open"),
        "a drop": ({"superior": 0}, 780, "refuted"),
    }.values(),
    ids=str,
)
def test_gate__a_line_is_shown_refuted_or_open(claim, right, outcome):
    decision, (line,) = found(
        {"critical": [{"tiers": ["easy"], **claim}]}, sides(outcomes(800), outcomes(right))
    )

    assert line.outcome == outcome
    assert (line.control, line.treatment) == pytest.approx((0.8, right / 1000))
    assert line.change == pytest.approx(right / 1000 - 0.8)
    assert decision == {"shown": "GO", "refuted": "NO-GO", "open": "INCONCLUSIVE"}[outcome]


@pytest.mark.parametrize(
    ("outcome", "decisions"),
    [
        ("shown", ("GO", "GO", "GO")),
        ("open", ("INCONCLUSIVE", "GO", "GO")),
        ("refuted", ("NO-GO", "INCONCLUSIVE", "GO")),
        ("not measured", ("INCONCLUSIVE", "INCONCLUSIVE", "GO")),
    ],
)
def test_decide__by_what_each_role_may_stop(outcome, decisions):
    for role, decision in zip(LEVELS, decisions, strict=True):
        first = PolicyLine("critical", "", "", "noninferior", 0.01, outcome="shown")
        other = PolicyLine(role, "sort", "", "noninferior", 0.01, outcome=outcome)

        assert decide([first, other])[0] == decision


def test_decide__without_a_line_nothing_may_go():
    assert decide([])[0] == "INCONCLUSIVE"


def test_gate__lines_of_a_role_share_the_level_of_refutation_and_not_of_what_is_shown():
    rule = {"tiers": ["easy"], "noninferior": 2}
    two = sides(outcomes(800), outcomes(765))

    _, (alone,) = found({"critical": [rule]}, two)
    decision, lines = found({"critical": [rule] * 2 + [{"noninferior": 50}] * 8}, two)

    assert alone.outcome == "refuted"
    assert lines[0].p_refuted == pytest.approx(10 * alone.p_refuted)
    assert (lines[0].outcome, lines[-1].outcome, decision) == ("open", "shown", "INCONCLUSIVE")
    assert lines[0].p_shown == alone.p_shown


@pytest.mark.parametrize("rule", [{"tasks": "letters"}, {"tiers": ["medium"]}])
def test_gate__what_was_not_measured_is_inconclusive(rule):
    decision, (line,) = found({"critical": [rule | {"noninferior": 5}]}, sides(outcomes(80), outcomes(80)))

    assert (decision, line.outcome, line.questions) == ("INCONCLUSIVE", "not measured", 0)


@pytest.mark.parametrize(("lost", "outcome"), [(0, "shown"), (4, "shown"), (60, "open")])
def test_gate__lacking_answers_are_taken_at_their_worst(lost, outcome):
    some = [[RIGHT] * (1000 - lost) + [LOST] * lost, [RIGHT] * 1000]

    _, (line,) = found({"critical": [{"tiers": "easy", "noninferior": 2}]}, sides(outcomes(1000), some))

    assert (line.outcome, line.lacking, line.questions) == (outcome, lost, 1000 - lost)
    assert line.change == 0
    assert line.lowest == pytest.approx(-lost / 1000, abs=0.02)
    assert line.highest == line.upper if not lost else line.highest < 0.01  # the control was right there


def test_gate__lacking_answers_are_taken_at_their_best_before_a_line_is_refuted():
    worse = [[WRONG] * 60 + [LOST] * 100 + [RIGHT] * 840, [RIGHT] * 1000]
    missed = [[RIGHT] * 60 + [WRONG] * 100 + [RIGHT] * 840, [RIGHT] * 1000]
    policy = {"critical": [{"tiers": "easy", "noninferior": 1}]}

    assert found(policy, sides(outcomes(1000), worse))[0] == "NO-GO"
    assert found(policy, sides(missed, worse))[0] == "INCONCLUSIVE"


def test_gate__what_might_lie_on_either_side_is_not_refuted():
    some = [[LOST] * 500 + [WRONG] * 500, [RIGHT] * 1000]
    half = [[RIGHT] * 250 + [WRONG] * 750, [RIGHT] * 1000]

    _, (line,) = found({"critical": [{"tiers": "easy", "equivalent": 1}]}, sides(half, some))

    assert (line.outcome, line.p_refuted) == ("open", 1.0)


def test_gate__trials_that_the_treatment_was_not_to_have_do_not_lack_but_whole_points_do():
    fewer = [[RIGHT] * 400 + [LOST] * 600, [LOST] * 1000]
    planned = np.ones((2, 1, 2, 1000, 1), bool)
    planned[1, 0, 0, 400:] = planned[1, 0, 1] = False
    policy = {"critical": [{"tiers": "each", "noninferior": 2}]}

    _, (easy, hard) = found(policy, sides([[RIGHT] * 1000] * 2, fewer, planned))

    assert (easy.outcome, easy.questions, easy.lacking) == ("shown", 400, 0)
    assert (hard.outcome, hard.questions, hard.lacking) == ("not measured", 0, 1000)


def test_conclude__says_how_many_questions_only_one_was_asked():
    planned = np.ones((2, 1, 2, 1000, 1), bool)
    planned[1, 0, :, 900:] = False
    policy = {"critical": [{"noninferior": 10}]}
    apart, alike = (sides(outcomes(800), outcomes(800), asked) for asked in (planned, None))

    told = conclude(apart, found(policy, apart)[1]).warnings

    assert [text.split()[0] for text in told] == ["200"]
    assert conclude(alike, found(policy, alike)[1]).warnings == ()


def test_gate__says_how_many_questions_an_open_line_takes():
    policy = {"critical": [{"tiers": "easy", "noninferior": 1}]}

    _, (line,) = found(policy, sides(mixed(20, 0), mixed(0, 20)))
    _, (worse,) = found(policy, sides(mixed(0, 0, 100), mixed(0, 2, 100)))
    _, (lost,) = found(policy, sides(mixed(10, 0, 10**5), mixed(0, 1010, 10**5)))

    assert (line.outcome, line.assumed, worse.outcome, worse.assumed) == ("open", 0.0, "open", 0.0)
    assert line.more == pytest.approx(0.04 * (2.8 / 0.01) ** 2 - 1000, rel=0.2)
    assert (lost.outcome, lost.more) == ("open", None)  # enough of them, and at the margin


def mixed(first, last, total=1000):
    """Outcomes of which so many at the beginning and at the end are wrong."""
    return [[WRONG] * first + [RIGHT] * (total - first - last) + [WRONG] * last, [RIGHT] * total]


def test_gate__truncated_answers_are_wrong():
    cut = [[CUT] * 300 + [RIGHT] * 700, [RIGHT] * 1000]

    assert found({"critical": [{"noninferior": 1}]}, sides(outcomes(1000), cut))[0] == "NO-GO"


def test_gate__each_takes_every_task_and_tier_by_itself():
    _, lines = found(
        {"critical": [{"tasks": "each", "tiers": "each", "noninferior": 10}]},
        sides(outcomes(800), outcomes(600)),
    )

    assert [(line.task, line.tier, line.outcome) for line in lines] == [
        ("sort", "easy", "refuted"),
        ("sort", "hard", "shown"),
    ]


@pytest.mark.parametrize(
    ("rule", "places"),
    [
        ({"tasks": "each", "tiers": ["easy", "esay"]}, [("sort", "easy"), ("sort", "esay")]),
        (
            {"tasks": ["sort", "sorrt"], "tiers": "each"},
            [(name, tier) for name in ("sort", "sorrt") for tier in ("easy", "hard")],
        ),
        ({"tasks": "each", "tiers": ["esay"]}, [("sort", "esay")]),
    ],
)
def test_gate__no_name_of_a_line_is_passed_over(rule, places):
    decision, lines = found({"critical": [rule | {"noninferior": 10}]}, sides(outcomes(800), outcomes(800)))

    assert [(line.task, line.tier) for line in lines] == places
    assert (decision, lines[-1].outcome) == ("INCONCLUSIVE", "not measured")


def test_gate__names_that_no_cube_has_are_refused_with_the_one_that_is_near(small_sweep):
    rules = {
        "critical": [{"noninferior": 5}, {"tasks": "boolaen", "noninferior": 5}],
        "advisory": [{"tiers": "esay", "superior": 0}],
    }

    with pytest.raises(ConfigError) as caught:
        gate(rules, [small_sweep / "cube.zarr"] * 2)

    first, second = str(caught.value).splitlines()
    assert first.startswith("policy: advisory[0].tiers: ")
    assert re.findall("'.*?'", first) == ["'esay'", "'easy'"]
    assert second.startswith("policy: critical[1].tasks: ")
    assert re.findall("'.*?'", second) == ["'boolaen'", "'boolean'"]


@pytest.mark.parametrize("field", ["tasks", "tiers"])
def test_load_policy__refuses_a_line_of_nothing(field, tmp_path):
    file = tmp_path / "policy.yaml"
    file.write_text(f"policy: {{critical: [{{{field}: [], noninferior: 0}}]}}")

    with pytest.raises(ConfigError) as caught:
        load_policy(file)

    assert len(caught.value.problems) == 1
    assert f"{field}: names nothing" in str(caught.value).replace("'", "")


def test_margin__relative_to_a_control_that_is_never_right_is_nothing():
    (rule,) = Policy.model_validate({"critical": [{"noninferior": "50%"}]}).critical

    assert rule.margin(0.0) == 0
    assert math.isclose(rule.margin(0.5), 0.25)


WRONG_LINES = {
    "- {noninferor: 1}": "critical[0].noninferor: unknown field 'noninferor'. Did you mean 'noninferior'?",
    "- {tasks: sort}": "critical[0]: says none of noninferior, equivalent, superior",
    "- {superior: 0, noninferior: 1}": "critical[0]: says both noninferior and superior",
    "- {noninferior: 200}": "critical[0].noninferior: must be points from 0 to 100",
    "- {noninferior: five}": "critical[0].noninferior: must be points from 0 to 100",
    "- {noninferior: true}": "critical[0].noninferior: must be points from 0 to 100",
    "- {equivalent: 0}": "critical[0].equivalent: no two are shown to be equal",
}


@pytest.mark.parametrize(("line", "told"), WRONG_LINES.items())
def test_load_policy__names_what_is_wrong_with_a_line(line, told, tmp_path):
    file = tmp_path / "bad.yaml"
    file.write_text(f"policy:\n  critical:\n    {line}\n")

    with pytest.raises(ConfigError) as caught:
        load_policy(file)

    assert f":3: policy.{told}" in str(caught.value)


def test_load_policy__reads_a_section_of_any_config(tmp_path):
    good, empty = tmp_path / "good.yaml", tmp_path / "empty.yaml"
    good.write_text("models: [whatever]\npolicy:\n  critical:\n    - {tasks: sort, noninferior: 2}\n")
    empty.write_text("policy: {critical: []}\n")

    assert load_policy(good).critical[0].tasks == ("sort",)
    with pytest.raises(ConfigError, match=r"policy\.critical"):
        load_policy(empty)


def test_config__refuses_a_policy_with_names_that_are_nowhere():
    with pytest.raises(ConfigError, match=r"policy\.critical\[0\]\.tasks: .*'arithmetik'.*'arithmetic'"):
        parse_config(text(policy="{critical: [{tasks: arithmetik, noninferior: 1}]}"), "c.yaml")


def test_config__may_hold_a_policy():
    config = parse_config(text(policy="{critical: [{noninferior: 10%}]}"), "c.yaml")

    assert config.policy.critical[0].noninferior == "10%"
