"""A run that takes no old replies from the cache."""

import time
from pathlib import Path

import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.errors import SweepError
from evalcube.flows.run.sweep import fresh_cache
from tests.flows.support import evalcube, refused, simulator_stats, sweep_config, write_config

NOWHERE = "http://127.0.0.1:9/v1"
DAY = 86_400.0


def test_run__fresh_asks_again_what_the_cache_has_and_leaves_that_as_it_is(tmp_path, simulator):
    config = sweep_config(tmp_path, simulator.base_url, trials=2, cells=2)
    path = write_config(tmp_path, config)
    assert evalcube("run", path, "--quiet", cwd=tmp_path)[0] == 0
    before = sorted(Path(config["cache"]).rglob("*.pack"))

    again = evalcube("run", path, "--quiet", "--cube", tmp_path / "again.zarr", cwd=tmp_path)
    asked = simulator_stats(simulator)["requests"]
    fresh = evalcube("run", path, "--quiet", "--fresh", "--cube", tmp_path / "fresh.zarr", cwd=tmp_path)
    old = evalcube("run", path, "--quiet", "--fresh", cwd=tmp_path)

    assert again[0] == fresh[0] == 0
    assert asked == 6
    assert simulator_stats(simulator)["requests"] == 12
    assert sorted(Path(config["cache"]).rglob("*.pack")) == before
    refused(old, "--fresh", "has answers that are older", f"--cache {config['cache']}")


def settings(tmp_path, **changes):
    return from_mapping({**sweep_config(tmp_path, NOWHERE), **changes})


def test_fresh_cache__is_shared_within_a_period_and_by_no_other(tmp_path):
    now = 20_000 * DAY
    same = {fresh_cache(settings(tmp_path), "2d", now=now + hours * 3600) for hours in (0, 1, 47)}
    later = fresh_cache(settings(tmp_path), "2d", now=now + 2 * DAY)

    assert len(same) == 1
    assert later not in same
    assert same.pop().startswith(f"{tmp_path}/cache.since/20241004T000000Z")


def test_fresh_cache__is_new_each_time(tmp_path):
    assert len({fresh_cache(settings(tmp_path), now=time.time()) for _ in range(3)}) == 3


def test_fresh_cache__of_a_store_is_beside_it(tmp_path):
    found = fresh_cache(settings(tmp_path, cache="s3://bucket/cache/"), "1d", now=0.0)

    assert found == "s3://bucket/cache.since/19700101T000000Z-1d"


@pytest.mark.parametrize(
    ("changes", "max_age", "said"),
    [
        ({}, "soon", "'soon' is no time"),
        ({}, "0d", "'0d' is no time"),
        ({"cache": "redis://host/0"}, "7d", "another database"),
        ({"cache": "redis://host/0"}, None, "another database"),
    ],
)
def test_fresh_cache__refuses(tmp_path, changes, max_age, said):
    with pytest.raises(SweepError, match=said):
        fresh_cache(settings(tmp_path, **changes), max_age=max_age)
