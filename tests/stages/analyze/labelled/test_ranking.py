import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.analyze.formulas.compare.paired import paired_difference
from evalcube.stages.analyze.labelled.leaderboard import leaderboard
from evalcube.stages.analyze.labelled.pairing import compare_evaluations
from evalcube.stages.analyze.labelled.ranking import rank_rows
from evalcube.stages.analyze.render.table import Column, TableSpec, terminal
from evalcube.stages.analyze.render.table_specs import pair_conclusion
from evalcube.stages.reply.status import COUNTERS, Status
from tests.stages.analyze.synthetic import PROFILES, Profile, dataset


def test_standings__rows_clusters_and_wins_agree():
    ds = dataset(gaps=True)
    board = leaderboard(ds, draws=200)

    found = rank_rows(ds, board)

    assert [item.row for item in found.rows] == list(board.rows)
    for number, members in enumerate(found.clusters):
        best = max(board.rows[place].rank_interval.lower for place in members)
        assert best <= min(board.rows[place].rank_interval.upper for place in members)
        assert all(number in found.rows[place].clusters for place in members)
    assert found.rows[0].clusters[0] == 0
    ranked = np.array([row.rank is not None for row in board.rows])
    off = ~np.eye(len(PROFILES), dtype=bool) & np.outer(ranked, ranked)
    np.testing.assert_allclose((found.rates + found.rates.T)[off], 1)
    # Who lacks questions has no place among the others, and wins nothing from them.
    assert not ranked.all()
    assert [bool(item.clusters) for item in found.rows] == ranked.tolist()
    assert np.isnan([item.wins for item in found.rows]).tolist() == (~ranked).tolist()
    assert found.to_dict(board)["rows"][0]["expected_wins"] == found.rows[0].wins


@given(st.integers(0, 2**32), st.lists(st.floats(3, 8), min_size=2, max_size=7), st.sampled_from([4, 40]))
def test_standings__groups_and_places_say_the_same(seed, abilities, trials):
    people = [Profile(f"model {number}", ability=ability) for number, ability in enumerate(abilities)]
    ds = dataset(people, tasks=2, trials=trials, seed=seed)

    rows = rank_rows(ds, leaderboard(ds, draws=100)).rows

    for one in rows:
        assert one.row.rank_interval.lower <= one.row.rank <= one.row.rank_interval.upper
        for other in rows:
            ends = one.row.rank_interval, other.row.rank_interval
            meet = max(end.lower for end in ends) <= min(end.upper for end in ends)
            assert meet == bool(set(one.letters) & set(other.letters))


def test_standings__a_truncated_trial_is_a_failure():
    ds = dataset([Profile("a"), Profile("b")], tasks=2)
    for label in ("completed", "correct"):
        ds["counters"][0, ..., COUNTERS.index(label)] *= 0.5
    trials = ds["counters"][0, ..., COUNTERS.index("trials")]
    ds["counters"][0, ..., COUNTERS.index("completed")] = trials / 2
    ds["counters"][0, ..., COUNTERS.index("truncated")] = trials / 2
    ds["counters"][0, ..., COUNTERS.index("correct")] = np.floor(
        ds["counters"][1, ..., COUNTERS.index("correct")] / 2
    )
    ds["counters"][..., COUNTERS.index("guess_sum")] = 0

    board = leaderboard(ds, draws=20)

    wins = {item.label: item.wins for item in rank_rows(ds, board).rows}
    assert wins["a"] < 0.05


def test_standings__equals_that_may_guess_are_seldom_told_apart():
    ds = dataset([Profile(f"equal {number}") for number in range(40)], tasks=1, points=1)
    guessed = {"trials": 512, "completed": 512, "guess_sum": 256}
    for label, value in guessed.items():
        ds["counters"][:, 0, 0, COUNTERS.index(label)] = value
    for label in ("truncated", "invalid", "refused"):
        ds["counters"][:, 0, 0, COUNTERS.index(label)] = 0
    ds["counters"][:, 0, 0, COUNTERS.index("correct")] = np.random.default_rng(5).binomial(512, 0.55, 40)

    rates = rank_rows(ds, leaderboard(ds, draws=2)).rates

    decided = np.abs(rates[np.triu_indices(40, 1)] - 0.5) > 0.475
    assert decided.mean() < 0.09


