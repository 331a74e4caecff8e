"""Questions that two evaluations answered differently, of one cube and of two."""

import csv
import io
import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.read.trials.flips import Flips, flips
from evalcube.flows.read.trials.read import trials
from tests.flows.read.test_gate import RIGHT, WRONG, sides
from tests.flows.support import evalcube, refused, reset, sweep_config, write_config

POLICY = "policy: {critical: [{tasks: arithmetic, noninferior: 5}], advisory: [{superior: 0}]}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory, _served):
    """A folder with two cubes: of two models asked alike, and of one of them with more trials and points."""
    reset(_served)
    folder = tmp_path_factory.mktemp("flips")
    for cube, count, cells, models in (("old", 6, 2, ("alpha", "beta")), ("new", 8, 3, ("alpha",))):
        config = sweep_config(
            folder,
            _served.base_url,
            trials=count,
            cells=cells,
            models=models,
            cube=f"{cube}.zarr",
            cache=str(folder / f"{cube}-cache"),
        )
        for model in config["models"]:
            model["simulate"] = {"ability": 4.0 if model["name"] == "beta" else 0.5, "tokens": 20}
            model["model"] = f"{cube}-{model['name']}"
        assert evalcube("run", write_config(folder, config), "--quiet", cwd=folder)[0] == 0
    return folder


def outcomes(cube, model):
    found = trials(
        cube, where=[f"model={model}"], columns=["task", "params", "trial", "status", "answer", "reference"]
    )
    return {(row["task"], row["params"], row["trial"]): row for row in found.rows()}


def test_flips__refuse_what_is_no_way_to_count_what_was_cut():
    with pytest.raises(SweepError, match="`truncated`: there is no 'right'"):
        flips(["nowhere.zarr"], truncated="right")


def test_flips__are_the_questions_with_different_outcomes_and_both_answers(folder):
    cube = folder / "old.zarr"
    first, second = outcomes(cube, "alpha"), outcomes(cube, "beta")

    found = flips([cube], ["alpha", "beta"])
    rows = list(found.rows())

    changed = [
        key for key in first if (first[key]["status"] == "correct") != (second[key]["status"] == "correct")
    ]
    assert changed
    assert len(found) == len(rows) == len(changed)
    for row in rows:
        key = next(
            one
            for one in changed
            if one[0] == row.task and one[2] == row.trial and json.loads(one[1]) == row.params
        )
        for reply, expected in ((row.first, first[key]), (row.second, second[key])):
            assert (reply.status, reply.answer) == (expected["status"], expected["answer"])
        assert row.reference == first[key]["reference"]
        assert row.change == ("lost" if row.first.status == "correct" else "won")
    totals = found.pair.overall
    assert (totals.first_only, totals.second_only) == tuple(
        sum(getattr(one, change) for one in found.tasks) for change in ("lost", "won")
    )
    assert found.missing == 0


def test_flips__of_two_cubes_compare_what_both_were_asked_and_count_the_rest(folder):
    found = flips([folder / "old.zarr", folder / "new.zarr"], ["alpha"])

    counts = {one.task: one for one in found.tasks}
    assert (found.sides.first.label, found.sides.second.label) == ("alpha (old.zarr)", "alpha (new.zarr)")
    assert (counts["arithmetic"].questions, counts["arithmetic"].second_alone) == (2 * 6, 2 * 2 + 8)
    assert (counts["boolean"].questions, counts["boolean"].second_alone, counts["boolean"].first_alone) == (
        6,
        2,
        0,
    )
    back = flips([folder / "new.zarr", folder / "old.zarr"], ["alpha"])
    assert sum(one.first_alone for one in back.tasks) == sum(one.second_alone for one in found.tasks)
    assert [(one.task, one.trial) for one in back.rows()] == [(one.task, one.trial) for one in found.rows()]


