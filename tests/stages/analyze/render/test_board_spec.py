"""Which columns a board has, and what stands in them."""

from dataclasses import replace

import numpy as np
import pytest

from evalcube.stages.analyze.labelled.ranking import RankedRow, Ranking
from evalcube.stages.analyze.labelled.remarks import ReaderGap
from evalcube.stages.analyze.labelled.results import Estimate
from evalcube.stages.analyze.render.board_spec import (
    leaderboard_spec,
    leading_text,
    matrix_spec,
    places,
    ranking_spec,
)
from evalcube.stages.analyze.render.text import ABSENT
from tests.stages.analyze.labelled.boards import COMPOSITE, NAN, TIER, board, row

LACKS = replace(TIER, tier="hard", tasks_present=1)


def cells(spec, row):
    """What a table shows of a row, by the head of its column; of an interval by what it is of, too."""
    return {column.full_head: column.cell(row) for column in spec.columns}


def heads(**fields):
    rows = fields.pop("rows", (row(), row("n", rank=2)))
    return [column.full_head for column in leaderboard_spec(board(*rows, **fields)).columns]


@pytest.mark.parametrize(
    ("rank", "interval", "shown"),
    [
        (None, (1, 1, 2), ABSENT),
        (2, (NAN, NAN, NAN), "2"),
        (2, (2.0, 1.0, 3.0), "1–3"),
        (2, (2.0, 2.0, 2.0), "2"),
    ],
)
def test_places__are_those_that_a_row_may_have(rank, interval, shown):
    assert places(row(rank=rank, rank_interval=Estimate(*interval))) == shown


def test_leaderboard_spec__of_a_score_has_it_first():
    first = heads()
    assert first[:4] == ["#", "model", "score", "score 95%"]
    assert {"score/token", "accuracy", "C_P"} <= set(first)
    assert "guesser" not in first
    assert "guesser" in heads(version="v1", rows=(row(guesser=10.0),))
    assert "C_P" not in heads(mode="E_P")
    assert "done" not in first
    assert "score 90%" in heads(confidence=0.9)


def test_leaderboard_spec__of_a_rate_has_accuracy_beside_it():
    assert heads(lead="rate")[:6] == ["#", "model", "accuracy", "accuracy 95%", "C_P", "C_P 95%"]
    assert heads(lead="rate", mode="E_P")[:4] == ["#", "model", "accuracy", "accuracy 95%"]
    assert "right/1k tok" in heads(lead="rate")


def test_leaderboard_spec__marks_what_is_partly_measured():
    whole, part = row(), row("n", rank=None, missing=100)
    found = board(whole, part)
    spec = leaderboard_spec(found)

    assert cells(spec, whole)["score"] == "500"
    assert cells(spec, part)["score"] == "500*"
    assert (cells(spec, whole)["done"], cells(spec, part)["done"]) == ("100%", "66%")
    assert [spec.dim(each) for each in (whole, part)] == [False, True]
    rate = leaderboard_spec(replace(found, lead="rate"))
    assert cells(rate, part)["C_P"] == f"{cells(rate, whole)['C_P']}*"


def test_leaderboard_spec__has_tiers_where_there_are_several():
    rows = (row(tiers=(TIER, replace(TIER, tier="hard"))), row("n", tiers=(TIER, LACKS)))
    spec = leaderboard_spec(board(*rows, tiers=("easy", "hard")))

    assert [cells(spec, each)["hard"] for each in rows] == ["500", "500*"]
    assert "easy" not in heads()


def test_leaderboard_spec__has_layers_and_second_readers_where_there_are_some():
    gap = ReaderGap(0.5, 0.55, Estimate(-0.05, -0.1, 0.0), 100, 1, 6)
    rows = (row(composite=COMPOSITE, gap=gap), row("n"))
    spec = leaderboard_spec(board(*rows))
    first, second = (cells(spec, each) for each in rows)

    assert (first["composite"], second["composite"]) == ("4.00 (3/3)", ABSENT)
    assert (first["composite 95%"], second["composite 95%"]) == ("3.50–4.50", ABSENT)
    assert (first["fact"], second["fact"]) == ("4.00", ABSENT)
    assert (first["theirs"], second["theirs"]) == ("55.0%", ABSENT)
    assert first["gap"].startswith("-5.0")
    assert {"composite", "theirs", "gap"}.isdisjoint(heads())


def test_leaderboard_spec__never_leaves_out_what_it_is_sorted_by_nor_truncation():
    def gives_way(head, **fields):
        rows = (row(truncated=fields.pop("truncated", 0.005), refused=fields.pop("refused", 0.0)),)
        spec = leaderboard_spec(board(*rows, **fields))
        return {column.head: column.gives_way for column in spec.columns}.get(head)

    assert gives_way("accuracy") > 0
    assert gives_way("accuracy", sort="accuracy") == 0
    assert gives_way("truncated") > 0
    assert gives_way("truncated", truncated=0.011) == 0
    assert gives_way("refused") is None
    assert gives_way("refused", refused=0.1) is not None


@pytest.mark.parametrize(("ceiling", "version", "noted"), [(950.0, "auto", True), (1000.0, "auto", False)])
def test_leaderboard_spec__explains_v1_by_what_the_best_can_reach(ceiling, version, noted):
    found = board(row(), ceiling=ceiling, version=version)
    spec = leaderboard_spec(found)

    assert spec.explains == ({found.ceiling_text: "v1"} if noted else {})
    assert (found.ceiling_text in spec.notes) == noted


def test_leading_text__is_the_score_or_the_share():
    assert leading_text(board(), row()) == ("500", "400–600")
    assert leading_text(board(lead="rate"), row()) == ("45.0%", "40.0–50.0")


def ranking(count):
    """Models of which each but the first has a cluster."""
    rows = tuple(
        RankedRow(row(f"m{index}", rank=index + 1), f"m{index}", (0,) * (index > 0), 1.5, 0.25)
        for index in range(count)
    )
    rates = [[NAN if one == other else 0.1 * other for other in range(count)] for one in range(count)]
    return Ranking(rows, (), np.array(rates))


def test_ranking_spec__has_what_tells_models_apart():
    standing = ranking(3)
    spec = ranking_spec(standing, board(*(each.row for each in standing.rows)))
    first = cells(spec, standing.rows[0])

    assert (first["#"], first["score"], first["groups"], first["wins"], first["rating"]) == (
        "1",
        "500",
        ABSENT,
        "1.50",
        "0.250",
    )
    assert cells(spec, standing.rows[1])["groups"] == "A"
    assert "guesser" not in first
    assert "2 other ranked models" in spec.notes[1]
    assert "0.333" in spec.notes[2]
    assert list(spec.explains.values()) == ["wins", "rating"]
    one = ranking_spec(ranking(2), board(version="v1"))
    assert "1 other ranked model." in one.notes[1]
    assert "guesser" in [column.head for column in one.columns]
    alone = ranking_spec(ranking(0), board())
    assert "0 other" in alone.notes[1]
    assert "1.000" in alone.notes[2]


@pytest.mark.parametrize(("count", "shown"), [(2, False), (3, True), (12, True), (13, False)])
def test_matrix_spec__is_of_three_to_twelve_models(count, shown):
    standing = ranking(count)
    spec = matrix_spec(standing)

    assert (spec is not None) == shown
    if spec is not None:
        assert [column.cell(standing.rows[1]) for column in spec.columns][:4] == ["m1", "0%", ABSENT, "20%"]
