"""Replies are graded again from the cache, and it is known which grader graded what."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.keep import rescore as rescore_module
from evalcube.flows.keep.cache import request_keys
from evalcube.flows.keep.rescore import rescore_cube
from evalcube.flows.plan.targets import RegionWork
from evalcube.flows.read.reader import Reader
from evalcube.flows.read.selection import open_part
from evalcube.flows.read.status import cube_status
from evalcube.flows.run.sweep import run
from evalcube.flows.state.verify import verify_cube
from evalcube.stages.process.grading import GRADER
from evalcube.stages.reply.status import Status
from evalcube.storage.cache.cache import open_cache
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import FIRST_GRADER, Ledger, from_line, graders_of, to_line
from evalcube.storage.cube.regions import Region
from tests.flows.shared_cluster import SHARED
from tests.flows.support import evalcube, reset, simulator_stats, sweep_config


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, _served: Any) -> Path:
    """A folder with a finished sweep of two models."""
    reset(_served)
    folder = tmp_path_factory.mktemp("made")
    run(sweep_config(folder, _served.base_url, models=("alpha", "beta")), cluster=SHARED)
    return folder


@pytest.fixture
def served(_served: Any) -> Any:
    """The simulator."""
    return _served


@pytest.fixture
def sweep(made: Path, tmp_path: Path, _served: Any) -> dict[str, Any]:
    """The config of a copy of it."""
    reset(_served)
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return sweep_config(tmp_path, _served.base_url, models=("alpha", "beta"))


def graded_by_an_older_one(url: str) -> int:
    """Make a cube look as if a first grader had refused every right answer; the number of these."""
    cube, spoiled = Cube.open(url, writable=True), 0
    with Ledger(cube.records) as ledger:
        for region, receipt in ledger.newest().items():
            arrays = dict(cube.read_region(region))
            status = arrays["status"].copy()
            spoiled += int((status == Status.CORRECT).sum())
            status[status == Status.CORRECT] = Status.INVALID
            digest = cube.write_region(region, {**arrays, "status": status})
            ledger.append(
                replace(receipt, generation=receipt.generation + 1, digest=digest, grader=FIRST_GRADER)
            )
    return spoiled


def content(url: str) -> tuple[bytes, bytes]:
    cube = Cube.open(url)
    with Ledger(cube.records) as ledger:
        regions = [cube.read_region(region)["status"].tobytes() for region in sorted(ledger.newest())]
    return b"".join(regions), cube.read_counters().tobytes()


def test_rescore_cube__gives_what_a_new_run_would_and_asks_nothing(
    sweep: dict[str, Any], served: Any
) -> None:
    before = content(sweep["cube"])
    spoiled = graded_by_an_older_one(sweep["cube"])
    assert spoiled > 0
    assert cube_status(sweep["cube"])["graders"] == [FIRST_GRADER]

    done = rescore_cube(sweep["cube"])

    assert (done.changed, done.lost, done.before, done.grader) == (spoiled, 0, (FIRST_GRADER,), GRADER)
    assert sum(row.old["invalid"] - row.new["invalid"] for row in done.rows) == spoiled
    assert {row.model for row in done.rows} == {"alpha", "beta"}
    assert content(sweep["cube"]) == before
    assert cube_status(sweep["cube"])["graders"] == [GRADER]
    assert verify_cube(sweep["cube"]).whole
    assert simulator_stats(served)["requests"] == 0
    assert rescore_cube(sweep["cube"]).changed == 0


@pytest.mark.parametrize(
    ("target", "name", "call"),
    [
        (Cube, "write_region", 2),
        (Ledger, "append", 2),
        (Cube, "write_counters", 1),
    ],
)
def test_run__goes_on_where_grading_again_was_killed(
    sweep: dict[str, Any], monkeypatch: pytest.MonkeyPatch, target: Any, name: str, call: int
) -> None:
    before = content(sweep["cube"])
    graded_by_an_older_one(sweep["cube"])
    assert verify_cube(
        sweep["cube"], heal=True, cache=sweep["cache"]
    ).whole  # counters as that grader left them
    real, calls = getattr(target, name), list[int]()

    def killed(*args: Any) -> Any:
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(target, name, killed)
    with pytest.raises(KeyboardInterrupt):
        rescore_cube(sweep["cube"])
    monkeypatch.setattr(target, name, real)

    run(sweep, cluster=SHARED)

    assert content(sweep["cube"]) == before
    assert verify_cube(sweep["cube"]).whole


def test_rescore_cube__a_new_cube_leaves_the_old_one(sweep: dict[str, Any], tmp_path: Path) -> None:
    before = content(sweep["cube"])
    graded_by_an_older_one(sweep["cube"])
    spoiled = content(sweep["cube"])
    new = str(tmp_path / "new.zarr")

    rescore_cube(sweep["cube"], output=new)

    assert content(new) == before
    assert content(sweep["cube"]) == spoiled
    with pytest.raises(SweepError, match="is there already"):
        rescore_cube(sweep["cube"], output=new)


def test_rescore_cube__keeps_regions_whose_replies_are_lost(
    sweep: dict[str, Any], tmp_path: Path, served: Any
) -> None:
    graded_by_an_older_one(sweep["cube"])
    spoiled = content(sweep["cube"])[0]
    shutil.rmtree(sweep["cache"])
    run(sweep_config(tmp_path / "other", served.base_url, trials=1, cells=1), cluster=SHARED)

    done = rescore_cube(sweep["cube"], cache=tmp_path / "other" / "cache")

    assert (done.regions, done.lost > 0) == (0, True)
    assert content(sweep["cube"])[0] == spoiled


def test_rescore_cube__a_reply_that_came_later_does_not_make_up_for_one_that_is_gone(
    sweep: dict[str, Any],
) -> None:
    graded_by_an_older_one(sweep["cube"])
    cube = Cube.open(sweep["cube"], writable=True)
    _, _, gone = islice(request_keys(Reader(sweep["cube"])), 3)  # after those of both models' first trial
    with Ledger(cube.records) as ledger:
        receipt = ledger.newest()[Region(0, 0, 0)]
        arrays = dict(cube.read_region(receipt.region))
        arrays["status"][0, 0, 0, 0] = Status.TRANSPORT  # though the cache has an answer by now
        digest = cube.write_region(receipt.region, arrays)
        generation = receipt.generation + 1
        ledger.append(replace(receipt, generation=generation, digest=digest, transport=1, complete=False))
    spoiled = cube.read_region(receipt.region)["status"].tobytes()
    with closing(open_cache(sweep["cache"])) as cache:
        assert cache.remove([gone]) == 0

    done = rescore_cube(sweep["cube"], cache=sweep["cache"])

    assert done.lost == 1
    assert cube.read_region(receipt.region)["status"].tobytes() == spoiled


@pytest.mark.parametrize("grader", ["current", "pinned"])
def test_run__grades_again_or_keeps(sweep: dict[str, Any], grader: Any) -> None:
    before = content(sweep["cube"])[0]
    graded_by_an_older_one(sweep["cube"])

    run(sweep, cluster=SHARED, grader=grader)

    assert (content(sweep["cube"])[0] == before) is (grader == "current")
    assert cube_status(sweep["cube"])["graders"] == [GRADER if grader == "current" else FIRST_GRADER]


@pytest.mark.parametrize("options", [(), ("--grader", "pinned")])
def test_upsample__grades_again_or_keeps_as_run_does(
    sweep: dict[str, Any], tmp_path: Path, options: tuple[str, ...]
) -> None:
    graded_by_an_older_one(sweep["cube"])
    (tmp_path / "sweep.yaml").write_text(json.dumps(sweep))

    arguments = (
        "--trials",
        9,
        "--where",
        "task=boolean",
        "--where",
        "model=alpha",
        "--workers",
        1,
        "--quiet",
    )
    code, _, errors = evalcube("upsample", "sweep.yaml", *arguments, *options, cwd=tmp_path)

    assert code == 0
    assert ("meet here" in errors) == bool(options)
    graders = {FIRST_GRADER, GRADER} if options else {GRADER}
    assert set(cube_status(sweep["cube"])["graders"]) == graders


def test_upsample__refuses_an_unknown_way_of_grading(sweep: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "sweep.yaml").write_text(json.dumps(sweep))
    for command in (("run",), ("upsample", "--trials", 9)):
        code, _, errors = evalcube(*command, "sweep.yaml", "--grader", "mine", cwd=tmp_path)
        assert code == 2
        assert "--grader" in errors


def test_open_part__warns_where_two_graders_meet_and_where_few_replies_have_an_answer(
    sweep: dict[str, Any],
) -> None:
    graded_by_an_older_one(sweep["cube"])
    (older,) = open_part(sweep["cube"]).warnings
    assert f"version {FIRST_GRADER} graded these replies" in older
    config = {**sweep, "trials": 12}

    run(config, cluster=SHARED, grader="pinned")

    graders, *others = open_part(sweep["cube"]).warnings
    assert f"graders {FIRST_GRADER} and {GRADER} meet" in graders
    assert all("have no answer in the asked form" in text for text in others)


def test_command__shows_old_and_new_counts(sweep: dict[str, Any], tmp_path: Path) -> None:
    spoiled = graded_by_an_older_one(sweep["cube"])

    document = json.loads(evalcube("rescore", sweep["cube"], "--json", cwd=tmp_path)[1])

    assert document["changed"] == spoiled
    assert {*document["rows"][0]} == {"model", "task", "old", "new"}
    assert "0 trials changed" in evalcube("rescore", sweep["cube"], cwd=tmp_path)[1]


@pytest.mark.parametrize("own", [True, False])
def test_rescore__a_strangers_description_that_does_not_fit_is_one_line_and_ones_own_a_defect(
    sweep: dict[str, Any], monkeypatch: pytest.MonkeyPatch, own: bool
) -> None:
    def regrade(*_: object, **__: object) -> None:
        raise IndexError("array index out of range")

    monkeypatch.setattr(rescore_module, "regrade_recorded", regrade)
    if not own:
        monkeypatch.setattr(rescore_module, "remembered_config", lambda _: None)

    with pytest.raises(IndexError if own else SweepError, match="index out of range"):
        rescore_cube(sweep["cube"])


def test_receipt__names_its_grader_and_old_lines_have_none(sweep: dict[str, Any]) -> None:
    with Ledger(Cube.open(sweep["cube"]).records) as ledger:
        receipt = next(iter(ledger.newest().values()))

    old = replace(receipt, grader=FIRST_GRADER)

    assert b"grader" not in to_line(old)
    assert from_line(to_line(old)) == old
    assert from_line(to_line(receipt)) == receipt
    assert set(graders_of([receipt, replace(old, grader="1+2")])) == {"1", "2", GRADER}


def test_region_work__names_both_graders_where_they_meet() -> None:
    work = RegionWork(None, None, 1, (4, 1, 0), 0, "1")  # type: ignore[arg-type]

    assert work.grader_of("2") == "1+2"
    assert replace(work, grader=None).grader_of("2") == "2"
    assert replace(work, grader="1+2").grader_of("2") == "1+2"
