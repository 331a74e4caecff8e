"""Rows of files as people save them: other delimiters, blanks, rows without values, columns that nobody names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalcube.stages.generate import Cell, TaskError
from evalcube.stages.generate.dataset import Dataset, DatasetParams
from tests.stages.generate.dataset.support import cell, trials, write_csv, write_jsonl
from tests.stages.generate.dataset.test_files import VALUE, opened, rows_of


def remarks(source: Cell) -> list[str]:
    assert isinstance(source.params, DatasetParams)
    return list(Dataset().remarks(source.params))


SHEET = "Nr; Frage ;Antwort;Bild;;\r\n1;Wie heißt es?;Köln;;;\r\n;;;;;\r\n2;Und nun?;Süd;a.png\r\n"
"""As a spreadsheet saves one in German: blanks in the header, columns without a name, a row without values."""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_index_csv__reads_what_spreadsheets_save(tmp_path: Path, encoding: str, delimiter: str) -> None:
    path = tmp_path / "a.csv"
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    path.write_bytes((mark + SHEET.replace(";", delimiter)).encode(encoding))
    source = cell(path, prompt="Frage", answer="Antwort", id="Nr", order="file")

    assert [(one.answer, one.extras["id"]) for one in trials(source)] == [("Köln", "1"), ("Süd", "2")]
    assert trials(source)[0].prompt.startswith("Wie heißt es?\n")
    assert [opened(path).line(i) for i in range(2)] == [2, 4]
    (note,) = remarks(source)
    assert ("semicolons" if delimiter == ";" else "tabs") in note
    assert ("UTF-16" in note) == ("16" in encoding)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.fixed_dictionaries({"a": VALUE, "b": VALUE, "c": VALUE}), min_size=1, max_size=6),
    delimiter=st.sampled_from(",;\t"),
)
def test_index_csv__finds_the_delimiter_that_was_written(
    tmp_path: Path, rows: list[dict[str, str]], delimiter: str
) -> None:
    assert rows_of(write_csv(tmp_path / "a.csv", rows, delimiter)) == rows


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("one;two,three\n1;2,3\n", ["one;two", "three"]),
        ("one;two, or so\n1;2\n", ["one", "two, or so"]),
        ("a text; of one column\nits value\n", ["a text; of one column"]),
        ("one;two\n", None),
    ],
)
def test_index_csv__takes_commas_where_they_fit(tmp_path: Path, text: str, columns: list[str] | None) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)

    if columns is None:
        with pytest.raises(TaskError, match="has no rows"):
            opened(path)
    else:
        assert list(rows_of(path)[0]) == columns


def test_index_csv__fills_short_rows_and_refuses_values_beyond_the_header(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("prompt,answer,more\n1,2\n1,2,3,,\n")

    assert [row["more"] for row in rows_of(path)] == [None, "3"]

    path.write_text("prompt,answer\nWell, then,2\n")
    with pytest.raises(TaskError, match=r"3 fields, .* 2; quote"):
        opened(path)


UNNAMED: list[Any] = [
    ("a.csv", "prompt,note,note,answer\nq,1,2,x\n"),
    ("a.jsonl", '{"prompt": "q", "note": NaN, "more": {"b": 1, "b": 2}, "note": 2, "answer": "x"}\n'),
]


@pytest.mark.parametrize(("name", "text"), UNNAMED)
def test_row__no_column_refuses_a_file_that_nobody_names(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)

    assert trials(cell(path))[0].answer == "x"
    for params in ({"id": "note"}, {"prompt": "note"}, {"where": {"note": 1}}):
        with pytest.raises(TaskError, match=r"row 1 \(line \d\): 'note' "):
            cell(path, **params)


@pytest.mark.parametrize(
    ("row", "params", "message"),
    [
        ('{"prompt": NaN, "answer": 1}', {}, "field 'prompt' must hold a text or a number"),
        ('{"prompt": "q", "answer": {"b": 1, "b": 2}}', {"kind": "json"}, "must hold JSON values only"),
        ('{"prompt": "q", "a": {"b": 1, "b": 2}}', {"answer": "a.b"}, "'b' stands twice"),
    ],
)
def test_row__a_named_one_must_be_one_value(
    tmp_path: Path, row: str, params: dict[str, Any], message: str
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(row)

    with pytest.raises(TaskError, match=message):
        cell(path, **params)


def test_parquet_table__reads_beside_columns_of_any_type(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = ["prompt", "answer", "when", "note", "note"]
    values = [pa.array(["q"]), pa.array([0.1], pa.float32()), pa.array([1], pa.timestamp("ns"))]
    table = pa.Table.from_arrays([*values, pa.array(["a"]), pa.array(["b"])], names=names)
    pq.write_table(table, tmp_path / "a.parquet")

    (row,) = rows_of(tmp_path / "a.parquet")
    assert row["answer"] == 0.1
    assert cell(tmp_path / "a.parquet").trial(0).answer == "0.1"
    with pytest.raises(TaskError, match="'note' stands twice"):
        cell(tmp_path / "a.parquet", id="note")


def test_remarks__say_nothing_of_what_is_read_as_it_is_named(tmp_path: Path) -> None:
    rows = [{"prompt": "q", "answer": "x"}]
    for path in (write_csv(tmp_path / "a.csv", rows), write_csv(tmp_path / "a.tsv", rows, "\t")):
        assert remarks(cell(path)) == []
    assert remarks(cell(write_jsonl(tmp_path / "a.jsonl", rows))) == []
