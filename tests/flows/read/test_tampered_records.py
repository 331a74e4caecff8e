"""Whatever stands in the records of a cube, whoever reads it ends in one message, and never in a defect of ours."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Callable, Iterator
from copy import deepcopy
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from evalcube.storage.cube.cube import Cube
from tests.flows.support import evalcube

READING = {
    "status": ("status", "CUBE"),
    "leaderboard": ("leaderboard", "CUBE", "--trials", 1),
    "table": ("table", "CUBE", "--trials", 1),
    "trials": ("trials", "CUBE"),
    "diff": ("diff", "CUBE", "OTHER"),
    "diff, the other way": ("diff", "OTHER", "CUBE"),
    "merge": ("merge", "merged.zarr", "CUBE", "OTHER"),
    "verify": ("cube", "verify", "CUBE"),
    "publish": ("publish", "CUBE", "published"),
    "report": ("report", "CUBE", "--output", "report.html"),
}
_DEEP, _NESTED = "@deep@", "@nested@"
"""In the place of values that no parser reads, and of those that parsers read and others end of."""
_LEASE = {
    "token": "t",
    "process": {"host": "far", "boot": "b", "pid": 7, "start": 5},
    "since": 1.0,
    "ttl": 9.0,
    "machine": "m",
}
_NUMBERS = count()
Change = Callable[[Any], Any]


@pytest.fixture
def sweep(tmp_path: Path, small_sweep: Path) -> Path:
    """A folder with two copies of a finished sweep."""
    folder = tmp_path / str(next(_NUMBERS))
    folder.mkdir()
    for name in ("CUBE", "OTHER"):
        shutil.copytree(small_sweep / "cube.zarr", folder / name)
    return folder


def written(document: Any) -> str:
    text = json.dumps(document).replace(f'"{_DEEP}"', "[" * 20_000 + "]" * 20_000)
    return text.replace(f'"{_NESTED}"', '{"a": ' * 600 + "0" + "}" * 600)


def change_record(cube: Path, record: str, change: Change) -> None:
    """Let `change` make another value of a record."""
    path = cube / record
    document = json.loads(path.read_text()) if path.exists() else deepcopy(_LEASE)
    path.write_text(written(change(document)))


def change_array(cube: Path, name: str, change: Change) -> None:
    """Let `change` make other metadata of an array, in both places; none at all if it gives None."""
    path = cube / "zarr.json"
    document = json.loads(path.read_text())
    arrays = document["consolidated_metadata"]["metadata"]
    changed = change(arrays.pop(name))
    if changed is None:
        shutil.rmtree(cube / name)
    else:
        arrays[name] = changed
        (cube / name / "zarr.json").write_text(written(changed))
    path.write_text(written(document))


def change_receipt(cube: Path, change: Change) -> None:
    """Let `change` make another first receipt, with a checksum that fits."""
    path = cube / "_evalcube" / "ledger.jsonl"
    first, *rest = path.read_text().splitlines(keepends=True)
    text = written(change(json.loads(first)["receipt"])).replace(": ", ":").replace(", ", ",")
    check = hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
    path.write_text("".join([f'{{"check":"{check}","receipt":{text}}}\n', *rest]))


def assert_told(sweep: Path, names: Any = READING) -> dict[str, int]:
    """Each command ends well or with one message; their exit codes."""
    codes = {}
    for name in names:
        codes[name], output, errors = evalcube(*READING[name], cwd=sweep)
        assert codes[name] in (0, 1, 2), (name, errors)
        assert "Traceback" not in errors
        assert codes[name] == 0 or output or errors
        lines = errors.strip().splitlines()
        # A verification also says that lines of the ledger are damaged.
        most = 2 if name == "verify" and "lines of the ledger" in errors else 1
        assert codes[name] < 2 or 1 <= len(lines) <= most, (name, errors)
    return codes


def put(*path: Any, value: Any) -> Change:
    def change(document: Any) -> Any:
        at = document
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value
        return document

    return change


TAMPERED: dict[str, Callable[[Path], None]] = {
    "labels of tasks are gone": lambda cube: change_array(cube, "task", lambda _: None),
    "labels of models are gone": lambda cube: change_array(cube, "model", lambda _: None),
    "ids of cells are gone": lambda cube: change_array(cube, "cell_id", lambda _: None),
    "a price is gone": lambda cube: change_array(cube, "price_prompt", lambda _: None),
    "labels are numbers": lambda cube: change_array(cube, "eval_id", put("data_type", value="int32")),
    "chunks of 0 cells": lambda cube: change_array(
        cube, "status", put("chunk_grid", "configuration", "chunk_shape", value=[0] * 5)
    ),
    "counters in chunks of 0 cells": lambda cube: change_array(
        cube, "counters", put("chunk_grid", "configuration", "chunk_shape", value=[0] * 4)
    ),
    "regions of other lengths": lambda cube: change_array(
        cube, "tokens", put("chunk_grid", "configuration", "chunk_shape", value=[1, 2, 4, 1, 1])
    ),
    "a lease without end": lambda cube: change_record(cube, "_evalcube/lease.json", lambda _: _DEEP),
    "a lease of a list": lambda cube: change_record(cube, "_evalcube/lease.json", lambda _: [1]),
    "a lease of a process beyond all": lambda cube: change_record(
        cube, "_evalcube/lease.json", put("process", "pid", value=10**30)
    ),
    "a receipt without end": lambda cube: change_receipt(cube, put("causes", value=_DEEP)),
    "a receipt of a far region": lambda cube: change_receipt(cube, put("region", "model", value=10**6)),
    "a description without end": lambda cube: change_record(
        cube, "zarr.json", put("attributes", "spec", value=_DEEP)
    ),
    "a param that nests deep": lambda cube: change_record(
        cube, "zarr.json", put("attributes", "spec", "tasks", 0, "points", 0, "params", "x", value=_NESTED)
    ),
}


ONE_OF_EACH = ("status", "leaderboard", "trials", "diff", "merge", "verify")
"""Readers of counters, of trials, of two cubes, and of every byte. A publication and a report begin as these do."""


@pytest.mark.parametrize("how", TAMPERED)
def test_reading__what_was_tampered_with_is_told_in_one_line(sweep: Path, how: str) -> None:
    TAMPERED[how](sweep / "CUBE")

    assert_told(sweep, ONE_OF_EACH)


RECORDS = ("zarr.json", "spec", "array", "receipt", "lease.json", "sweep.json", "live.json", "spent.json")


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to all that a document has, but of long lists the first few."""
    yield at
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value[:6]) if isinstance(value, list) else ()
    )
    for key, one in entries:
        yield from places(one, (*at, key))


