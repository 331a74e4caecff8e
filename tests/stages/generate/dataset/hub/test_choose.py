"""Which files of a data set are its rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalcube.flows.config.recipes import recipe_names
from evalcube.flows.keep.data import addresses
from evalcube.stages.generate import TaskError
from evalcube.stages.generate.dataset.hub.address import Address
from evalcube.stages.generate.dataset.hub.choose import chosen
from tests.cases import with_cases

CARD = [
    {"config_name": "algebra", "data_files": [{"split": "test", "path": "algebra/te*.parquet"}]},
    {
        "config_name": "all",
        "default": True,
        "data_files": [
            {"split": "train", "path": ["x.jsonl", "y.jsonl"]},
            {"split": "test", "path": "z.jsonl"},
        ],
    },
]


@pytest.mark.parametrize(
    ("address", "files"),
    [
        ("?split=train", ["x.jsonl", "y.jsonl"]),
        ("?config=algebra", ["algebra/test.parquet"]),
        ("?config=all&split=test", ["z.jsonl"]),
        ("?path=z.jsonl", ["z.jsonl"]),
    ],
)
def test_chosen__follows_the_card(address: str, files: list[str]) -> None:
    there = ["x.jsonl", "y.jsonl", "z.jsonl", "algebra/test.parquet", "algebra/train.parquet"]

    assert chosen(Address.parse(f"hf://a/b{address}"), there, CARD) == files


@pytest.mark.parametrize(
    "marks", [({}, {"default": True}), ({"config_name": "b"}, {"config_name": "default"})]
)
def test_chosen__of_several_configs_is_the_default_one_if_no_other_is_named(marks: Any) -> None:
    names, files = ("a", "c"), ["x.csv", "y.csv"]
    card = [
        {"config_name": name, "data_files": file, **mark}
        for name, file, mark in zip(names, files, marks, strict=True)
    ]

    assert chosen(Address.parse("hf://a/b?split=train"), files, card) == ["y.csv"]
    assert chosen(Address.parse(f"hf://a/b?config={card[0]['config_name']}"), files, card) == ["x.csv"]
    with pytest.raises(TaskError, match="may mean several files"):
        chosen(
            Address.parse("hf://a/b?split=train"),
            files,
            [{**row, "default": 1, "config_name": "a"} for row in card],
        )


LISTS = json.loads((Path(__file__).parents[4] / "data" / "hub_files.json").read_text("utf-8"))


@with_cases(
    ("repo", "query"), [(repo, query) for repo, listed in LISTS.items() for query in listed["chosen"]]
)
def test_chosen__takes_the_right_file_of_each_pinned_commit(repo: str, query: str) -> None:
    listed = LISTS[repo]

    assert (
        chosen(Address.parse(f"hf://{repo}{query}"), listed["files"], listed["configs"])
        == listed["chosen"][query]
    )


@with_cases("name", recipe_names())
def test_lists__are_of_every_address_of_the_recipes(name: str) -> None:
    for address in addresses(name):
        repo, _, query = address.removeprefix("hf://").partition("?")

        assert f"?{query}" in LISTS[repo]["chosen"]


@with_cases(
    ("address", "there"),
    [
        ("?split=train", ["a.csv", "b.csv"]),  # which may be anything
        ("?split=train", ["dev.csv"]),
        ("?split=train", ["data.csv", "my-test.csv"]),
        ("?split=test", ["data.csv"]),
        ("?config=x&split=train", ["data.csv"]),
    ],
)
def test_chosen__calls_nothing_else_train(address: str, there: list[str]) -> None:
    with pytest.raises(TaskError, match="with config="):
        chosen(Address.parse(f"hf://a/b{address}"), there, None)


def test_chosen__takes_unnamed_parts_as_train() -> None:
    parts = ["data/0000.parquet", "data/0001.parquet"]

    assert chosen(Address.parse("hf://a/b?split=train"), parts, None) == parts


@with_cases(
    "card", [None, "x", 7, {"a": 1}, [1, None, {"data_files": {"path": {}}}], [{"data_files": [[["x"]]]}]]
)
def test_chosen__survives_any_card_and_no_file_leads_out(card: object) -> None:
    there = ["../test.jsonl", "/etc/test.jsonl", "a\n/test.jsonl", "a/../test.jsonl", "test.jsonl"]

    assert chosen(Address.parse("hf://a/b?split=test"), there, card) == ["test.jsonl"]
