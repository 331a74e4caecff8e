"""Commands on one small cube whose outcomes are made up, so that each number is known."""

import json

import dask
import pytest
import xarray as xr
from dask.callbacks import Callback

import evalcube as ec
from evalcube.flows.errors import SweepError
from evalcube.flows.read.selection import Part, open_part
from evalcube.flows.read.statistics import compare, leaderboard, metrics, rank
from evalcube.stages.analyze.formulas.design import WEIGHING
from evalcube.stages.reply.status import Status
from tests.flows.cli.made_up import REPEATS, TRIALS, document, run
from tests.flows.support import evalcube, refused

pytestmark = pytest.mark.long


def counted(cube, where, counter="trials"):
    ds = open_part(cube, Part(where), trials=False).dataset
    return ds["counters"].sel(counter=counter).sum().compute().item()


CELL = TRIALS * REPEATS
SELECTIONS = {
    "nothing": ((), 15),
    "a task": (["task=sort"], 6),
    "a list": (["task=sort,arithmetic"], 15),
    "a tier": (["tier=easy"], 12),
    "a range": (["param_length=4..5"], 6),
    "an open range": (["length=5.."], 6),
    "a number": (["length=3"], 6),
    "a model by its name": (["model=weak"], 5),
    "a model by its number": (["model=0,1"], 10),
    "a facet": (["family=other"], 10),
    "a facet that is a number": (["size=..5"], 10),
    "several conditions": (["family=other", "tier=hard", "task=arithmetic"], 2),
    "a mapping": ({"task": ["sort"], "param_length": (5, None)}, 3),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_open_part__selects_cells(cube, name):
    where, cells = SELECTIONS[name]

    assert counted(cube, where) == cells * CELL


def test_open_part__what_is_left_out_is_as_if_it_did_not_exist(cube):
    part = Part(["tier=hard", "task=arithmetic", "family=other"])

    board = leaderboard(cube, part, draws=20)

    assert board.tiers == ("hard",)
    assert board.tasks == ("arithmetic",)
    assert [row.incomplete for row in board.rows] == [False, False]
    assert [row.tiers[0].cells_expected for row in board.rows] == [1, 1]
    assert board.selection == "tier=hard, task=arithmetic, family=other"


def test_open_part__views_and_options_count_again(cube):
    whole = leaderboard(cube, draws=20)
    first = leaderboard(cube, Part(view="others"), draws=20)
    fewer = leaderboard(cube, Part(trials=4, view="others"), draws=20)
    unique = leaderboard(cube, Part(view="unique"), draws=20)
    clipped = leaderboard(cube, Part(clip_tokens=100), draws=20)

    assert [row.trials for row in first.rows] == [5 * 6 * REPEATS] * 2
    assert [row.trials for row in fewer.rows] == [5 * 4 * REPEATS] * 2
    assert [row.trials for row in unique.rows] == [(5 * TRIALS - 3) * REPEATS] * 3
    assert [row.unique for row in whole.rows] == pytest.approx([1 - 3 / (5 * TRIALS)] * 3)
    assert [row.unique for row in unique.rows] == [1.0] * 3
    assert max(row.tokens_per_trial for row in clipped.rows) <= 100
    assert min(row.truncated for row in clipped.rows) > 0.8


def test_open_part__trial_arrays_agree_with_the_counters(cube):
    part = Part(["tier=hard"], trials=7, unique_only=True, clip_tokens=300)
    ds = open_part(cube, part).dataset.compute()

    for counter, code in (("correct", Status.CORRECT), ("truncated", Status.TRUNCATED)):
        expected = (ds["status"] == int(code)).sum(("trial", "repeat"))
        xr.testing.assert_equal(ds["counters"].sel(counter=counter, drop=True).astype(int), expected)


def test_open_part__says_when_it_does_not_know_what_is_new(cube):
    ds = ec.open_cube(cube).compute()
    ds["duplicate"][0, 0, 3] = 255

    assert "arithmetic" in open_part(ds, Part(unique_only=True)).warnings[0]
    assert open_part(ds, Part(trials=3)).warnings == ()


def test_leaderboard__lowers_no_number_of_the_whole_by_being_asked_in_part(cube):
    part = leaderboard(cube, Part(["family=w"]))

    assert [row.model_name for row in part.rows] == ["weak"]
    whole = {row.model_name: row.score for row in leaderboard(cube).rows}
    assert part.rows[0].score == whole["weak"]


def test_rank__order_wins_and_groups(cube):
    _, standings, board = rank(cube, draws=200)

    assert standings.rows[0].label == "strong"
    assert standings.rows[0].letters == "A"
    assert standings.rows[0].wins == max(item.wins for item in standings.rows) > 1.9
    assert sum(item.rating for item in standings.rows) == pytest.approx(1)
    assert board.rows[0].rank_interval.upper == 1
    assert board.rows[1].rank_interval.lower == 2


def test_compare__is_antisymmetric_and_tells_strong_from_weak(cube):
    (pair,) = compare(cube, ["strong", "weak"], repeats=1)[1]
    (back,) = compare(cube, ["weak", "0"], repeats=1)[1]

    assert pair.overall.trials == 5 * TRIALS
    assert pair.overall.difference.value == pytest.approx(-back.overall.difference.value)
    assert pair.overall.difference.lower == pytest.approx(-back.overall.difference.upper)
    assert pair.overall.p < 0.01
    assert all(item.p_holm >= item.p for item in pair.tasks)


def test_compare__words_and_all_pairs(cube):
    one = run("compare", cube, "strong", "weak", "--repeats", 1)
    several = document("compare", cube)

    assert "'strong' is" in one
    assert len(several["pairs"]) == 3
    assert several["warnings"] == []
    assert "answers to one question" in run("compare", cube)
    assert "No significant difference" in run("compare", cube, "middle", "weak", "--trials", 2)


def test_metrics__of_repeats(cube):
    rows = document("metrics", cube, "--k", "1,4", "--metrics", "pass_at_k,pass_hat_k,avg_ci")["rows"]
    values = {(row["model"], row["k"]): row for row in rows}

    strong = values["strong", 1]
    assert strong["questions"] == 5 * TRIALS
    assert strong["pass_at_k"] == pytest.approx(strong["pass_hat_k"])
    assert strong["avg_ci_lo"] < strong["pass_at_k"] < strong["avg_ci_hi"]
    assert values["strong", 4]["pass_at_k"] > strong["pass_at_k"] > values["strong", 4]["pass_hat_k"]
    _, found = metrics(cube, by=["model", "tier"])
    assert found.sizes == {"model": 3, "tier": 2, "k": 3}


def test_metrics__settings_reach_the_metrics_that_take_them(cube, tmp_path):
    words = (
        "metrics",
        cube,
        "--k",
        "4",
        "--metrics",
        "pass_at_k_ci,threshold_spectrum_at_k",
        "--by",
        "family",
    )
    wide = document(*words, "--set", "weights=0,0,0,1", "--set", "confidence=0.99")
    narrow = document(*words, "--set", "weights=1,0,0,0", "--set", "confidence=0.5")

    assert wide["settings"] == {"weights": [0, 0, 0, 1], "confidence": 0.99}
    for one, other in zip(wide["rows"], narrow["rows"], strict=True):
        assert (
            one["pass_at_k_ci_lo"]
            < other["pass_at_k_ci_lo"]
            < other["pass_at_k_ci_hi"]
            < one["pass_at_k_ci_hi"]
        )
        assert one["threshold_spectrum_at_k"] < other["threshold_spectrum_at_k"]
    shown = evalcube(*words, "--set", "weights=0,0,0,1", "--set", "confidence=0.99", cwd=tmp_path)
    assert "99%" in shown[1]


def test_table__sums_are_those_of_the_cube(cube):
    found = document("table", cube, "--by", "family,task", "--mode", "E_P", "--weigh", "points")
    status = ec.open_cube(cube)["status"].values

    assert (found["weigh"], found["by"]) == ("points", ["facet_family", "task"])
    row = next(row for row in found["rows"] if (row["facet_family"], row["task"]) == ("w", "sort"))
    assert row["counters"]["correct"] == (status[2, 1] == Status.CORRECT).sum()
    assert row["lower"] < row["point"] < row["upper"]
    assert (row["points"], row["points_planned"]) == (2, 2)


def test_open_cube__analyses_compute_nothing_when_called(cube):
    started = []
    ds = ec.open_cube(cube)

    with Callback(start=started.append):
        lazy = [*ec.stats.cube_outcomes(ds), ec.stats.restrict(ds, {"task": "sort"})]
        lazy += [ec.stats.recount(ds, clip_tokens=100)]

    assert not started
    assert all(map(dask.is_dask_collection, lazy))


def test_aggregate__an_address_is_no_dataset(cube):
    with pytest.raises(TypeError, match="open_cube"):
        ec.stats.aggregate(cube, by="model")


COMMANDS = {
    "leaderboard": ["leaderboard"],
    "second version": ["leaderboard", "--score", "v2", "--mode", "C_P", "--where", "tier=easy"],
    "table": ["table", "--by", "model,task,tier"],
    "rank": ["rank"],
    "metrics": [
        "metrics",
        "--metrics",
        "pass_at_k_ci,g_pass_at_k_tau,mg_pass_at_k,bayes,avg_ci",
        "--set",
        "tau=0.5",
    ],
    "compression": ["analyze", "compression"],
    "hazard": ["analyze", "hazard", "--width", "100"],
    "clip": ["analyze", "clip", "--limits", "100,400"],
    "cost": ["analyze", "cost", "--by-task"],
}


VERSIONS = {"leaderboard": 3, "ranking": 4, "table": 2, "clip": 2}
"""Of the documents whose keys have changed their meaning."""


@pytest.mark.parametrize("name", COMMANDS)
def test_commands__fit_the_terminal_and_have_two_forms(cube, name, monkeypatch):
    words = COMMANDS[name]
    place = 2 if words[0] == "analyze" else 1
    words = [*words[:place], cube, *words[place:]]
    monkeypatch.setenv("COLUMNS", "80")
    shown = run(*words, width=80)
    assert "strong" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "nan" not in shown
    told = document(*words)
    assert json.dumps(told, allow_nan=False)
    assert told["schema_version"] == VERSIONS.get(told["schema"].removeprefix("evalcube."), 1)


MISTAKES = {
    "unknown task": (["leaderboard", "--where", "task=srot"], "Did you mean 'sort'?"),
    "unknown coordinate": (["table", "--by", "famly"], "Did you mean 'family'?"),
    "no condition": (["rank", "--where", "task"], "NAME=VALUE"),
    "given twice": (["rank", "--where", "task=sort", "--where", "task=arithmetic"], "task=one,two"),
    "no number": (["rank", "--where", "length=a"], "'a'"),
    "empty range": (["rank", "--where", "length=50..60"], "There are: 3, 4, 5, 8"),
    "nothing is left": (["rank", "--where", "task=sort", "--where", "length=8"], "nothing fulfils all of"),
    "unknown view": (["leaderboard", "--view", "lomg"], "Did you mean 'long'?"),
    "unknown mode": (["leaderboard", "--mode", "C_X"], "--mode"),
    "unknown score": (["leaderboard", "--score", "v9"], "v1, v2"),
    "one model": (["rank", "--where", "model=weak"], "at least two"),
    "one named": (["compare", "weak"], "at least two"),
    "unknown model": (["compare", "weak", "strang"], "Did you mean 'strong'?"),
    "named twice": (["compare", "weak", "2"], "twice"),
    "k too large": (["metrics", "--k", "1,5"], "--repeats N"),
    "no list of k": (["metrics", "--k", "x"], "1,4,8"),
    "no metric": (["metrics", "--metrics", ","], "nothing is named"),
    "more tokens than numbers": (
        ["leaderboard", "--clip-context", 2**63],
        "--clip-context must be less than 2**63",
    ),
    "unknown metric": (["metrics", "--metrics", "pas_at_k"], "Did you mean 'pass_at_k'?"),
    "metric that needs more": (["metrics", "--metrics", "threshold_spectrum_at_k"], "weights=0.2,0.3,0.5"),
    "setting that nothing takes": (["metrics", "--set", "tau=0.5"], "no metric asked for takes 'tau'"),
    "setting without a value": (["metrics", "--set", "tau"], "tau=0.5"),
    "limit": (["analyze", "clip", "--limits", "0"], "--limits"),
    "kind of picture": (["leaderboard", "--plot", "a.png"], "rsvg-convert"),
    "two forms": (["table", "--json", "--markdown"], "exclude"),
    "two other forms": (["rank", "--csv", "--markdown"], "--markdown and --csv exclude each other"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_commands__mistake_is_one_message(cube, name):
    words, fragment = MISTAKES[name]
    place = 2 if words[0] == "analyze" else 1

    with pytest.raises(SweepError) as caught:
        run(*words[:place], cube, *words[place:])

    assert fragment.format(cube=cube) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_main__mistake_is_exit_code_2(cube, tmp_path):
    refused(evalcube("rank", cube, "--where", "tier=medium", cwd=tmp_path), "tier", "'easy', 'hard'")


def test_leaderboard__contradictory_counters_are_refused(cube):
    ds = ec.open_cube(cube).compute()
    ds["counters"].loc[{"counter": "correct"}] = 10_000

    with pytest.raises(SweepError, match="contradict each other"):
        leaderboard(ds)


def test_report__part_and_weights(cube, tmp_path):
    run("report", cube, "-o", tmp_path / "r.html", "--weigh", "points", "--where", "family=other")
    text = (tmp_path / "r.html").read_text()

    assert "cube (family=other)" in text
    assert text.index("Part of the cube") < text.index("What was measured")
    assert WEIGHING["points"] in text
    assert "Which models differ" in text
    assert "questions that are new" in text
    assert ">weak<" not in text


@pytest.mark.parametrize(
    "named",
    ["strong weak", "strong --treatment weak", "weak --control strong", "--treatment weak --control strong"],
)
def test_gate__takes_an_argument_for_the_one_that_no_option_names(cube, tmp_path, named):
    (tmp_path / "policy.yaml").write_text("policy: {critical: [{noninferior: 1}]}")

    found = document("gate", tmp_path / "policy.yaml", cube, *named.split())

    assert (found["control"], found["treatment"]) == ("strong", "weak")


def test_gate__of_two_cubes_takes_no_option_for_both(cube, tmp_path):
    (tmp_path / "policy.yaml").write_text("policy: {critical: [{noninferior: 1}]}")

    with pytest.raises(SweepError, match="--control, --treatment: one alone, 'weak'"):
        run("gate", tmp_path / "policy.yaml", cube, cube, "--treatment", "weak")
    assert document("gate", tmp_path / "policy.yaml", cube, cube, "weak")["decision"]
