"""A driver that dies leaves workers behind which go on: they must stop asking, or everything is paid for twice."""

import pytest

from tests.chaos.campaign import Campaign
from tests.chaos.processes import fleet, wait_for

pytestmark = pytest.mark.chaos


def test_run__workers_send_nothing_more_when_their_driver_is_gone(tmp_path):
    campaign = Campaign(seed=0, strikes=0, trials=6000, latency=2.0)
    with fleet(tmp_path, workers=1) as ships:
        ships.serve()
        ships.assemble()
        ships.drive(str(campaign.config(tmp_path, ships.endpoint, "struck")), local=False)
        wait_for(lambda: ships.requests() > 32, "some requests")

        ships.end(ships.find("driver"))
        at_death = ships.requests()
        wait_for(lambda: ships.in_flight() == 0, "what is in flight")

        # Some more are sent until the worker hears of it, eight a second; it has hundreds in its blocks of 64.
        assert ships.requests() <= at_death + 120
