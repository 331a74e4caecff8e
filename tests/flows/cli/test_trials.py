"""Commands that hand single trials on, in each form that these can have."""

import csv
import io
import json

import pytest
from pyarrow import parquet

from evalcube.flows.cli import trials
from tests.flows.cli.made_up import RATES, REPEATS, TRIALS, document, run
from tests.flows.support import evalcube, refused

ALL = len(RATES) * 5 * TRIALS * REPEATS


def test_trials__are_all_of_them_in_forms_for_programs(cube, tmp_path):
    listed = document("trials", cube)
    lines = [json.loads(line) for line in run("trials", cube, "--jsonl").splitlines()]
    cells = list(csv.DictReader(io.StringIO(run("trials", cube, "--csv"), newline="")))
    told = run("trials", cube, "--parquet", tmp_path / "t.parquet")

    assert len(listed["rows"]) == len(lines) == len(cells) == ALL
    assert lines == listed["rows"]
    assert list(listed["columns"]) == list(lines[0]) == list(cells[0])
    assert told == f"{ALL} trials: {tmp_path / 't.parquet'}\n"
    assert parquet.read_table(tmp_path / "t.parquet").num_rows == ALL


def test_trials__are_a_few_columns_of_twenty_where_people_read(cube):
    table = run("trials", cube)
    longer = run("trials", cube, "--limit", 31, "--markdown", "--columns", "model,trial")
    few = run("trials", cube, "--where", "model=weak", "--where", "length=8", "--where", "trial=3")

    assert f"20 of {ALL} trials; use --limit to show more." in table
    assert "eval_id" not in table
    assert len([line for line in longer.splitlines() if line.startswith("|")]) == 2 + 31
    assert f"31 of {ALL}" in longer
    assert "use --limit" not in few
    assert "No trial fulfils all of this." in run("trials", cube, "--where", "tokens=9999..")
    assert "No trial fulfils all of this." not in few


def test_trials__takes_the_columns_and_the_number_that_are_asked_for(cube):
    rows = document("trials", cube, "--columns", "model,tokens", "--limit", 7, "--sort=-tokens")["rows"]

    assert [list(row) for row in rows] == [["model", "tokens"]] * 7
    assert [row["tokens"] for row in rows] == sorted((row["tokens"] for row in rows), reverse=True)
    names = list(document("trials", cube, "--limit", 1)["columns"])
    assert list(document("trials", cube, "--limit", 1, "--columns", "all")["columns"]) == names


def test_count__has_the_same_numbers_in_each_form(cube):
    rows = document("trials", cube, "--count", "model,status")["rows"]
    cells = list(
        csv.DictReader(io.StringIO(run("trials", cube, "--count", "model,status", "--csv"), newline=""))
    )
    table = run("trials", cube, "--count", "model,status")

    assert sum(row["trials"] for row in rows) == ALL
    assert {row["model"] for row in rows} == RATES.keys()
    assert [[row["model"], row["status"], str(row["trials"])] for row in rows] == [
        list(row.values()) for row in cells
    ]
    assert all(str(row["trials"]) in table for row in rows)
    assert "|" in run("trials", cube, "--count", "model", "--markdown")


@pytest.mark.parametrize(
    "options",
    [
        ["--count", "model", "--limit", 5],
        ["--count", "model", "--sort", "tokens"],
        ["--count", "model", "--columns", "model"],
        ["--count", "model", "--jsonl"],
        ["--count", "model", "--parquet", "x"],
        ["--json", "--jsonl"],
        ["--csv", "--parquet", "x"],
        ["--markdown", "--json"],
    ],
)
def test_trials__refuses_forms_that_exclude_each_other(cube, tmp_path, options):
    second = options[2] if len(options) > 2 and options[1] == "model" else options[1]
    refused(evalcube("trials", cube, *options, cwd=tmp_path), options[0], second, "exclude each other")
    assert list(tmp_path.iterdir()) == []


def test_export__says_what_it_wrote(cube, tmp_path):
    told = run("export", cube, "--output", tmp_path / "out", "--where", "model=weak")
    written = document("export", cube, "--output", tmp_path / "more", "--where", "model=weak,strong")

    assert told == f"{ALL // 3} trials in 2 files: {tmp_path / 'out'}\n"
    assert (written["trials"], len(written["files"])) == (2 * ALL // 3, 4)


def test_flips__are_all_of_them_for_programs_and_twenty_for_people(cube, monkeypatch):
    pair = ("compare", cube, "strong", "weak", "--flips", "--trials", 8)
    found = document(*pair)
    cells = list(csv.DictReader(io.StringIO(run(*pair, "--csv"), newline="")))
    table, fewer = run(*pair), run(*pair, "--limit", 3)

    assert found["changed"] == len(found["flips"]) == len(cells) > 20
    assert (found["first"]["label"], found["second"]["label"]) == ("strong", "weak")
    assert {row["task"] for row in found["tasks"]} == {"arithmetic", "sort"}
    assert not any({"params", "tiers"} & row.keys() for row in found["tasks"])
    assert sum(point["lost"] + point["won"] for point in found["points"]) == len(cells)
    assert {"first_status", "second_status"} <= cells[0].keys()
    assert f"20 of {len(cells)} changed questions" in table
    assert f"3 of {len(cells)} changed questions" in fewer
    assert len(document(*pair, "--limit", 3)["flips"]) == 3
    assert "changed questions are shown" not in run(*pair, "--limit", len(cells))
    assert "|" in run(*pair, "--markdown")
    for most in (len(found["points"]), len(found["points"]) - 1):
        monkeypatch.setattr(trials, "_POINTS", most)
        assert (f"{most} of {len(found['points'])} points" in run(*pair)) == (most < len(found["points"]))
