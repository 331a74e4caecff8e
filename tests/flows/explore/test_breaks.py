"""What the second level answers: the same numbers as the command line, and what is missing is said to be."""

import json
import shutil

import numpy as np
import pytest

from evalcube import EvalcubeError
from evalcube.flows.explore.answers import ENDPOINTS, ask
from evalcube.flows.explore.explored import Explored
from evalcube.flows.explore.overview import limits
from evalcube.flows.explore.query import Query
from evalcube.flows.explore.ranking import groups
from evalcube.flows.read.forensics import clip, compression, hazard
from evalcube.flows.read.selection import Part, open_part
from evalcube.flows.read.statistics import table as estimate_groups
from evalcube.stages.analyze.labelled.counters import with_unasked
from evalcube.storage.cube.cube import Cube
from tests.flows.cli.made_up import make_cube

pytestmark = pytest.mark.long

NAMES = ("strong", "middle", "weak")


@pytest.fixture(scope="module")
def cube(tmp_path_factory):
    """Three models, three tiers of two tasks, made up."""
    return make_cube(tmp_path_factory.mktemp("breaks"))


@pytest.fixture
def explored(cube):
    return Explored([cube])


@pytest.mark.parametrize("by", ["model", "model,task", "model,tier,task", "model,param_length", "task"])
def test_groups__are_what_the_command_says(explored, cube, by):
    answer = ask(explored, "groups", Query.make(by=by, mode="E_P"))

    _, found = estimate_groups(cube, by=by.split(","), mode="E_P")
    for name in ("point", "lower", "upper"):
        expected = [
            None if np.isnan(one) else pytest.approx(one, abs=1e-4) for one in found[name].values.ravel()
        ]
        assert answer[name] == expected
    sizes = [len(levels) for levels in answer["levels"]]
    assert np.prod(sizes) == len(answer["trials"])
    if by.startswith("model"):
        assert answer["levels"][0] == list(NAMES)
    assert answer["trials"] == found["counters"].sel(counter="trials").values.ravel().tolist()


def test_groups__of_some_models_and_a_part(explored, cube):
    query = Query.make(by="model,task", model=["weak", "strong"], tier="hard", where="param_length=5..")

    answer = ask(explored, "groups", query)

    _, found = estimate_groups(cube, Part(("tier=hard", "param_length=5..")), by=["model", "task"])
    assert answer["levels"] == [["weak", "strong"], found["task"].values.tolist()]
    np.testing.assert_allclose(answer["point"], found["point"].values[[2, 0]].ravel(), atol=1e-4)


