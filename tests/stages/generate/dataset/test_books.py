"""Open files and the rows of them: what is read once, and what happens when a file changes."""

from __future__ import annotations

import os
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest

from evalcube.stages.generate import Cell, TaskError
from evalcube.stages.generate.dataset import Dataset, books, files
from evalcube.stages.generate.dataset.files import Table, file_digest, format_of, open_table
from tests.stages.generate.dataset.support import (
    cell,
    trials,
    write_jsonl,
)

ROWS = [{"prompt": f"What is {i} + {i}?", "answer": str(2 * i)} for i in range(20)]


def opened(path: Path) -> Table:
    return open_table(str(path), format_of(str(path), "auto"), file_digest(str(path)))


@pytest.mark.parametrize("way", ["in place", "replaced", "cut", "gone"])
def test_trial__refuses_a_changed_file_in_a_new_process(tmp_path: Path, way: str) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", ROWS)
    planned = cell(path)
    if way == "gone":
        path.unlink()
    elif way == "cut":
        os.truncate(path, 100)
    else:
        content = path.read_text().replace("What", "Whom")
        if way == "replaced":
            path.unlink()
        path.write_text(content)

    elsewhere = pickle.loads(pickle.dumps(planned))  # noqa: S301

    message = "cannot be opened" if way == "gone" else r"has changed: .* Restore the file"
    with pytest.raises(TaskError, match=message):
        elsewhere.trial(0)


def test_trial__of_a_small_file_stays_whatever_becomes_of_the_file(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", ROWS)
    planned = cell(path)
    first = planned.trial(0)

    path.write_text(path.read_text().replace("What", "Whom"))

    assert planned.trial(0) == first


def test_trial__refuses_a_large_file_that_changes_while_it_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_HELD", 0)
    path = write_jsonl(tmp_path / "a.jsonl", ROWS)
    planned = cell(path)
    first = planned.trial(0)
    content = path.read_text()
    path.write_text(content.replace("What", "Whom"))
    os.utime(path, ns=(1, 1))

    with pytest.raises(TaskError, match="has changed"):
        planned.trial(0)

    path.write_text(content)
    assert planned.trial(0) == first


def test_trial__goes_on_when_an_open_file_is_replaced(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", ROWS)
    planned = cell(path)
    before = trials(planned)
    write_jsonl(tmp_path / "new.jsonl", ROWS[1:]).replace(path)

    assert trials(planned) == before


def test_trial__reads_a_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    original = open_table

    def counted(path: str, form: str, sha256: str) -> Any:
        opened.append(path)
        return original(path, form, sha256)

    task = Dataset()
    params = cell(write_jsonl(tmp_path / "a.jsonl", ROWS)).params
    monkeypatch.setattr(books, "open_table", counted)
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append([Cell(task, params, 1).trial(i) for i in range(20)]))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(opened) == 1
    assert len(found) == 8
    assert all(each == found[0] for each in found)


def open_files() -> int:
    listed = Path("/proc/self/fd")
    return len(list(listed.iterdir())) if listed.exists() else 0


def test_library__keeps_few_files_open(tmp_path: Path) -> None:
    task = Dataset()
    cells = []
    for i in range(12):
        path = write_jsonl(tmp_path / f"{i}.jsonl", [{"prompt": f"Say {i}", "answer": str(i)}])
        cells.append(Cell(task, task.resolve(task.Params(file=str(path))), 1))
    before = open_files()

    for _ in range(2):
        assert [each.trial(0).answer for each in cells] == [str(i) for i in range(12)]

    assert open_files() <= before
    assert len(task._library._books) == 8
