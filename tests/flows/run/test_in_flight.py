"""How many blocks are under way: more of them where a few late answers hold most blocks back."""

import itertools
import time
from types import SimpleNamespace

import numpy as np
import pytest

from evalcube.deploy.clusters import ClusterError, Connection
from evalcube.deploy.clusters.registrar import ClusterView
from evalcube.flows.events import Noted, Traffic, as_message, from_message, process_at
from evalcube.flows.plan.targets import NOTHING_KEPT, RegionWork, Window, cut_blocks
from evalcube.flows.run import workers as workers_module
from evalcube.flows.run.endpoint_use import share_limits
from evalcube.flows.run.follow.progress import Tracker
from evalcube.flows.run.in_flight import (
    AddressLoad,
    BlockQueue,
    InFlightLimit,
    RegionProgress,
    blocks_to_submit,
    make_limits,
)
from evalcube.flows.run.workers import Workers
from evalcube.stages.infer.endpoint import Endpoint
from evalcube.stages.infer.engine import Engine
from evalcube.stages.infer.jobs import Job, Slowdown
from evalcube.storage.cube.ledger import Receipt
from evalcube.storage.cube.regions import Region
from tests.flows.run.parts import run_parts
from tests.waiting import PATIENCE


class Forgetful:
    def put_all(self, records):  # the interface of stores
        pass

    def commit(self):
        pass


def full_limit(**settings):
    (limit,) = make_limits(["m"], {"m": Endpoint("m", "http://h/v1", **settings)}, [10**6], 2)
    limit.workers = 2
    limit.address.in_flight = limit.depth
    return limit


def test_grow__allows_half_as_many_blocks_again_within_bounds():
    limit = full_limit(connections=256)
    before = limit.depth

    limit.grow()

    assert limit.depth == before + before // 2
    assert limit.has_room
    for _ in range(50):
        limit.address.in_flight = limit.depth
        limit.grow()
    assert limit.depth == before + 64 * 256 // 1024  # rounds of requests on all connections, in blocks


@pytest.mark.parametrize(
    "change", [{"address": AddressLoad(1)}, {"stopped": True}, {"connections": 1}], ids=str
)
def test_grow__changes_nothing_where_more_blocks_would_not_help(change):
    limit = full_limit(connections=8)
    for name, value in change.items():
        setattr(limit, name, value)
    before = limit.depth

    limit.grow()

    assert limit.depth == before


def test_workers__give_more_blocks_to_the_models_that_are_starved():
    parts = run_parts(Connection(None))
    starved, sated = (
        InFlightLimit(8, 16, model="starved", address=AddressLoad(6)),
        InFlightLimit(8, 16, model="sated", address=AddressLoad(6)),
    )
    workers = Workers(parts, (starved, sated))
    parts.reports.put(from_message(as_message(Traffic(starved=("starved",), worker="a"))))
    parts.reports.put(Slowdown("sated", 1.0, overload=True, worker="a"))  # with nobody else to tell

    workers._adapt()

    assert starved.address.spare > 0
    assert sated.address.spare == 0


@pytest.mark.long
def test_engine__is_starved_when_connections_wait_for_requests():
    # Nobody listens there: requests wait for their next attempt, and keep their connections.
    endpoint = Endpoint("m", "http://127.0.0.1:9/v1", connections=2, retries=9, backoff_base=30.0)
    engine = Engine({"m": endpoint}, Forgetful())
    try:
        assert engine.starved_models() == []

        for number, expected in ((1, ["m"]), (2, [])):
            engine._loop.call_soon_threadsafe(engine._submit, "m", [Job(f"{number:064x}", b"{}")], Waiting())
            assert until(lambda: engine.stats.sent == number)  # noqa: B023 - called at once
            assert until(lambda: engine.starved_models() == expected)  # noqa: B023
    finally:
        engine.close()


class Waiting:
    """A block that somebody waits for."""

    waiting = True

    def settle(self, index, result):
        """Take a result."""


def until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def test_took__blocks_grow_where_they_are_over_in_a_moment_and_shrink_where_they_take_long():
    (limit,) = make_limits(["m"], {"m": Endpoint("m", "http://h/v1", connections=64)}, [20_000], 2)
    first = limit.block_size

    limit.block_took(first, 0.5)
    limit.block_took(first, 0.5)  # cut before the change
    assert limit.block_size == 2 * first

    for _ in range(9):
        limit.block_took(limit.block_size, 0.5)
    assert first < limit.block_size <= 1024

    for _ in range(9):
        limit.block_took(limit.block_size, 5.0)
    assert first < limit.block_size
    for _ in range(9):
        limit.block_took(limit.block_size, 60.0)
    assert limit.block_size == first


