"""A dry run: what it samples is fair and bounded, and it takes a config in every form."""

import itertools
import json

import numpy as np
import pytest

import evalcube as ec
from evalcube.flows.config.load import as_config, from_mapping
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.requests import trial_request
from evalcube.flows.plan.targets import SampleTargets, Window, pending_positions
from evalcube.flows.read import estimate as module
from evalcube.flows.read.estimate import EXACT_LIMIT, SMALLEST_SAMPLE, estimate
from evalcube.flows.state.open_trials import OpenTrials
from evalcube.storage.cache.cache import open_cache
from evalcube.storage.cube.regions import Region
from tests.flows.judging import judged_config
from tests.flows.support import evalcube, sweep_config, write_config

pytestmark = pytest.mark.long


def _windows(cells, trials, count):
    """`count` windows one behind the other along trial, all open, in every other one as listed."""
    targets = SampleTargets(
        *np.broadcast_arrays(np.full((1, 1, cells), trials * count, np.int32), np.int32(1))
    )
    for index in range(count):
        window = Window(Region(0, index, 0), (1, cells, trials, 1), index * trials, 0)
        listed = pending_positions(window, np.ones(window.shape, dtype=bool), None)
        yield OpenTrials(window, targets, listed if index % 2 else None)


@pytest.mark.parametrize(("cells", "trials", "count"), [(8, 4000, 1), (10, 32, 100), (64, 32, 16)])
def test_sample__every_cell_has_its_share(cells, trials, count):
    windows = list(_windows(cells, trials, count))

    sample = list(module._chosen(windows, 4000))

    asked = np.concatenate([window.coordinates(positions)[1] for window, positions in sample])
    share = np.bincount(asked, minlength=cells)
    assert share.sum() == 4000
    assert np.all(np.abs(share - 4000 / cells) < 6 * np.sqrt(4000 / cells))
    for window, positions in sample:
        assert len(set(positions.tolist())) == len(positions)
        assert set(positions.tolist()) <= set(range(np.prod(window.shape)))


def test_sample__takes_no_room_for_what_it_leaves_out():
    every = SampleTargets(np.full((1, 1, 1), 10**14), np.ones((1, 1, 1), np.int64))
    whole = OpenTrials(Window(Region(0, 0, 0), (1, 1, 10**14, 1), 0, 0), every)

    ((_, positions),) = module._chosen([whole], 4)

    assert len(positions) == 4


def test_estimate__cached_share_is_right_where_whole_cells_are_cached(tmp_path):
    """A stride with a factor in common with the number of cells would see all cells cached, or none."""
    config = sweep_config(tmp_path, "http://127.0.0.1:9/v1", trials=4_000, cells=8)
    config["tasks"].pop("boolean")
    settings = from_mapping(config)
    plan = build_plan(settings)
    cells = plan.tasks[0].cells[:2]
    sampled = _digests_that_a_sample_sees(plan, cells)
    open_cache(settings.cache).put_many([(digest, _record()) for digest in sampled])

    (row,) = estimate(settings).evaluations

    assert not row.exact
    assert row.cached == pytest.approx(8_000, rel=0.1)
    assert row.cached + row.to_send == row.requests == 32_000


def _digests_that_a_sample_sees(plan, cells):
    return {
        trial_request(plan.evaluations[0], planned.cell, planned.cell.trial(index), 0).digest
        for planned, index in itertools.product(cells, range(plan.trials))
    }


def _record():
    from evalcube.stages.reply.forms import Record

    body = {"choices": [{"message": {"content": "Answer: 1"}, "finish_reason": "stop"}]}
    return Record(200, 0.1, json.dumps(body).encode()).encode()


def test_estimate__samples_of_all_evaluations_together_are_bounded(tmp_path, monkeypatch):
    config = sweep_config(
        tmp_path, "http://127.0.0.1:9/v1", trials=10_000, models=[f"m{i}" for i in range(20)]
    )
    asked = []
    prepare = module.prepare_trials
    monkeypatch.setattr(
        module, "prepare_trials", lambda plan, block: asked.append(block.size) or prepare(plan, block)
    )

    result = estimate(config)

    assert result.requests == 1_000_000
    assert sum(asked) == EXACT_LIMIT
    assert {row.to_send for row in result.evaluations} == {50_000}


