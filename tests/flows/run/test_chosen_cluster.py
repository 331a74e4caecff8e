"""The cluster that a run works on."""

import pytest

from evalcube.deploy.clusters import ExistingScheduler, LocalProcesses
from evalcube.deploy.clusters.code import Choice
from evalcube.deploy.clusters.slurm import Slurm
from evalcube.flows.config.load import from_mapping
from evalcube.flows.errors import SweepError
from evalcube.flows.run.chosen_cluster import chosen_cluster, script_of

PLAN = {
    "name": "my sweep",
    "models": [{"name": "a", "endpoint": "https://host/v1", "key_env": "MY_KEY"}],
    "tasks": {"boolean": {"params": {"length": 4}}},
}
SLURM = {
    "kind": "slurm",
    "jobs": {"minimum": 2, "maximum": 8},
    "cores": 4,
    "walltime": "2h",
    "environment": ["MORE"],
}


def sweep(**changes):
    return from_mapping({**PLAN, **changes})


def test_chosen_cluster__waits_for_a_scheduler_no_longer_than_its_patience():
    settings = sweep(cluster={"kind": "scheduler", "address": "tcp://config:1", "patience": "3s"})

    assert chosen_cluster(settings).timeout == 3.0


@pytest.mark.parametrize(
    ("workers", "choice"),
    [
        (["gpu1", "tcp://host:4"], Choice(("gpu1", "tcp://host:4"), "", -2)),
        ("gpu1", Choice(("gpu1",), "", -2)),
        ({"resource": "eval"}, Choice((), "eval", -2)),
        (None, Choice((), "", -2)),
    ],
)
def test_chosen_cluster__uses_the_workers_of_a_scheduler_that_are_named(workers, choice):
    section = {"kind": "scheduler", "address": "tcp://config:1", "priority": -2}
    settings = sweep(cluster=section if workers is None else {**section, "workers": workers})

    assert chosen_cluster(settings).choice == choice


def test_chosen_cluster__what_is_given_comes_before_the_config(tmp_path):
    settings = sweep(
        cluster={"kind": "scheduler", "address": "tcp://config:1", "patience": "20m", "minimum": 3}
    )
    (tmp_path / "one.yaml").write_text("{kind: local, workers: 3}")

    assert chosen_cluster(settings) == ExistingScheduler("tcp://config:1", patience=1200.0, minimum=3)
    assert chosen_cluster(settings).timeout == 10.0
    assert chosen_cluster(settings, scheduler="tcp://given:1").address == "tcp://given:1"
    assert chosen_cluster(settings, workers=2) == LocalProcesses(2)
    assert chosen_cluster(settings, cluster=tmp_path / "one.yaml") == LocalProcesses(3)
    assert chosen_cluster(settings, cluster=LocalProcesses(5)) == LocalProcesses(5)
    assert chosen_cluster(sweep()) is None
    with pytest.raises(SweepError, match="`cluster` excludes"):
        chosen_cluster(settings, cluster="local", workers=2)


def test_chosen_cluster__jobs_of_slurm_get_the_keys_by_name(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-secret-123")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    found = chosen_cluster(sweep(cluster=SLURM, cube=str(tmp_path / "a" / "c.zarr")))

    assert isinstance(found, Slurm)
    assert (found.jobs, found.minimum, found.settings.walltime) == (8, 8, 7200.0)
    assert found.settings.environment == ("MY_KEY", "MORE")
    assert found.settings.logs == str(tmp_path / "a" / "slurm-logs")
    script = script_of(sweep(cluster=SLURM))
    assert "sk-secret" not in script
    assert ",MY_KEY,MORE\n" in script
    assert "--job-name=evalcube-my-sweep\n" in script


def test_chosen_cluster__variables_of_object_stores_go_along_where_something_is_in_one(monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")

    found = chosen_cluster(sweep(cluster=SLURM, cube="s3://bucket/c.zarr"))

    assert "AWS_SECRET_ACCESS_KEY" in found.settings.environment


def test_script_of__needs_jobs():
    with pytest.raises(SweepError, match="has no job scripts"):
        script_of(sweep())
