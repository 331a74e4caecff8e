"""A sweep's records in a space that is no directory: planned, written, read, and gone on with."""

import numpy as np
import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.events import Finished, Started, Traffic
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.targets import SampleTargets
from evalcube.flows.read.status import cube_status
from evalcube.flows.run.follow.progress import Tracker
from evalcube.flows.run.follow.records import LiveFile
from evalcube.flows.run.spending import Spending
from evalcube.flows.run.summary import requests_in_batches
from evalcube.flows.run.worker.poison import PoisonIsolation, WorkerDiedError, run_marked
from evalcube.flows.state.open_trials import left_of, open_trials
from evalcube.flows.state.store import SweepStore, existing_store, open_store
from evalcube.stages.reply.status import COUNTERS
from evalcube.storage.cube import cube as cube_module
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.lease import Lease
from evalcube.storage.cube.ledger import Receipt
from evalcube.storage.cube.schema import VARIABLES
from tests.flows.support import sweep_config
from tests.storage.support.memory_space import MemorySpace

URL = "the cube in memory"


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """A plan of 8 trials a cell whose cube is in memory; nothing may be written into the current directory."""
    monkeypatch.setattr(cube_module, "space_of", {URL: MemorySpace(URL)}.__getitem__)
    monkeypatch.chdir(tmp_path)
    yield build_plan(from_mapping(sweep_config(tmp_path, "http://127.0.0.1:1/v1", trials=8)))
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def store(plan):
    """The store of a sweep that is to be done."""
    targets = SampleTargets.uniform(plan, plan.trials, plan.repeats)
    store = SweepStore(open_store(plan, URL).cube, plan, targets)
    store.grow()
    return store


def record_all(store):
    """Write and record every region that is left, every trial correct."""
    for work in store.unfinished(0):
        shape = store.cube.region_shape(work.window.region)
        arrays = {name: np.zeros(shape, variable.dtype) for name, variable in VARIABLES.items()}
        digest = store.cube.write_region(work.window.region, arrays)
        trials = len(work.positions)
        store.ledger.append(
            Receipt(work.window.region, work.generation + 1, *shape[2:], trials, True, 0, 0, {}, digest)
        )


def test_store__is_resumed_where_it_was(plan, store):
    assert existing_store(plan, URL) is not None
    left = sum(len(work.positions) for work in store.unfinished(0))
    assert left == cube_status(URL)["trials"]

    record_all(store)
    store.note({"name": "a sweep"})

    again = existing_store(plan, URL)
    assert list(again.unfinished(0)) == []
    status = cube_status(URL)
    assert (status["done"], status["complete"], status["running"]) == (left, True, None)
    assert status["notes"] == {"name": "a sweep"}


def test_left_of__counts_what_nobody_has_begun_without_listing_it(plan, monkeypatch):
    targets = SampleTargets.uniform(plan, 5000, 9)
    store = SweepStore(open_store(plan, URL).cube, plan, targets)
    store.grow()
    listed = sum(len(work.positions) for work in store.unfinished(0))
    monkeypatch.setattr(SampleTargets, "mask", lambda *_: pytest.fail("listed"))

    left, parts = left_of(store, 0), list(open_trials(store, 0))

    assert left == (listed, 0) == (sum(targets.counts), 0)
    assert len(parts) == 9 < len(list(store.regions(0)))  # one for each chunk of repeats


def test_left_of__a_recorded_region_is_what_it_lacks(store):
    record_all(store)
    more = SampleTargets(store.targets.trials * 600, store.targets.repeats)

    again = SweepStore(store.cube, store.plan, more)

    assert left_of(again, 0) == (sum(len(work.positions) for work in again.unfinished(0)), 0)
    assert sum(int(part.by_cell().sum()) for part in open_trials(again, 0)) == left_of(again, 0)[0]


def test_status__of_a_run_under_way(store):
    records, tracker = store.cube.records, Tracker()
    spending = Spending(records, np.zeros((1, 1, 1, len(COUNTERS))), {"alpha": (1.0, 1.0)}, None)
    live = LiveFile(records, tracker)
    with Lease.acquire(records):
        for event in (Started("r", "c", 20, 5, ("a",)), Traffic(sent=7, usage={"alpha": (3, 4)}, worker="w")):
            for subscriber in (tracker, spending, live):
                subscriber(event)
        live(Finished("stopped"))
        spending.save()

        status = cube_status(URL)

    assert "running as process" in status["running"]
    assert (status["live"]["sent"], status["live"]["reason"]) == (7, "stopped")
    assert status["spent"] == {"tokens": 7.0, "usd": pytest.approx(7e-6)}
    assert requests_in_batches(records, store.plan, [True]) == 0


@pytest.mark.usefixtures("store")
def test_marks__are_left_by_deaths_and_removed_by_the_driver():
    records = Cube.open(URL).records
    assert run_marked(records, "suspects/0", int, "7") == 7
    records.put("suspects/0", b"")
    with pytest.raises(WorkerDiedError):
        run_marked(records, "suspects/0", int, "7")

    PoisonIsolation(records, None, None, None, None).close()

    assert run_marked(records, "suspects/0", int, "7") == 7
