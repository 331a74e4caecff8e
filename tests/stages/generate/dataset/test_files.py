"""Reading JSONL, CSV, TSV and Parquet: equal content, bad content, changed content."""

from __future__ import annotations

import os
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalcube.stages.generate import Cell, TaskError
from evalcube.stages.generate.dataset import tables
from evalcube.stages.generate.dataset.files import Table, file_digest, format_of, open_table
from tests.stages.generate.dataset.support import (
    DATASET,
    cell,
    pack,
    trials,
    write_csv,
    write_jsonl,
    write_parquet,
)

ROWS = [{"prompt": f"What is {i} + {i}?", "answer": str(2 * i)} for i in range(20)]

VALUE = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=30).filter(
    str.strip
)
SAME_FILE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def opened(path: Path) -> Table:
    return open_table(str(path), format_of(str(path), "auto"), file_digest(str(path)))


def rows_of(path: Path) -> list[dict[str, Any]]:
    table = opened(path)
    return [dict(table.row(i)) for i in range(len(table))]


@SAME_FILE
@given(
    rows=st.lists(
        st.fixed_dictionaries({"prompt": VALUE, "answer": VALUE, "split": VALUE}), min_size=1, max_size=12
    )
)
def test_open_table__equal_content_is_equal_in_every_format(
    tmp_path: Path, rows: list[dict[str, str]]
) -> None:
    jsonl = write_jsonl(tmp_path / "a.jsonl", rows)
    paths = [
        jsonl,
        pack(jsonl),
        write_csv(tmp_path / "a.csv", rows),
        write_csv(tmp_path / "a.tsv", rows, "\t"),
        write_parquet(tmp_path / "a.parquet", rows),
    ]

    assert all(rows_of(path) == rows for path in paths)


def test_trial__equal_content_asks_the_same_in_every_format(tmp_path: Path) -> None:
    rows = [
        {
            "id": f"00{i}",
            "prompt": f'What, "{i}"\nplus 0?',
            "options": [f"0{i}", f"x,{i}", f"ü{i}"],
            "answer": f"x,{i}",
        }
        for i in range(30)
    ]
    paths = [
        write_jsonl(tmp_path / "a.jsonl", rows),
        write_csv(tmp_path / "a.csv", rows),
        write_parquet(tmp_path / "a.parquet", rows),
    ]
    cells = [cell(path, options="options", id="id", order="file", option_order="file") for path in paths]

    assert trials(cells[0]) == trials(cells[1]) == trials(cells[2])
    assert trials(cells[0])[7].extras["id"] == "007"
    assert trials(cells[0])[7].options == ("A", "B", "C")


def test_open_table__csv_keeps_texts_and_takes_empty_fields_for_missing(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'\xef\xbb\xbfid,text,more\r\n007,"a ""b"", c\r\nd",1.50\r\n\r\n008,x,\r\n')

    assert rows_of(path) == [
        {"id": "007", "text": 'a "b", c\r\nd', "more": "1.50"},
        {"id": "008", "text": "x", "more": None},
    ]
    table = opened(path)
    assert [table.line(0), table.line(1)] == [2, 5]


def test_open_table__jsonl_passes_over_blank_lines_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\n\n  \n{"a": 2}')
    table = opened(path)

    assert rows_of(path) == [{"a": 1}, {"a": 2}]
    assert table.line(1) == 4


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b"", "no rows"),
        ("a.jsonl", b"\n \n", "no rows"),
        ("a.csv", b"", "empty; its first line must name the columns"),
        ("a.csv", b"prompt,answer\n", "no rows"),
        ("a.csv", b"prompt,answer\n1,2\n1,2,3\n", r"row 2 \(line 3\) has 3 fields, the header has 2"),
        ("a.csv", b'prompt,answer\n1,"2\n', "row on line 2: unexpected end of data"),
        ("a.csv", b'prompt,answer\n1,"2"x\n', "row on line 2: .* expected after"),
        ("a.csv", b"prompt,answer\n1,\xff\n", "row on line 2: not UTF-8 at byte 3"),
        ("a.jsonl", b'{"prompt": 1}\n{"prompt": \n', r"row 2 \(line 2\): not JSON: .* character"),
        ("a.jsonl", b'{"prompt": 1}\n\n[1]\n', r"row 2 \(line 3\): a JSON array, not an object"),
        ("a.jsonl", b'{"prompt": "\xff"}\n', r"row 1 \(line 1\): not UTF-8 at byte 13"),
        ("a.jsonl", b'{"prompt": ' + b"[" * 100_000 + b"\n", "nested too deeply"),
        ("a.jsonl", b'{"prompt": ' + b"1" * 5000 + b"}\n", r"row 1 \(line 1\): "),
        ("a.parquet", b"PAR1 or not", "no readable Parquet file"),
        ("a.parquet", b"", "no readable Parquet file"),
        ("a.jsonl.gz", b"no gzip", "no whole gzip file"),
        ("a.txt", b"x", "does not tell its format; known endings are .jsonl"),
        ("a.xlsx", b"x", "is a spreadsheet, and not a text; .* save the sheet .* as CSV"),
        ("a.csv", b"PK\x03\x04 of a book", "is a spreadsheet"),
        ("a.jsonl", bytes.fromhex("d0cf11e0a1b11ae1"), "is a spreadsheet"),
        ("a.csv", b"\xff\xfea", "begins as UTF-16 and is none"),
    ],
)
def test_resolve__refuses_bad_files(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)

    with pytest.raises(TaskError, match=message) as caught:
        cell(path)

    assert (caught.value.field, caught.value.value) == ("file", str(path))
    assert str(path) in str(caught.value)


