"""Columns of data files as coordinates: boards, tables, comparisons and trials of rows by what stands in them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import evalcube as ec
from evalcube.flows.errors import SweepError
from evalcube.flows.read import design
from evalcube.flows.read.selection import Part, open_part
from evalcube.flows.read.trials.flips import flips
from evalcube.flows.run.sweep import run
from tests.cases import with_cases
from tests.flows.support import evalcube, reset, sweep_config

ROWS = [
    {
        "q": f"What is {n} + {n}?",
        "a": str(2 * n),
        "topic": "even" if n % 3 else "third",
        "nr": f"n{n}",
        "page": n,
    }
    for n in range(24)
]


def config_in(folder, simulator, name, **changes):
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    params = {"file": str(folder / "rows.jsonl"), "prompt": "q", "answer": "a", "kind": "number", "id": "nr"}
    tasks = {"own": {"task": "dataset", "params": params}, "boolean": {"params": {"length": 4}}}
    base = simulator.base_url
    return sweep_config(folder, base, trials=30, cube=name, tasks=tasks, models=("alpha", "beta"), **changes)


@pytest.fixture(scope="module")
def cube(tmp_path_factory, _served):
    reset(_served)
    config = config_in(tmp_path_factory.mktemp("columns"), _served, "cube.zarr")
    config["models"][1]["simulate"]["ability"] = 0.5
    run(config)
    return config["cube"]


def right(cube, **where):
    """Rows that each model has right and has answered, by the table of trials."""
    table = ec.trials(cube, columns=["model", "status", "topic"]).to_dataframe()
    for name, value in where.items():
        table = table[table[name] == value]
    return {model: ((rows["status"] == "correct").sum(), len(rows)) for model, rows in table.groupby("model")}


@with_cases(
    ("part", "recounts"),
    [
        (Part(), False),
        (Part(["task=own"], view="hard"), False),
        (Part(trials=0), True),
        (Part(unique_only=True), True),
        (Part(clip_tokens=0), True),
        (Part(reader="theirs"), True),
    ],
)
def test_part__counts_trials_again_where_any_count_otherwise(part, recounts):
    assert part.recounts is recounts


def test_table__groups_by_a_column(cube):
    found = ec.table(cube, by=["topic", "model"], mode="E_P").to_dataframe().set_index(["topic", "model"])

    assert set(found.index.get_level_values("topic")) == {"even", "third"}
    for (topic, model), row in found.iterrows():
        correct, count = right(cube, topic=topic)[model]
        assert row["point"] == pytest.approx(correct / count)
        assert row["trials"] == count
        assert row["missing"] == 0


def test_table__by_a_column_weighs_what_the_whole_point_does(cube):
    whole = ec.table(cube, Part(["task=own"]), by=["model"], mode="E_P").estimates["point"].values
    parts = ec.table(cube, by=["topic", "model"], mode="E_P").estimates.transpose("topic", "model", ...)
    shares = [16 / 24 if topic == "even" else 8 / 24 for topic in parts["topic"].values]
    split = open_part(cube, by=["topic"])

    assert np.average(parts["point"].values, axis=0, weights=shares) == pytest.approx(whole)
    own = split.dataset["base_trials"].sel(task="own").sum("params").values
    assert own == pytest.approx(open_part(cube).dataset["base_trials"].sel(task="own").sum("params").values)


@pytest.mark.parametrize(
    "where",
    [
        "topic=third",
        ["topic=third"],
        {"topic": "third"},
        {"topic": ["third"]},
        {"topic": lambda text: text > "f"},
    ],
)
def test_leaderboard__of_the_rows_that_a_condition_names(cube, where):
    rows = {row["model_name"]: row for row in ec.leaderboard(cube, Part(where)).records()}

    for model, (correct, count) in right(cube, topic="third").items():
        assert rows[model]["trials"] == count == 8
        assert rows[model]["rate"]["value"] == pytest.approx(correct / count)


def test_open_part__of_a_selected_dataset_and_of_several_cubes(cube, tmp_path, simulator):
    part = ec.open_cube(cube).isel(model=[1], trial=slice(0, 12))
    other = config_in(tmp_path, simulator, "other.zarr")
    other["models"] = [{**model, "name": f"{model['name']}-2"} for model in other["models"]]
    run(other)

    table = ec.trials(cube, where={"trial": (0, 11)}, columns=["model", "task", "topic"]).to_dataframe()
    expected = len(table[(table["topic"] == "even") & (table["model"] == "beta")])
    (row,) = ec.table(part, Part(["topic=even"]), by=["model"]).to_dataframe().to_dict("records")
    assert row["trials"] == expected
    both = ec.table([cube, other["cube"]], Part(["topic=even"]), by=["topic", "model"]).to_dataframe()
    assert both["trials"].tolist() == [16, 16, 16, 16]
    with pytest.raises(SweepError, match="no coordinate 'topi'"):
        ec.table(cube, Part(["topi=even"]))


def test_flips__are_questions_of_the_rows_that_are_meant(cube):
    found = flips([cube], ["alpha", "beta"], Part(["topic=third"]))
    rows = list(found.rows(None))

    assert rows
    assert all(int(row.prompt.split()[2]) % 3 == 0 for row in rows)
    assert sum(count.unanswered for count in found.tasks) == 0


def test_trials__select_count_and_sort_by_columns(cube):
    found = ec.trials(cube, where=["topic=third", "model=alpha"], columns=["row_id", "page"], sort="-page")
    pages = [int(row["page"]) for row in found.records()]

    assert sorted(pages) == list(range(0, 24, 3))
    assert [row["page"] for row in found.records()] == sorted(map(str, pages), reverse=True)
    text = evalcube("trials", cube, "--count", "topic", "--csv", cwd=".")[1].split()
    assert sorted(text[1:]) == sorted(["even,32", "third,16", ",60"])
    with pytest.raises(SweepError, match="no topic 'fourth'"):
        ec.trials(cube, where={"topic": "fourth"})


def test_split_by_columns__refuses_more_values_than_memory_holds(cube, monkeypatch):
    monkeypatch.setattr(design, "_MOST_TRIALS", 2 * 2 * 30 * 5)

    with pytest.raises(SweepError, match="nr has 24 values"):
        ec.table(cube, by=["nr"])
    assert len(ec.table(cube, Part(["nr=n3,n4"]), by=["nr"]).to_dataframe()) == 2
    with pytest.raises(SweepError, match="file has nr=n99"):
        ec.table(cube, Part(["nr=n99"]))


def test_show__finds_a_trial_by_its_row(cube):
    document = json.loads(evalcube("show", cube, "--row", "n5", "--json", cwd=".")[1])

    assert document["row_id"] == "n5"
    assert document["reference"] == "10"
    for arguments, message in (
        (["--row", "n99"], "--row: no trials ask a row 'n99'"),
        (["--row", "n5", "--trial", "1"], "exclude each other"),
        (["--trial", "1"], "Give --task NAME"),
    ):
        assert message in evalcube("show", cube, *arguments, cwd=".")[2]
