"""Budgets: what a round of one may cost, what is asked first, and why nothing would be asked."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.plan.targets import SampleTargets
from evalcube.flows.run.spending import Amount, Budget, resume
from evalcube.stages.reply.status import COUNTERS
from tests.cases import with_cases

SHAPE = (2, 1, 3)


@with_cases(
    ("text", "amount"),
    [
        ("2M", Amount(2e6, "tokens")),
        ("500k tokens", Amount(5e5, "tokens")),
        ("1 token", Amount(1.0, "tokens")),
        (" 5USD ", Amount(5.0, "usd")),
        ("$1.50", Amount(1.5, "usd")),
        ("$2k usd", Amount(2000.0, "usd")),
        ("1b", Amount(1e9, "tokens")),
        ("1000000b", Amount(1e15, "tokens")),
        ("1b usd", Amount(1e9, "usd")),
    ],
)
def test_amount__is_read_as_it_is_written(text, amount):
    assert Amount.parse(text) == amount


@with_cases("text", ["", "0", "-5", "5 EUR", "$5 tokens", "1.M", "²", "1000001b", "1.1b usd"])
def test_amount__of_nothing_or_too_much_is_refused(text):
    with pytest.raises(SweepError, match="`budget`"):
        Amount.parse(text)


@pytest.fixture
def spend(monkeypatch):
    """The targets of a round, with what was asked of the allocation; cells have cost 10 tokens for each of 8 trials."""

    def run(
        value,
        *,
        used=480.0,
        before=0.0,
        more=2,
        unit="tokens",
        purpose="ranking",
        short=0,
        free=False,
        chosen=True,
    ):
        counters = np.zeros((*SHAPE, len(COUNTERS)))
        counters[..., COUNTERS.index("trials")] = 8
        counters[..., COUNTERS.index("prompt_tokens_sum")] = used / 12
        counters[..., COUNTERS.index("tokens_sum")] = used / 12
        counters[..., COUNTERS.index("cost_sum")] = used / 6000
        if free:
            counters[0, ..., -len(COUNTERS) :] *= np.where(np.array(COUNTERS) == "trials", 1, 0)
        counters[0, 0, 0, COUNTERS.index("trials")] -= short
        seen = {}

        def allocate(_, trials, ranked, **options):
            seen.update(options, ranked=ranked)
            return trials + more * (np.asarray(options["cost"]) > 0) * (trials > 0)

        monkeypatch.setattr("evalcube.stages.analyze.formulas.allocation.allocate", allocate)
        mask = np.broadcast_to(np.array([chosen, chosen, False])[np.newaxis, np.newaxis], SHAPE)
        budget = Budget(Amount(value, unit), purpose, SimpleNamespace(mask=lambda _: mask), before)
        plan = SimpleNamespace(sources=np.full(SHAPE[1:], 100), ranked="ranked", base="base")
        planned = SampleTargets(np.full(SHAPE, 8), np.full(SHAPE, 1))
        return budget.targets(plan, planned, counters), seen

    return run


@pytest.mark.parametrize(
    ("value", "used", "budget"),
    [
        (1480.0, 480.0, 300.0),  # three tenths of what is left
        (1480.0, 1470.0, 10.0),  # no more than is left
        (1480.0, 1380.0, 74.0),  # and a twentieth of the whole at least
    ],
)
def test_targets__spend_a_part_of_what_is_left(spend, value, used, budget):
    targets, seen = spend(value, used=used)

    assert seen["budget"] == pytest.approx(budget)
    assert targets.trials[0, 0].tolist() == [10, 10, 0]
    assert targets.repeats[0, 0].tolist() == [1, 1, 0]


def test_targets__count_what_was_spent_before_as_gone_already(spend):
    assert spend(1000.0, used=480.0, before=480.0)[1]["budget"] == pytest.approx(300.0)
    assert spend(1000.0, used=480.0)[1]["budget"] == pytest.approx(156.0)


def test_targets__pay_by_what_trials_of_a_cell_have_cost(spend):
    _, seen = spend(1e6, used=480.0)
    assert seen["cost"][0, 0].tolist() == [10.0, 10.0, 1.0]
    assert seen["most"][0, 0].tolist() == [100, 100, 0]
    assert (seen["purpose"], seen["weights"], seen["ranked"]) == ("ranking", "base", "ranked")
    assert spend(1e6, unit="usd")[1]["cost"][0, 0, 0] == pytest.approx(480 / 6000 / 8)
    _, free = spend(1e6, free=True)  # no sum would bound what costs nothing
    assert free["most"][0].max() == 0
    assert free["most"][1].max() == 100


def test_targets__ask_first_what_is_planned(spend):
    targets, seen = spend(1e6, short=1)

    assert seen == {}
    assert targets.trials[1, 0].tolist() == [8, 8, 0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"used": 0.0}, "`budget`"),
        ({"used": 0.0, "unit": "usd"}, "no prices"),
        ({"chosen": False}, "nothing is measured yet"),
        ({"more": 0, "before": 480.0}, "no trial that it buys would change the ranking"),
    ],
)
def test_targets__that_would_ask_nothing_say_why(spend, options, words):
    with pytest.raises(SweepError, match=words):
        spend(1e6, **options)


def test_targets__of_a_budget_that_is_begun_may_add_nothing(spend):
    targets, _ = spend(1e6, more=0)

    assert targets.trials[0, 0].tolist() == [8, 8, 0]


BUDGET = Budget(Amount(100.0, "tokens"), "ranking", SimpleNamespace(), 0.0)


@pytest.mark.parametrize(
    ("prices", "evaluations", "words"),
    [
        ([], 2, "all the questions"),
        ([100.1, 200.0], 2, "one more trial costs about 100"),
        ([100.0, 200.0], 2, "no trial that it buys"),
        ([1.0], 1, "two models or more"),
    ],
)
def test_nothing_to_buy__has_a_reason(prices, evaluations, words):
    assert words in BUDGET._nothing_to_buy(np.array(prices), evaluations)[0]
    if evaluations == 1:
        of_intervals = replace(BUDGET, purpose="intervals")
        assert "no trial that it buys" in of_intervals._nothing_to_buy(np.array(prices), 1)[0]


def test_resume__goes_on_with_the_budget_that_is_the_same(monkeypatch):
    monkeypatch.setattr(Budget, "document", lambda self: {"value": self.amount.value, "before": self.before})

    assert resume(BUDGET, {"value": 100.0, "before": 7.0}).before == 7.0
    for noted in (
        {"value": 99.0, "before": 7.0},
        {"value": 100.0},
        {"value": 100.0, "before": "7"},
        None,
        [],
    ):
        assert resume(BUDGET, noted) is BUDGET