def test_estimate__each_of_very_many_evaluations_has_a_sample(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "EXACT_LIMIT", 300)
    config = sweep_config(tmp_path, "http://127.0.0.1:9/v1", trials=100, models=("a", "b", "c"))
    asked = []
    prepare = module.prepare_trials
    monkeypatch.setattr(
        module, "prepare_trials", lambda plan, block: asked.append(block.size) or prepare(plan, block)
    )

    rows = estimate(config).evaluations

    assert asked == [SMALLEST_SAMPLE] * 3
    assert [row.exact for row in rows] == [False] * 3


def test_estimate__takes_config_mapping_and_path(tmp_path):
    mapping = sweep_config(tmp_path, "http://127.0.0.1:9/v1")
    path = write_config(tmp_path, mapping)

    results = [ec.plan(form) for form in (mapping, from_mapping(mapping), path, str(path))]

    assert all(result == results[0] for result in results)
    assert results[0].requests == 40
    assert ec.plan(mapping, cube=tmp_path / "other.zarr").cube == str(tmp_path / "other.zarr")


def test_as_config__addresses_replace_those_of_the_config(tmp_path):
    mapping = sweep_config(tmp_path, "http://127.0.0.1:9/v1")

    config = as_config(mapping, cache=tmp_path / "elsewhere")

    assert config.cache == str(tmp_path / "elsewhere")
    assert config.cube == mapping["cube"]
    with pytest.raises(ec.ConfigError, match="a mapping"):
        as_config(5)


def test_estimate__counts_points_by_tier_and_tells_how_far_a_precision_may_go(tmp_path):
    config = sweep_config(tmp_path, "http://127.0.0.1:9/v1", cells=4)
    config["tasks"]["again"] = {"task": "boolean", "params": {"length": 9}}
    del config["trials"]

    result = estimate({**config, "precision": {"base": 3, "target": 0.1, "max": 12}})

    assert result.points["again"] == {"all": 1, "easy": 0, "hard": 0, "default": 1}
    assert result.totals == {"all": 6, "easy": 5, "hard": 1, "default": 1}
    assert (result.cells, result.trials, result.most_trials) == (6, 3, 12)
    assert result.requests == 18
    assert estimate({**config, "trials": 5}).most_trials == 5


def test_estimate__remarks_tiers_that_hold_the_same_points(tmp_path):
    config = sweep_config(tmp_path, "http://127.0.0.1:9/v1")

    def notes(length):
        entry = {"grid": {"length": length}, "tiers": {"easy": 0, "hard": 1}}
        return estimate({**config, "tasks": {"sort": {"manifold": [entry]}}}).notes

    assert notes({"range": [4, 8], "window": {"body": 1}}) == ()
    (note,) = notes([4, 8])
    assert "easy and hard" in note


def test_planned_points__are_those_of_one_label(tmp_path):
    config = from_mapping(sweep_config(tmp_path, "http://127.0.0.1:9/v1", cells=2))

    points = module.planned_points(config, "arithmetic")

    assert [point.params["length"] for point in points] == [3, 4]
    assert [point.tiers for point in points] == [("easy",)] * 2
    assert points[0].difficulty < points[1].difficulty
    with pytest.raises(ec.SweepError, match="no task 'arithmetics'"):
        module.planned_points(config, "arithmetics")


def test_estimate__a_declared_price_of_0_is_a_cost_of_0_and_no_price_is_none(tmp_path):
    config = sweep_config(tmp_path, "http://127.0.0.1:9/v1", trials=2)
    one = config["models"][0]
    config["models"] = [
        {**one, "name": "none"},
        {**one, "name": "free", "model": "m2", "prices": {"prompt": 0, "completion": 0}},
    ]

    both = estimate(config)
    assert [row.cost for row in both.evaluations] == [None, 0.0]
    assert both.cost == 0.0
    assert both.to_dict()["evaluations"][0]["cost"] is None
    assert estimate(config | {"models": config["models"][:1]}).cost is None