def test_resolve__refuses_half_a_gzip_file(tmp_path: Path) -> None:
    path = pack(write_jsonl(tmp_path / "a.jsonl", ROWS))
    path.write_bytes(path.read_bytes()[:-9])

    with pytest.raises(TaskError, match="gzip"):
        cell(path)


def test_resolve__refuses_what_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    monkeypatch.chdir(tmp_path)

    with pytest.raises(TaskError, match="no regular file"):
        cell(tmp_path / "pipe.jsonl")
    with pytest.raises(TaskError, match="no regular file"):
        cell(tmp_path, format="csv")
    with pytest.raises(TaskError, match=r"gone\.jsonl \(relative to "):
        cell(Path("gone.jsonl"))


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_resolve__refuses_long_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(tables, "MOST_ROW_BYTES", 1 << 20)
    path = tmp_path / name
    path.write_text("prompt,answer\n" + "".join('"' + "x\n" * 50_000 + '",' for _ in range(12)))
    if name == "a.jsonl":
        path.write_text("{" + " " * (1 << 20) + "}\n")

    with pytest.raises(TaskError, match="more than 1 MiB"):
        cell(path)


def test_resolve__tells_which_extra_reads_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_parquet(tmp_path / "a.parquet", ROWS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(TaskError, match=re.escape("pip install 'evalcube[parquet]'")):
        cell(path)


# ---- identity and change


def test_cell__does_not_depend_on_the_path(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    here = cell(write_jsonl(tmp_path / "a.jsonl", ROWS))
    there = cell(write_jsonl(tmp_path / "b" / "other.ndjson", ROWS))
    other = cell(write_jsonl(tmp_path / "c.jsonl", ROWS[1:]))

    assert here == there
    assert here.id == there.id != other.id
    assert trials(here) == trials(there)
    assert here.plain_params["file"] == str(tmp_path / "a.jsonl")


def test_cell__needs_resolved_params(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", ROWS)

    with pytest.raises(TaskError, match=r"call Task\.resolve"):
        Cell(DATASET, DATASET.Params(file=str(path)), 1)


def test_size__is_known_without_the_file(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", ROWS)
    planned = cell(path, where={"prompt": ["What is 1 + 1?", "What is 2 + 2?"]}, rows=7)
    path.unlink()

    assert pickle.loads(pickle.dumps(planned)).size == 2  # noqa: S301
    assert planned.plain_params["rows"] == 2


def test_resolve__checks_a_digest_that_is_given(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", ROWS)
    digest = cell(path).plain_params["sha256"]

    assert cell(path, sha256=digest).id == cell(path).id
    with pytest.raises(TaskError, match=f"was {'0' * 64} and is now {digest}"):
        cell(path, sha256="0" * 64)


def test_open_table__counts_what_a_parquet_file_unpacks_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file holds one text, once, and says so; in memory it would stand in each row."""
    monkeypatch.setattr(tables, "MOST_PARQUET_BYTES", 1 << 24)
    path = write_parquet(tmp_path / "a.parquet", [{"prompt": "x" * 20_000, "answer": "1"}] * 2000)
    assert path.stat().st_size < 1 << 22

    with pytest.raises(TaskError, match="unpacks to"):
        opened(path)
