"""How far cells are to be measured."""

import numpy as np
import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.part import Adaptive, Fixed, Selection
from evalcube.flows.plan.targets import SampleTargets, Window
from evalcube.stages.analyze.formulas.allocation import PrecisionTarget
from evalcube.stages.reply.status import COUNTERS
from evalcube.storage.cube.regions import Region


@pytest.fixture
def plan():
    entry = {"arithmetic": {"manifold": [{"grid": {"length": [3, 4, 5]}, "tiers": ["easy"]}]}}
    other = {"boolean": {"manifold": [{"points": [{"length": 4}], "tiers": ["easy", "hard"]}]}}
    models = [{"name": name, "endpoint": "sim:"} for name in ("alpha", "beta")]
    return build_plan(
        from_mapping({"models": models, "samplers": {"s": {"max_tokens": 9}}, "tasks": entry | other})
    )


def nothing(plan):
    return np.zeros((2, 2, 3, len(COUNTERS))), SampleTargets.uniform(plan, 0, 0)


def test_uniform__leaves_padding_out(plan):
    targets = SampleTargets.uniform(plan, 8, 2)

    assert targets.trials[0].tolist() == [[8, 8, 8], [8, 0, 0]]
    assert targets.counts == [4 * 16, 4 * 16]
    assert targets.maxima == (8, 2)


def test_mask__is_the_part_of_the_goal_in_a_region(plan):
    targets = SampleTargets.uniform(plan, 40, 1)
    window = Window(Region(1, 1, 0), (2, 3, 32, 1), 32, 0)

    mask = targets.mask(window)

    assert mask.sum() == targets.count(window) == 4 * 8
    assert mask[0, 0, :, 0].tolist() == [True] * 8 + [False] * 24
    assert not mask[1, 1:].any()


@pytest.mark.parametrize("first", [0, 5, 32, 35, 70])
@pytest.mark.parametrize("repeats", [1, 9])
def test_count__is_the_sum_of_the_mask(plan, first, repeats):
    targets = SampleTargets.uniform(plan, 40, repeats)
    targets.trials[1, 0] = [3, 33, 0]
    targets = SampleTargets(targets.trials, targets.repeats, first)

    for region in (Region(1, 0, 0), Region(1, 1, 0), Region(1, 1, 1), Region(0, 1, 1)):
        window = Window(region, (2, 3, 32, 8), 32 * region.trial, 8 * region.repeat)
        assert targets.count(window) == targets.mask(window).sum()
        assert (targets.by_cell(window) == targets.mask(window).sum(axis=(2, 3))).all()
        found = targets.positions(window, np.arange(targets.count(window)))
        assert (found == np.flatnonzero(targets.mask(window))).all()


@pytest.mark.parametrize(
    ("selection", "count"),
    [
        (Selection(), 8),
        (Selection(("model=alpha",)), 4),
        (Selection(("tier=hard",)), 2),
        (Selection(("model=beta", "task=arithmetic")), 3),
        (Selection(("task=boolean",)), 2),
        (Selection(("task=arithmetic", "model=beta", "length=4..")), 2),
    ],
)
def test_selection__chooses_cells_by_name(plan, selection, count):
    assert selection.mask(plan).sum() == count


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (Selection(("model=gamma",)), "`where`: there is no model 'gamma'. .*'alpha', 'beta'"),
        (Selection(("task=sort",), "only"), "`only`: there is no task 'sort'. .*'arithmetic', 'boolean'"),
        (Selection(("lenght=3",)), "`where`: .* Did you mean 'length'"),
        (Selection(("tier=x",)), "`where`: there is no tier 'x'. .*'easy', 'hard'"),
        (Selection(("task=arithmetic", "tier=hard")), "no point|nothing|no "),
    ],
)
def test_selection__refuses_what_is_not_there(plan, selection, message):
    with pytest.raises(SweepError, match=message):
        selection.mask(plan)


def test_fixed__leaves_the_rest_as_planned(plan):
    counters, _ = nothing(plan)
    planned = SampleTargets.uniform(plan, 8, 1)

    targets = Fixed(32, None, Selection(("model=beta",))).targets(plan, planned, counters)
    further = planned.union(targets)

    assert targets.counts == [0, 4 * 32]
    assert further.counts == [4 * 8, 4 * 32]
    assert Fixed(None, 3).targets(plan, planned, counters).counts == [4 * 24, 4 * 24]


def test_adaptive__begins_with_the_base_and_goes_on_where_it_is_not_sure(plan):
    counters, planned = nothing(plan)
    sampling = Adaptive(PrecisionTarget(32, 0.09, 192))

    first = sampling.targets(plan, planned, counters)
    counters[..., [COUNTERS.index(name) for name in ("trials", "completed", "correct")]] = 32
    counters[0, 0, 1, COUNTERS.index("correct")] = 16
    second = sampling.targets(plan, first, counters)

    assert first.same(SampleTargets.uniform(plan, 32, 1))
    assert second.trials[0, 0].tolist() == [32, 64, 32]
    assert second.trials.sum() == 8 * 32 + 32