def test_took__a_thousand_trials_come_to_each_task_of_a_large_sweep_that_is_fast():
    (limit,) = make_limits(["m"], {"m": Endpoint("m", "http://h/v1", connections=64)}, [10**6], 2)
    window = Window(Region(0, 0, 0), (2, 5, 512, 1), 0, 0)
    work = RegionWork(window, np.arange(5120), 0, NOTHING_KEPT, 0)

    for _ in range(9):
        limit.block_took(limit.block_size, 6.0)

    blocks = list(cut_blocks(work, limit.block_size))
    assert sum(block.size for block in blocks) == 5120
    # Three of each block; one writes the region, and one counts it.
    assert 5120 / (3 * len(blocks) + 2) >= 1000


def test_took__a_small_sweep_stays_shared_out():
    (limit,) = make_limits(["m"], {"m": Endpoint("m", "http://h/v1", connections=64)}, [800], 4)

    for _ in range(9):
        limit.block_took(limit.block_size, 0.1)

    assert 800 / limit.block_size >= 16


def test_workers__that_crash_again_and_again_are_told_of_once(monkeypatch):
    events = []
    workers = Workers(run_parts(Connection(None), events.append), ())
    monkeypatch.setattr(workers, "_share_out", lambda: None)

    counts = []
    for number in range(7):
        # Others that go were told to, and are no news.
        workers._see(ClusterView({f"{number}": "", f"{number + 9}": ""}, {}, crashes=2 * number))
        notes = [event for event in events if isinstance(event, Noted)]
        counts.append(len(notes))

    assert counts == [0, 0, 0, 1, 1, 1, 1]
    assert "6 worker processes" in notes[0].message
    assert "memory limit" in notes[0].message


def test_workers__of_one_that_is_gone_nothing_is_in_flight(monkeypatch):
    tracker = Tracker()
    workers = Workers(run_parts(Connection(None), tracker), ())
    monkeypatch.setattr(workers, "_share_out", lambda: None)
    for address in ("a:1", "b:1"):
        tracker(Traffic(sent=9, in_flight=4, worker=process_at(address, 7)))

    in_flight = []
    for there in (["a:1", "b:1"], ["a:1"], ["a:1"]):
        workers._see(ClusterView(dict.fromkeys(there, ""), {}))
        in_flight.append(tracker.traffic().in_flight)

    assert in_flight == [8, 8, 4]
    assert tracker.traffic().sent == 18


@pytest.mark.parametrize("worked", [False, True])
def test_workers__that_all_end_before_any_has_done_a_task_end_the_run(monkeypatch, worked):
    addresses = itertools.count()
    workers = Workers(run_parts(Connection(None)), ())
    monkeypatch.setattr(workers, "_share_out", lambda: None)
    if worked:
        workers.note_work()

    def poll_often():
        for _ in range(30):
            crashes = next(addresses)
            workers._see(ClusterView({f"{crashes}": ""}, {}, crashes=crashes))

    if worked:
        poll_often()
    else:
        with pytest.raises(ClusterError, match="24 worker processes"):
            poll_often()


def test_limit__is_divided_among_the_runs_that_share_an_endpoint():
    limits = [InFlightLimit(9, 4, workers=2, runs=(2, place)) for place in (0, 1)]

    assert [limit.own for limit in limits] == [5, 4]
    waits = InFlightLimit(1, 4, workers=2, runs=(3, 2))
    assert (waits.own, waits.has_room) == (0, False)


