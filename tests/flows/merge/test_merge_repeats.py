"""Of two teams' answers to one trial each is found again by the reply that it was measured by, in its team's cache."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import evalcube as ec
from evalcube.flows.cubes.reader import Reader
from evalcube.flows.merge.write import merge_cubes
from evalcube.flows.plan.repeat_origins import ORIGINS, read_origins
from evalcube.stages.reply.record import Record
from evalcube.storage.cache.cache import open_cache
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger
from tests.flows.merge.generated import Recipe, make_cube
from tests.flows.support import evalcube

OURS = Recipe(models=("alpha",), lengths=(3,), depths=(), trials=(0, 3))
POINT = (0, 0, 0)
"""Indices of model, task and slot."""


@pytest.fixture
def teams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """Addresses of two teams' cubes by name; beside each is its cache, whose replies say whose they are."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    for name in ("ours", "theirs"):
        make_cube(f"{name}.zarr", replace(OURS, salt=name))
        answer(f"{name}.zarr", f"{name}.replies", name)
    return {"ours": "ours.zarr", "theirs": "theirs.zarr"}


def answer(cube: str, cache: str, text: str, trials: range = range(3), repeat: int = 0) -> None:
    """Store replies that the trials of a cube may have been measured by."""
    reader = Reader(cube)
    views = [reader.view(*POINT, trial, repeat) for trial in trials]
    message = {"choices": [{"message": {"content": f"{text}\nAnswer: 1"}, "finish_reason": "stop"}]}
    items = [
        (view.digest, Record(200, view.latency, json.dumps({**message, "usage": used(view.tokens)}).encode()))
        for view in views
    ]
    open_cache(cache).put_many([(key, record.encode()) for key, record in items])


def used(tokens: int) -> dict[str, int]:
    return {"prompt_tokens": 1, "completion_tokens": tokens}


def said(cube: str, repeat: int, *caches: str) -> tuple[str, str]:
    """Whose replies stand for a repeat of all trials, and where it was measured."""
    reader = Reader(cube, caches or None)
    views = [reader.view(*POINT, trial, repeat) for trial in range(3)]
    (found,) = {((view.response or "none").split("\n")[0], view.origin) for view in views}
    return found


def test_show__finds_the_reply_of_each_side(teams: Mapping[str, str]) -> None:
    code, _, errors = evalcube("merge", "m.zarr", *teams.values(), "--as-repeats", cwd=".")

    assert code == 0, errors
    assert said("m.zarr", 0) == ("ours", "ours.zarr, repeat 0")
    assert said("m.zarr", 1) == ("theirs", "theirs.zarr, repeat 0")
    words = ("--task", "arithmetic", "--trial", 2, "--repeat", 1)
    assert "repeat 1 · measured as theirs.zarr, repeat 0" in evalcube("show", "m.zarr", *words, cwd=".")[1]
    rows = list(ec.trials("m.zarr", columns=["trial", "repeat", "response"]).rows())
    assert [row["response"].split("\n")[0] for row in rows] == ["ours", "theirs"] * 3


def test_show__is_never_another_sides_reply(teams: Mapping[str, str]) -> None:
    merge_cubes("m.zarr", list(teams.values()), as_repeats=True)
    merge_cubes("first.zarr", list(teams.values()), prefer="first")

    for caches in (("ours.replies", "theirs.replies"), ("theirs.replies", "ours.replies")):
        assert [said("m.zarr", repeat, *caches)[0] for repeat in (0, 1)] == ["ours", "theirs"]
        assert said("first.zarr", 0, *caches) == ("ours", "")
    assert [said("m.zarr", repeat, "theirs.replies")[0] for repeat in (0, 1)] == ["none", "theirs"]
    assert said("first.zarr", 0, "theirs.replies") == ("none", "")


def test_show__after_another_merge_and_a_run(teams: Mapping[str, str]) -> None:
    make_cube("third.zarr", replace(OURS, salt="third"))
    answer("third.zarr", "third.replies", "third")
    evalcube("merge", "m.zarr", *teams.values(), "--as-repeats", cwd=".")
    answer("m.zarr", "m.replies", "asked again", trials=range(1), repeat=1)  # as a run on it would store it

    code, _, errors = evalcube("merge", "all.zarr", "third.zarr", "m.zarr", "--as-repeats", cwd=".")

    assert code == 0, errors
    caches = ("ours.replies", "theirs.replies", "third.replies")
    assert [said("all.zarr", repeat, *caches) for repeat in range(3)] == [
        ("third", "third.zarr, repeat 0"),
        ("ours", "ours.zarr, repeat 0"),
        ("theirs", "theirs.zarr, repeat 0"),
    ]
    assert Reader("all.zarr", "m.replies").view(*POINT, 0, 2).response == "asked again\nAnswer: 1"


def test_rescore__grades_each_sides_own_reply(teams: Mapping[str, str]) -> None:
    evalcube("merge", "m.zarr", *teams.values(), "--as-repeats", cwd=".")

    code, output, errors = evalcube("rescore", "m.zarr", cwd=".")

    assert (code, errors) == (0, "")
    assert "1 regions graded again" in output
    assert said("m.zarr", 1) == ("theirs", "theirs.zarr, repeat 0")


def test_heal__never_takes_the_other_sides_reply(teams: Mapping[str, str]) -> None:
    merge_cubes("first.zarr", list(teams.values()), prefer="first")
    cube = Cube.open("first.zarr")
    before = list(Ledger(cube.records).receipts())
    for chunk in sorted(Path("first.zarr/tokens/c").rglob("*")):
        if chunk.is_file():
            chunk.write_bytes(b"damaged")

    code, _, _ = evalcube("cube", "verify", "first.zarr", "--heal", "--cache", "theirs.replies", cwd=".")

    assert code != 0
    assert list(Ledger(cube.records).receipts()) == before


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"moved": 1},
        {"moved": [{"cube": 1, "first": 0, "count": 1, "own": 0, "cells": [["e", "t", "c"]]}]},
        {"moved": [{"cube": "x", "first": -1, "count": 1, "own": 0, "cells": [1, ["e"], ["e", "t", 1]]}]},
    ],
)
def test_read_origins__passes_over_what_no_merge_writes(tmp_path: Path, document: Any) -> None:
    cube = make_cube(tmp_path / "c.zarr", OURS)
    cube.records.put(ORIGINS, json.dumps(document).encode())

    assert not read_origins(Cube.open(cube.url).records)