def test_plan__compares_live_and_batch_and_says_what_the_config_takes(tmp_path):
    config = sweep_config(tmp_path, "http://127.0.0.1:9/v1", models=("live", "waits", "plain"))
    for model, batch in zip(config["models"], ({}, {"batch": 0.25}, {}), strict=True):
        model["prices"] = {"prompt": 1, "completion": 2, **batch}
    config["models"][0]["prices"]["batch"] = 0.5
    config["models"][1]["batch"] = True

    live, waits, plain = estimate(config).evaluations
    shown = evalcube("plan", write_config(tmp_path, config), cwd=tmp_path)[1]

    assert (live.in_batches, live.other_cost) == (False, pytest.approx(live.cost / 2))
    assert (waits.in_batches, waits.other_cost) == (True, pytest.approx(4 * waits.cost))
    assert waits.cost == pytest.approx(plain.cost / 4, rel=0.01)
    assert (plain.in_batches, plain.other_cost) == (False, None)
    assert "live, up to 0.0" in shown
    assert "batches, up to 0.00" in shown


def test_estimate__of_answers_without_a_limit_is_unknown(tmp_path):
    prices = {"prompt": 1, "completion": 2}
    config = sweep_config(
        tmp_path, "http://127.0.0.1:9/v1", samplers={"long": {}, "short": {"max_tokens": 100}}
    )
    config["models"][0]["prices"] = prices

    endless, limited = estimate(config).evaluations
    shown = evalcube("plan", write_config(tmp_path, config), cwd=tmp_path)[1]
    free = estimate({**config, "models": [{**config["models"][0], "prices": {**prices, "completion": 0}}]})

    assert (endless.completion_tokens, endless.cost, endless.at_most) == (None, None, False)
    assert endless.prompt_cost > 0
    assert (limited.completion_tokens, limited.at_most) == (100 * limited.to_send, True)
    assert f" ≤{limited.completion_tokens} " in shown
    assert "?  >0." in shown
    assert "of alpha / long: " in shown
    assert free.evaluations[0].cost == free.evaluations[0].prompt_cost


def test_plan__says_that_what_nobody_knows_better_is_the_most(tmp_path):
    config = sweep_config(tmp_path, "http://127.0.0.1:9/v1")
    config["models"][0]["prices"] = {"prompt": 1, "completion": 2}

    shown = evalcube("plan", write_config(tmp_path, config), cwd=tmp_path)[1]

    assert ", up to 0.0" in shown


def test_estimate__counts_what_judges_will_be_asked(tmp_path):
    config = judged_config(tmp_path, "http://127.0.0.1:9/v1", trials=10, repeats=2)
    config["models"][-1]["prices"] = {"prompt": 0.0, "completion": 1000.0}
    config["judges"][0]["sampler"] = {"max_tokens": 100}

    found = estimate(config)
    strict, loose = found.judges

    assert (strict.requests, strict.done, strict.cached, strict.to_send) == (80, 0, 0, 80)
    assert (loose.requests, loose.to_send) == (40, 40)
    assert strict.cost == pytest.approx(80 * 100 * 1000 / 1e6)
    assert strict.prompt_tokens > 80 * 200  # with an answer of as many tokens as the model may use
    assert found.to_send == 2 * 10 * 2 * 4
    assert [(row.requests, row.done) for row in found.evaluations] == [(20, 0)] * 2


def test_estimate__of_lengths_learns_from_what_is_recorded(simulator, tmp_path):
    config = sweep_config(tmp_path, simulator.base_url, trials=8, cells=2)
    path = write_config(tmp_path, config)
    (before,) = estimate(path).evaluations
    assert before.completion_basis == "max_tokens"
    assert before.completion_tokens == 200 * before.to_send

    assert evalcube("run", path, "--quiet", "--trials", "2", "--only", "task=boolean", cwd=tmp_path)[0] == 0
    (some,) = estimate(path).evaluations
    assert evalcube("run", path, "--quiet", "--trials", "2", cwd=tmp_path)[0] == 0
    (all_points,) = estimate(path).evaluations

    assert some.completion_basis == f"{all_points.completion_basis}; of points without any: max_tokens"
    assert all_points.completion_basis.startswith("mean ")
    assert (some.done, some.to_send) == (2, before.to_send - 2)
    cube = ec.open_cube(config["cube"])
    means = cube["tokens"].where(cube["status"] <= 4).mean(["trial", "repeat"])
    assert all_points.completion_tokens == pytest.approx(6 * float(means.sum()), abs=1)
