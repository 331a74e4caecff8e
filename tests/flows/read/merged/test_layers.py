"""Of several readings of a trial the preferred one is kept."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from evalcube.flows.share.merge import ConflictError, merge_cubes
from evalcube.stages.reply.status import Status
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger
from tests.flows.read.merged.generated import content, make_cube
from tests.flows.read.merged.two_teams import OURS, THEIRS

pytestmark = pytest.mark.long


def test_merge_cubes__prefer_decides(pair: tuple[str, str], tmp_path: Path) -> None:
    outcomes = {}
    for name, cubes, prefer in (
        ("first", pair, "first"),
        ("other", pair[::-1], "first"),
        ("newer", pair, "newer"),
        ("newer, back", pair[::-1], "newer"),
    ):
        output = str(tmp_path / f"{name}.zarr")
        done = merge_cubes(output, cubes, prefer=prefer)
        assert sum(conflict.trials for conflict in done.conflicts) == 12
        outcomes[name] = content(output)

    ours, theirs = content(pair[0]), content(pair[1])
    shared = [key for key in ours if key in theirs and key[1:] == ("trials",)]
    assert len(shared) == 3
    assert all(outcomes["first"][key] == ours[key] for key in shared)
    assert outcomes["other"] == outcomes["newer"] == outcomes["newer, back"]
    assert all(outcomes["newer"][key] == theirs[key] for key in shared)


def test_merge_cubes__what_no_time_decides_is_refused(pair: tuple[str, str], tmp_path: Path) -> None:
    shutil.rmtree(pair[1])
    make_cube(pair[1], replace(THEIRS, at=OURS.at))

    with pytest.raises(ConflictError, match="which is newer"):
        merge_cubes(str(tmp_path / "out.zarr"), pair, prefer="newer")


def test_merge_cubes__finished_trials_hide_transport_errors(ours: str, tmp_path: Path) -> None:
    urls = [str(tmp_path / "failed.zarr"), ours]
    make_cube(urls[0], replace(OURS, failed=0.5))

    done = merge_cubes(str(tmp_path / "out.zarr"), urls)

    assert done.conflicts == ()
    assert content(tmp_path / "out.zarr") == content(urls[1])
    with Ledger(Cube.open(str(tmp_path / "out.zarr")).records) as ledger:
        assert all(receipt.complete and not receipt.transport for receipt in ledger.receipts())


def test_status__the_codes_that_the_overlay_ranks() -> None:
    assert [int(code) for code in Status] == [0, 1, 2, 3, 4, 254, 255]
