"""What each worker is asked by `plan --check`."""

import pytest

from evalcube.deploy.clusters import ThisProcess
from evalcube.flows.config.load import from_mapping
from evalcube.flows.errors import SweepError
from evalcube.flows.run.cluster import check_workers
from tests.flows.support import simulator_stats, sweep_config


def test_check_workers__asks_no_model_and_leaves_nothing(tmp_path, simulator):
    settings = from_mapping(sweep_config(tmp_path, simulator.base_url))

    found = check_workers(settings, cluster=ThisProcess())

    assert list(found.values()) == [""]
    assert simulator_stats(simulator)["requests"] == 0
    assert [path.name for path in tmp_path.iterdir() if "check" in path.name] == []


def test_check_workers__names_what_is_missing(tmp_path, simulator):
    config = sweep_config(tmp_path, simulator.base_url)
    config["models"][0]["key_env"] = "EVALCUBE_NOT_SET"

    with pytest.raises(SweepError, match="EVALCUBE_NOT_SET"):
        check_workers(from_mapping(config), cluster=ThisProcess())
