"""A gate at planned looks: when a line is settled, which is asked next, and how often it errs."""

import numpy as np
import pytest

from benchmarks.gate_operating import Design, decided
from evalcube.flows.config.views import Policy
from evalcube.flows.read.gate import PolicyLine
from evalcube.flows.run.gate import FUTILE, LOOKS, _stops, _with_interval, furthest, progress
from evalcube.stages.reply.status import Status
from tests.flows.read.test_gate import sides

RIGHT, WRONG, NEVER, FAILED = Status.CORRECT, Status.INCORRECT, Status.MISSING, Status.TRANSPORT
SIZES = {("sort", "a"): 10**6, ("sort", "b"): 10**6}
EASY = {"critical": [{"tiers": ["easy"], "noninferior": 5}]}


def asked(first, second, easy, hard=0, total=1000):
    """Two sides of which so many trials of each point were asked; those of the easy one are given."""
    there = [np.arange(total) < number for number in (easy, hard)]
    both = [
        [np.where(there[0], np.resize(given, total), NEVER), np.where(there[1], RIGHT, NEVER)]
        for given in (first, second)
    ]
    planned = np.broadcast_to(np.array(there)[np.newaxis, np.newaxis, :, :, np.newaxis], (2, 1, 2, total, 1))
    return sides(*both, planned.copy())


def of(policy, two, trials=1000, **options):
    return progress(two, Policy.model_validate(policy), trials, SIZES, **options)


def test_progress__before_the_first_look_asks_what_it_takes():
    (one,) = of(EASY, asked([RIGHT], [RIGHT], 399))

    assert (one.next, one.line.look, one.line.looks, np.isnan(one.line.chance)) == (400, 0, 5, True)
    assert furthest([one]) == [one]


def test_progress__is_settled_as_soon_as_a_look_shows_it():
    (one,) = of(EASY, asked([RIGHT] * 9 + [WRONG], [RIGHT] * 9 + [WRONG], 1000))

    assert (one.line.outcome, one.line.look, one.line.looks, one.line.questions) == ("shown", 1, 5, 400)
    assert (one.next, one.line.lower < 0 < one.line.upper) == (None, True)


def test_progress__goes_on_where_it_is_open_and_there_is_hope():
    first, second = [RIGHT] * 12 + [WRONG] * 3, [WRONG] * 2 + [RIGHT] * 11 + [WRONG] + [RIGHT]

    (one,) = of(EASY, asked(first, second, 400))

    assert (one.line.outcome, one.line.look, one.next) == ("open", 1, 550)
    assert 0.25 < one.line.chance < 1


@pytest.mark.parametrize("to_the_end", [False, True])
def test_progress__gives_up_what_is_hardly_shown_or_refuted_any_more_unless_asked_to_the_end(to_the_end):
    first, second = [RIGHT] * 10 + [WRONG] * 7, [WRONG] * 10 + [RIGHT] * 7

    (one,) = of(EASY, asked(first + [RIGHT] * 23, second + [RIGHT] * 23, 400), to_the_end=to_the_end)

    assert (one.line.outcome, one.line.look, one.next) == ("open", 1, 550 if to_the_end else None)
    assert max(one.line.chance, one.line.chance_refuted) < FUTILE
    assert furthest([one]) == [one] * to_the_end


def test_progress__asks_on_where_a_line_that_is_hardly_shown_is_likely_to_be_refuted():
    first, second = [RIGHT] * 14 + [WRONG] * 6, [WRONG, RIGHT] * 7 + [RIGHT] * 3 + [WRONG, RIGHT, RIGHT]

    (one,) = of(EASY, asked(first, second, 400))

    assert (one.line.outcome, one.line.look, one.next) == ("open", 1, 550)
    assert one.line.chance < FUTILE < one.line.chance_refuted


def test_stops__no_look_spends_more_than_the_largest_point_has_told():
    cells, own = np.ones((1, 3), dtype=bool), np.array([[400, 1000, 400]])

    assert _stops(cells, 1000, own) == {0.4: 400, 0.55: 550, 0.7: 700, 0.85: 850, 1.0: 1000}
    assert _stops(cells, 1000, np.minimum(own, 500)) == {0.8: 400, 1.0: 1000}
    assert _stops(~cells, 1000, own) == {}


def test_with_interval__of_ten_gains_in_ten_is_no_certainty():
    line = PolicyLine("critical", "", "", "superior", 0.0, change=1.0, questions=10, worth=10.0)

    found = _with_interval(line, 0.025)

    assert (found.lower, found.upper, found.level) == (pytest.approx(0.445, abs=0.001), 1.0, 0.95)


def test_progress__answers_that_failed_are_lacking_and_keep_nobody_waiting():
    (one,) = of(EASY, asked([RIGHT], [FAILED] * 2 + [RIGHT] * 8, 400))

    assert (one.line.look, one.line.lacking, one.line.outcome) == (1, 80, "open")


def test_furthest__is_the_critical_line_that_is_least_likely_to_be_shown():
    policy = {
        "critical": [{"tiers": ["easy"], "noninferior": 5}, {"tiers": ["hard"], "noninferior": 2}],
        "supporting": [{"superior": 0}],
    }
    first, second = [RIGHT] * 12 + [WRONG] * 3, [WRONG] * 2 + [RIGHT] * 11 + [WRONG] + [RIGHT]

    begun = of(policy, asked(first, second, 400, 0))
    later = of(policy, asked(first, second, 400, 400))

    assert [one.line.tier for one in furthest(begun)] == ["hard", ""]
    assert [one.line.tier for one in furthest(later)] == ["easy"]
    assert later[1].line.outcome == "shown"


def test_furthest__is_none_once_a_critical_line_is_refuted():
    policy = {"critical": [{"tiers": ["easy"], "noninferior": 1}, {"tiers": ["hard"], "noninferior": 1}]}

    lines = of(policy, asked([RIGHT], [WRONG] * 3 + [RIGHT] * 7, 400, 0))

    assert (lines[0].line.outcome, lines[1].next, furthest(lines)) == ("refuted", 400, [])


def test_progress__of_names_that_are_nowhere_asks_nothing():
    (one,) = of({"critical": [{"tasks": "letters", "noninferior": 1}]}, asked([RIGHT], [RIGHT], 10))

    assert (one.next, one.line.outcome) == (None, "not measured")


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "least"),
    [(0.0, {"shown": 0.55}), (-0.06, {}), (-0.12, {"refuted": 0.6})],
)
def test_progress__errs_as_seldom_as_it_says_and_decides_nearly_as_often_as_one_look(change, least):
    """Five looks, clusters, repeats, and losses: 20 runs are few, but each stands for thousands in the benchmark."""
    design = Design("clusters", change=change, cluster=4, together=0.5, repeats=2, lost=0.002)
    policy = Policy.model_validate({"critical": [{"noninferior": 6}]})
    rng = np.random.default_rng(2)

    found = [decided(design, rng, 480, policy) for _ in range(20)]

    rates = {name: np.mean([one[0] == name for one in found]) for name in ("shown", "refuted")}
    at_once = {name: np.mean([one[2] == name for one in found]) for name in rates}
    for name, rate in rates.items():
        assert rate >= least.get(name, 0.0) * at_once[name]
        assert name in least or rate <= 0.1
    assert {share for _, share, _ in found} <= set(LOOKS)
