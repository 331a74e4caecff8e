"""A run that takes no old replies from the cache."""

from pathlib import Path

import numpy as np
import pytest

import evalcube as ec
from evalcube.flows.config.load import from_mapping
from evalcube.flows.errors import SweepError
from evalcube.flows.run.sweep import fresh_cache
from evalcube.storage.cube.cube import Cube
from tests.flows.judging import judged_config
from tests.flows.support import (
    evalcube,
    refused,
    set_faults,
    simulator_stats,
    stored,
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
    path = write_config(tmp_path, sweep_config(tmp_path, simulator.base_url, trials=16, cells=2))
    set_faults(simulator, [{"kind": "status", "status": 418, "share": 0.1}])
    outcomes = []

    def run(*options):
        before = simulator_stats(simulator)["requests"]
        outcomes.append(evalcube("run", path, "--quiet", *options, cwd=tmp_path)[0])
        return simulator_stats(simulator)["requests"] - before

    sent = run()
    set_faults(simulator, [])
    later, again, once_more = run(), run("--fresh", "refused"), run("--fresh", "refused")

    assert sent > 48
    assert (later, once_more) == (0, 0)
    assert 0 < again <= 9  # a fifth of the trials
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


def test_run__fresh_unrated_asks_judges_again_what_they_gave_no_score_and_no_model(tmp_path, simulator):
    path = write_config(tmp_path, judged_config(tmp_path, simulator.base_url, trials=8))
    set_faults(simulator, [{"kind": "null_content", "share": 0.3, "model": "grader"}])

    def requests():
        models = simulator_stats(simulator)["models"]
        return models.get("before", 0) + models.get("after", 0), models.get("grader", 0)

    def run(*options):
        before = requests()
        assert evalcube("run", path, "--quiet", *options, cwd=tmp_path)[0] == 0
        return [late - early for early, late in zip(before, requests(), strict=True)]

    def missing():
        readings = stored(Cube.open(tmp_path / "cube.zarr"), "judge_readings")
        readings[..., 1, 1] = 0  # this judge is asked once
        return int(np.isnan(readings).sum())

    asked, lost = run(), missing()
    told = evalcube("verdict", "cube.zarr", "--control", "before", cwd=tmp_path)[1]
    ec.report(tmp_path / "cube.zarr", tmp_path / "report.html", samples=0)
    broken, still = run("--fresh", "unrated"), missing()
    set_faults(simulator, [])
    later, again, once_more = run(), run("--fresh", "unrated"), run("--fresh", "unrated")

    assert asked[0] == 2 * 8
    assert lost == still > 0
    assert "Judge strict gave" in told
    cover = (tmp_path / "report.html").read_text().partition("What to distrust")[2].partition("</section>")[0]
    assert "Judge strict gave" in cover
    assert broken[0] == later[0] == again[0] == 0
    assert later[1] == 0 < broken[1] == again[1] <= lost
    assert once_more == [0, 0]
    assert missing() == 0
