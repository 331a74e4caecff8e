"""What a cube counts of its questions: whole numbers that follow from the outcomes, however regions cut them."""

import shutil

import numpy as np
import pytest

from evalcube.flows.errors import SweepError, WrongTypeError
from evalcube.flows.read.selection import Part
from evalcube.flows.read.statistics import _metric_options, compare, leaderboard, metrics, rank
from evalcube.flows.read.statistics import table as estimate_groups
from evalcube.flows.run.sweep import run
from evalcube.flows.run.upsample import upsample
from evalcube.flows.share.merge import merge_cubes
from evalcube.flows.state.verify import verify_cube
from evalcube.stages.analyze.formulas.clustering import cluster_moments
from evalcube.stages.reply.status import COUNTERS, Status
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
    from evalcube.flows.read.selection import open_part
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


def test_metric_options__name_what_no_metric_takes_and_what_one_lacks():
    with pytest.raises(
        SweepError, match=r"takes 'tau'\. Those asked for take: alpha0, beta0, bounds, confidence"
    ):
        _metric_options(["pass_at_k_ci"], {"tau": 0.5})
    with pytest.raises(SweepError, match=r"g_pass_at_k_tau needs the setting `tau`\. .*tau=0\.5"):
        _metric_options(["pass_at_k", "g_pass_at_k_tau"], {})
    assert _metric_options(["pass_at_k"], {"confidence": 0.9}) == {}


@pytest.mark.parametrize(
    ("analysis", "name", "value"),
    [
        (leaderboard, "version", "v3"),
        (leaderboard, "mode", "X_P"),
        (leaderboard, "weigh", "points"),
        (estimate_groups, "mode", "auto"),
        (estimate_groups, "weigh", "models"),
        (rank, "version", "v3"),
        (compare, "truncated", "right"),
        (compare, "weigh", "models"),
        (metrics, "names", ["pass@k"]),
    ],
)
def test_analyses__refuse_an_option_that_there_is_not(swept, analysis, name, value):
    with pytest.raises(
        SweepError, match=f"`{name}`: there is no '{value if isinstance(value, str) else value[0]}'"
    ):
        analysis(swept / "once.zarr", **{name: value})


def test_leaderboard__is_in_the_order_of_the_column_that_is_asked_for(swept):
    boards = [
        leaderboard(swept / "once.zarr", draws=50, sort=column) for column in ("tokens", "accuracy", "")
    ]

    assert [board.sort for board in boards] == ["tokens", "accuracy", ""]
    tokens, right, _ = (list(board.rows) for board in boards)
    assert tokens == sorted(tokens, key=lambda row: row.tokens_per_trial)
    assert right == sorted(right, key=lambda row: -row.accuracy.value)


def test_compare__has_the_pairs_of_the_models_that_are_named_in_their_order(swept):
    cube = swept / "once.zarr"
    (pair,), (turned,), (numbered,) = (
        compare(cube, models).pairs for models in ([], ["beta", "alpha"], [1, "alpha"])
    )

    assert (pair.first, pair.second) == (turned.second, turned.first) == (numbered.second, numbered.first)
    assert pair.overall.difference.value == pytest.approx(-turned.overall.difference.value)
    assert pair.overall.difference.value != 0
    with pytest.raises(SweepError, match="named twice"):
        compare(cube, ["alpha", 0])
    with pytest.raises(SweepError, match="at least two evaluations, got 1; here are: alpha, beta"):
        compare(cube, ["alpha"])
    with pytest.raises(SweepError, match="at least two evaluations, got 1; here are: alpha"):
        rank(cube, Part(["model=alpha"]))


def test_compare__of_one_repeat_is_of_the_first_answers(swept):
    cube, statuses = swept / "once.zarr", Cube.open(swept / "once.zarr").dataset()["status"].to_numpy()

    (first,), (every,) = compare(cube, repeats=1).pairs, compare(cube).pairs

    right = (statuses == Status.CORRECT)[..., :1]
    asked = statuses[0, ..., 0] != 255
    only = [int((right[i, ..., 0] & ~right[1 - i, ..., 0])[asked].sum()) for i in (0, 1)]
    assert [first.overall.first_only, first.overall.second_only] == only
    assert [every.overall.first_only, every.overall.second_only] != only


def test_rank__orders_the_rows_of_the_board(swept):
    result = rank(swept / "once.zarr", draws=50)

    assert [row["model_name"] for row in result.records()] == [row.model_name for row in result.board.rows]
    assert result.board.draws == 50


def test_metrics__draw_powers_of_two_up_to_the_number_of_repeats(swept):
    part, estimates = metrics(swept / "once.zarr")

    assert part.arrays.sizes["repeat"] == 3
    assert estimates["k"].values.tolist() == [1, 2]
    assert estimates.attrs["metrics"] == ["pass_at_k", "pass_hat_k"]
    assert estimates["model"].values.tolist() == ["alpha", "beta"]
    assert metrics(swept / "once.zarr", k=[3, 1])[1]["k"].values.tolist() == [3, 1]


@pytest.mark.parametrize("k", [0, 4])
def test_metrics__refuse_more_draws_than_answers_and_none(swept, k):
    with pytest.raises(SweepError, match=rf"`k`: {k} is not from 1 to 3"):
        metrics(swept / "once.zarr", k=[1, k])


@pytest.mark.parametrize(
    ("wrong", "kind", "problem"),
    [
        ({"settings": ["tau"]}, WrongTypeError, "`settings`"),
        ({"settings": {"confidence": "high"}}, WrongTypeError, "`confidence`"),
        ({"names": []}, SweepError, "`names`: nothing is named"),
        ({"by": ["modle"]}, SweepError, "`by`"),
        ({"k": [1.5]}, SweepError, "`k`"),
    ],
)
def test_metrics__name_the_argument_that_is_none(swept, wrong, kind, problem):
    with pytest.raises(kind, match=problem):
        metrics(swept / "once.zarr", **wrong)


def test_metrics__have_intervals_of_the_level_that_is_asked_for(swept):
    wide, narrow = (
        metrics(swept / "once.zarr", names=["pass_at_k"], k=[1], settings=settings)[1]
        for settings in (None, {"confidence": 0.5})
    )

    np.testing.assert_array_equal(wide["pass_at_k"], narrow["pass_at_k"])
    assert narrow.attrs["settings"] == {"confidence": 0.5}
    assert (wide["pass_at_k_lower"] < narrow["pass_at_k_lower"]).all()


def test_table__groups_by_names_as_they_are_typed(swept):
    estimates = estimate_groups(swept / "once.zarr", by=[" task ", "model"])[1]

    assert estimates["task"].values.tolist() == ["arithmetic", "boolean"]
    assert estimates["model"].values.tolist() == ["alpha", "beta"]
    assert "points_told" in estimates.attrs
    assert "model" not in estimate_groups(swept / "once.zarr", by=["task"])[1].sizes
