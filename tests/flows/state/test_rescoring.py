"""Recorded regions are graded again in place."""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evalcube.flows.events import Announcer, Noted
from evalcube.flows.read.reader import Reader
from evalcube.flows.state.rescoring import UNCOUNTED, Rescoring, regrade_older, regrade_recorded
from evalcube.stages.process.grading import IMPORTED
from evalcube.stages.reply.status import Status
from evalcube.storage.cache.cache import open_cache
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger


def test_regrade_recorded__writes_newer_receipts_of_the_same_trials(
    small_sweep: Path, tmp_path: Path
) -> None:
    shutil.copytree(small_sweep / "cube.zarr", tmp_path / "cube.zarr")
    cube = Cube.open(tmp_path / "cube.zarr", writable=True)
    before = Ledger(cube.records).newest()
    arrays = {region: cube.read_region(region)["status"] for region in before}
    cache = open_cache(small_sweep / "cache", writable=False)

    done = regrade_recorded(cube, Reader(cube.url).plan, cache, Announcer([]), older_only=False)

    after = Ledger(cube.records).newest()
    assert (done.regions, done.changed, done.lost) == (len(before), 0, 0)
    for region, receipt in before.items():
        assert after[region].generation == receipt.generation + 1
        assert after[region].fingerprints == receipt.fingerprints
        np.testing.assert_array_equal(cube.read_region(region)["status"], arrays[region])


@pytest.fixture
def sweep(small_sweep: Path, tmp_path: Path) -> Cube:
    """A copy of a sweep's cube, with its cache beside it."""
    shutil.copytree(small_sweep / "cube.zarr", tmp_path / "cube.zarr")
    shutil.copytree(small_sweep / "cache", tmp_path / "cache")
    return Cube.open(tmp_path / "cube.zarr", writable=True)


def regraded(cube: Cube, *, older_only: bool = False) -> Rescoring:
    with closing(open_cache(Path(cube.url).parent / "cache", writable=False)) as cache:
        return regrade_recorded(cube, Reader(cube.url).plan, cache, Announcer([]), older_only=older_only)


def misgraded(cube: Cube, grader: str) -> int:
    """Record all right answers of the first region as wrong ones, as some grader did; how many there are."""
    with Ledger(cube.records) as ledger:
        region, receipt = min(ledger.newest().items())
        arrays = cube.read_region(region)
        right = arrays["status"] == Status.CORRECT
        arrays["status"][right] = Status.INCORRECT
        digest = cube.write_region(region, arrays)
        ledger.append(replace(receipt, generation=receipt.generation + 1, digest=digest, grader=grader))
    return int(right.sum())


@pytest.mark.parametrize("older_only", [False, True])
def test_regrade_recorded__says_what_changed_and_counts_it(sweep: Cube, older_only: bool) -> None:
    counters = sweep.read_counters().copy()
    wrong = misgraded(sweep, "1")
    sweep.write_counters({0: np.zeros_like(counters[0])})

    done = regraded(sweep, older_only=older_only)

    assert wrong > 0
    assert (done.changed, done.lost, done.regions) == (
        wrong,
        0,
        1 if older_only else len(Ledger(sweep.records).newest()),
    )
    assert sum(row.new["correct"] - row.old["correct"] for row in done.rows) == wrong
    assert sum(row.old["incorrect"] - row.new["incorrect"] for row in done.rows) == wrong
    assert "1" in done.before
    assert done.to_dict()["changed"] == wrong
    np.testing.assert_array_equal(sweep.read_counters()[0], counters[0])
    assert sweep.records.get(UNCOUNTED) is None


def test_regrade_recorded__of_todays_grades_does_nothing_where_only_older_ones_are_meant(sweep: Cube) -> None:
    before = Ledger(sweep.records).newest()

    done = regraded(sweep, older_only=True)

    assert (done.regions, done.rows, done.imported) == (0, [], 0)
    assert Ledger(sweep.records).newest() == before


def test_regrade_recorded__leaves_alone_what_another_tool_graded(sweep: Cube) -> None:
    misgraded(sweep, IMPORTED)
    before = sweep.read_region(min(Ledger(sweep.records).newest()))["status"]

    done = regraded(sweep)

    assert done.imported == 1
    np.testing.assert_array_equal(sweep.read_region(min(Ledger(sweep.records).newest()))["status"], before)


def test_regrade_recorded__keeps_a_region_whose_replies_are_not_all_there(sweep: Cube) -> None:
    wrong = misgraded(sweep, "1")
    reader = Reader(sweep.url)
    digest = reader.view(0, 0, 0, 0).digest
    with closing(open_cache(Path(sweep.url).parent / "cache")) as cache:
        kept = {entry.key: cache.get(entry.key) for entry in cache.entries() if entry.key != digest}
    shutil.rmtree(Path(sweep.url).parent / "cache")
    with closing(open_cache(Path(sweep.url).parent / "cache")) as cache:
        cache.put_many(list(kept.items()))

    done = regraded(sweep, older_only=True)

    assert wrong > 0
    assert (done.regions, done.lost, done.changed) == (0, 1, 0)
    assert min(Ledger(sweep.records).newest().items())[1].grader == "1"


@pytest.mark.parametrize("record", [b"[0]", b"[0, 99, -1]", b"[]", b"{}", b'["a"]'])
def test_regrade_recorded__counts_the_models_that_somebody_was_killed_over(
    sweep: Cube, record: bytes
) -> None:
    counters = sweep.read_counters()[0].copy()
    sweep.write_counters({0: np.zeros_like(counters)})
    sweep.records.put(UNCOUNTED, record)

    regraded(sweep, older_only=True)

    assert (sweep.read_counters()[0] == counters).all() == (b"0" in record)
    assert sweep.records.get(UNCOUNTED) is None


def test_regrade_older__says_what_it_did(sweep: Cube) -> None:
    notes: list[str] = []
    announcer = Announcer([lambda event: notes.append(event.message) if isinstance(event, Noted) else None])
    plan, cache = Reader(sweep.url).plan, str(Path(sweep.url).parent / "cache")

    regrade_older(sweep, plan, cache, announcer)
    assert notes == []
    wrong = misgraded(sweep, "1")
    regrade_older(sweep, plan, cache + " that is not there", announcer)
    regrade_older(sweep, plan, cache, announcer)

    assert ["kept as they were" in note for note in notes] == [True, False]
    assert f"graded 1 regions again: {wrong} trials changed" in notes[1]
