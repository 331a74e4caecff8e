"""Verdicts as commands print them, and the codes they end with."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from evalcube.flows.cli import decide
from evalcube.flows.cli.decide import verdict as command
from evalcube.flows.errors import SweepError
from evalcube.flows.read.gate import GateResult, PolicyLine
from evalcube.flows.read.verdict import cube_verdict
from evalcube.stages.analyze.verdict.agreement import GoldAgreement
from tests.cases import with_cases
from tests.flows.judging import judged_config
from tests.flows.read.test_verdict import NOWHERE, UNITS, written_cube
from tests.flows.support import evalcube

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The address of such a cube, which tests only read."""
    return written_cube(tmp_path_factory.mktemp("written"))[0]


def test_cube_verdict__half_of_the_treatment_is_no_progress(tmp_path):
    def change(model, made):
        if model:
            made["status"][0, 0, 12:] = 254
            for name in ("fact", "behavior", "judge", "judge_readings"):
                made[name][0, 0, 12:] = np.nan

    url, _ = written_cube(tmp_path, gain=1.5, change=change)

    text = run_command(url, "--control", "before", "--treatment", "after")
    plain = run_command(url, "--control", "before", "--treatment", "after", "--json")

    assert (text.exit_code, plain.exit_code) == (1, 1)
    assert "(rule positive_missing)" in text.output
    assert "0 of 24 and 12 of 24" in text.output
    gaps = json.loads(plain.output)["pairs"][0]["missing"]["gaps"]
    assert gaps[0] == {
        "what": "the composite",
        "control": 0,
        "control_expected": 24,
        "treatment": 12,
        "treatment_expected": 24,
    }


def test_verdict__a_gain_that_held_out_questions_do_not_show_is_no_progress(tmp_path):
    held = [0, 3, 6, 10, 13, 17, 20]  # of 24 units in the order of their names

    def change(model, made):
        order = sorted(range(UNITS), key=lambda index: f"dataset/0/{index}")
        for name in ("fact", "behavior", "judge", "judge_readings"):
            made[name][0, 0] = 3.0 + 2.0 * model
            made[name][0, 0, [order[place] for place in held]] = 3.0 + model

    url, _ = written_cube(tmp_path, change=change)

    found = run_command(url, "--control", "before", "--treatment", "after", "--holdout", "0.3")

    assert "(rule positive_overfit)" in found.output
    assert "questions: +1.00 there, +2.00" in found.output


def run_command(*arguments):
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "160"})


def test_verdict__prints_and_exits_as_it_decides(written):
    better = run_command(written, "--control", "before", "--treatment", "after")
    worse = run_command(written, "--control", "after", "--treatment", "before")
    plain = run_command(written, "--control", "before", "--treatment", "after", "--json")

    assert (better.exit_code, worse.exit_code, plain.exit_code) == (0, 1, 0)
    assert better.output.startswith("PROGRESS: 'after' against 'before' (rule ")
    assert "(3/3)" in better.output
    assert "  judges agree            partly" in better.output
    assert "fact 33.3%, behavior 33.3%, judge 33.3%" in better.output
    assert "T²): p " in better.output
    document = json.loads(plain.output)
    assert (document["verdict"], document["exit_code"], document["units"]) == ("PROGRESS", 0, UNITS)
    assert document["next_step"].startswith("Ship it")


def test_verdict__declared_weights_decide_what_the_composite_is(tmp_path):
    def change(model, made):
        made["judge"][0, 0] = made["judge_readings"][0, 0] = 4.0 - model

    url, _ = written_cube(tmp_path, change=change)
    pair = ("--control", "before", "--treatment", "after")

    judged = json.loads(run_command(url, *pair, "--weights", "judge=2", "--json").output)
    mixed = json.loads(run_command(url, *pair, "--weights", "fact=3, judge=1", "--json").output)

    assert judged["pairs"][0]["composite"]["estimate"] == pytest.approx(-1.0)
    assert judged["branch"] == "significant_negative"
    assert mixed["pairs"][0]["sensitivity"]["weights"] == [0.75, 0.0, 0.25]
    assert 0 < mixed["pairs"][0]["sensitivity"]["same_sign"] < 1


def test_verdict__only_the_ratios_of_weights_count(written):
    pair = ("--control", "before", "--treatment", "after", "--json")

    huge, plain = (
        json.loads(run_command(written, *pair, "--weights", text).output)
        for text in ("fact=1e6,judge=1e6", "fact=1,judge=1")
    )

    assert huge == plain


@pytest.mark.parametrize("text", ["judge", "judge=", "judge=x", "judge=1,judge=2", ""])
def test_verdict__weights_that_cannot_be_read_are_told(written, text):
    found = run_command(written, "--control", "before", "--treatment", "after", "--weights", text)

    assert isinstance(found.exception, SweepError)
    assert "--weights: " in str(found.exception)


def test_verdict__more_treatments_may_follow(tmp_path):
    models = judged_config(tmp_path, NOWHERE)["models"]
    url, _ = written_cube(tmp_path, models=[*models, {**models[0], "name": "third"}])

    found = run_command(url, "--control", "before", "--treatment", "after", "third", "--json")

    pairs = json.loads(found.output)["pairs"]
    assert [pair["treatment"] for pair in pairs] == ["after", "third"]


@pytest.fixture(scope="module")
def result(written):
    return cube_verdict([written], "before", ["after"])


