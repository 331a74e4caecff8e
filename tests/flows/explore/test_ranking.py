"""How models rank, and estimates of groups of points."""

from types import SimpleNamespace

import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.explore.answers import ask
from evalcube.flows.explore.explored import Explored
from evalcube.flows.explore.query import Query
from evalcube.flows.explore.ranking import parts
from evalcube.flows.read.statistics import leaderboard, rank


@pytest.fixture(scope="module")
def explored(explored_cube):
    return Explored([explored_cube])


def test_ranking__is_the_leaderboard_with_the_groups_of_rank(explored, explored_cube):
    found = ask(explored, "ranking", Query.make(mode="E_P"))

    board = leaderboard(explored_cube, mode="E_P").to_dict()
    added = {"label", "groups", "latency", "front"}
    assert [{k: v for k, v in row.items() if k not in added} for row in found["rows"]] == board["rows"]
    letters = {item.label: item.letters for item in rank(explored_cube)[1].rows}
    plain = ask(explored, "ranking", Query())
    assert {row["label"]: row["groups"].replace(" ", "") for row in plain["rows"]} == letters
    assert found["final"]
    shown = {item["path"]: item["extra"] for item in found["columns"]}
    assert shown.items() >= {"truncated": False, "trials": True, "cost": True, "refused": None}.items()
    assert shown.keys() <= board["rows"][0].keys()


def test_ranking__that_is_wanted_quickly_has_fewer_draws_of_many_rows(explored, monkeypatch):
    def final(part, **options):
        return ask(explored, "ranking", Query.make(task=part, **options))["final"]

    assert final("arithmetic", quick="1")  # of four rows no more are made
    monkeypatch.setattr("evalcube.flows.explore.ranking._QUICK", 4 * 100)
    assert not final("boolean", quick="1")
    assert final("boolean")


def test_parts__are_all_and_each_of_several_tasks_and_tiers(explored):
    dataset = explored.whole().dataset
    single = SimpleNamespace(whole=lambda: SimpleNamespace(dataset=dataset.isel(task=[0], tier=[0])))

    assert [query.key for query in parts(explored)] == [
        "", "task=arithmetic", "task=boolean", "tier=easy", "tier=hard"
    ]  # fmt: skip
    assert [query.key for query in parts(single)] == [""]


def test_ranking__takes_the_part_that_filters_mean(explored):
    query = Query.make(task="arithmetic", where=["param_length=3..4", "facet_family=odd"])

    found = ask(explored, "ranking", query)

    assert {row["label"] for row in found["rows"]} == {"alpha", "gamma"}
    assert {row["trials"] for row in found["rows"]} == {12}
    with pytest.raises(SweepError, match="param_length"):
        ask(explored, "ranking", Query.make(where="param_lenght=3"))


def test_ranking__front_has_nobody_who_is_beaten_in_score_and_cost(explored):
    rows = ask(explored, "ranking", Query())["rows"]

    for row in rows:
        beaten = any(
            one["rate"]["value"] >= row["rate"]["value"]
            and one["cost_per_1000"] <= row["cost_per_1000"]
            and (one["rate"]["value"], one["cost_per_1000"]) != (row["rate"]["value"], row["cost_per_1000"])
            for one in rows
        )
        assert ("cost_per_1000" in row["front"]) is not beaten
