"""What a merged cube says of its sources."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalcube.flows.read.merged.provenance import sources_of
from evalcube.flows.share.merge import merge_cubes
from evalcube.flows.state.records import MERGED
from evalcube.storage.cube.cube import Cube

pytestmark = pytest.mark.long


def test_merge_cubes__provenance_names_each_source_once(pair: tuple[str, str], tmp_path: Path) -> None:
    first, second = str(tmp_path / "first.zarr"), str(tmp_path / "second.zarr")
    merge_cubes(first, pair, prefer="first")

    merge_cubes(second, [first, pair[0]], prefer="first")

    sources, _ = sources_of(Cube.open(second))
    assert [source.name for source in sources] == ["ours", "theirs"]
    assert [source.models for source in sources] == [
        ["alpha", "beta"],
        ["beta", "gamma"],
    ]
    assert [(source.first, source.last, source.trials) for source in sources] == [
        (1_000, 1_000, 24),
        (2_000, 2_000, 24),
    ]


def test_merge_cubes__what_a_hostile_cube_says_of_its_sources_is_bounded(
    pair: tuple[str, str], tmp_path: Path
) -> None:

    document = json.loads(Path(pair[0], "zarr.json").read_text())
    entry = {
        "name": "x",
        "ledger": "0" * 64,
        "spec": "0" * 64,
        "models": [],
        "tasks": [],
        "trials": 1,
        "graders": [],
    }
    document["attributes"][MERGED] = {
        "sources": [
            *({**entry, "ledger": f"{number:064x}"} for number in range(5_000)),
            {**entry, "name": "x" * 10**6},
            {**entry, "more": 1},
            "nothing",
        ],
        "more": {"deep": [[[[]]]]},
    }
    Path(pair[0], "zarr.json").write_text(json.dumps(document))

    merge_cubes(str(tmp_path / "out.zarr"), pair, prefer="first")

    assert len(json.dumps(Cube.open(str(tmp_path / "out.zarr")).attrs[MERGED])) < 100_000
