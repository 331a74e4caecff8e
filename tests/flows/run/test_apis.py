"""Sweeps over endpoints of each API, whole and streamed: real HTTP, a cluster, a judge that speaks another API."""

import math

from evalcube.flows.read.reader import Reader
from evalcube.flows.run.sweep import run
from evalcube.stages.reply.forms import Record
from evalcube.storage.cache.cache import open_cache
from evalcube.storage.cube.cube import Cube
from tests.flows.judging import judged_config
from tests.flows.shared_cluster import SHARED
from tests.flows.support import assert_same_cube, simulator_stats, sweep_config

APIS = ("chat", "completions", "messages")


def with_apis(config, **settings):
    """The config with a model for each API."""
    (model,) = config["models"]
    return {**config, "models": [{**model, "name": api, "api": api, **settings} for api in APIS]}


def records(config):
    cache = open_cache(config["cache"])
    try:
        return [Record.decode(cache.get(entry.key)) for entry in cache.entries()]
    finally:
        cache.close()


def test_run__every_api_whole_streamed_or_from_the_cache_gives_the_same_cube(tmp_path, simulator):
    whole = with_apis(sweep_config(tmp_path, simulator.base_url, trials=6, cells=2))
    streamed = with_apis(sweep_config(tmp_path, simulator.base_url, trials=6, cells=2), stream=True)
    streamed |= {"cube": str(tmp_path / "streamed.zarr"), "cache": str(tmp_path / "streams")}
    cached = {**streamed, "cube": str(tmp_path / "cached.zarr"), "cache": whole["cache"]}
    units = 3 * 6 * 3

    first, second = run(whole, cluster=SHARED), run(streamed, cluster=SHARED)
    asked = simulator_stats(simulator)["requests"]
    third = run(cached, cluster=SHARED)

    assert {one.reason for one in (first, second, third)} == {"complete"}
    assert asked == simulator_stats(simulator)["requests"] == 2 * units
    assert_same_cube(whole["cube"], streamed["cube"])
    assert_same_cube(whole["cube"], cached["cube"])
    status = Cube.open(whole["cube"]).dataset()["status"].to_numpy()
    assert all((status[model] == 1).sum() > 0 for model in range(3))
    kinds = [(record.api, math.isnan(record.first_token)) for record in records(whole)]
    assert {kind: kinds.count(kind) for kind in kinds} == {(api, True): 18 for api in APIS}
    assert all(0 < record.first_token <= record.latency for record in records(streamed))
    views(streamed)
    assert Reader(whole["cube"]).view(2, 0, 0, 0).to_dict()["first_token"] is None


def views(config):
    """What `show` tells of each API."""
    for model in range(len(APIS)):
        view = Reader(config["cube"]).view(model, 0, 0, 0)
        assert [message["role"] for message in view.messages] == ["user"]
        assert "Answer: " in str(view.response)
        assert 0 < view.first_token <= view.latency + 1e-6


def test_run__a_judge_may_speak_messages_in_a_stream(tmp_path, simulator):
    config = judged_config(tmp_path, simulator.base_url, trials=8)
    config["models"][-1] |= {"api": "messages", "stream": True}

    summary = run(config, cluster=SHARED)

    assert (summary.reason, summary.done) == ("complete", 2 * 8)
    dataset = Cube.open(config["cube"]).dataset()
    assert dataset["judge"].notnull().sum() == 2 * 8
    assert dataset["judge"].isel(model=1).mean() > dataset["judge"].isel(model=0).mean() + 1
    assert {(record.api, math.isnan(record.first_token)) for record in records(config)} == {
        ("chat", True),
        ("messages", False),
    }
    assert len(Reader(config["cube"]).view(0, 0, 0, 0).opinions) == 3
