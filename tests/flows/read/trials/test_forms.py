"""The table of trials as text and files: nothing in it reaches a terminal or a spreadsheet as a command."""

import csv
import io
import json

import pytest
from pyarrow import parquet

from evalcube.flows.read.trials.brief import cut
from evalcube.flows.read.trials.escaping import csv_text, visible
from evalcube.flows.read.trials.forms import json_line
from evalcube.flows.read.trials.read import trials
from evalcube.stages.reply.forms import Record
from evalcube.storage.cache.cache import open_cache
from tests.cases import with_cases
from tests.flows.support import evalcube, refused

HOSTILE = [
    '=HYPERLINK("x")',
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\x1b]0;title\x07",
    "a|b\n*c*",
]


@pytest.fixture(scope="module")
def attacked(small_sweep):
    """The finished small sweep with a cache of replies that attack whoever shows them."""
    cache = open_cache(small_sweep / "attack")
    for number, row in enumerate(trials(small_sweep / "cube.zarr", columns=["digest"]).rows()):
        text = HOSTILE[number % len(HOSTILE)]
        body = json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}).encode()
        cache.put(row["digest"], Record(200, 0.5, body).encode())
    cache.close()
    return small_sweep


def listed(folder, *options):
    code, output, errors = evalcube("trials", "cube.zarr", "--cache", "attack", *options, cwd=folder)
    assert code == 0, errors
    return output


def harmless(text):
    return all(character in "\n\r\t" or character.isprintable() for character in text)


def test_csv__defuses_formulas_and_leaves_numbers(attacked):
    output = listed(attacked, "--csv", "--columns", "response,tokens,reference,difficulty")

    found = list(csv.reader(io.StringIO(output, newline="")))
    assert found[0] == ["response", "tokens", "reference", "difficulty"]
    assert len(found) == 1 + 10
    assert harmless(output)
    assert len(output.splitlines()) == len(found) + 1  # one cell holds a line break, in quotes
    for text, (response, tokens, _, difficulty) in zip(HOSTILE, found[1:], strict=False):
        assert response == csv_text(text)
        assert response[0] not in "=+-@\t\r"
        assert int(tokens) > 0
        assert float(difficulty) > 0


@with_cases(
    ("text", "cell"),
    [
        *((text, "'" + visible(text)) for text in HOSTILE[:6]),
        ("-12", "-12"),
        ("+3.5e-7", "+3.5e-7"),
        ("-12 or so", "'-12 or so"),
        ("\n=1", "'\n=1"),
        ("＝1", "'＝1"),
        ("", ""),
        ("1-2", "1-2"),
    ],
)
def test_csv_text__is_no_formula(text, cell):
    assert csv_text(text) == cell


@pytest.mark.parametrize("form", [[], ["--markdown"], ["--json"], ["--jsonl"], ["--csv"]])
def test_no_form__lets_a_control_character_through(form, attacked):
    output = listed(attacked, *form, "--columns", "response,answer,messages")

    assert harmless(output.replace("\r", "?"))
    assert "\x1b" not in output


def test_jsonl__is_one_object_a_line_with_the_text_as_it_was(attacked):
    found = [json.loads(line) for line in listed(attacked, "--jsonl").splitlines()]

    assert [row["response"] for row in found] == [*HOSTILE, *HOSTILE[:2]]
    assert "NaN" not in listed(attacked, "--jsonl")
    assert json.loads(json_line({"a": float("inf"), "b": 1})) == {"a": None, "b": 1}


def test_json__is_one_document_that_says_what_columns_mean(attacked):
    document = json.loads(listed(attacked, "--json", "--columns", "trial,status"))

    assert (document["schema"], document["schema_version"]) == ("evalcube.trials", 1)
    assert list(document["columns"]) == ["trial", "status"]
    assert len(document["rows"]) == 10
    assert json.loads(listed(attacked, "--json", "--limit", 0))["rows"] == []


def test_markdown__escapes_what_a_reply_says(attacked):
    lines = listed(attacked, "--markdown", "--columns", "response,tokens").splitlines()

    assert lines[:2] == ["| response | tokens |", "| :-- | --: |"]
    assert any("a\\|b \\*c\\*" in line for line in lines)


def test_parquet__is_written_whole_and_read_by_others(attacked, tmp_path):
    path = tmp_path / "new" / "table.parquet"

    assert listed(attacked, "--parquet", path) == f"10 trials: {path}\n"

    table = parquet.read_table(path)
    assert table["response"].to_pylist() == [*HOSTILE, *HOSTILE[:2]]
    assert table.schema.field("latency").metadata[b"comment"].startswith(b"Seconds")
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_parquet__has_several_groups_of_rows_if_there_is_much(attacked, tmp_path, monkeypatch):
    monkeypatch.setattr("evalcube.flows.read.trials.forms._GROUP_BYTES", 1)
    monkeypatch.setattr("evalcube.flows.read.trials.read.AT_ONCE", 4)

    listed(attacked, "--parquet", tmp_path / "table.parquet")

    file = parquet.ParquetFile(tmp_path / "table.parquet")
    assert (file.num_row_groups, file.metadata.num_rows) == (3, 10)


def test_parquet__leaves_what_was_there_if_it_fails(attacked, tmp_path, monkeypatch):
    path = tmp_path / "table.parquet"
    path.write_text("before")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet.ParquetWriter, "write_table", fail)
    result = evalcube("trials", "cube.zarr", "--cache", "attack", "--parquet", path, cwd=attacked)

    refused(result, "table.parquet")
    assert path.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_terminal__shows_few_columns_and_says_how_many_rows_there_are(attacked, monkeypatch):
    monkeypatch.setattr("evalcube.flows.read.trials.brief.FIRST", 4)

    output = listed(attacked)

    assert output.split()[:8] == "model task params trial status tokens latency prompt".split()
    assert "4 of 10 trials" in output
    assert "param_" not in output


def test_cut__says_that_it_cut():
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdefg", 6) == "abcde…"
    assert cut("字字字字", 6) == "字字…"


def test_forms__exclude_each_other_and_flags_are_named(attacked):
    refused(
        evalcube("trials", "cube.zarr", "--csv", "--json", cwd=attacked),
        "--json and --csv exclude each other",
    )
    refused(
        evalcube("trials", "cube.zarr", "--in", "promt", "--grep", "x", cwd=attacked),
        "--in: there is no 'promt'",
    )
