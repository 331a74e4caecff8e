"""How sampling copes with plans that others left: half written, of another shape, or of models that cost nothing."""

from dataclasses import replace

import numpy as np
import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.part import MOST_TRIALS, Adaptive, Fixed, Only, Selection, _trials
from evalcube.flows.plan.targets import SampleTargets
from evalcube.flows.run.spending import Amount, Budget
from evalcube.flows.state.store import open_store
from evalcube.stages.analyze.formulas.allocation import PrecisionTarget
from evalcube.stages.reply.status import COUNTERS

PRECISION = PrecisionTarget(base=32, target=0.09, maximum=192)

PLAIN = {
    "models": [{"name": name, "endpoint": "sim:"} for name in ("paid", "free")],
    "samplers": {"s": {"max_tokens": 9}},
    "tasks": {"arithmetic": {"manifold": [{"grid": {"length": [3, 4, 5]}}]}},
}


@pytest.fixture
def plan():
    return build_plan(from_mapping(PLAIN))


def counted(targets, correct=0.5, cost=(0.0, 0.0)):
    counters = np.zeros((*targets.trials.shape, len(COUNTERS)))
    trials = targets.trials * targets.repeats
    values = {"trials": trials, "completed": trials, "correct": trials * correct}
    values["cost_sum"] = trials * np.array(cost)[:, None, None]
    for name, value in values.items():
        counters[..., COUNTERS.index(name)] = value
    return counters


def test_adaptive__begins_with_base_after_a_kill_between_the_two_halves_of_a_plan(plan):
    half = SampleTargets.uniform(plan, 32, 0)
    targets = Adaptive(PRECISION).targets(plan, half, counted(half))

    assert targets.same(SampleTargets.uniform(plan, 32, 1))


def test_adaptive__goes_on_where_the_plan_has_more_repeats(plan):
    planned = SampleTargets.uniform(plan, 32, 2)
    sampling = Adaptive(PrecisionTarget(base=32, target=0.01, maximum=192))
    targets = sampling.targets(plan, planned, counted(planned))

    assert targets.same(SampleTargets.uniform(plan, 64, 2))


@pytest.mark.parametrize(("trials", "repeats"), [(16, 1), (4, 5), (4, 1), (16, 5), (None, 5), (16, None)])
def test_fixed__leaves_no_part_of_the_plan_to_nobody(plan, trials, repeats):
    planned = SampleTargets.uniform(plan, 8, 3)
    targets = Fixed(trials, repeats).targets(plan, planned, counted(planned))
    union = planned.union(targets)

    measured = np.maximum(planned.trials * planned.repeats, targets.trials * targets.repeats)
    np.testing.assert_array_equal(measured, union.trials * union.repeats)


def test_budget__gives_models_that_cost_nothing_no_trials(plan):
    planned = SampleTargets.uniform(plan, 16, 1)
    counters = counted(planned, cost=(0.002, 0.0))
    budget = Budget(Amount(5.0, "usd"), "intervals", Selection(), 16 * 3 * 0.002)
    targets = budget.targets(plan, planned, counters)

    assert (targets.trials[0] > 16).all()
    assert (targets.trials[1] == 16).all()
    assert (targets.trials - 16).sum() * 0.002 <= 5.0


@pytest.mark.parametrize("purpose", ["ranking", "intervals"])
def test_budget__plans_no_more_than_what_is_left_of_it(plan, purpose):
    planned, price, left = SampleTargets.uniform(plan, 1600, 1), 0.002, 0.03
    counters = counted(planned, cost=(price, price))
    used = 1600 * 6 * price
    amount = used / (1 - left)
    targets = Budget(Amount(amount, "usd"), purpose, Selection(), 0.0).targets(plan, planned, counters)

    more = (targets.trials - planned.trials).sum() * price
    assert 0 < more <= left * amount


@pytest.mark.parametrize(
    ("models", "amount", "purpose", "message"),
    [
        (1, 5.0, "ranking", "a ranking needs two models or more, and here is one"),
        (2, 0.001, "intervals", "one more trial costs about 0.002 usd"),
    ],
)
def test_budget__that_would_add_nothing_says_why(plan, models, amount, purpose, message):
    plan = replace(plan, evaluations=plan.evaluations[:models])
    planned = SampleTargets.uniform(plan, 16, 1)
    counters = counted(planned, cost=(0.002, 0.002)[:models])
    budget = Budget(Amount(amount, "usd"), purpose, Selection(), 16 * 3 * 0.002 * models)

    with pytest.raises(SweepError, match=message):
        budget.targets(plan, planned, counters)


