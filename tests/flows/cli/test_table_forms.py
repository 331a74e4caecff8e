"""Forms of a table: CSV, fitted to the terminal, and results in Python."""

import csv
import io
import re

import pytest

import evalcube as ec
from evalcube.flows.read.statistics import compare, leaderboard, rank
from evalcube.stages.analyze.render.shown import html_table
from evalcube.stages.analyze.render.table import Column, TableSpec
from tests.flows.cli.made_up import document, run

pytestmark = pytest.mark.long

TABLES = {
    "leaderboard": ["leaderboard"],
    "table": ["table", "--by", "model,task"],
    "rank": ["rank"],
    "compare": ["compare"],
}


@pytest.mark.parametrize("name", TABLES)
def test_tables__csv_has_a_line_for_each_row_with_all_digits(cube, name):
    command, *options = TABLES[name]

    text = run(command, cube, *options, "--csv", width=40)

    rows = list(csv.DictReader(io.StringIO(text)))
    assert rows
    assert all(None not in row and None not in row.values() for row in rows)
    assert "strong" in text
    assert "%" not in text
    assert "nan" not in text


def test_leaderboard__csv_has_the_numbers_of_json(cube):
    (first, *_), document_rows = (
        list(csv.DictReader(io.StringIO(run("leaderboard", cube, "--csv")))),
        document("leaderboard", cube)["rows"],
    )

    assert float(first["score_lower"]) == document_rows[0]["score"]["lower"]
    assert float(first["easy_rate"]) == document_rows[0]["tiers"][0]["rate"]["value"]
    assert first["facet_family"] == "other"


def test_table__csv_has_the_share_truncated_of_json_and_the_counter_beside_it(cube):
    first, *_ = csv.DictReader(io.StringIO(run("table", cube, "--csv")))

    row = document("table", cube)["rows"][0]

    assert float(first["truncated"]) == row["truncated"]
    assert float(first["counter_truncated"]) == row["counters"]["truncated"]


def test_leaderboard__says_what_a_wider_terminal_shows(cube):
    narrow, wide = (run("leaderboard", cube, width=width) for width in (60, 250))

    assert "tokens" in narrow.split("Columns that do not fit: ")[1]
    assert "Columns that do not fit" not in wide


def test_results__in_python_are_tables_html_data_frames_and_json(cube):
    found = {
        "leaderboard": leaderboard(cube, draws=50),
        "rank": rank(cube, draws=50),
        "compare": compare(cube, ["strong", "weak"]),
        "trials": ec.trials(cube, limit=30),
    }

    for name, result in found.items():
        text, html, frame = str(result), result._repr_html_(), result.to_dataframe()
        assert "strong" in text, name
        assert max(map(len, text.splitlines())) <= 100, name
        assert html.startswith("<table>"), name
        assert "strong" in html, name
        assert len(frame), name
    assert list(found["leaderboard"].to_dataframe()["model_name"]) == [
        row.model_name for row in found["leaderboard"].rows
    ]
    assert isinstance(found["leaderboard"], ec.results.LeaderboardResult)
    assert found["compare"].to_dict()["pairs"][0]["first"] == "strong"
    assert set(found["compare"].to_dataframe()["task"]) == {"arithmetic", "sort", ""}
    assert len(found["trials"].to_dataframe()) == 30
    assert "20 of " in str(found["trials"])
    part, standings, board = found["rank"]
    assert (part.selection, len(standings.rows), len(board.rows)) == ("", 3, 3)


def test_results__are_drawn_with_a_line_for_each_row(cube):
    board, pairs = leaderboard(cube, draws=50), compare(cube)

    for picture in (board.plot(), rank(cube, draws=50).plot(), pairs.plot()):
        assert picture._repr_svg_().count("<circle") == 3
    assert all(f">{row.model_name}</text>" in board.plot() for row in board.rows)
    assert compare(cube, ["strong", "weak"]).plot().count("<circle") == 3


def test_html_table__takes_every_text_for_text():
    spec = TableSpec(
        (Column("<b>", lambda row: row, right=False),), ["<script>alert(1)</script>"], ("<i>note</i>",)
    )

    html = html_table(spec)

    assert not re.search(r"<(script|b|i)>", html)
    assert "&lt;script&gt;" in html