def test_standings__needs_two_models():
    ds = dataset(PROFILES[:1])

    with pytest.raises(ValueError, match="at least two"):
        rank_rows(ds, leaderboard(ds, draws=20))


def with_status(first, second):
    ds = dataset([Profile("a"), Profile("b")], tasks=2, points=2)
    shape = (2, 2, 3, first.shape[-1], 1)
    status = np.full(shape, Status.MISSING, np.uint8)
    status[:, :, :2, :, 0] = np.stack([first, second])[:, np.newaxis]
    return ds.assign(status=(("model", "task", "params", "trial", "repeat"), status))


def test_compare_evaluations__lost_answers_bound_the_difference_and_may_leave_it_open():
    first, second = np.ones((2, 40), int), np.zeros((2, 40), int)
    few, many = first.copy(), first.copy()
    few[:, :2], many[:, :21] = int(Status.TRANSPORT), int(Status.TRANSPORT)

    whole, sure, unsure = (
        compare_evaluations(with_status(side, second), [0, 1])[0] for side in (first, few, many)
    )
    (both,) = compare_evaluations(with_status(many, np.where(many == 1, 0, 1)), [0, 1])

    assert whole.bounds is None
    assert sure.bounds == pytest.approx((38 / 40, 1.0))
    assert unsure.bounds == pytest.approx((19 / 40, 1.0))
    assert both.bounds == pytest.approx((-2 / 40, 19 / 40))
    assert both.overall.difference.value == 1.0
    assert pair_conclusion(sure).startswith("'a' is")
    assert "from +95.0 to +100.0 points." in pair_conclusion(sure)
    assert pair_conclusion(both).startswith("'a' was")
    assert "-5.0 to +47.5 points" in pair_conclusion(both)


def test_compare_evaluations__points_of_unequal_size_are_parts_of_their_own():
    """Few questions that agree beside many: whether counters say what was planned, or only the outcomes do."""
    rng = np.random.default_rng(1)
    first, second = rng.integers(0, 2, (2, 2, 200))
    first[0, 8:], second[0, 8:] = int(Status.MISSING), int(Status.MISSING)
    first[0, :8], second[0, :8] = 1, 1
    ds = with_status(first, second)
    ds["counters"].values[...] = 0
    for place, number in ((0, 8), (1, 200)):
        ds["counters"].values[:, :, place, COUNTERS.index("trials")] = number

    told, read = (compare_evaluations(one, [0, 1])[0].overall for one in (ds, ds.drop_vars("counters")))

    assert told.difference == read.difference
    counts = ([0, told.first_only / 2] * 2, [0, told.second_only / 2] * 2, [8, 200] * 2)
    value = told.difference
    assert (value.value, value.lower, value.upper) == pytest.approx(paired_difference(*counts))
    assert value.lower < paired_difference(*counts, units=200)[1] - 0.01


def test_leaderboard__who_lost_many_is_not_first_by_what_came():
    ds = dataset([Profile("a"), Profile("b")], tasks=1, points=2, trials=40)
    cells = ds["counters"]
    for name in ("correct", "tokens_sum", "truncated", "invalid", "refused"):
        cells.loc[{"counter": name}] = 0
    cells.loc[{"counter": "completed"}] = cells.sel(counter="trials")
    for model, right, kept in ((0, 24, 30), (1, 28, 40)):
        done = cells[model].sel(counter="trials") > 0
        for name, count in (
            ("trials", kept),
            ("completed", kept),
            ("correct", right),
            ("transport", 40 - kept),
        ):
            cells[model].loc[{"counter": name}] = count * done

    board = leaderboard(ds, draws=2)

    assert [(row.model_name, row.rank) for row in board.rows] == [("b", 1), ("a", 2)]
    assert board.rows[1].accuracy.value == pytest.approx(0.8)
    assert any("lost ones" in note for note in board.notes)


def test_compare_evaluations__counts_what_both_finished():
    first = np.array([[1, 1, 2, 255, 1], [1, 1, 1, 1, 0]])
    second = np.array([[0, 1, 1, 1, 254], [1, 0, 0, 1, 0]])

    (pair,) = compare_evaluations(with_status(first, second), [0, 1])
    (dropped,) = compare_evaluations(with_status(first, second), [0, 1], truncated="drop")

    task = pair.tasks[0]
    assert (task.trials, task.first_only, task.second_only, task.points) == (8, 3, 1, 2)
    assert task.difference.value == pytest.approx((0 / 3 + 2 / 5) / 2)
    assert pair.overall.trials == 16
    assert dropped.tasks[0].trials == 7
    assert pair_conclusion(pair).startswith("No significant difference")


