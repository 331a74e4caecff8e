"""What a cube counts of its questions: whole numbers that follow from the outcomes, however regions cut them."""

import shutil

import numpy as np
import pytest

from evalcube.flows.read.statistics import _metric_options, leaderboard
from evalcube.flows.read.statistics import table as estimate_groups
from evalcube.flows.run.sweep import run
from evalcube.flows.run.upsample import upsample
from evalcube.flows.share.merge import merge_cubes
from evalcube.flows.state.verify import verify_cube
from evalcube.stages.analyze.formulas.clustering import cluster_moments
from evalcube.stages.reply.status import COUNTERS
from evalcube.storage.cube.cube import Cube
from tests.flows.shared_cluster import SHARED
from tests.flows.support import reset, sweep_config


@pytest.fixture(scope="module")
def swept(tmp_path_factory, _served):
    """A folder with a cube whose questions lie in three regions each, and one that was measured at once."""
    reset(_served)
    folder = tmp_path_factory.mktemp("swept")
    config = config_of(folder, _served)
    run(config, cluster=SHARED)
    upsample(config, repeats=3, cluster=SHARED)
    run({**config, "repeats": 3, "cube": str(folder / "once.zarr")}, cluster=SHARED)
    return folder


def config_of(folder, served, **changes):
    config = sweep_config(folder, served.base_url, models=("alpha", "beta"), trials=16, cells=2, **changes)
    config["samplers"] = {"warm": {"temperature": 1, "max_tokens": 200}}
    for model in config["models"]:
        model["simulate"] = {"ability": 0.3, "tokens": 20}
    return config


def moments(cube):
    """Counters of questions as they follow from the outcomes."""
    return cluster_moments(Cube.open(cube).dataset()["status"].to_numpy())[..., 2:]


def test_leaderboard__draws_the_same_numbers_for_everybody_who_names_no_seed(swept):
    board = leaderboard(swept / "once.zarr", draws=50)

    assert (board.seed, board.confidence, board.version) == (0, 0.95, "auto")
    own, same, other = (
        [row.score for row in leaderboard(swept / "once.zarr", draws=50, **seed).rows]
        for seed in ({}, {"seed": 0}, {"seed": 1})
    )
    assert own == same != other
    assert leaderboard(swept / "once.zarr").draws == 2000


def test_counters__are_those_of_whole_questions(swept):
    for name, chunk in (("cube.zarr", 1), ("once.zarr", 3)):
        cube = Cube.open(swept / name)
        assert cube.chunks["repeat"] == chunk
        counted = cube.read_counters()[..., len(COUNTERS) :]
        np.testing.assert_array_equal(counted, moments(swept / name))
        assert (counted[..., 3] > counted[..., 0]).any()  # questions were asked more than once


def test_counters__are_the_same_however_the_regions_cut_them(swept):
    split, once = (Cube.open(swept / name).read_counters() for name in ("cube.zarr", "once.zarr"))
    untimed = [place for place, name in enumerate(COUNTERS) if name != "latency_sum"]
    untimed += range(len(COUNTERS), split.shape[-1])
    np.testing.assert_array_equal(split[..., untimed], once[..., untimed])


def test_merge__counts_whole_questions(swept, tmp_path):
    merge_cubes(str(tmp_path / "merged.zarr"), [str(swept / "cube.zarr")])

    counted = Cube.open(tmp_path / "merged.zarr").read_counters()
    np.testing.assert_array_equal(counted, Cube.open(swept / "cube.zarr").read_counters())


def test_leaderboard__reads_no_outcomes_of_repeated_questions(swept, tmp_path):
    shutil.copytree(swept / "cube.zarr", tmp_path / "cube.zarr")
    whole, table = (
        leaderboard(swept / "cube.zarr"),
        estimate_groups(swept / "cube.zarr", by=["model", "task"])[1],
    )
    for chunk in (tmp_path / "cube.zarr" / "status").glob("c.*"):
        chunk.write_bytes(b"not a chunk")

    again, same = (
        leaderboard(tmp_path / "cube.zarr"),
        estimate_groups(tmp_path / "cube.zarr", by=["model", "task"])[1],
    )

    assert repr(again) == repr(whole)
    assert whole.clustered
    assert whole.repeats == 3
    assert same.identical(table)


def test_leaderboard__of_a_part_counts_the_questions_of_that_part(swept):
    from evalcube.flows.read.selection import Part, open_part
    from evalcube.stages.analyze.labelled.clustering import question_effects

    where = Part(where=("task=arithmetic", "length=3"))
    counted = question_effects(open_part(swept / "cube.zarr", where, trials=False).dataset)
    from_outcomes = question_effects(
        open_part(swept / "cube.zarr", where).dataset.drop_vars("question_moments")
    )
    np.testing.assert_array_equal(counted, from_outcomes)
    fewer = open_part(swept / "cube.zarr", Part(trials=8), trials=False).dataset
    assert "question_moments" not in fewer  # of all trials, which are not meant
    assert question_effects(fewer) is not None


def test_verify__sees_and_heals_counters_of_questions(swept, tmp_path):
    shutil.copytree(swept / "cube.zarr", tmp_path / "cube.zarr")
    shutil.copytree(swept / "cache", tmp_path / "cache")
    cube = Cube.open(tmp_path / "cube.zarr", writable=True)
    good = cube.read_counters()
    bad = good.copy()
    bad[0, 0, 0, len(COUNTERS) + 1] += 1
    cube.write_counters(dict(enumerate(bad)))

    found = verify_cube(tmp_path / "cube.zarr", heal=True, cache=tmp_path / "cache")

    (damage,) = found.damages
    assert (damage.array, damage.healed) == ("counters", True)
    assert "correct_squares" in damage.problem
    np.testing.assert_array_equal(Cube.open(tmp_path / "cube.zarr").read_counters(), good)


def test_metric_options__give_each_metric_the_settings_that_it_takes():
    names = ["pass_at_k", "g_pass_at_k_tau", "geom_at_k", "g_pass_at_k_tau_ci"]

    options = _metric_options(names, {"tau": 0.5, "pass_power": 2.0, "alpha0": 1.0})

    assert options == {
        "g_pass_at_k_tau": {"tau": 0.5},
        "geom_at_k": {"pass_power": 2.0},
        "g_pass_at_k_tau_ci": {"tau": 0.5, "alpha0": 1.0},
    }
