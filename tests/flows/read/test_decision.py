"""The decision of a config's policy, as the report and the explorer open with it."""

import json
from dataclasses import replace

import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.config.views import Policy, doubts
from evalcube.flows.errors import ConfigError
from evalcube.flows.explore.answers import ask
from evalcube.flows.explore.explored import Explored
from evalcube.flows.explore.query import Query
from evalcube.flows.read.decision import GATE, open_lines, shown_decisions
from evalcube.flows.read.gate import GateResult, PolicyLine, gate
from evalcube.flows.read.reader import Reader
from evalcube.flows.read.report import report
from evalcube.flows.read.selection import Part
from evalcube.flows.run.gate import run_gate
from evalcube.flows.run.sweep import run
from evalcube.stages.analyze.render.table_specs import points
from evalcube.storage.cube.cube import Cube

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("simulated")]

POLICY = {"critical": [{"noninferior": 10}], "advisory": [{"superior": 0}]}
ABILITIES = {"old": 4, "new": 4, "broken": 1}


def config(folder, *names, **more):
    models = [{"name": name, "endpoint": "sim:", "simulate": {"ability": ABILITIES[name]}} for name in names]
    tasks = {"arithmetic": {"params": {"length": 4}}}
    places = {"cube": str(folder / "c.zarr"), "cache": str(folder / "cache")}
    return {
        "name": "release",
        "trials": 200,
        "models": models,
        "tasks": tasks,
        "policy": POLICY,
        **places,
        **more,
    }


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """A cube of three whose config names the one in use."""
    told = config(tmp_path_factory.mktemp("three"), "new", "old", "broken", composite={"control": "old"})
    run(from_mapping(told), progress=False)
    return told["cube"]


def test_shown_decisions__are_those_of_the_gate_on_each_treatment(three):
    found, why = shown_decisions(Reader(three))

    assert why == ""
    assert [(one.control, one.treatment, one.decision) for one in found] == [
        ("old", "new", "GO"),
        ("old", "broken", "NO-GO"),
    ]
    for one in found:
        direct = gate(POLICY, three, one.control, one.treatment)
        assert (one.decision, one.reason) == (direct.decision, direct.reason)
        assert [row[-1] for row in one.rows] == [line.outcome for line in direct.lines]
    assert "advisory, all tasks" in " ".join(found[0].unsettled)


def test_gate__asks_whether_a_declared_control_that_is_the_treatment_was_swapped(three):
    swapped, straight = gate(POLICY, three, "broken", "old"), gate(POLICY, three, "old", "broken")

    assert any("'old', is the control" in text for text in swapped.warnings)
    assert not any("swapped" in text for text in straight.warnings)


def test_report__opens_with_the_decision_and_says_what_the_others_ask(three, tmp_path):
    found = report(three, tmp_path / "r.html", samples=0).read_text("utf-8")

    assert found.index('class="pill go"') < found.index('class="pill no-go"') < found.index('class="lede"')
    assert '<td class="name shown">shown</td>' in found
    assert "<b>Next.</b> Ship it" in found
    assert "whether two models differ" in found
    assert "<dt>spent</dt>" in found
    part = report(three, tmp_path / "p.html", samples=0, part=Part(trials=20)).read_text("utf-8")
    assert 'id="decision"' not in part


def test_ranking__has_the_decisions_of_the_whole_cube(three):
    explored = Explored([three])

    whole, part = ask(explored, "ranking", Query()), ask(explored, "ranking", Query.make(task="arithmetic"))

    assert [one["decision"] for one in whole["decisions"]] == ["GO", "NO-GO"]
    assert (part["decisions"], part["no_decision"]) == ([], "")
    json.dumps(whole, allow_nan=False)


@pytest.mark.parametrize(
    ("config", "found", "why"),
    [
        ({}, [], ""),
        ({"policy": POLICY}, [], "of 3 evaluations"),
        ({"policy": {"critical": [{"superiour": 1}]}}, [], "critical"),
        ({"policy": POLICY, "composite": {"control": "gone"}}, [], "gone"),
    ],
)
def test_shown_decisions__without_a_pair_or_a_policy_say_why(three, monkeypatch, config, found, why):
    reader = Reader(three)
    monkeypatch.setitem(reader.__dict__, "notes", {"config": config})

    decisions, said = shown_decisions(reader)

    assert decisions == found
    assert why in said
    assert bool(why) == bool(said)


def test_shown_decisions__what_was_decided_at_looks_stands_until_more_is_asked(tmp_path):
    told = from_mapping(config(tmp_path, "old", "broken"))
    decided, _ = run_gate(Policy.model_validate({"critical": [{"noninferior": 3}]}), told)

    (found,), _ = shown_decisions(Reader(told.cube))

    assert (found.decision, decided.decision) == ("NO-GO", "NO-GO")
    assert "1 of 5" in found.rows[0]
    assert "not worse by 3" in found.rows[0]
    records = Cube.open(told.cube).records
    kept = json.loads(records.get(GATE).data)
    for broken in ({**kept, "answers": kept["answers"] + 1}, {**kept, "decision": {"lines": 1}}, []):
        records.put(GATE, json.dumps(broken).encode())
        (found,), _ = shown_decisions(Reader(told.cube))
        assert "not worse by 10" in found.rows[0]


def test_doubts__a_margin_that_may_have_been_meant_as_a_share():
    margins = [{"noninferior": 0.05}, {"superior": 0}, {"equivalent": "0.05%"}, {"noninferior": 0.1}]
    policy = Policy.model_validate({"critical": margins})

    (text,) = doubts(policy)

    assert "5 points write noninferior: 5" in text
    assert doubts(None) == ()


def test_run_gate__refuses_unknown_names_before_anything_is_asked(tmp_path):
    policy = Policy.model_validate({"critical": [{"tasks": "arithmetics", "noninferior": 3}]})

    with pytest.raises(ConfigError, match=r"'arithmetics'.*'arithmetic'"):
        run_gate(policy, from_mapping(config(tmp_path, "old", "new")))

    assert not (tmp_path / "c.zarr").exists()


def test_open_lines__of_looks_say_the_level_of_each_interval_and_of_one_look_95(three, tmp_path):
    told = from_mapping(config(tmp_path, "old", "broken"))
    decided, _ = run_gate(Policy.model_validate({"critical": [{"noninferior": 3}]}), told)
    (line,), once = decided.lines, gate(POLICY, three, "old", "broken")

    assert line.level > 0.95
    (words,) = open_lines(decided)
    assert f"({100 * line.level:.4g}%: {points(line.lower)} to {points(line.upper)})" in words
    assert all("points (95%: " in words for words in open_lines(once))


def test_open_lines__lacking_answers_are_what_a_gain_that_is_not_there_needs():
    line = PolicyLine("supporting", "", "", "superior", 0.0, 81, 39, change=0.0, lower=-0.05, upper=0.05)
    line = replace(line, lowest=-0.3, highest=0.2, outcome="open")

    (words,) = open_lines(GateResult("INCONCLUSIVE", "", "a", "b", (), "", (line,)))

    assert "39 questions lack" in words
    assert "no number of" not in words