def test_verdict__says_what_people_and_notes_tell_only_if_they_do(result, capsys):
    arm, *others = result.verdict.arms
    rated = replace(
        result.verdict,
        arms=(replace(arm, by_people=(1.25, 4.75), layers={"fact": 4.25}), *others),
        gold=GoldAgreement(0.5, 0.25, 0.75, 0.5, 0.5, 12),
        to_rate={arm.name: tuple("abcdefg")},
        notes=("mind this",),
    )

    decide._print_verdict(result)
    plain = capsys.readouterr().out
    decide._print_verdict(replace(result, verdict=rated))
    output = capsys.readouterr().out

    for words in (
        "alpha 0.50 (0.25 to 0.75), 12 rated questions",
        f"'{arm.name}': composite corrected by people's ratings, {arm.composite:.2f} (1.25 to 4.75)",
        f"'{arm.name}': a, b, c, d, e (--json lists all 7)",
        "4.25 - -",
        "note: mind this",
    ):
        assert words in " ".join(output.split())
        assert words not in plain


def test_verdict__says_of_a_pair_what_was_computed(result, capsys):
    (pair,) = result.verdict.pairs
    nan = float("nan")

    def shown(**changes):
        decide._print_robustness(replace(pair, **changes))
        return capsys.readouterr().out

    whole, words = shown(), {"sensitivity": "weights", "joint": "Hotelling", "standardised": "deviations"}
    assert "composite, each layer in its standard deviations: +" in whole
    for name, said in words.items():
        assert said in whole
        assert said not in shown(**{name: None})
    assert "Hotelling" not in shown(joint=replace(pair.joint, p_value=nan))
    assert "deviations" not in shown(standardised=replace(pair.standardised, estimate=nan))
    assert "weights" not in shown(sensitivity=replace(pair.sensitivity, points=()))
    assert shown(sensitivity=None, joint=None, standardised=None, missing=None, holdout=None) == ""


@with_cases(
    ("method", "said", "unsaid"),
    [
        ("people", "corrected by people's ratings", "significant however"),
        ("anytime", "intervals are for all looks together; an e of 20 or more", "this look only"),
        ("other", "p and intervals are for this look only; an e of 20 or more", "all looks"),
    ],
)
def test_verdict__says_for_how_many_looks_intervals_hold(result, capsys, method, said, unsaid):
    (pair,) = result.verdict.pairs
    composite = replace(pair.composite, method=method, alpha=0.05, p_value=0.25, e=3.5)

    decide._print_intervals(replace(pair, composite=composite))

    output = capsys.readouterr().out
    assert (
        f"composite {composite.estimate:+.2f}  (95%: {composite.low:+.2f} to {composite.high:+.2f}" in output
    )
    assert ", p 0.25, e 3.5)" in output
    assert all(f"\n  {name}" in output for name in pair.simultaneous)
    assert said in output
    assert unsaid not in output
    decide._print_intervals(
        replace(pair, composite=replace(composite, p_value=float("nan"), e=float("nan")), simultaneous={})
    )
    assert ", p 0" not in capsys.readouterr().out


LINES = (
    PolicyLine("critical", "sort", "", "noninferior", 0.05, outcome="shown"),
    PolicyLine("advisory", "sort", "hard", "superior", 0.0, outcome="open"),
)
GO = GateResult("GO", "all is shown", "old", "new", ("c.zarr",), "", LINES, ("mind this",))


@with_cases(
    ("summary", "said"),
    [
        ({"reason": "complete"}, ""),
        ({"bound": "2 USD are spent"}, "2 USD are spent"),
        ({"ordered": "by a colleague"}, "by a colleague"),
        ({}, "run it again"),
    ],
)
def test_gate__runs_a_sweep_and_says_why_it_stopped(summary, said, monkeypatch, tmp_path):
    ended = SimpleNamespace(**{"reason": "stopped", "bound": "", "ordered": "", **summary})
    monkeypatch.setattr("evalcube.flows.config.views.load_policy", lambda _: "rules")
    monkeypatch.setattr("evalcube.flows.config.suites.load_sweep", lambda _: "sweep")
    monkeypatch.setattr("evalcube.flows.run.gate.run_gate", lambda *_, **__: (GO, ended))

    code, output, errors = evalcube("gate", "p.yaml", "--run", "s.yaml", "--quiet", cwd=tmp_path)
    markdown = evalcube("gate", "p.yaml", "--run", "s.yaml", "--quiet", "--markdown", cwd=tmp_path)[1]
    document = json.loads(evalcube("gate", "p.yaml", "--run", "s.yaml", "--quiet", "--json", cwd=tmp_path)[1])

    assert code == 0
    assert output.startswith("GO: new instead of old\n  all is shown\n  advisory, sort (hard), ")
    assert "critical, sort, " not in output
    assert ("stopped before the decision" in errors) == bool(said)
    assert said in errors
    assert "mind this" in errors
    assert [line for line in markdown.splitlines() if line and not line.startswith("|")][:2] == [
        "### GO: `new` instead of `old`", "all is shown"
    ]  # fmt: skip
    assert markdown.count("\n- ") == 2
    assert markdown.endswith("\n- mind this\n")
    assert document["decision"] == "GO"


@with_cases(
    ("words", "said"),
    [
        (("p.yaml", "c.zarr", "--to-the-end"), "--to-the-end goes with --run"),
        (("p.yaml",), "Give a cube, or --run CONFIG"),
    ],
)
def test_gate__refuses_what_there_is_nothing_to_do_with(words, said, monkeypatch, tmp_path):
    monkeypatch.setattr("evalcube.flows.config.views.load_policy", lambda _: "rules")

    assert said in evalcube("gate", *words, cwd=tmp_path)[2]
