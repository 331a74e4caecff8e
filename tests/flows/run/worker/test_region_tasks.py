"""Tasks of a driver that lost its cube to another one must not write there any more."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from evalcube.flows.plan.targets import NOTHING_KEPT, Window
from evalcube.flows.run.worker import region_tasks
from evalcube.storage.cube.regions import Region
from evalcube.storage.errors import LeaseLostError


class Cube:
    """One that may be read."""

    records = SimpleNamespace(get=lambda *_: None)

    def refresh(self):
        pass

    def read_duplicates(self):
        return np.zeros((1, 1, 1), np.uint8)

    def read_planned(self, _):
        return np.zeros((1, 1, 1), np.int64)

    def __getattr__(self, name):
        pytest.fail(f"{name} was called without a lease")


class Workspace:
    cube = Cube()
    plan = SimpleNamespace(tasks=[SimpleNamespace(cells=())])

    comparing = nullcontext()
    make_trial = None

    def check_lease(self):
        raise LeaseLostError("lost", "lease.json", "Wait.")


@pytest.mark.parametrize(
    "write",
    [
        lambda: region_tasks.write_region(
            "run", Window(Region(0, 0, 0), (1, 1, 1, 1), 0, 0), 1, NOTHING_KEPT, []
        ),
        lambda: region_tasks.analyze("run", [0], [np.zeros((1, 1, 1))]),
        lambda: region_tasks.find_duplicates("run", 0),
    ],
    ids=["region", "counters", "duplicates"],
)
def test_write__is_refused_without_the_lease(monkeypatch, write):
    monkeypatch.setattr(region_tasks, "workspace", lambda _: Workspace())
    monkeypatch.setattr(region_tasks, "secede", lambda: None)
    monkeypatch.setattr(region_tasks, "trial_variables", lambda _: {})

    with pytest.raises(LeaseLostError):
        write()
