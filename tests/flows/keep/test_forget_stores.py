"""Results of a cube in a bucket are taken away, and their replies from caches in buckets and on Redis."""

import pytest

from evalcube.flows.keep.choice import Choice
from evalcube.flows.keep.forget import forget
from evalcube.flows.run.sweep import run
from evalcube.flows.state.verify import verify_cube
from evalcube.storage.cache.cache import open_cache
from tests.flows.support import reset, simulator_stats, sweep_config
from tests.storage.support.cache_stores import SECRET, RedisPlace, redis_server, s3_server

pytestmark = pytest.mark.cluster
TRIALS = 3 * 2


@pytest.fixture(scope="module")
def s3_env():
    with s3_server() as env:
        yield env


@pytest.fixture
def served(_served):
    return _served


@pytest.fixture
def bucket(s3_env, monkeypatch):
    for name, value in s3_env.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def redis_cache(tmp_path, monkeypatch):
    with redis_server(tmp_path) as port:
        monkeypatch.setenv("REDIS_PASSWORD", SECRET)
        yield RedisPlace(port).url


def forgotten_and_asked_again(config, served):
    """Forget a model with its replies, look what stays, and have it asked again."""
    run(config)
    before = {entry.key for entry in open_cache(config["cache"]).entries()}

    done = forget(config["cube"], Choice(("model=beta",)), cache=True)

    after = {entry.key for entry in open_cache(config["cache"]).entries()}
    assert (done.trials, done.replies, done.kept_replies) == (TRIALS, TRIALS, 0)
    assert len(before) - len(after) == TRIALS
    assert after < before
    assert verify_cube(config["cube"]).whole
    reset(served)
    run(config)
    assert simulator_stats(served)["requests"] == TRIALS
    assert {entry.key for entry in open_cache(config["cache"]).entries()} == before
    assert verify_cube(config["cube"]).whole


@pytest.mark.usefixtures("bucket")
def test_forget__a_cube_and_its_cache_in_a_bucket(tmp_path, served):
    reset(served)
    config = sweep_config(tmp_path, served.base_url, models=("alpha", "beta"), trials=2, cells=2)
    forgotten_and_asked_again(
        {**config, "cube": "s3://bucket/forget/cube.zarr", "cache": "s3://bucket/forget/cache"}, served
    )


def test_forget__replies_on_redis(tmp_path, served, redis_cache):
    reset(served)
    config = sweep_config(tmp_path, served.base_url, models=("alpha", "beta"), trials=2, cells=2)
    forgotten_and_asked_again({**config, "cache": redis_cache}, served)
