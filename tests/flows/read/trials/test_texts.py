"""Texts of trials: questions made again, and replies of the cache."""

import json

import numpy as np
import pytest

from evalcube.flows.read.reader import Reader
from evalcube.flows.read.trials.read import trials
from evalcube.storage.cube.cube import Cube
from tests.flows.read.trials.rows import hostile, rows


def test_rows__are_what_show_says_of_each_trial(swept):
    reader = Reader(swept / "cube.zarr")

    found = rows(swept)

    assert len(found) == 2 * (3 + 1) * 5 * 2
    for row in found[::7]:
        task, slot = reader.point(row["task"], row["params"])
        view = reader.view(
            reader.plan.evaluation_index(row["model"]), task, slot, row["trial"], row["repeat"]
        )
        for name in (
            "task",
            "trial",
            "repeat",
            "status",
            "response",
            "reasoning",
            "reference",
            "tokens",
            "digest",
        ):
            assert row[name] == getattr(view, name), name
        assert (row["answer"], row["messages"]) == (view.parsed, list(view.messages))
        assert row["latency"] == pytest.approx(view.latency, rel=1e-6)
        assert json.loads(row["params"]) == dict(view.params)
        assert row["param_length"] == view.params["length"]
        assert row["cost"] == pytest.approx((row["prompt_tokens"] + 2 * row["tokens"]) / 1e6)


def test_rows__of_data_sets_have_row_and_name_and_opinions_of_judges(judged):
    found = rows(judged)

    assert {row["row_id"] for row in found} >= {"france", "romania"}
    for row in found:
        assert row["row_id"] in row["prompt"].lower()
        given = [one["score"] for one in row["opinions"] if one["score"] is not None]
        by_judge = {}
        for one in row["opinions"]:
            by_judge.setdefault(one["judge"], []).append(one["score"])
        assert given
        assert row["judge"] == pytest.approx(
            np.mean([np.mean(scores) for scores in by_judge.values()]), abs=1e-3
        )
        assert 1 <= row["fact"] <= 5
    bare = rows(judged, cache=judged / "nothing")[0]
    assert [one["score"] for one in bare["opinions"]] == [one["score"] for one in found[0]["opinions"]]
    assert {one["reason"] for one in bare["opinions"]} == {None}


def test_opinions__are_absent_without_judges_and_else_read_alone(swept, judged, monkeypatch):
    asked, read = [], Cube.read_region
    monkeypatch.setattr(
        Cube, "read_region", lambda cube, region, names=None: asked.append(names) or read(cube, region, names)
    )

    assert {row["opinions"] is None for row in rows(swept, columns=["opinions"])} == {True}
    assert rows(judged, columns=["opinions"], cache=judged / "nothing")[0]["opinions"]
    assert set(map(tuple, asked)) == {("judge_readings",)}


def test_replies_that_are_not_there__are_absent_and_said_so(swept):
    table = trials(swept / "cube.zarr", cache=swept / "nothing")

    found = list(table.rows())

    assert {row["response"] for row in found} == {row["answer"] for row in found} == {None}
    assert all(row["prompt"] and row["digest"] for row in found)
    (note,) = table.notes
    assert note.startswith("80 replies are not")
    assert trials(swept / "cube.zarr", cache=swept / "nothing", columns=["tokens"]).notes == ()


def test_halves_of_surrogate_pairs__become_what_utf8_can_carry(swept, tmp_path):
    cache = hostile(swept, tmp_path, ["half \ud83d of a smile"])

    table = trials(swept / "cube.zarr", cache=cache, limit=2).to_arrow()

    assert table["response"].to_pylist() == ["half \ufffd of a smile"] * 2
