"""Results are taken away: asked again or gone for good, whoever is killed, and with every byte of a secret."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.keep import forget as forget_module
from evalcube.flows.keep.choice import Choice
from evalcube.flows.keep.forget import forget
from evalcube.flows.run.sweep import run
from evalcube.stages.process.grading import GRADER
from evalcube.stages.reply.status import COUNTERS, Status
from evalcube.storage.cache.directory import DirectoryCache
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.lease import Lease
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.cube.shared_arrays import SharedArrays
from evalcube.storage.errors import LeaseHeldError
from tests.flows.keep.forgetting import (
    BETA,
    TRIALS,
    KilledError,
    assert_whole,
    killed_at,
    requests_sent,
    statuses,
)
from tests.flows.shared_cluster import SHARED
from tests.flows.support import assert_same_cube


def test_forget__a_model_is_pending_again_and_comes_back_from_the_cache(sweep, swept, served):
    before = statuses(sweep)
    done = forget(sweep["cube"], BETA)

    after = statuses(sweep)
    assert (done.done, done.trials, done.replies) == (True, TRIALS, 0)
    assert (after[1] == Status.MISSING).all()
    np.testing.assert_array_equal(after[0], before[0])
    counters = Cube.open(sweep["cube"]).read_counters()[1].sum(axis=(0, 1))
    assert (counters[COUNTERS.index("trials")], counters[COUNTERS.index("missing")]) == (0, TRIALS)
    assert_whole(sweep)

    run(sweep, cluster=SHARED)
    assert requests_sent(served) == 0
    assert_same_cube(sweep["cube"], swept / "cube.zarr")


def test_forget__with_the_cache_it_is_asked_again(sweep, swept, served):
    done = forget(sweep["cube"], BETA, cache=sweep["cache"])

    assert (done.replies, done.kept_replies) == (TRIALS, 0)
    run(sweep, cluster=SHARED)
    assert requests_sent(served) == TRIALS
    assert_same_cube(sweep["cube"], swept / "cube.zarr")
    assert_whole(sweep)


def test_forget__receipts_name_the_grader_and_the_time_of_what_stays(sweep):
    with Ledger(Cube.open(sweep["cube"]).records) as ledger:
        before = ledger.newest()
        for receipt in before.values():
            ledger.append(replace(receipt, generation=receipt.generation + 1, grader="1", at=1000))

    forget(sweep["cube"], Choice(("model=alpha", "trial=0..1")))
    forget(sweep["cube"], BETA)

    with Ledger(Cube.open(sweep["cube"]).records) as ledger:
        after = ledger.newest()
    for region, receipt in after.items():
        assert receipt.generation == before[region].generation + 2
        assert receipt.grader == ("1" if region.model == 0 else GRADER)
        assert receipt.at == 1000
        assert (receipt.complete, receipt.missing > 0) == (False, True)


STEPS = [
    (DirectoryCache, "remove", 1),
    (Cube, "write_region", 2),
    (Ledger, "append", 2),
    (SharedArrays, "write_counters", 1),
]
"""The second region: the one before is done, and this one not begun, or half done."""


@pytest.mark.parametrize(("target", "name", "number"), STEPS)
def test_forget__killed_at_any_step_a_second_call_ends_it(sweep, swept, served, target, name, number):
    with killed_at(target, name, number), pytest.raises(KilledError):
        forget(sweep["cube"], BETA, cache=sweep["cache"])

    forget(sweep["cube"], BETA, cache=sweep["cache"])

    assert (statuses(sweep)[1] == Status.MISSING).all()
    assert_whole(sweep)
    run(sweep, cluster=SHARED)
    assert requests_sent(served) == TRIALS
    assert_same_cube(sweep["cube"], swept / "cube.zarr")
    assert_whole(sweep)


@pytest.mark.parametrize(("target", "name", "number"), STEPS)
def test_forget__killed_at_any_step_the_next_run_leaves_a_whole_cube(sweep, swept, target, name, number):
    with killed_at(target, name, number), pytest.raises(KilledError):
        forget(sweep["cube"], BETA, cache=sweep["cache"])

    run(sweep, cluster=SHARED)

    assert_same_cube(sweep["cube"], swept / "cube.zarr")
    assert_whole(sweep)


def test_forget__a_damaged_region_goes_whole_and_the_rest_comes_from_the_cache(sweep, swept, served):
    min(Path(sweep["cube"], "tokens").glob("c.1.*")).write_bytes(b"no chunk")

    forget(sweep["cube"], Choice(("model=beta", "trial=0")), cache=sweep["cache"])
    assert_whole(sweep)
    run(sweep, cluster=SHARED)

    assert requests_sent(served) == 3 * 2
    assert_same_cube(sweep["cube"], swept / "cube.zarr")


def test_forget__deletes_from_no_cache_of_a_like_sweep(sweep, tmp_path, monkeypatch):
    monkeypatch.setattr(forget_module, "default_cache_address", lambda *_: str(tmp_path / "like" / "cache"))
    with pytest.raises(SweepError, match="not certain"):
        forget(sweep["cube"], BETA, cache=True)
    monkeypatch.setattr(forget_module, "default_cache_address", lambda *_: str(tmp_path / "cache"))
    assert forget(sweep["cube"], BETA, cache=True, confirmed=lambda _: False).cache == str(tmp_path / "cache")


def test_forget__is_refused_while_another_works_on_the_cube(sweep):
    before = statuses(sweep)
    with Lease.acquire(Cube.open(sweep["cube"]).records), pytest.raises(LeaseHeldError):
        forget(sweep["cube"], BETA)
    np.testing.assert_array_equal(statuses(sweep), before)
