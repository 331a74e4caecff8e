"""The table of trials as text and files: CSV, lines of JSON, Parquet."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evalcube.flows.read.outputs import new_file
from evalcube.flows.read.trials.columns import TrialColumn, Values, plain
from evalcube.flows.read.trials.escaping import csv_text, jsonable
from evalcube.flows.read.trials.read import Trials

_NUMERIC = ("integer", "single", "number")
_GROUP_BYTES = 64_000_000
"""Of a row group of a Parquet file, before compression; about what is in memory while one is written."""


def csv_lines(table: Trials) -> Iterator[str]:
    """Lines of a CSV file with a header, without line ends; a cell may hold some.

    Texts are those of `csv_text`, lists are JSON, absent values are empty.
    """
    writer = csv.writer(_Echo(), lineterminator="\n")
    yield writer.writerow([csv_text(column.name) for column in table.columns])  # parameters are anyone's
    for block in table.blocks():
        for row in zip(*(_cells(column, block[column.name]) for column in table.columns), strict=True):
            yield writer.writerow(row)


class _Echo:
    def write(self, text: str) -> str:
        """The line without its end, which `csv.writer` hands on."""
        return text[:-1]


def _cells(column: TrialColumn, values: Values) -> list[Any]:
    """Cells as CSV has them: numbers as they are, nothing for None."""
    cells = plain(values)
    return cells if column.kind in _NUMERIC else [_cell(value) for value in cells]


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return csv_text(value)
    return csv_text(json.dumps(value)) if value else ""


def json_line(row: dict[str, Any]) -> str:
    """A row as one line of JSON in ASCII, without NaN."""
    return json.dumps(jsonable(row), allow_nan=False)


def write_parquet(table: Trials, path: Path) -> int:
    """Write a Parquet file; it is there whole or not at all."""
    schema = table.schema
    import pyarrow as pa
    from pyarrow import parquet

    rows, size, group = 0, 0, list[Any]()
    with (
        new_file(path, "write the table", "parquet") as file,
        parquet.ParquetWriter(file, schema, compression="zstd") as writer,
    ):
        for batch in table:
            group.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if size > _GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(group))
                size = 0
                group.clear()
        if group:
            writer.write_table(pa.Table.from_batches(group))
    return rows