def test_flips__of_a_part(folder):
    code, output, _ = evalcube(
        "compare",
        "old.zarr",
        "alpha",
        "beta",
        "--flips",
        "--json",
        "--where",
        "task=boolean",
        "--trials",
        3,
        cwd=folder,
    )

    document = json.loads(output)
    assert code == 0
    assert [(one["task"], one["questions"]) for one in document["tasks"]] == [("boolean", 3)]
    assert all(one["task"] == "boolean" and one["trial"] < 3 for one in document["flips"])


def test_flips__limit_shows_some_of_either_way(folder):
    found = flips([folder / "old.zarr"], ["beta", "alpha"])
    ways = [one.change for one in found.rows()]

    some = list(found.rows(2))

    assert len(some) == 2
    assert {one.change for one in some} == set(ways) or len(set(ways)) == 2
    assert [one.change for one in found.rows(len(ways) + 5)] == ways
    assert list(found.rows(0)) == []


def test_flips__points_come_by_how_much_changed_in_either_way():
    much, little = [RIGHT] * 5 + [WRONG] * 5, [RIGHT] * 10
    two = sides([little, much], [[WRONG] * 2 + [RIGHT] * 8, much[::-1]])

    found = Flips(two, "wrong", None).points

    assert [(one.tiers, one.lost, one.won) for one in found] == [(("hard",), 5, 5), (("easy",), 2, 0)]


def test_flips__show_the_first_repeat_that_differs_as_the_question_does(monkeypatch):
    first, second = (
        [[WRONG, RIGHT, RIGHT], [RIGHT, WRONG, WRONG]],
        [[RIGHT, WRONG, WRONG], [RIGHT, RIGHT, WRONG]],
    )
    status = np.array([[[first]], [[second]]], np.uint8)
    two = SimpleNamespace(
        status=status,
        both=lambda _: np.ones(status.shape[1:], bool),
        points=((None,),),
        first=None,
        second=None,
    )
    replies = SimpleNamespace(load=lambda _, places: places, missing=0)
    monkeypatch.setattr("evalcube.flows.read.trials.flips._Replies", lambda *_: replies)
    monkeypatch.setattr(Flips, "_flip", lambda _, *read: read[0])

    assert list(Flips(two, "wrong", None).rows()) == [(0, 0, 0, 1), (0, 0, 1, 1)]


def test_compare_flips__says_the_totals_first_then_tasks_points_and_answers(folder):
    code, output, _ = evalcube("compare", "old.zarr", "alpha", "beta", "--flips", cwd=folder)

    lines = output.splitlines()
    assert code == 0
    assert "'alpha' to 'beta'" in lines[0]
    assert "beta" in lines[1]
    assert output.index("p (Holm)") < output.index("tier") < output.index("reference")
    assert "length=3" in output


def test_compare_flips__other_forms(folder):
    words = ("compare", "old.zarr", "new.zarr", "alpha", "--flips")
    document = json.loads(evalcube(*words, "--json", cwd=folder)[1])
    rows = list(csv.DictReader(io.StringIO(evalcube(*words, "--csv", cwd=folder)[1])))
    markdown = evalcube(*words, "--markdown", "--limit", 1, cwd=folder)[1]

    assert document["changed"] == len(document["flips"]) == len(rows)
    assert [row["first_answer"] for row in rows] == [
        row["first"]["answer"] or "" for row in document["flips"]
    ]
    assert document["comparison"]["overall"]["questions"] == sum(
        one["questions"] for one in document["tasks"]
    )
    assert markdown.startswith("### `alpha (old.zarr)` → `alpha (new.zarr)`\n")
    assert "Not compared" in markdown


def test_compare_flips__csv_has_its_header_without_rows_too(folder):
    words = ("compare", "old.zarr", "alpha", "beta", "--flips", "--csv", "--limit")
    none, one = (evalcube(*words, limit, cwd=folder)[1] for limit in (0, 1))

    (row,) = csv.DictReader(io.StringIO(one))
    assert none.splitlines() == [",".join(row)]
    assert json.loads(row["params"])
    assert row["first_status"] != row["second_status"]


