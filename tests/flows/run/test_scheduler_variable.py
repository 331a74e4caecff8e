"""The scheduler that Dask's own variable names, where nothing else names a cluster."""

import pytest

from evalcube.deploy.clusters import ExistingScheduler, LocalProcesses
from evalcube.flows.config.load import as_config
from evalcube.flows.run.cluster import chosen_cluster
from tests.flows.support import sweep_config


@pytest.fixture(autouse=True)
def _in_a_pod(monkeypatch):
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", "tcp://pod:8786")


def chosen(tmp_path, settings=None, **options):
    return chosen_cluster(
        as_config(sweep_config(tmp_path, "http://127.0.0.1:9/v1", **settings or {})), **options
    )


def test_chosen_cluster__is_that_of_dasks_variable(tmp_path):
    assert chosen(tmp_path) == ExistingScheduler("tcp://pod:8786")


def test_chosen_cluster__of_a_config_or_an_option_comes_first(tmp_path):
    assert chosen(tmp_path, workers=2) == LocalProcesses(2)
    assert chosen(tmp_path, scheduler="tcp://other:1") == ExistingScheduler("tcp://other:1")
    assert chosen(tmp_path, {"cluster": "tls://own:2"}).address == "tls://own:2"
