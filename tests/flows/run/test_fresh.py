"""A run that takes no old replies from the cache."""

from pathlib import Path

import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.errors import SweepError
from evalcube.flows.run.sweep import fresh_cache
from tests.flows.support import (
    evalcube,
    refused,
    set_faults,
    simulator_stats,
    sweep_config,
    write_config,
)

NOWHERE = "http://127.0.0.1:9/v1"


def test_run__fresh_asks_again_what_the_cache_has_and_leaves_that_as_it_is(tmp_path, simulator):
    config = sweep_config(tmp_path, simulator.base_url, trials=2, cells=2)
    path = write_config(tmp_path, config)
    assert evalcube("run", path, "--quiet", cwd=tmp_path)[0] == 0
    before = sorted(Path(config["cache"]).rglob("*.pack"))

    again = evalcube("run", path, "--quiet", "--cube", tmp_path / "again.zarr", cwd=tmp_path)
    asked = simulator_stats(simulator)["requests"]
    fresh = evalcube(
        "run", path, "--quiet", "--fresh", "all", "--cube", tmp_path / "fresh.zarr", cwd=tmp_path
    )
    old = evalcube("run", path, "--quiet", "--fresh", "all", cwd=tmp_path)

    assert again[0] == fresh[0] == 0
    assert asked == 6
    assert simulator_stats(simulator)["requests"] == 12
    assert sorted(Path(config["cache"]).rglob("*.pack")) == before
    refused(old, "--fresh", "has answers that are older", f"--cache {config['cache']}")


def test_run__fresh_refused_asks_again_what_an_endpoint_refused_and_nothing_else(tmp_path, simulator):
    path = write_config(tmp_path, sweep_config(tmp_path, simulator.base_url, trials=40, cells=2))
    set_faults(simulator, [{"kind": "status", "status": 418, "share": 0.1}])
    outcomes = []

    def run(*options):
        before = simulator_stats(simulator)["requests"]
        outcomes.append(evalcube("run", path, "--quiet", *options, cwd=tmp_path)[0])
        return simulator_stats(simulator)["requests"] - before

    sent = run()
    set_faults(simulator, [])
    later, again, once_more = run(), run("--fresh", "refused"), run("--fresh", "refused")

    assert sent > 120
    assert (later, once_more) == (0, 0)
    assert 0 < again <= 24  # a fifth of the trials
    assert outcomes == [0] * 4


def settings(tmp_path, **changes):
    return from_mapping({**sweep_config(tmp_path, NOWHERE), **changes})


def test_fresh_cache__is_new_each_time(tmp_path):
    assert len({fresh_cache(settings(tmp_path)) for _ in range(3)}) == 3


def test_fresh_cache__of_a_store_is_beside_it(tmp_path):
    address = fresh_cache(settings(tmp_path, cache="s3://bucket/cache/"))

    assert address.startswith("s3://bucket/cache.since/")


def test_fresh_cache__refuses_a_server_without_folders(tmp_path):
    with pytest.raises(SweepError, match="another database"):
        fresh_cache(settings(tmp_path, cache="redis://host/0"))
