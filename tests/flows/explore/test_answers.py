"""What the explorer answers, held against what the library says of the same cube."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.explore.answers import ask
from evalcube.flows.explore.explored import Explored
from evalcube.flows.explore.query import Query
from evalcube.flows.read.reader import Reader
from evalcube.flows.read.trials.read import trials
from evalcube.storage.cube.cube import Cube
from tests.flows.support import evalcube, reset, sweep_config, write_config


@pytest.fixture(scope="module")
def explored(explored_cube):
    return Explored([explored_cube])


def test_overview__names_what_there_is(explored):
    found = ask(explored, "overview", Query())

    assert [one["label"] for one in found["models"]] == ["alpha", "beta", "gamma", "<b>delta</b>"]
    assert [one["label"] for one in found["tasks"]] == ["arithmetic", "boolean"]
    by_name = {one["name"]: one for one in found["facets"]}
    assert by_name["facet_step"] == {
        "name": "facet_step",
        "numeric": True,
        "dated": False,
        "levels": [1000, 2000, 4000, 8000],
    }
    assert by_name["facet_family"]["numeric"] is False
    assert found["status"]["cubes"][0]["done"] == 4 * (4 + 1) * 6


@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"status": ["incorrect", "invalid"]},
        {"model": ["beta", "<b>delta</b>"], "task": "boolean"},
        {"where": "param_length=3..4", "tier": "easy"},
    ],
)
def test_trials__pages_and_counts_are_those_of_the_table(explored, explored_cube, filters):
    seen, offset = [], 0
    while offset is not None:
        page = ask(explored, "trials", Query.make(limit="7", offset=str(offset), **filters))
        seen += page["rows"]
        offset = page["next"]

    assert page["count"] == len(seen)
    assert [row["n"] for row in seen] == list(range(len(seen)))
    models, where = filters.get("model"), []
    if models:
        where.append(f"model={','.join(models)}")
    where += [f"{name}={filters[name]}" for name in ("task", "tier") if name in filters]
    where += [filters["where"]] if "where" in filters else []
    table = trials(explored_cube, where=where, status=filters.get("status", ()))
    keys = ("task", "params", "trial", "repeat", "status", "answer", "tokens")
    assert [tuple(row[key] for key in keys) for row in seen] == [
        tuple(row[key] for key in keys) for row in table.rows()
    ]


def test_trials__a_search_finds_what_grep_finds(explored, explored_cube):
    found, offset = [], 0
    while offset is not None:
        query = Query.make(grep="Answer: 1", limit="3", offset=str(offset), **{"in": "response"})
        page = ask(explored, "trials", query)
        found += page["rows"]
        offset = page["next"]

    expected = trials(explored_cube, grep="Answer: 1", within=("response",)).rows()
    assert [(row["label"], row["params"], row["trial"]) for row in found] == [
        (row["model"], row["params"], row["trial"]) for row in expected
    ]
    assert found


def test_trial__is_what_show_says(explored, explored_cube):
    place = {"evaluation": "alpha", "asked": "arithmetic", "point": "length=3", "trial": "0"}
    here = ask(explored, "trial", Query.make(**place))
    reader = Reader(explored_cube)
    shown = reader.view(0, *reader.point("arithmetic", "length=3"), 0).to_dict()
    assert {name: here[name] for name in shown} == shown


def test_same__tells_how_all_did_on_one_question(explored, explored_cube):
    query = Query.make(evaluation="alpha", asked="boolean", trial="2")

    found = {row["label"]: row["status"] for row in ask(explored, "same", query)["rows"]}

    rows = trials(explored_cube, where=("task=boolean", "trial=2")).rows()
    assert found == {row["model"]: row["status"] for row in rows}


@pytest.mark.parametrize(
    ("name", "query", "fragment"),
    [
        ("nothing", {}, "There are"),
        ("ranking", {"mode": "C_X"}, "mode"),
        ("ranking", {"task": "none"}, "task"),
        ("trials", {"limit": "100000"}, "limit"),
        ("trials", {"regex": "(", "in": "response"}, "regex"),
        ("trials", {"model": "nobody"}, "nobody"),
        ("trial", {"evaluation": "alpha", "asked": "boolean", "trial": "99"}, "trial"),
        ("trial", {"evaluation": "alpha", "asked": "sort"}, "sort"),
    ],
)
def test_ask__what_is_wrong_is_told(explored, name, query, fragment):
    with pytest.raises(SweepError) as told:
        ask(explored, name, Query.make(**query))

    assert fragment in f"{told.value.message} {told.value.remedy}"


def test_kept__is_made_anew_when_something_is_recorded(explored_cube, monkeypatch):
    explored = Explored([explored_cube])
    made = []

    def make():
        made.append(1)
        return len(made)

    assert [explored.cached("x", make), explored.cached("x", make)] == [1, 1]
    monkeypatch.setattr(explored, "stamp", lambda: "later")
    assert explored.cached("x", make) == 2


def test_stamp__changes_with_counters_that_a_growth_has_moved(explored_cube, tmp_path, monkeypatch):
    monkeypatch.setattr("evalcube.flows.explore.explored._LOOK", 0.0)
    explored = Explored([shutil.copytree(explored_cube, tmp_path / "cube.zarr")])
    cube = Cube.open(tmp_path / "cube.zarr", writable=True)
    counters, layers = cube.read_counters(), [layer.name for layer in cube.group.layers]
    cube.extend(sizes={}, coordinates=[], attrs={}, layers=layers, shared={"counters": counters})
    before = explored.stamp()

    cube.write_counters({0: counters[0] + 1})

    assert explored.stamp() != before


def test_kept__two_who_ask_at_once_have_one_made_and_hold_up_nobody_else(explored_cube):
    explored, made, begun, go_on = Explored([explored_cube]), [], Event(), Event()

    def slow():
        made.append(1)
        begun.set()
        assert go_on.wait(30)
        return len(made)

    with ThreadPoolExecutor() as pool:
        both = [pool.submit(explored.cached, "slow", slow) for _ in range(2)]
        assert begun.wait(30)
        try:
            assert pool.submit(explored.cached, "quick", lambda: "at once").result(timeout=30) == "at once"
        finally:
            go_on.set()
        assert [one.result() for one in both] == [1, 1]


def test_kept__what_was_begun_before_a_change_is_made_again(explored_cube, monkeypatch):
    explored = Explored([explored_cube])

    def make():
        monkeypatch.setattr(explored, "stamp", lambda: "later")
        return explored.cached("inner", lambda: "new")

    explored.cached("outer", lambda: f"of old and {make()}")

    assert explored.cached("outer", lambda: "new") == "new"


@pytest.fixture(scope="module")
def apart(tmp_path_factory, _served):
    """Two cubes of one sweep: two checkpoints in the first, the second of them and a third in the other."""
    reset(_served)
    folder = tmp_path_factory.mktemp("apart")
    config = sweep_config(folder, _served.base_url, trials=3, cells=2, models=("one", "two", "three"))
    for step, model in enumerate(config["models"]):
        model["facets"] = {"step": step + 1}
    cubes = []
    for name, models in (("first", config["models"][:2]), ("second", config["models"][1:])):
        part = {**config, "models": models, "cube": str(folder / f"{name}.zarr")}
        path = write_config(folder, part, f"{name}.yaml")
        assert evalcube("run", path, "--quiet", cwd=folder)[0] == 0
        cubes.append(part["cube"])
    return cubes


def test_several_cubes__are_read_as_one(apart):
    explored = Explored(apart)
    facets = {one["name"]: one["levels"] for one in ask(explored, "overview", Query())["facets"]}
    ranked = {row["label"]: row["trials"] for row in ask(explored, "ranking", Query())["rows"]}
    third = ask(explored, "trials", Query.make(model="three", limit="2"))["rows"]
    place = {"evaluation": "one", "asked": "boolean", "trial": "2"}

    assert facets["facet_step"] == [1, 2, 3]
    assert ranked == {"one": 9, "two": 9, "three": 9}
    assert [(row["cube"], row["label"]) for row in third] == [(1, "three")] * 2
    assert {row["label"] for row in ask(explored, "same", Query.make(**place))["rows"]} == set(ranked)
    with pytest.raises(SweepError, match="none"):
        ask(explored, "trials", Query.make(task="none"))


def test_same__opens_no_cube_for_another_question(apart, monkeypatch):
    explored = Explored(apart)
    place = {"evaluation": "one", "asked": "boolean"}
    ask(explored, "same", Query.make(**place, trial="1"))
    opened, opens = [], Cube.open
    monkeypatch.setattr(Cube, "open", lambda *given, **named: opened.append(given) or opens(*given, **named))

    rows = ask(explored, "same", Query.make(**place, trial="2"))["rows"]

    assert (len(rows), opened) == (3, [])
