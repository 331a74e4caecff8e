"""The verdict that a report and the explorer show, and what a config says of composites."""

import datetime
import json
import shutil

import pytest

from evalcube.flows.errors import ConfigError
from evalcube.flows.explore.answers import ask
from evalcube.flows.explore.explored import Explored
from evalcube.flows.explore.query import Query
from evalcube.flows.read import selection, verdict
from evalcube.flows.read.design import composite_settings
from evalcube.flows.read.reader import Reader
from evalcube.flows.read.report import report
from evalcube.flows.read.selection import Part
from evalcube.flows.read.statistics import leaderboard
from evalcube.flows.read.verdict import cube_verdict, shown_standing
from tests.flows.read.merged.generated import Recipe, make_cube
from tests.flows.read.test_verdict import written_cube
from tests.flows.support import evalcube, write_config

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return written_cube(tmp_path_factory.mktemp("standing"))[0]


def declare(monkeypatch, weights, control):
    """As if the config of every cube said this."""
    monkeypatch.setattr(verdict, "composite_settings", lambda _: (weights, control))


def test_shown_standing__is_of_the_declared_control(written, monkeypatch):
    for control, decision, words in (
        ("before", "PROGRESS", "after against before"),
        ("after", "REGRESS", "before against after"),
    ):
        declare(monkeypatch, None, control)

        standing, why = shown_standing(Reader(written))

        assert (standing.verdict, standing.words, why) == (decision, words, "")
        assert [pair.verdict for pair in standing.pairs.values()] == [decision]
        assert [name for name, _, _ in standing.badges] == [
            "judges agree",
            "difference significant",
            "saturated",
            "human-aligned",
        ]


def test_shown_standing__decides_nothing_that_nobody_asked(written):
    assert shown_standing(Reader(written)) == (None, "")


def test_shown_standing__a_control_that_is_not_here_is_said(written, monkeypatch):
    declare(monkeypatch, None, "elsewhere")

    found, why = shown_standing(Reader(written))

    assert found is None
    assert "elsewhere" in why


def test_report__has_composites_the_pill_and_the_badges(written, tmp_path, monkeypatch):
    declare(monkeypatch, None, "before")

    whole = report(written, tmp_path / "whole.html").read_text("utf-8")

    assert 'class="pill progress"' in whole
    assert "judges agree: <b>" in whole
    assert "(3/3)" in whole


def test_report__is_the_same_of_a_cube_that_is_read_piece_by_piece(written, tmp_path, monkeypatch):
    said = []
    for small in (selection.SMALL, -1):
        monkeypatch.setattr(selection, "SMALL", small)
        page = report(written, tmp_path / "r.html", samples=0, date=datetime.date(2026, 1, 1))
        said.append((leaderboard(written).to_dict(), page.read_text("utf-8")))

    assert said[0] == said[1]
    assert "composite" in said[0][1]


def test_report__of_a_part_has_composites_and_no_verdict(written, tmp_path):
    found = report(written, tmp_path / "part.html", part=Part(trials=4)).read_text("utf-8")

    assert "Composite and verdict" in found
    assert 'class="pill' not in found


def test_ranking__has_composites_and_the_verdict_of_the_whole_cube(written, monkeypatch):
    declare(monkeypatch, None, "before")
    explored = Explored([written])

    whole = ask(explored, "ranking", Query())
    part = ask(explored, "ranking", Query.make(task="dataset"))

    assert whole["verdict"]["verdict"] == "PROGRESS"
    assert set(whole["verdict"]["pairs"]) < {row["eval_id"] for row in whole["rows"]}
    assert all(row["composite"]["shown"].endswith("(3/3)") for row in whole["rows"])
    assert part["verdict"] is None
    assert part["rows"][0]["composite"] is not None
    json.dumps(whole, allow_nan=False)


def test_cube_verdict__weights_and_control_of_the_config_hold_unless_others_are_given(written, monkeypatch):
    declare(monkeypatch, {"fact": 1.0, "behavior": 0.0, "judge": 0.0}, "before")

    found = cube_verdict(written, treatments=["after"])

    assert cube_verdict(written).verdict == cube_verdict(written, "before").verdict == found.verdict
    assert cube_verdict(written, "after").verdict.verdict == "SOLO"  # of which nothing is declared
    assert found.verdict == cube_verdict(written, "before", ["after"], weights={"fact": 1.0}).verdict
    assert found.verdict != cube_verdict(written, "before", ["after"], weights={"judge": 1.0}).verdict


def test_leaderboard__composites_go_with_the_cubes(written):
    board = leaderboard(written, sort="composite")

    assert [row.model_name for row in board.rows] == ["after", "before"]
    arms = cube_verdict(written, "after", ["before"]).verdict.arms
    assert [row.composite.shown for row in board.rows] == [arm.shown for arm in arms]


@pytest.mark.parametrize(
    ("declared", "found"),
    [
        (None, (None, None)),
        ({"control": "a"}, (None, "a")),
        ({"weights": {"fact": 2}}, ({"fact": 2.0, "behavior": 0.0, "judge": 0.0}, None)),
    ],
)
def test_composite_settings__of_a_config(declared, found):
    notes = {"config": {} if declared is None else {"composite": declared}}

    assert composite_settings(notes) == found
    assert composite_settings({}) == (None, None)


@pytest.mark.parametrize("declared", [{"weights": {"fact": 0}}, {"weights": {"fact": "a"}}, [], {"x": 1}, 7])
def test_composite_settings__what_no_config_may_say_is_one_error(declared):
    with pytest.raises(ConfigError, match="`composite` in"):
        composite_settings({"config": {"composite": declared}})


def test_leaderboard__of_a_cube_with_layers_and_one_without(tmp_path):
    judged, plain = (str(tmp_path / name) for name in ("judged.zarr", "plain.zarr"))
    make_cube(judged, Recipe(models=("alpha",), depths=(), judges=("judge",)))
    make_cube(plain, Recipe(models=("beta",), lengths=()))

    board = leaderboard([judged, plain])

    assert sorted(row.model_name for row in board.rows) == ["alpha", "beta"]
    assert {row.model_name: row.composite for row in board.rows}["beta"] is None


def test_verdict__of_two_cubes_is_that_of_both_merged(judged, tmp_path):
    """A variant in each: the control's cube is that of the last release."""
    shutil.copytree(judged, tmp_path, dirs_exist_ok=True)
    config = json.loads((tmp_path / "sweep.yaml").read_text().replace(str(judged), str(tmp_path)))
    own = {"old": [0, 2], "new": [1, 2]}
    for name in ("old", "new"):
        models = [config["models"][place] for place in own[name]]
        one = write_config(tmp_path, config | {"models": models, "cube": f"{name}.zarr"}, f"{name}.yaml")
        assert evalcube("run", one, "--workers", 1, "--quiet", cwd=tmp_path)[0] == 0
    ask = ("--control", "before", "--treatment", "after", "--json")

    whole = evalcube("verdict", "cube.zarr", *ask, cwd=tmp_path)
    two = evalcube("verdict", "old.zarr", "new.zarr", *ask, cwd=tmp_path)
    alone = evalcube(
        "verdict", "new.zarr", "old.zarr", "after", "--control", "before", "--json", cwd=tmp_path
    )

    expected, found = json.loads(whole[1]), json.loads(two[1])
    assert (two[0], found["cube"]) == (whole[0], "old.zarr, new.zarr")
    assert found["pairs"] == expected["pairs"] == json.loads(alone[1])["pairs"]