REFUSED = {
    "one model": (["old.zarr", "alpha", "--flips"], "has: alpha, beta"),
    "the same twice": (["old.zarr", "alpha", "0", "--flips"], "named twice"),
    "three cubes": (["old.zarr", "new.zarr", "old.zarr", "--flips"], "got 3 cubes"),
    "unknown": (["old.zarr", "new.zarr", "alfa", "--flips"], "Did you mean 'alpha'?"),
    "nothing in common": (
        ["old.zarr", "alpha", "beta", "--flips", "--where", "trial=9"],
        "trial",
    ),
    "two forms": (["old.zarr", "alpha", "beta", "--flips", "--json", "--csv"], "exclude each other"),
    "without it": (["old.zarr", "alpha", "beta", "--limit", "3"], "Add --flips"),
}


@pytest.mark.parametrize(("words", "told"), REFUSED.values(), ids=REFUSED)
def test_compare_flips__refuses(folder, words, told):
    refused(evalcube("compare", *words, cwd=folder), told)


def test_gate__by_a_policy(folder):
    (folder / "policy.yaml").write_text(POLICY)
    words = ("gate", "policy.yaml", "old.zarr")

    worse = evalcube(*words, "--control", "beta", "--treatment", "alpha", cwd=folder)
    better = evalcube(*words, "alpha", "beta", "--json", cwd=folder)
    over_two = evalcube("gate", "policy.yaml", "new.zarr", "old.zarr", "alpha", cwd=folder)

    assert worse[0] == 1
    assert worse[1].startswith("NO-GO: alpha instead of beta\n")
    assert better[0] == 0
    document = json.loads(better[1])
    assert (document["decision"], document["lines"][0]["outcome"]) == ("GO", "shown")
    assert over_two[0] == 3
    assert over_two[1].startswith("INCONCLUSIVE: ")
    comment = evalcube(*words, "beta", "alpha", "--markdown", cwd=folder)
    assert comment[0] == 1
    assert comment[1].startswith("### NO-GO: `alpha` instead of `beta`\n\n")
    assert "\n- critical, arithmetic, not" in comment[1]
    assert "\n| critical | arithmetic | all |" in comment[1]
    refused(evalcube(*words, "--markdown", "--json", cwd=folder), "exclude each other")


def test_compare_and_gate__of_two_cubes_say_how_each_takes_them(folder):
    (folder / "policy.yaml").write_text("policy: {critical: [{noninferior: 1}]}")
    shutil.copytree(folder / "old.zarr", folder / "again.zarr", dirs_exist_ok=True)
    two = ("old.zarr", "again.zarr", "alpha", "beta")

    joined = evalcube("compare", *two, "--json", cwd=folder)
    side = json.loads(evalcube("gate", "policy.yaml", *two, "--json", cwd=folder)[1])
    flipped = json.loads(evalcube("compare", *two, "--flips", "--json", "--limit", 0, cwd=folder)[1])

    assert "alpha; beta" in joined[2]
    assert side["lines"][0]["change"] == pytest.approx(-flipped["comparison"]["overall"]["difference"])


def test_gate__asks_no_more_than_it_takes(folder):
    config = sweep_config(folder, "sim:", trials=100, cells=1, models=("alpha", "beta"), cube="asked.zarr")
    for model in config["models"]:
        model |= {"endpoint": "sim:", "simulate": {"ability": 4.0, "tokens": 20}}
    file = write_config(folder, config)
    (folder / "wide.yaml").write_text("policy: {critical: [{noninferior: 30}]}")
    words = ("gate", "wide.yaml", "--run", file, "--quiet", "--json")

    code, text, _ = evalcube(*words, cwd=folder)
    again = evalcube(*words, cwd=folder)

    found = json.loads(text)
    (line,) = found["lines"]
    assert (code, found["decision"], line["look"], line["questions"]) == (0, "GO", 1, 2 * 40)
    assert (again[0], json.loads(again[1])) == (code, found)
    refused(evalcube("gate", "wide.yaml", cwd=folder), "Give a cube")
