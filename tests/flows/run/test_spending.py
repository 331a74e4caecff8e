"""Limits of endpoints over several workers and models, and sweeps that stop at what they may spend."""

import json
import threading
import time

import numpy as np
import pytest

from evalcube.flows.config.limits import Spend
from evalcube.flows.events import Traffic
from evalcube.flows.run.in_flight import make_limits
from evalcube.flows.run.spending import Spending
from evalcube.flows.run.sweep import run
from evalcube.flows.state.records import Spent
from evalcube.stages.infer.endpoint import Endpoint
from evalcube.stages.reply.status import COUNTERS
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.directory import Directory
from tests.flows.shared_cluster import PROCESSES
from tests.flows.support import evalcube, set_faults, simulator_stats, sweep_config, write_config


def limited(tmp_path, simulator, *, latency=0.05, limits=None, **changes):
    config = sweep_config(tmp_path, simulator.base_url, **changes)
    for model in config["models"]:
        model["simulate"]["latency"] = latency
        model["limits"] |= limits or {}
    return config


def test_run__rates_hold_over_workers_and_models_at_one_address(tmp_path, simulator):
    # A machine that is late sends fewer. Were they not shared, there would be twice or four times as many a second.
    per_second = 25
    config = limited(
        tmp_path,
        simulator,
        trials=16,
        models=("alpha", "beta"),
        limits={"requests_per_minute": 60 * per_second, "connections": 16},
    )
    start = time.monotonic()

    summary = run(config, cluster=PROCESSES)

    seconds = time.monotonic() - start
    assert (summary.reason, summary.retries) == ("complete", {})
    assert simulator_stats(simulator)["requests"] <= 1.1 * per_second * seconds


def test_run__models_at_one_address_share_one_connection_over_all_workers(tmp_path, simulator):
    config = limited(tmp_path, simulator, trials=4, models=("alpha", "beta"), limits={"connections": 1})

    summary = run(config, cluster=PROCESSES)

    assert summary.reason == "complete"
    assert simulator_stats(simulator)["most_in_flight"] == 1


def test_run__a_pause_that_one_worker_is_asked_for_holds_for_all(tmp_path, simulator):
    set_faults(simulator, [{"kind": "status", "status": 429, "retry_after": "3", "times": 1}])
    config = limited(tmp_path, simulator, trials=20, latency=0.2)  # a worker alone would go on for seconds
    seen, over = [], threading.Event()

    def watch():
        while not over.wait(0.1):
            seen.append((time.monotonic(), simulator_stats(simulator)["requests"]))

    watcher = threading.Thread(target=watch)
    watcher.start()
    summary = run(config, cluster=PROCESSES)
    over.set()
    watcher.join()

    # Some more come until all workers have heard of it.
    stretches = [
        [at for at, count in seen if count == some] for some in {count for _, count in seen} - {0, 100}
    ]
    assert max(stretch[-1] - stretch[0] for stretch in stretches) > 2.0
    assert (summary.reason, summary.retries) == ("complete", {"http 429": 1})


def test_run__stops_at_what_it_may_spend_and_goes_on_with_more(tmp_path, simulator):
    config = limited(tmp_path, simulator, trials=100, latency=0.1)
    path = write_config(tmp_path, {**config, "spend": {"tokens": 8000}})
    arguments = ("run", path, "--workers", 2, "--quiet")

    code, _, errors = evalcube(*arguments, cwd=tmp_path)

    stopped = simulator_stats(simulator)
    assert code == 130
    assert "of 8,000 tokens" in errors
    assert 0 < stopped["finished"] < 500
    assert stopped["abandoned"] == 0

    code, _, errors = evalcube(*arguments, cwd=tmp_path)
    assert (code, "tokens are spent" in errors) == (130, True)
    assert simulator_stats(simulator)["requests"] == stopped["requests"]

    write_config(tmp_path, {**config, "spend": {"tokens": 10**9}})
    code, output, errors = evalcube(*arguments, "--json", cwd=tmp_path)
    document = json.loads(output)
    assert (code, document["done"]) == (0, 500), errors
    assert simulator_stats(simulator)["requests"] == 500
    counted = counted_tokens(config["cube"])
    assert document["spent"]["tokens"] == counted > 8000


def counted_tokens(cube):
    counters = Cube.open(cube).read_counters()
    return sum(counters[..., COUNTERS.index(name)].sum() for name in ("prompt_tokens_sum", "tokens_sum"))


