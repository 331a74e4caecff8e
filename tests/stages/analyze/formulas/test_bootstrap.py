import numpy as np
import pytest

from evalcube.stages.analyze.formulas import bootstrap
from evalcube.stages.analyze.formulas.bootstrap import DRAWN, draw_tier_scores
from evalcube.stages.analyze.formulas.reasonscore import mean_score, tier_score
from evalcube.stages.reply.status import COUNTERS
from tests.stages.analyze.synthetic import dataset


@pytest.fixture(scope="module")
def cube():
    ds = dataset(tasks=3, points=6)
    return ds["counters"].values, ds["in_tier"].values, ds["eval_id"].values.tolist()


def upper(counters):
    """Tier scores of version 1."""
    return tier_score(counters, labels=DRAWN).score


def drawn(counters, in_tier, names, **options):
    """Scores (model, draw, tier)."""
    settings = {"seed": 7, "score": upper, "draws": 300, **options}
    return np.stack(
        [draw_tier_scores(one, in_tier, name, **settings) for one, name in zip(counters, names, strict=True)]
    )


def ends(draws):
    """Both ends of the interval of each model's mean score."""
    return np.quantile(mean_score(draws), [0.025, 0.975], axis=1)


def test_draw_tier_scores__repeats_and_depends_on_the_seed(cube):
    assert np.array_equal(drawn(*cube), drawn(*cube))
    assert not np.array_equal(drawn(*cube), drawn(*cube, seed=8))


def test_draw_tier_scores__padding_cells_and_tasks_elsewhere_change_nothing(cube):
    counters, in_tier, names = cube
    wider = np.insert(counters, [0, 2, 7], 0.0, axis=2)
    members = np.insert(in_tier, [0, 2, 7], values=False, axis=2)

    padded = drawn(wider, members, names)

    assert np.array_equal(padded, drawn(*cube))


@pytest.mark.parametrize("draws", [1, 124, 126, 300])
def test_draw_tier_scores__fewer_draws_are_the_first_of_more(cube, draws):
    counters, in_tier, names = cube
    many = draw_tier_scores(counters[0], in_tier, names[0], seed=3, score=upper, draws=400)

    few = draw_tier_scores(counters[0], in_tier, names[0], seed=3, score=upper, draws=draws)

    assert np.array_equal(few, many[:draws])


def test_draw_tier_scores__brackets_the_score_and_narrows_with_trials():
    widths = []
    for trials in (16, 256):
        ds = dataset(tasks=4, trials=trials)
        grouped = np.einsum("gkp,mkpc->mgkc", ds["in_tier"].values.astype(float), ds["counters"].values)
        score = tier_score(grouped).score.mean(axis=-1)
        low, high = ends(drawn(ds["counters"].values, ds["in_tier"].values, ds["eval_id"].values.tolist()))
        widths.append(high - low)
        assert (low <= score).all()
        assert (score <= high).all()
    assert (widths[1] < 0.5 * widths[0]).all()


def test_draw_tier_scores__covers_the_score_of_the_true_rates():
    rng = np.random.default_rng(0)
    rates, n, sweeps = np.array([[0.8, 0.7, 0.6], [0.5, 0.6, 0.55]]), 400, 200
    labels = ("trials", "completed", "correct", "truncated", "guess_sum", "tokens_sum")
    in_tier = np.ones((1, 2, 3), dtype=bool)
    truth = np.zeros((2, 3, 6))
    truth[..., :2] = n
    truth[..., 2] = n * rates
    target = tier_score(truth.sum(axis=1), labels=labels).score
    seen = np.repeat(truth[np.newaxis], sweeps, axis=0)
    seen[..., 2] = rng.binomial(n, rates, size=(sweeps, 2, 3))

    low, high = ends(drawn(seen, in_tier, list(map(str, range(sweeps))), seed=1, labels=labels, draws=250))

    covered = np.mean((low <= target) & (target <= high))
    assert 0.90 <= covered <= 0.99


def test_draw_tier_scores__certain_outcomes_have_no_width():
    counters = np.zeros((1, 1, 2, len(COUNTERS)))
    counters[..., [0, 1, 2]] = 20

    low, high = ends(drawn(counters, np.ones((1, 1, 2), dtype=bool), ["a"], draws=50))

    assert (low, high) == (pytest.approx(1000), pytest.approx(1000))


def test_draw_tier_scores__model_without_trials_is_undefined():
    found = drawn(np.zeros((1, 2, 2, len(COUNTERS))), np.ones((2, 2, 2), dtype=bool), ["a"], draws=10)

    assert np.isnan(found).all()


def test_draw_tier_scores__agrees_with_redrawing_single_trials():
    counters = np.zeros((1, 2, len(COUNTERS)))
    columns = [0, 1, 2, 5, 6]  # trials, completed, correct, truncated, guess_sum
    counters[0, 0, columns] = [100, 80, 60, 20, 40]
    counters[0, 1, columns] = [50, 50, 30, 0, 10]
    outcomes = [np.repeat([1, 0, 2], [60, 20, 20]), np.repeat([1, 0], [30, 20])]
    rng = np.random.default_rng(5)
    oracle = []
    for _ in range(2000):
        total = np.zeros(len(COUNTERS))
        for kinds, chance in zip(outcomes, (0.5, 0.2), strict=True):
            trials = rng.choice(kinds, len(kinds))
            done = (trials != 2).sum()
            total[columns] += [len(trials), done, (trials == 1).sum(), (trials == 2).sum(), done * chance]
        oracle.append(tier_score([total]).score)

    found = drawn([counters], np.ones((1, 1, 2), dtype=bool), ["a"], seed=0, draws=2000)

    assert found.mean() == pytest.approx(np.mean(oracle), rel=0.01)
    assert found.std() == pytest.approx(np.std(oracle), rel=0.08)


def test_draw_tier_scores__refuses_counters_that_do_not_add_up(cube):
    counters, in_tier, names = cube
    broken = counters.copy()
    broken[0, 0, 0, 1] += 1

    with pytest.raises(ValueError, match=r"completed \+ truncated must equal trials"):
        drawn(broken, in_tier, names)


def test_stream__any_text_names_a_stream():
    draws = {bootstrap.stream(0, name, block).random() for name in ("a", "b", "\udcff") for block in (0, 1)}

    assert len(draws) == 6
