"""What follows from a leaderboard's rows, and the JSON that others read."""

import json
import math
from dataclasses import replace

import pytest

from evalcube.stages.analyze.labelled.results import Estimate
from tests.cases import with_cases
from tests.stages.analyze.labelled.boards import COMPOSITE, NAN, SOME, TIER, board, row


@pytest.mark.parametrize(
    ("changes", "incomplete"),
    [({}, False), ({"tasks_present": 1}, True), ({"cells_present": 5}, True)],
)
def test_incomplete__if_a_task_or_a_point_has_no_trial(changes, incomplete):
    tier = replace(TIER, **changes)
    item = row(tiers=(TIER, tier))

    assert tier.incomplete == item.incomplete == item.unranked == item.partial == incomplete
    assert board(row(), item).incomplete == ((item,) if incomplete else ())


@with_cases(
    ("counts", "planned", "partial"),
    [
        ({"trials": 200}, 200, False),
        ({"trials": 198, "missing": 2}, 200, False),  # one of a hundred may lack
        ({"trials": 197, "missing": 2, "transport": 1}, 200, True),
        ({"trials": 197, "transport": 3}, 200, True),
        ({"trials": 0}, 0, False),
    ],
)
def test_partial__if_more_than_one_in_a_hundred_planned_trials_has_no_result(counts, planned, partial):
    item = row(**counts)

    assert (item.planned, item.partial, item.marked, item.unranked) == (planned, partial, partial, False)
    assert item.done == pytest.approx(counts["trials"] / planned if planned else NAN, nan_ok=True)


@pytest.mark.parametrize("changes", [{"others": "lacks sort"}, {"behind": True}, {"thin": 1}])
def test_unranked__if_it_cannot_be_compared(changes):
    item = row(**changes)

    assert item.unranked
    assert item.marked
    assert not item.partial
    assert not row().marked


@pytest.mark.parametrize(
    ("lead", "mode", "heads", "value", "by_token"),
    [
        ("score", "C_P", ("score", "score/token"), 500.0, 5.0),
        ("rate", "C_P", ("C_P", "right/1k tok"), 0.45, 4.0),
        ("rate", "E_P", ("accuracy", "right/1k tok"), 0.45, 4.0),
    ],
)
def test_leading__is_what_the_board_is_ordered_by(lead, mode, heads, value, by_token):
    item, found = row(), board(lead=lead, mode=mode)

    assert found.heads == heads
    assert (found.leading(item).value, found.by_token(item).value) == (value, by_token)


@pytest.mark.parametrize(
    ("clustered", "repeats", "weighed", "worth"),
    [(True, 4, "", True), (True, 1, "", False), (False, 4, "", False), (False, 1, "base", True)],
)
def test_worth__is_less_where_answers_are_alike_or_points_weigh(clustered, repeats, weighed, worth):
    assert board(clustered=clustered, repeats=repeats, weighed=weighed).worth == worth


def test_places_text__explains_the_first_open_place_of_a_ranked_row():
    rows = (
        row(),
        row(rank=None, rank_interval=Estimate(8.0, 7.0, 9.0)),
        row(rank=2, rank_interval=Estimate(2.4, 2.0, 3.0)),
        row(rank=3, rank_interval=Estimate(2.6, 2.0, 4.0)),
    )

    (said,) = board(*rows, confidence=0.9).places_text

    assert said.startswith("Rank 2–3: ")
    assert "90%" in said
    assert board(*rows[:2]).places_text == ()


@with_cases(
    ("ceiling", "shown"), [(999.6, ""), (999.5, ""), (999.4, "scores 999"), (950.2, "scores 950"), (NAN, "")]
)
def test_ceiling_text__says_what_the_best_reach_where_it_is_less(ceiling, shown):
    text = board(ceiling=ceiling).ceiling_text

    assert shown in text
    assert bool(text) == bool(shown)


def test_estimate__in_other_units():
    assert Estimate.of(iter("123")) == Estimate(1.0, 2.0, 3.0)
    assert Estimate(1.0, -2.0, 3.0).scaled(10.0) == Estimate(10.0, -20.0, 30.0)


def test_to_dict__is_plain_json_without_nan():
    item = row(
        score=Estimate(NAN, 1.0, math.inf),
        facets={"b": True, "a": "x"},
        composite=COMPOSITE,
        bounds=(0.4, 0.7),
    )
    found = board(item, layer_weights={"judge": 2.0, "fact": 1.0}, selection="tier=easy", cautions=("care",))

    document = found.to_dict()

    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert (document["schema"], document["schema_version"]) == ("evalcube.leaderboard", 3)
    assert list(document)[-2:] == ["notes", "rows"]
    assert document["notes"] == [*found.notes, *found.remarks]
    assert list(document["layer_weights"]) == ["fact", "judge"]
    (line,) = document["rows"] == found.records() and found.records()
    assert line["score"] == {"value": None, "lower": 1.0, "upper": None}
    assert line["accuracy"] == {"value": SOME.value, "lower": SOME.lower, "upper": SOME.upper}
    assert list(line["facets"].items()) == [("a", "x"), ("b", True)]
    assert line["bounds"] == [0.4, 0.7]
    assert line["tiers"][0]["incomplete"] is False
    assert line["composite"]["shown"] == "4.00 (3/3)"
    assert "incomplete" not in line["composite"]
    assert (line["planned"], line["partial"], line["incomplete"], line["gap"]) == (200, False, False, None)
    assert document["cautions"] == ["care"]
