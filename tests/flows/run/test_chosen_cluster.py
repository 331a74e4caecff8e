"""The cluster that a run works on."""

import pytest

from evalcube.deploy.clusters import ExistingScheduler, GivenCluster, LocalProcesses, MadeCluster
from evalcube.deploy.clusters.code import WorkerChoice
from evalcube.flows.config.load import from_mapping
from evalcube.flows.errors import SweepError
from evalcube.flows.run.cluster import chosen_cluster

PLAN = {
    "name": "my sweep",
    "models": [{"name": "a", "endpoint": "https://host/v1", "key_env": "MY_KEY"}],
    "tasks": {"boolean": {"params": {"length": 4}}},
}


def sweep(**changes):
    return from_mapping({**PLAN, **changes})


def test_chosen_cluster__waits_for_a_scheduler_no_longer_than_its_patience():
    settings = sweep(cluster={"address": "tcp://config:1", "patience": "3s"})

    assert chosen_cluster(settings).timeout == 3.0


@pytest.mark.parametrize(
    ("workers", "choice"),
    [
        (["gpu1", "tcp://host:4"], WorkerChoice(("gpu1", "tcp://host:4"), "", -2)),
        ("gpu1", WorkerChoice(("gpu1",), "", -2)),
        ({"resource": "eval"}, WorkerChoice((), "eval", -2)),
        (None, WorkerChoice((), "", -2)),
    ],
)
def test_chosen_cluster__uses_the_workers_of_a_scheduler_that_are_named(workers, choice):
    section = {"address": "tcp://config:1", "priority": -2}
    settings = sweep(cluster=section if workers is None else {**section, "workers": workers})

    assert chosen_cluster(settings).choice == choice


def test_chosen_cluster__what_is_given_comes_before_the_config(tmp_path):
    settings = sweep(cluster={"address": "tcp://config:1", "patience": "20m", "minimum": 3})
    (tmp_path / "one.yaml").write_text("{class: local, scale: 3}")

    assert chosen_cluster(settings) == ExistingScheduler("tcp://config:1", patience=1200.0, minimum=3)
    assert chosen_cluster(settings).timeout == 10.0
    assert chosen_cluster(settings, scheduler="tcp://given:1").address == "tcp://given:1"
    assert chosen_cluster(settings, workers=2) == LocalProcesses(2)
    assert chosen_cluster(settings, cluster=tmp_path / "one.yaml") == LocalProcesses(3)
    assert chosen_cluster(settings, cluster=LocalProcesses(5)) == LocalProcesses(5)
    assert chosen_cluster(sweep()) is None
    with pytest.raises(SweepError, match="`cluster` excludes"):
        chosen_cluster(settings, cluster="local", workers=2)


def test_chosen_cluster__makes_what_a_class_describes_and_takes_what_is_given():
    section = {"class": "dask_jobqueue.SLURMCluster", "options": {"cores": 2}, "scale": 3, "minimum": 2}
    given = object()

    found = chosen_cluster(sweep(cluster=section))

    assert found == MadeCluster("dask_jobqueue.SLURMCluster", {"cores": 2}, 3, minimum=2)
    assert found.patience == 3600.0
    assert chosen_cluster(sweep(), cluster=given) == GivenCluster(given)


def test_chosen_cluster__jobs_that_get_a_whole_sweep_are_for_submit():
    with pytest.raises(SweepError, match="Type `evalcube submit`"):
        chosen_cluster(sweep(cluster={"slurm": {"options": ["--time=2:00:00"]}}))