def tampered(document: Any, draw: random.Random) -> Any:
    """A document with one value of it gone, or another one."""
    found = list(places(document))[1:]
    depth = draw.choice(sorted({len(place) for place in found}))
    *path, last = draw.choice([place for place in found if len(place) == depth])
    parent = document
    for key in path:
        parent = parent[key]
    old = parent[last]
    values: list[Any] = [
        None,
        True,
        0,
        -1,
        10**30,
        1e308,
        "",
        "\ud800",
        [],
        {},
        [[1]],
        "9" * 5_000,
        _DEEP,
        [old],
    ]
    values += [old + 1, -old, str(old)] if type(old) is int else []
    values += [old[:-1], old + old] if isinstance(old, (str, list)) else []
    value = draw.choice([..., *values])
    if value is ...:
        del parent[last]
    else:
        parent[last] = value
    return document


def tamper(cube: Path, record: str, draw: random.Random) -> None:
    def change(document: Any) -> Any:
        return tampered(document, draw)

    if record == "receipt":
        change_receipt(cube, change)
    elif record == "array":
        change_array(
            cube, draw.choice(sorted(path.parent.name for path in cube.glob("[!_]*/zarr.json"))), change
        )
    elif record == "spec":
        change_record(
            cube,
            "zarr.json",
            lambda document: put("attributes", "spec", value=change(document["attributes"]["spec"]))(
                document
            ),
        )
    else:
        change_record(cube, record if record == "zarr.json" else f"_evalcube/{record}", change)


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize("seed", range(2))
def test_reading__any_other_value_in_a_record_is_told_in_one_line(
    sweep: Path, record: str, seed: int
) -> None:
    draw = random.Random(f"{record} {seed}")

    tamper(sweep / "CUBE", record, draw)

    assert_told(sweep, draw.sample(sorted(READING), 3))


def test_verify_and_merge__refuse_a_description_that_was_changed(sweep: Path) -> None:
    for path in (
        ("evaluations", 0, "eval_id"),
        ("tasks", 0, "points", 0, "base"),
        ("tasks", 0, "points", 0, "cell_id"),
    ):
        value = 7 if path[-1] == "base" else "0" * 32
        whole = (sweep / "CUBE" / "zarr.json").read_bytes()
        change_record(sweep / "CUBE", "zarr.json", put("attributes", "spec", *path, value=value))

        codes = assert_told(sweep, ["verify", "merge"])

        assert codes == {"verify": 2, "merge": 2}, path
        (sweep / "CUBE" / "zarr.json").write_bytes(whole)


def test_verify_and_merge__refuse_a_plan_that_lacks_what_was_measured(sweep: Path) -> None:
    cube = Cube.open(str(sweep / "CUBE"), writable=True)
    planned = cube.read_planned("trial")
    planned[0, 0, 0] = 1
    cube.group.write_chunks((slice(None),), {"planned_trials": planned})

    assert assert_told(sweep, ["verify", "merge"]) == {"verify": 2, "merge": 2}


def test_status__says_that_a_line_of_the_ledger_is_damaged(sweep: Path) -> None:
    path = sweep / "CUBE" / "_evalcube" / "ledger.jsonl"
    path.write_bytes(b"{}\n" + path.read_bytes())

    code, output, _ = evalcube("status", "CUBE", cwd=sweep)

    assert code == 0
    assert "1 lines" in " ".join(output.split())


def test_status__without_a_ledger_is_no_sweep_without_a_trial(sweep: Path) -> None:
    (sweep / "CUBE" / "_evalcube" / "ledger.jsonl").unlink()

    code, _, errors = evalcube("status", "CUBE", cwd=sweep)

    assert code == 2
    assert "ledger has no receipt" in errors


def test_status__without_a_ledger_takes_endless_counters_for_none(sweep: Path) -> None:
    (sweep / "CUBE" / "_evalcube" / "ledger.jsonl").unlink()
    zarr.open_group(sweep / "CUBE", mode="r+")["counters"][...] = -np.inf

    assert set(assert_told(sweep, ["status"])) == {"status"}