def test_compare_evaluations__copies_of_answers_are_no_evidence():
    rng = np.random.default_rng(3)
    once = with_status(*(rng.integers(0, 2, (2, 40)) for _ in range(2)))
    asked = once.isel(repeat=[0] * 5)

    (single,), (copied,) = (compare_evaluations(ds, [0, 1]) for ds in (once, asked))

    assert (copied.overall.trials, copied.overall.questions) == (5 * 160, 160)
    for one, several in zip([*single.tasks, single.overall], [*copied.tasks, copied.overall], strict=True):
        assert several.p == pytest.approx(one.p)
        assert several.difference.value == pytest.approx(one.difference.value)
        assert several.difference.lower == pytest.approx(one.difference.lower, abs=2e-3)


def test_compare_evaluations__without_common_trials_is_refused():
    nothing = np.full((2, 5), 255)

    with pytest.raises(ValueError, match="trial in common"):
        compare_evaluations(with_status(nothing, np.ones((2, 5))), [0, 1])


def test_terminal__columns_give_way_before_names_do():
    columns = (
        Column("name", lambda row: row[0], right=False, name=True),
        Column("a", lambda _: "x" * 20, 2),
        Column("b", lambda _: "y" * 20, 1),
        Column("c", lambda _: "z" * 20),
    )
    table = TableSpec(columns, [("n" * 40,)])

    heads = {
        width: [str(item.header) for item in terminal(table, width=width).columns]
        for width in (110, 70, 50, 20)
    }

    assert heads == {
        110: ["name", "a", "b", "c"],
        70: ["name", "b", "c"],
        50: ["name", "c"],
        20: ["name", "c"],
    }


def pair_of(seed, trials, rates, base):
    """Two models on two points that were asked `trials` times, with the rates of each model and point."""
    rng = np.random.default_rng(seed)
    status = np.full((2, 2, max(trials)), Status.MISSING, np.uint8)
    for point, number in enumerate(trials):
        for model in range(2):
            status[model, point, :number] = rng.random(number) < rates[model][point]
    ds = with_status(status[0], status[1])
    weights = np.zeros((2, ds.sizes["params"]))
    weights[:, :2] = base
    (pair,) = compare_evaluations(ds.assign_coords(base_trials=(("task", "params"), weights)), [0, 1])
    return pair


@given(
    st.integers(0, 2**32),
    st.tuples(st.integers(1, 40), st.integers(1, 400)),
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=2),
    st.sampled_from([(1, 1), (128, 32)]),
)
def test_compare_evaluations__p_interval_and_words_say_the_same(seed, trials, rates, base):
    pair = pair_of(seed, trials, rates, base)

    for item in (pair.overall, *pair.tasks):
        gap = item.difference
        assert (item.p < 0.05) == (gap.lower > 0 or gap.upper < 0)
        assert item.p_holm >= item.p
    words, gap = pair_conclusion(pair), pair.overall.difference.value
    assert words.startswith("'a' is") == (pair.overall.p_holm < 0.05 and gap > 0)
    assert words.startswith("'b' is") == (pair.overall.p_holm < 0.05 and gap < 0)
    assert ("repeated looks" in words) == (pair.overall.p_holm < 0.05 and pair.overall.e < 20)
    for name, sign in (("a", 1), ("b", -1)):
        if f"'{name}' is ahead" in words:
            assert all(sign * item.difference.value > 0 for item in pair.tasks if item.p_holm < 0.05)


def test_compare_evaluations__trials_that_are_added_turn_no_sign():
    # a is better on the point that was asked often, b by more on the one that was asked as planned.
    pair = pair_of(1, (64, 2000), [(0.4, 0.6), (0.9, 0.5)], (64, 64))

    assert pair.overall.first_only > pair.overall.second_only
    assert pair.overall.difference.upper < 0
    assert pair_conclusion(pair).startswith("'b' is")
    assert pair.overall.e > 20
