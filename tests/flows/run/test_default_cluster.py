"""Where a run works that names no cluster."""

import threading
from types import SimpleNamespace

import numpy as np

from evalcube.deploy.clusters import LocalProcesses, ThisProcess
from evalcube.flows.events import BlockDone
from evalcube.flows.run.cluster import default_cluster
from evalcube.flows.run.sweep import run
from evalcube.flows.run.worker import region_tasks
from tests.cases import with_cases
from tests.flows.support import sweep_config
from tests.waiting import PATIENCE


@with_cases(
    ("trials", "code", "kind"),
    [
        (0, [], ThisProcess),
        (100_000, [], ThisProcess),
        (100_001, [], LocalProcesses),
        (10_000, ["graders:mine"], ThisProcess),
        (10_001, ["graders:mine"], LocalProcesses),
    ],
)
def test_default_cluster__small_sweeps_need_no_process(trials, code, kind):
    plan = SimpleNamespace(code=code, packages={})

    assert isinstance(default_cluster(None, trials, plan), kind)


def test_run__asks_while_the_prompts_of_all_its_tasks_are_compared(tmp_path, simulator, monkeypatch):
    answered, came = threading.Event(), []

    def compare(task, planned, flags, stopped, trial, compared):  # noqa: ARG001 - the signature of `repeat_flags`
        came.append(answered.wait(PATIENCE))
        return np.zeros_like(flags)

    monkeypatch.setattr(region_tasks, "repeat_flags", compare)

    run(
        sweep_config(tmp_path, simulator.base_url),
        subscribers=[lambda event: answered.set() if isinstance(event, BlockDone) else None],
    )

    assert came == [True, True]
