"""A run that waits for another one to leave the cube, as the driver of a pod that is replaced."""

import threading

import pytest

from evalcube.flows.events import Noted
from evalcube.flows.run.sweep import run
from evalcube.storage.cube.address import space_of
from evalcube.storage.cube.lease import Lease
from evalcube.storage.errors import LeaseHeldError
from tests.flows.shared_cluster import SHARED
from tests.flows.support import sweep_config


def test_run__waits_for_another_to_leave_the_cube_and_says_so(tmp_path, simulator):
    config = sweep_config(tmp_path, simulator.base_url, trials=2)
    run(config, cluster=SHARED)
    more = {**config, "trials": 4}
    notes = []

    with Lease.acquire(space_of(config["cube"]).at("_evalcube")) as other:
        with pytest.raises(LeaseHeldError):
            run(more, cluster=SHARED)

        def leave(event):
            if isinstance(event, Noted) and "waiting for up to 60 s" in event.message:
                notes.append(event.message)
                threading.Timer(0.2, other.release).start()

        summary = run(more, cluster=SHARED, subscribers=[leave], wait=60)

    assert summary.reason == "complete"
    assert len(notes) == 1