def test_workers__tell_their_shares_and_say_when_other_runs_ask_the_same_endpoint(monkeypatch):
    notes, limit = [], InFlightLimit(8, 16, model="m")
    sharing = share_limits({"m": Endpoint("m", "http://h/v1", connections=8)})
    workers = Workers(run_parts(Connection(None), notes.append, sharing=sharing, m="digest"), (limit,))
    monkeypatch.setattr(workers_module, "ask_each", lambda *_, workers: workers)
    monkeypatch.setattr(workers_module, "PendingAnswer", lambda _, asked: asked)

    workers._see(ClusterView({"a": "", "b": ""}, {"digest": (2, 1)}))
    workers._see(ClusterView({"a": "", "b": ""}, {"digest": (1, 0)}))

    assert workers._telling[0] == dict.fromkeys("ab", (2, {"m": (2, 1)}))
    setting = sharing.settings["m"]
    assert {name: loan.connections for name, loan in setting.loans.items()} == {"a": 4, "b": 4}
    assert [note.message.partition(" the endpoint of m")[0].split()[:2] for note in notes] == [
        ["2", "runs"],
        ["no", "other"],
    ]


def queue_of(place, limit, trials=1000):
    window = Window(Region(place, 0, 0), (1, 1, trials, 1), 0, 0)
    return BlockQueue(iter([RegionWork(window, np.arange(trials), 0, NOTHING_KEPT, 0)]), limit)


@pytest.mark.parametrize("workers", [2, 64, 1000])
def test_blocks_to_submit__of_many_models_at_one_address_are_no_more_than_its_connections_need(workers):
    endpoints = {f"m{i}": Endpoint(f"m{i}", "http://h/v1", connections=64) for i in range(200)}
    limits = make_limits(list(endpoints), endpoints, [1000] * 200, workers)
    for limit in limits:
        limit.workers = workers
    queues = [queue_of(place, limit) for place, limit in enumerate(limits)]
    asked, most, under_way = [], 0, []

    while not under_way or not all(one.over for one in queues):
        for limit, _, block in blocks_to_submit(queues):
            limit.begin()
            under_way.append((limit, block))
        most = max(most, len(under_way))
        limit, block = under_way.pop(0)
        limit.end()
        asked.append(block.window.region.model)

    # Two for each worker and for the connections, or one for each connection; models times workers would be 12 800.
    assert most <= (2 * workers + 2 if workers <= 64 else 64)
    assert len(set(asked[: most // 2])) == most // 2  # and all models have their turn
    assert set(asked) | {block.window.region.model for _, block in under_way} == set(range(200))


def test_blocks_to_submit__waits_for_a_judge_and_ends():
    (limit,) = make_limits(["m"], {"m": Endpoint("m", "http://h/v1", connections=64)}, [1000], 1)
    judge = InFlightLimit(1, 1, workers=2)
    blocks = queue_of(0, limit)

    judge.begin()
    assert list(blocks_to_submit([blocks], [judge])) == []
    judge.end()
    assert sum(block.size for _, _, block in blocks_to_submit([blocks], [judge])) == 1000
    assert blocks.over


def receipt(generation, **fields):
    return Receipt(Region(0, 0, 0), generation, 8, 1, 8, False, 0, 0, digest="ab", **fields)


def test_region_progress__its_receipts_say_what_all_writings_of_the_run_have_met():
    work = SimpleNamespace(grader_of=lambda version: f"11+{version}")
    region = RegionProgress(work, 1, NOTHING_KEPT, graded=["a", "b"])
    causes = {f"http {500 + number}": number for number in range(1, 11)}

    assert (region.begin_write(), region.graded, region.generation) == (["a", "b"], [], 2)
    region.writing = "a task"
    region.end_write(receipt(2, causes={"timeout": 20}, unrated=3, fingerprints={"a": 1}))
    last = region.end_write(receipt(3, causes=causes, grader="12", unrated=1, fingerprints={"a": 1, "b": 3}))

    assert (region.writing, region.unrated) == (None, 1)
    assert list(last.causes.items())[:2] == [("timeout", 20), ("http 510", 10)]
    assert len(last.causes) == 8
    assert (last.grader, last.fingerprints, last.generation) == ("11+12", {"b": 3, "a": 2}, 3)


def test_region_progress__takes_in_what_became_of_a_block_and_raises_what_a_task_raised():
    region = RegionProgress(None, 1, NOTHING_KEPT, open_blocks=2, all_submitted=True)
    done = SimpleNamespace(status="finished")

    region.settle([("block", done)])

    assert (region.open_blocks, region.graded, region.is_finished) == (1, [("block", done)], False)
    with pytest.raises(ClusterError, match="gave up a task"):
        region.settle([("block", SimpleNamespace(status="cancelled"))])
    assert (region.open_blocks, region.graded) == (0, [("block", done)])