@pytest.fixture
def counters():
    values = np.zeros((1, 1, 1, len(COUNTERS)))
    values[..., COUNTERS.index("prompt_tokens_sum")] = 100.0
    values[..., COUNTERS.index("tokens_sum")] = 50.0
    values[..., COUNTERS.index("cost_sum")] = 0.25
    return values


def test_spending__begins_with_what_the_cube_cost_and_adds_every_workers_last_word(tmp_path, counters):
    spending = Spending(Directory(tmp_path), counters, {"m": (1.0, 10.0)}, None)

    for worker, prompts, completions in (("a", 10, 20), ("a", 30, 40), ("b", 5, 6)):
        spending(Traffic(usage={"m": (prompts, completions)}, worker=worker))

    assert spending.spent.tokens == 150 + 70 + 11
    assert spending.spent.usd == pytest.approx(0.25 + (35 * 1.0 + 46 * 10.0) / 1e6)


def test_spending__counts_what_a_worker_had_in_flight_when_it_died(tmp_path, counters):
    spending = Spending(Directory(tmp_path), counters, {"m": (1.0, 10.0)}, None)

    for worker in ("tcp://h:1/one", "tcp://h:2/one", "tcp://h:1/two"):
        spending(Traffic(usage={"m": (30, 50)}, answered={"m": 4}, in_flight=2, worker=worker))

    assert spending.of_run.tokens == 80 * 1.5 + 80 + 80


def test_spending__goes_on_from_what_was_kept(tmp_path, counters):
    records = Directory(tmp_path)
    first = Spending(records, counters, {}, None)
    first(Traffic(usage={"m": (10, 20)}, worker="a"))
    first.save()

    assert Spending(records, counters, {}, None).spent == Spent(180.0, 0.25)
    records.put("spent.json", b"damaged")
    assert Spending(records, counters, {}, None).spent == Spent(150.0, 0.25)


@pytest.mark.parametrize(
    ("bound", "reached"),
    [
        (None, ""),
        (Spend(tokens=181), ""),
        (
            Spend(tokens=180),
            "spend.tokens: 180 of 180 tokens are spent (what was in flight then is paid for, too)",
        ),
        (Spend(usd=0.26, tokens=1000), ""),
        (Spend(usd=0.25), "spend.usd: 0.25 of 0.25 USD are spent (what was in flight then is paid for, too)"),
    ],
)
def test_spending__stops_at_its_bound(tmp_path, counters, bound, reached):
    spending, stops = Spending(Directory(tmp_path), counters, {}, bound), []
    spending.stop = lambda: stops.append(True)

    spending(Traffic(usage={"m": (10, 20)}, worker="a"))

    assert spending.reached == reached
    assert bool(stops) == bool(reached)


def endpoint(name, connections, url="http://h/v1"):
    return Endpoint(name, url, connections=connections)


def test_make_limits__models_at_one_address_have_the_connections_of_the_strictest():
    endpoints = {
        "a": endpoint("a", 3),
        "b": endpoint("b", 2, "http://h/v1/"),
        "c": endpoint("c", 9, "http://i/v1"),
    }
    first, second, third = make_limits(["a", "b", "c"], endpoints, [100, 100, 100], 4)
    for limit in (first, second, third):
        limit.workers = 4

    assert (first.connections, second.connections, third.connections) == (2, 2, 9)
    first.begin()
    second.begin()
    assert [limit.has_room for limit in (first, second, third)] == [False, False, True]
    second.end()
    assert first.has_room
    second.begin()
    first.workers = second.workers = 2
    second.begin()
    assert first.has_room  # the workers' shares bound it


def test_make_limits__of_many_models_at_one_address_are_those_of_one():
    endpoints = {f"m{i}": endpoint(f"m{i}", 64) for i in range(200)}
    (alone,) = make_limits(["m0"], {"m0": endpoints["m0"]}, [100], 4)
    limits = make_limits(list(endpoints), endpoints, [100] * 200, 4)
    for limit in (alone, *limits):
        limit.workers = 4

    while room := [limit for limit in limits if limit.has_room]:
        room[-1].begin()

    assert limits[0].block_size > alone.block_size  # fewer are enough to share the work out
    assert sum(limit.in_flight for limit in limits) == limits[0].depth <= alone.depth
    limits[0].grow()
    limits[1].grow()  # connections wait for requests: said once of each model
    assert limits[2].has_room
    assert limits[0].depth > sum(limit.in_flight for limit in limits)


def test_make_limits__evaluations_of_one_model_have_one():
    limits = make_limits(["a", "a", "gone"], {"a": endpoint("a", 8)}, [5, 500, 0], 2)

    assert limits[0] is limits[1]
    assert limits[0].block_size == 32
    assert limits[2].connections == 1