@pytest.mark.parametrize(
    ("query", "told"),
    {
        "unknown model": (Query.make(model="strang"), "there is no 'strang'"),
        "unknown name": (Query.make(by="modle"), "modle"),
        "too many names": (Query.make(by="model,task,tier,param_length"), "4 names"),
        "nothing left": (Query.make(model="weak", where="family=other"), "nothing of weak"),
        "unknown estimator": (Query.make(mode="X"), "there is no 'X'"),
    }.values(),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_groups__refuses(explored, query, told):
    with pytest.raises(EvalcubeError, match=told):
        ask(explored, "groups", query)


def test_with_unasked__counts_what_is_planned_and_in_no_region_yet(explored):
    dataset = explored.whole().dataset
    names = dataset["counter"].values.tolist()
    bare = dataset.assign(counters=dataset["counters"] * 0.0)

    found = with_unasked(bare)["counters"].values[..., names.index("missing")]

    planned = (dataset["planned_trials"] * dataset["planned_repeats"]).values
    np.testing.assert_array_equal(found, planned)
    assert (bare["counters"].values == 0).all()
    np.testing.assert_array_equal(with_unasked(dataset)["counters"].values, dataset["counters"].values)


def test_hazard__is_that_of_the_command(explored, cube):
    answer = ask(explored, "hazard", Query.make(model="middle", width="64"))

    rows = [row for row in hazard(cube, width=64)[2] if row["model"] == "middle"]
    assert answer["tokens"] == [row["tokens"] for row in rows]
    assert answer["at_risk"] == [row["at_risk"] for row in rows]
    for name, kind in (("right", "right"), ("wrong", "wrong")):
        assert answer["ends"][name] == [row[f"ends_{kind}"] for row in rows]
        np.testing.assert_allclose(
            answer["hazard"][name]["value"], [row[f"hazard_{kind}"] for row in rows], atol=1e-5
        )
    np.testing.assert_allclose(
        answer["survival"]["lower"], [row["survival_lower"] for row in rows], atol=1e-5
    )
    assert answer["limit"] == 500
    right = np.cumsum(answer["ends"]["right"]) / answer["at_risk"][0]
    np.testing.assert_allclose(answer["budget"]["value"], right, atol=1e-5)


def test_clip__accuracy_is_open_only_for_what_was_cut_before_the_limit(cube):
    rows = {(row["model"], row["limit"]): row for row in clip(cube, limits=["128", "2000"])[2]}

    for (_, limit), row in rows.items():
        assert row["accuracy_lower"] <= row["accuracy"] <= row["accuracy_most"] <= row["accuracy_upper"]
        assert (row["accuracy_most"] > row["accuracy"]) == (limit == 2000)
    weak, run = rows["weak", 2000], rows["weak", None]
    assert weak["accuracy_most"] == pytest.approx(run["accuracy"] + run["truncated"], abs=0.02)


def test_ends__nothing_of_replies_that_end_as_usual(explored):
    assert ask(explored, "ends", Query()) == {"ends": []}


def test_traces__are_spread_over_all_and_their_table_is_that_of_the_command(explored, cube, monkeypatch):
    monkeypatch.setattr("evalcube.flows.explore.endings.SAMPLE", 50)

    answer = ask(explored, "traces", Query.make(model="weak"))

    rows = [row for row in compression(cube)[2] if row["model"] == "weak"]
    assert [(row["outcome"], row["traces"]) for row in answer["rows"]] == [
        (row["outcome"], row["traces"]) for row in rows
    ]
    sample = answer["sample"]
    assert len(sample["tokens"]) == 50 < answer["traces"]
    assert {answer["points"][place]["task"] for place in sample["point"]} == {"arithmetic", "sort"}
    assert json.loads(answer["points"][0]["params"])["length"] == 3
    status = explored.part(Query(), trials=True).dataset["status"].isel(model=2)
    assert answer["traces"] == int((status.values <= 4).sum())


@pytest.mark.parametrize("name", ["hazard", "traces"])
def test_single_models__must_be_named(explored, name):
    with pytest.raises(EvalcubeError, match="Name one"):
        ask(explored, name, Query())


@pytest.mark.parametrize("config", [None, [], {"models": 3}, {"models": ["a", {"limits": 4}, {"name": "b"}]}])
def test_limits__of_odd_notes_are_unknown(config):
    assert limits(config) == {}


def test_progress__says_what_is_planned_and_the_limits(explored):
    (found,) = ask(explored, "progress", Query())["cubes"]

    assert [model["model"] for model in found["models"]] == list(NAMES)
    assert found["limits"]["weak"]["connections"] == "auto"
    assert found["recorded"]["trials"] == [240, 480, 720]
    assert len(found["recorded"]["at"]) == 3


def test_bundled__queries_of_groups_have_answers(explored):
    queries = list(ENDPOINTS["groups"].bundled(explored))

    assert len({query.key for query in queries}) == len(queries)
    assert Query.make(task="arithmetic", by="model,param_length").key in {query.key for query in queries}
    for query in queries:
        assert groups(explored, query)["by"]


def test_stamp__changes_with_the_counters(cube):
    explored = Explored([cube])
    before = explored.stamp()
    opened = Cube.open(cube, writable=True)

    opened.write_counters({0: opened.read_counters()[0]})

    assert Explored([cube]).stamp() != before


def test_uncounted__tells_what_is_recorded_and_not_in_the_counters(explored_cube, tmp_path):
    copy = tmp_path / "cube.zarr"
    shutil.copytree(explored_cube, copy)
    assert open_part(copy).warnings == ()
    opened = Cube.open(copy, writable=True)
    counters = opened.read_counters()
    done = int(counters[1, ..., 0].sum())

    opened.write_counters({1: np.zeros_like(counters[1])})

    (told,) = open_part(copy).warnings
    assert told.startswith(f"{done} recorded trials of beta are not counted")
    assert told in ask(Explored([str(copy)]), "groups", Query.make(by="model"))["warnings"]
