"""Files of questions for tests, in each format."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from evalcube.stages.generate import TASKS, Cell, TaskError

DATASET = TASKS["dataset"]
HOSTILE = st.text(st.characters(codec="utf-8"), min_size=1, max_size=15).filter(str.strip)
IN_FILES = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def write_jsonl(path: Path, rows: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_csv(path: Path, rows: Sequence[dict[str, Any]], delimiter: str = ",") -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        for row in rows:
            writer.writerow({key: _cell(value) for key, value in row.items()})
    return path


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (list, dict)) else value


def write_parquet(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(list(rows)), path, row_group_size=7)
    return path


def pack(path: Path) -> Path:
    packed = path.with_name(path.name + ".gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    return packed


def cell(path: Path, seed: int = 1, **params: Any) -> Cell:
    """The cell of a file, its params resolved."""
    return Cell(DATASET, DATASET.resolve(DATASET.Params(file=str(path), **params)), seed)


def trials(source: Cell) -> list[Any]:
    assert source.size is not None
    return [source.trial(i) for i in range(source.size)]


def one(tmp_path: Path, row: dict[str, Any], **params: Any) -> Any:
    """The trial of a file with a single row."""
    return cell(write_jsonl(tmp_path / "one.jsonl", [row]), **params).trial(0)


def problem(tmp_path: Path, rows: list[Any], **params: Any) -> TaskError:
    """What a file is refused with."""
    with pytest.raises(TaskError) as caught:
        cell(write_jsonl(tmp_path / "bad.jsonl", rows), **params)
    return caught.value
