"""What traces and tokens tell."""

import pytest

import evalcube as ec
from evalcube.flows.errors import SweepError
from evalcube.flows.read.forensics import clip, compression, cost, hazard
from evalcube.flows.read.selection import Part, open_part
from evalcube.stages.reply.status import Status
from tests.flows.support import SHARED, sweep_config


@pytest.fixture(scope="module")
def cube(tmp_path_factory, _served):
    """Two models, of which only the first shows its reasoning apart."""
    folder = tmp_path_factory.mktemp("traces")
    config = sweep_config(folder, _served.base_url, trials=3, models=("apart", "within"))
    config["models"][0]["simulate"]["reasoning"] = "field"
    ec.run(config, cluster=SHARED)
    return config["cube"]


@pytest.mark.parametrize("analysis", [hazard, compression, cost, clip], ids=lambda each: each.__name__)
def test_analyses__say_the_same_of_a_small_cube_and_of_what_is_read_piece_by_piece(cube, analysis):
    whole, lazy = (analysis(each, Part(where=["task=arithmetic"])) for each in (cube, ec.open_cube(cube)))

    assert repr(lazy[2]) == repr(whole[2])  # NaN equals itself there
    assert whole[2]


@pytest.mark.parametrize("analysis", [hazard, compression, cost], ids=lambda each: each.__name__)
def test_analyses__are_by_task_where_that_is_asked_for(cube, analysis):
    (_, whole, rows), (_, spec, parts) = analysis(cube), analysis(cube, by_task=True)

    assert "task" not in [column.head for column in whole.columns]
    assert [column.head for column in spec.columns][:2] == ["model", "task"]
    assert not any("task" in row for row in rows)
    assert {row["task"] for row in parts} == {"arithmetic", "boolean"}
    assert analysis(cube, Part(where=["task=boolean"]))[1].notes[0] == "Part of the cube (task=boolean)."


def test_hazard__counts_in_steps_of_so_many_tokens(cube):
    fine, coarse = (hazard(cube, width=width)[2] for width in (8, 64))

    assert len(fine) > len(coarse)


def test_clip__has_a_board_for_each_limit_the_smallest_first_and_one_without(cube):
    rows = clip(cube, limits=["64", "8"])[2]
    longest = int(open_part(cube).dataset["tokens"].max())

    assert [(row["model"], row["limit"]) for row in rows] == [
        (model, limit) for model in ("apart", "within") for limit in (8, 64, None)
    ]
    assert all(row["tokens"] <= 8 for row in rows if row["limit"] == 8)
    limits = [row["limit"] for row in clip(cube)[2] if row["model"] == "apart"][:-1]
    assert limits == [2**power for power in range(20) if longest / 64 <= 2**power < longest][-5:]
    for text in ("0", "1.5", "²", "-3"):
        with pytest.raises(SweepError, match="is no number of tokens"):
            clip(cube, limits=[text])


def test_clip__counts_what_was_cut_before_a_limit_as_right_at_most(cube):
    dataset = open_part(cube).dataset.compute()
    status, tokens = dataset["status"].values, dataset["tokens"].values
    short = (status <= 4) & (tokens < 1000)
    status[short & (tokens % 2 == 0)] = Status.TRUNCATED

    rows = {(row["model"], row["limit"]): row for row in clip(dataset, limits=["1", "1000"])[2]}

    for model in ("apart", "within"):
        assert rows[model, 1000]["accuracy_most"] > rows[model, 1000]["accuracy"]
        assert rows[model, 1]["accuracy_most"] == rows[model, 1]["accuracy"]  # longer ones would be, too
        assert rows[model, 1]["truncated"] == 1.0 > rows[model, 1000]["truncated"] > 0.0


def test_clip__without_lengths_of_answers_says_so(cube):
    with pytest.raises(SweepError, match="no array `tokens`"):
        clip(open_part(cube).dataset.drop_vars("tokens"))
