"""A driver that dies leaves workers behind which go on: they must stop asking, or everything is paid for twice."""

import pytest

from evalcube.deploy.clusters import LocalProcesses
from tests.chaos.campaign import Campaign
from tests.flows.support import command, simulator_stats
from tests.waiting import wait_until

pytestmark = pytest.mark.chaos


def test_run__workers_send_nothing_more_when_their_driver_is_gone(tmp_path, simulator):
    campaign = Campaign(seed=0, strikes=0, trials=6000, latency=2.0)
    config = campaign.config(tmp_path, f"sim:{simulator.base_url}", "struck")
    with LocalProcesses(workers=1, dashboard=False).connect() as connection:
        driver = command("run", config, "--scheduler", connection.client.scheduler.address, cwd=tmp_path)
        wait_until(lambda: simulator_stats(simulator)["requests"] > 32)

        driver.kill()
        driver.communicate()
        at_death = simulator_stats(simulator)["requests"]
        wait_until(lambda: simulator_stats(simulator)["in_flight"] == 0)

        # Some more are sent until the worker hears of it, eight a second; it has hundreds in its blocks of 64.
        assert simulator_stats(simulator)["requests"] <= at_death + 120