def test_budget__that_finds_no_questions_left_says_so(plan, monkeypatch):
    planned = SampleTargets.uniform(plan, 16, 1)
    budget = Budget(Amount(5.0, "usd"), "intervals", Selection(), 16 * 6 * 0.002)
    monkeypatch.setattr(type(plan), "sources", property(lambda _: np.full((2, 1, 3), 16)))

    with pytest.raises(SweepError, match="have all the questions that there are"):
        budget.targets(plan, planned, counted(planned, cost=(0.002, 0.002)))


@pytest.mark.parametrize(
    ("trials", "repeats", "message"),
    [
        (10**7 + 1, 1, r"10,000,001 trials of a cell are more than a cube can have: 10,000,000"),
        (1, 10**5 + 1, r"100,001 repeats are more"),
        (10**7, 20, r"1,200,000,000 requests are more than a cube can have: 1,000,000,000"),
    ],
)
def test_refuse_too_many__tells_which_number(plan, trials, repeats, message):
    SampleTargets.uniform(plan, 10**7, 10).refuse_too_many()

    with pytest.raises(SweepError, match=message):
        SampleTargets.uniform(plan, trials, repeats).refuse_too_many()


def test_refuse_too_many__questions_of_all_tasks():
    sizes = np.full((1, 4, 25), 600_000, dtype=np.int32)

    with pytest.raises(SweepError, match=r"60,000,000 questions \(4 tasks x 25 points x 600,000 trials\)"):
        SampleTargets(sizes, np.ones_like(sizes)).refuse_too_many()


def test_open_home__leaves_no_cube_that_would_be_too_large(plan, tmp_path):
    with pytest.raises(SweepError, match="than a cube"):
        open_store(replace(plan, trials=10**7, repeats=10**5), str(tmp_path / "cube.zarr"))

    assert list(tmp_path.iterdir()) == []


def test_parse__refuses_digits_that_are_no_ascii():
    with pytest.raises(SweepError, match="is no amount"):
        Amount.parse("２M")


@pytest.mark.parametrize("text", ["9999999999999999M", "2000000000USD", "9" * 400])
def test_parse__refuses_amounts_that_bound_nothing(text):
    with pytest.raises(SweepError, match="is more than 1,000,000,000"):
        Amount.parse(text)


@pytest.mark.parametrize(
    ("text", "span"),
    [("16", (0, 16)), ("16:32", (16, 32)), (" 0:1 ", (0, 1)), (f"{MOST_TRIALS}", (0, MOST_TRIALS))],
)
def test_trials__are_the_first_ones_or_those_after_some(text, span):
    assert _trials(text) == span


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        *((text, "is no range") for text in ("x", "1:2:3", "-1", "")),
        *((text, "is empty") for text in ("0", "8:8")),
        (f"{MOST_TRIALS + 1}", "is too large"),
    ],
)
def test_trials__that_are_none_are_named(text, problem):
    with pytest.raises(SweepError, match=f"`trials`: '{text}' {problem}"):
        _trials(text)


def test_only__asks_what_is_chosen_of_the_whole_plan(plan):
    part, later = Only.of(["model=free"]), Only.of([], "4:6")
    config = from_mapping({**PLAIN, "trials": 9, "repeats": 2})

    assert Only.of() is None
    with pytest.raises(SweepError, match=r'Write only=\["model=free"\]'):
        Only.of("model=free")
    targets = part.targets(replace(plan, trials=6))
    assert (targets.first, targets.trials.max(axis=(1, 2)).tolist()) == (0, [0, 6])
    assert later.targets(plan).first == 4
    for only, trials in ((part, 9), (later, 6)):
        assert only.whole(config, plan).same(SampleTargets.uniform(plan, trials, 2))
        assert only.sampling(config) == Fixed(trials, 2, only.selection)
    with pytest.raises(SweepError, match="`trials` excludes `precision`"):
        later.sampling(from_mapping({**PLAIN, "precision": {"base": 8, "target": 0.1, "max": 64}}))
