"""The check of judges for length bias: priced first, asked once, measured against the cube's own readings."""

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from evalcube.flows.cli.verdict import verdict as command
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.judges import Judge
from evalcube.flows.rework.length_bias import length_bias_check
from evalcube.flows.run.sweep import run
from evalcube.stages.process.rubric import judge_prompt_digest
from evalcube.storage.cube.cube import Cube
from tests.flows.judging import LANDS, judged_config
from tests.flows.shared_cluster import SHARED
from tests.flows.support import simulator_stats, sweep_config


@pytest.fixture
def judged(tmp_path, monkeypatch, simulator):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    config = judged_config(tmp_path, simulator.base_url)
    run(config, cluster=SHARED)
    return config


def run_command(*arguments):
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "160"})


def test_length_bias__is_priced_asked_once_and_measured_against_the_cubes_readings(judged, simulator):
    check = length_bias_check(judged["cube"], "before", ["after"])
    asked = simulator_stats(simulator)["models"]

    price = check.price()
    summary = check.run(cluster=SHARED)
    found = check.measure()

    units = 2 * len(LANDS)
    assert [row.to_send for row in price.rows] == [0, 0, units * 2, units]
    stats = simulator_stats(simulator)["models"]
    assert (stats["before"], stats["after"]) == (asked["before"], asked["after"])
    assert 0 < stats["grader"] - asked["grader"] <= price.to_send
    assert summary.reason == "complete"
    assert [(one.judge, one.variant) for one in found] == [
        (judge, variant) for variant in ("before", "after") for judge in ("strict", "loose")
    ]
    told, untold = (
        Cube.open(url).dataset()["judge_readings"].to_numpy()[1, 0, 0, :, 0, 1, 0]
        for url in (judged["cube"], check.config.cube)
    )
    assert found[3].measured.shift.estimate == pytest.approx(float((told - untold).mean()))
    assert found[3].measured.units == len(LANDS)
    assert np.isfinite(found[0].measured.slope)
    assert check.price().to_send == 0
    alone = length_bias_check(judged["cube"], "after")
    assert (alone.price().to_send, alone.run(cluster=SHARED).sent) == (0, 0)
    assert [one.measured.units for one in alone.measure()] == [len(LANDS)] * 2
    assert check.run(cluster=SHARED).sent == 0
    json.dumps([one.to_dict() for one in found], allow_nan=False)


def test_verdict__tells_what_the_check_would_cost_and_asks_nothing(judged, simulator):
    asked = simulator_stats(simulator)["requests"]

    text = run_command(judged["cube"], "--control", "before", "--treatment", "after", "--length-bias")
    plain = run_command(judged["cube"], "--control", "before", "--length-bias", "--json")

    assert f"at most {2 * len(LANDS) * 3} requests to send" in text.output
    assert "grader at sim:" in text.output
    assert "nothing is asked yet: run again with --yes" in text.output
    found = json.loads(plain.output)["length_bias"]
    assert found == {"asked": False, "to_send": len(LANDS) * 3, "cost": None}  # the grader declares no price
    assert simulator_stats(simulator)["requests"] == asked


def test_length_bias_check__a_cube_does_not_decide_whom_to_ask(judged, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "somebody-else"))

    with pytest.raises(SweepError, match="you have not run"):
        length_bias_check(judged["cube"], "before", ["after"])


def test_length_bias_check__needs_judges(tmp_path, simulator):
    config = sweep_config(tmp_path, simulator.base_url, trials=1, cells=1)
    run(config, cluster=SHARED)

    with pytest.raises(SweepError, match="has no judges"):
        length_bias_check(config["cube"])


def test_judge__the_prompt_without_the_sentence_is_another_request():
    told, untold = (
        Judge(
            name="j",
            model="m",
            request_model="m",
            sampler={},
            repeats=1,
            prompt=judge_prompt_digest(length_debias=on),
        )
        for on in (True, False)
    )

    assert told.identity != untold.identity
    bodies = [judge.requests("Is short.", "Why?", "So.")[0].body for judge in (told, untold)]
    assert [b"Length is no sign of quality" in body for body in bodies] == [True, False]
