"""Sweeps that are killed again and again, at moments that a seed chooses, and must end as if nothing had happened."""

import itertools

import pytest

from tests.chaos.campaign import Campaign, run_campaign
from tests.chaos.plan import TARGETS, make_plan


def test_make_plan__is_the_seed_s_and_strikes_everything():
    plan = make_plan(3, 400, 20_000)

    assert plan == make_plan(3, 400, 20_000)
    assert plan != make_plan(4, 400, 20_000)
    assert [strike.number for strike in plan] == list(range(1, 401))
    assert all(before.at <= after.at < 20_000 for before, after in itertools.pairwise(plan))
    assert {target for strike in plan for target in strike.targets} == set(TARGETS)
    assert {strike.moment for strike in plan} == {"flight", "start", "commit"}
    assert any(len(strike.targets) > 1 for strike in plan)
    assert any(strike.stopped for strike in plan)


SHORT = (983, 4, 400)
"""Seed, strikes and trials of a campaign whose few strikes are of all kinds."""


def test_make_plan__of_the_short_campaign_has_strikes_of_all_kinds():
    plan = make_plan(*SHORT)

    assert {target for strike in plan for target in strike.targets} == set(TARGETS)
    assert {strike.moment for strike in plan} == {"flight", "start", "commit"}
    assert any(len(strike.targets) > 1 for strike in plan)
    assert any(strike.stopped for strike in plan)
    assert any(strike.ends_driver for strike in plan)


@pytest.mark.parametrize(
    "campaign",
    [
        # Slow enough for one worker not to have asked everything while the scheduler is stopped.
        pytest.param(
            Campaign(*SHORT, workers=1, latency=0.8), marks=[pytest.mark.chaos, pytest.mark.timeout(1200)]
        ),
        # Whoever strikes may be late on a busy machine: a sweep lasts seconds without a strike.
        pytest.param(
            Campaign(12, 40, 2400, latency=0.2), marks=[pytest.mark.integration, pytest.mark.timeout(2400)]
        ),
    ],
    ids=["short", "long"],
)
def test_run__kills_leave_no_trace(campaign, tmp_path):
    told = []

    outcome = run_campaign(campaign, tmp_path, told.append)

    assert not outcome.violations, "\n".join([*told, *outcome.violations])
    # the last may not be due before the sweep is complete
    assert sum(outcome.struck.values()) >= campaign.strikes - max(1, campaign.strikes // 10)
