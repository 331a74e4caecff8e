"""Params of a data set: which are refused, and which take part in the identity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from evalcube.stages.generate import Cell, Entry, TaskError, expand
from evalcube.stages.generate.dataset import DatasetParams
from tests.cases import with_cases
from tests.stages.generate.dataset.support import (
    DATASET,
    cell,
    write_jsonl,
)

ROWS = [
    {"prompt": f"q{i}", "answer": f"a{i}", "split": "test" if i % 3 else "dev", "meta": {"level": i % 2}}
    for i in range(50)
]


def test_where__is_canonical_and_takes_part_in_the_identity(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", ROWS)
    one_way = cell(path, where={"split": "test", "meta.level": 1})
    other_way = cell(path, where={"meta.level": [1], "split": ["test"]})

    assert one_way == other_way
    assert one_way.plain_params["where"] == {"meta.level": [1], "split": ["test"]}
    assert one_way.id != cell(path).id
    assert type(one_way.params).model_validate(one_way.plain_params) == one_way.params


def test_expand__makes_a_point_of_each_selection(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", ROWS)
    grid = {"file": str(path), "where": [{"split": "test"}, {"split": "dev"}], "exact": [["case"], "unicode"]}

    points = expand(DATASET, [Entry(grid=grid, tiers=("all",))])

    assert len(points) == 4
    with pytest.raises(TaskError, match=r"kind: kind .*choice, number, text, json.*'essay'"):
        expand(DATASET, [Entry(grid={"file": "a.csv", "kind": "essay"})])
    with pytest.raises(TaskError, match=r": file "):
        expand(DATASET, [Entry(points=[{"kind": "text"}])])


@with_cases(
    ("params", "message"),
    [
        ({"file": " "}, "must be the path"),
        ({"kind": "choice"}, "kind choice needs options"),
        ({"answer": ""}, "answer may be empty only"),
        ({"answer": "", "rubric": "r", "options": "o"}, "answer may be empty only"),
        ({"options": ["A"]}, "two or more different fields"),
        ({"options": ["A", "A"]}, "two or more different fields"),
        ({"sha256": "abc"}, "sha256"),
        ({"where": {"a": {"b": 1}}}, "where"),
        ({"where": "split"}, "where"),
        ({"exact": "spelling"}, "exact"),
        ({"tolerance": -1}, "tolerance"),
        ({"format": "xlsx"}, "format"),
    ],
)
def test_params__bad_ones_are_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        DATASET.Params(**{"file": "a.csv"} | params)


def test_params__options_make_it_a_choice() -> None:
    assert DATASET.Params(file="a.csv", options="o").kind == "choice"  # type: ignore[attr-defined]
    assert DATASET.Params(file="a.csv", options="o", kind="text").kind == "text"  # type: ignore[attr-defined]
    assert DATASET.Params(file="a.csv", exact=["unicode", "case"]) == DATASET.Params(
        file="a.csv", exact=["case", "unicode", "case"]
    )


def test_resolve__is_stable(tmp_path: Path) -> None:
    params = cell(write_jsonl(tmp_path / "a.jsonl", ROWS)).params

    assert DATASET.resolve(params) == params
    assert Cell(DATASET, params, 1).difficulty == 1


@with_cases(
    ("params", "rule"),
    [
        ({"match": "regex"}, "needs a pattern"),
        ({"pattern": "a"}, "needs match regex"),
        ({"match": "regex", "pattern": "("}, "no regular expression"),
        ({"match": "contains", "kind": "json"}, "for kind text"),
        ({"match": "number", "kind": "text"}, "for kind number"),
    ],
)
def test_match__refuses_what_does_not_fit(params: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValidationError, match=rule):
        DatasetParams(file="x.jsonl", **params)


def test_match__params_of_older_cubes_keep_their_identity() -> None:
    params = DatasetParams(file="x.jsonl", sha256="0" * 64)

    assert not {"match", "pattern", "grader"} & set(params.canonical())
    assert "match" in DatasetParams(file="x.jsonl", match="contains").canonical()
    assert DatasetParams(file="x.jsonl", match="number").kind == "number"
