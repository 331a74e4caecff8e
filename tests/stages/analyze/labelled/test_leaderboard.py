"""Who is ranked, and what the board leads with, where an evaluation has only begun."""

import pytest

from evalcube.stages.analyze.labelled.leaderboard import leaderboard
from evalcube.stages.reply.status import COUNTERS
from tests.stages.analyze.synthetic import Profile, dataset


def test_leaderboard__an_abandoned_attempt_neither_ranks_nor_takes_the_score_from_the_others():
    ds = dataset(
        [Profile("whole", ability=4), Profile("also", ability=3), Profile("tried", ability=9)], trials=64
    )
    counters = ds["counters"].values.copy()
    few = dataset([Profile("tried", ability=9)], trials=2)["counters"].values[0]
    lost = counters[2, ..., 0] > 0
    few[..., COUNTERS.index("transport")] += lost
    few[..., COUNTERS.index("missing")] += counters[2, ..., 0] - few[..., 0] - lost
    counters[2] = few
    begun = ds.assign(counters=(ds["counters"].dims, counters))
    every = ds.assign(counters=(ds["counters"].dims, counters[[2, 2, 2]]))

    board = leaderboard(begun, draws=20)
    alone = leaderboard(ds.isel(model=[0, 1]), draws=20)

    assert board.lead == alone.lead == "score"
    assert [(row.model_name, row.rank) for row in board.rows] == [("whole", 1), ("also", 2), ("tried", None)]
    assert len({row.planned for row in board.rows}) == 1
    assert board.rows[2].done == pytest.approx(2 / 64)
    assert any("(*)" in note and "tried has" in note for note in board.notes)
    assert all(row.rank is not None for row in leaderboard(every, draws=20).rows)


def test_leaderboard__of_data_sets_alone_leads_with_accuracy():
    ds = dataset([Profile("one", ability=4), Profile("other", ability=3)], trials=256)
    tasks = ds.sizes["task"]
    rows_only = ds.assign_coords(data_set=("task", [True] * tasks))
    mixed = ds.assign_coords(data_set=("task", [False] + [True] * (tasks - 1)))

    board = leaderboard(rows_only, draws=20)
    chosen = leaderboard(rows_only, mode="C_P", draws=20)

    assert (board.lead, board.mode, board.heads[0]) == ("rate", "E_P", "accuracy")
    assert [board.leading(row) for row in board.rows] == [row.accuracy for row in board.rows]
    assert not any("ReasonScore needs" in note for note in board.notes)
    assert (chosen.lead, chosen.heads[0]) == ("rate", "C_P")
    assert leaderboard(rows_only, version="v1", draws=20).lead == "score"
    assert leaderboard(mixed, draws=20).lead == leaderboard(ds, draws=20).lead == "score"
    assert leaderboard(ds, draws=20).mode == "C_P"


def test_leaderboard__may_sum_all_trials_as_they_are_and_says_what_that_would_be():
    ds = dataset(tasks=3).assign_coords(data_set=("task", [True] * 3))
    ds = ds.assign_coords(base_trials=ds["counters"].sel(counter="trials", drop=True).astype(int))
    ds["counters"][:, :, 0] *= 8
    ds["counters"][:, 1] *= 3
    sums = ds["counters"].where(ds["in_tier"].any("tier")).sum(["task", "params"])
    expected = sums.sel(counter="correct") / sums.sel(counter="trials")

    by_tasks, board = leaderboard(ds, draws=2), leaderboard(ds, draws=2, weigh="trials")

    for row in board.rows:
        model = ds["model_name"].values.tolist().index(row.model_name)
        assert row.accuracy.value == pytest.approx(expected.values[model])
        assert row.pooled == row.accuracy.value
    assert "All trials have equal weight" in board.notes[-1]
    shown = f"{100 * by_tasks.rows[0].pooled:.1f}% for {by_tasks.rows[0].model_name}"
    assert f"which is {shown}" in by_tasks.notes[-1]
    assert "--weigh trials" in by_tasks.notes[-1]
    with pytest.raises(ValueError, match="`weigh`"):
        leaderboard(ds, weigh="points")
