"""Verdicts as commands print them, and the codes they end with."""

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from evalcube.flows.cli.decide import verdict as command
from evalcube.flows.errors import SweepError
from tests.flows.judging import judged_config
from tests.flows.read.test_verdict import NOWHERE, UNITS, written_cube

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
