"""What a sweep needs to tell two models apart, from a share that is stated and from a cube."""

import json
import re
from types import SimpleNamespace

import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.build import build_plan
from evalcube.flows.read import detect as detect_module
from evalcube.flows.read.detect import detect
from evalcube.flows.read.estimate import estimate
from evalcube.flows.state.store import open_store
from evalcube.stages.analyze.formulas.detect import Spread
from evalcube.stages.analyze.labelled import pairing
from evalcube.storage.errors import StorageError
from tests.cases import with_cases
from tests.flows.support import evalcube, refused

CONFIG = {
    "name": "two",
    "trials": 50,
    "models": [
        {"name": name, "endpoint": "sim:", "simulate": {"ability": ability}}
        for name, ability in (("a", 3), ("b", 2.5))
    ],
    "tasks": {"arithmetic": {"manifold": [{"grid": {"length": [3, 6]}}]}},
}


@pytest.fixture
def config(tmp_path):
    return {**CONFIG, "cube": str(tmp_path / "two.zarr"), "cache": str(tmp_path / "cache")}


def test_detect__of_a_stated_share_is_that_of_the_formula_at_each_point(config):
    found = detect(config, 5, against=0.2)

    assert (found.trials, found.questions, found.planned) == (325, 650, 100)
    assert found.estimate.requests == 2 * 650
    assert found.told == pytest.approx(13.2, abs=0.2)


def of_rows(config, folder, **sizes):
    """The sweep with a data set of so many rows for each task."""
    tasks = {}
    for name, size in sizes.items():
        file = folder / f"{name}.jsonl"
        file.write_text(
            "".join(json.dumps({"prompt": f"{i}?", "answer": str(i)}) + "\n" for i in range(size))
        )
        tasks[name] = {"task": "dataset", "params": {"file": str(file)}}
    return {**config, "trials": max(sizes.values()), "tasks": tasks}


def test_detect__weighs_tasks_as_a_comparison_and_names_the_one_that_limits(config, tmp_path):
    uneven = of_rows(config, tmp_path, large=1000, small=20)
    found = detect(uneven, 5, against=0.2)

    assert (found.planned, found.limiting, found.most) == (1020, "small", 1020)
    assert found.worth == pytest.approx(1 / (0.25 / 1000 + 0.25 / 20))
    assert found.told == pytest.approx(15, abs=0.5)
    assert estimate(uneven).worth == found.worth
    assert detect(of_rows(config, tmp_path, large=1000, small=900), 5, against=0.2).limiting == ""


def test_plan__says_how_many_questions_are_needed_where_there_are_fewer(config, tmp_path):
    (tmp_path / "two.json").write_text(json.dumps(of_rows(config, tmp_path, large=1000, small=20)))

    text = evalcube("plan", "two.json", "--detect", "0.05", "--against", ".2", cwd=tmp_path)[1]

    assert re.search(r"6,282,096 .* 1,020\b", text)
    assert "0.05 percentage points are 0.0005" in text
    assert "1,020 questions for each" in text
    assert "'small' has" in text


def test_detect__says_that_questions_run_out(config, tmp_path):
    found = detect(of_rows(config, tmp_path, few=40), 5, against=0.2)

    assert (found.questions, found.trials, found.estimate, found.most, found.planned) == (
        None,
        None,
        None,
        40,
        40,
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"difference": 0}, "detect.*between 0 and 100"),
        ({"difference": 2, "power": 1.0}, "power.*between"),
        ({"difference": 20, "against": 0.1}, "disagree on more than"),
        ({"difference": 2, "against": "nowhere.zarr"}, "nowhere.zarr"),
    ],
)
def test_detect__refuses(config, given, told):
    with pytest.raises((SweepError, StorageError), match=told):
        detect(config, **given)


def test_detect__of_a_cube_without_common_answers_assumes_a_share(config):
    plan = build_plan(from_mapping(config))
    open_store(plan, config["cube"])

    assert detect(config, 5).basis.startswith("two models being taken to disagree on 20% of the questions")
    with pytest.raises(SweepError, match="answered two questions"):
        detect(config, 5, against=config["cube"])


@with_cases(("models", "differ"), [(2, "in many.zarr"), (3, "in many.zarr, the most unlike")])
def test_detect__takes_the_spread_of_the_most_unlike_models_of_a_cube(config, monkeypatch, models, differ):
    opened = SimpleNamespace(dataset=SimpleNamespace(sizes={"model": models}))
    monkeypatch.setattr(detect_module, "open_part", lambda *_: opened)
    monkeypatch.setattr(pairing, "spread_of", lambda _, *pair: Spread.of_discordance(0.2 * sum(pair)))

    found = detect(config, 5, against="many.zarr")

    assert found.basis.startswith(f"as two models differ {differ}")
    assert ("unlike" in found.basis) is (models > 2)
    assert found.spread.between == 0.2 * (2 * models - 3)


@pytest.mark.cluster
def test_plan__takes_the_spread_from_the_sweeps_own_cube(config, tmp_path):
    (tmp_path / "two.json").write_text(json.dumps({**config, "repeats": 2}))
    words = ("plan", "two.json", "--detect", "3")
    assert evalcube("run", "two.json", "--quiet", cwd=tmp_path)[0] == 0

    code, text = evalcube(*words, cwd=tmp_path)[:2]
    found = json.loads(evalcube(*words, "--json", cwd=tmp_path)[1])

    assert code == 0
    assert f"power 0.8: {found['questions']:,} questions" in text
    assert "% from the questions" in text
    assert found["spread"]["within"] is not None
    assert found["estimate"]["requests"] == 2 * 2 * found["questions"]
    refused(evalcube("plan", "two.json", "--power", ".9", cwd=tmp_path), "go with --detect")
