"""Waits for a cluster's first workers, which a queue may hold back for long."""

from __future__ import annotations

import time
from collections.abc import Callable

from evalcube.deploy.clusters import Cluster, ClusterError, Connection
from evalcube.deploy.clusters.code import View
from evalcube.storage.cube.lease import Lease

_POLL_SECONDS = 0.5
_NOTE_SECONDS = 5.0
_AGAIN_SECONDS = 600.0
"""Between two notes that a run still waits."""


def wait_for_workers(
    cluster: Cluster,
    connection: Connection,
    lease: Lease | None,
    note: Callable[[str], None],
    stopped: Callable[[], bool] = lambda: False,
) -> list[str]:
    """Wait until the cluster has its minimum of workers; the run keeps its lease meanwhile, and says that it waits.

    Parameters
    ----------
    cluster
        How many are waited for, and how long.
    connection
        A connection to it.
    lease
        Of the run; nothing is begun once it is lost. None where nothing is written.
    note
        Called with what the user should read.
    stopped
        Called again and again; whether somebody ordered the run to stop, so that none is waited for.

    Returns
    -------
    list of str
        Addresses of the workers that are there. After the cluster's patience fewer than its minimum will do.

    Raises
    ------
    ClusterError
        If there is none by then, the cluster says that there will be none, or its scheduler went away.
    LeaseLostError
        If another run took the cube over.
    """
    began = time.monotonic()
    next_note = began + _NOTE_SECONDS
    while True:
        if lease is not None:
            lease.check()
        try:
            view = connection.code.look().answer()
        except (OSError, TimeoutError) as error:
            raise ClusterError(f"the cluster's scheduler went away before any request: {error}") from None
        there = view.workers
        for text in connection.tend(there):
            note(text)
        if len(there) >= cluster.minimum or stopped():
            return list(there)
        now = time.monotonic()
        if now - began > cluster.patience:
            if not there:
                raise ClusterError(
                    f"the cluster has had no worker{_chosen(connection, view)} for {cluster.patience:g} s. Look at "
                    f"its queue and logs, raise the "
                    f"cluster's `patience`, and run the same command again."
                )
            note(f"begins with {len(there)} workers of {cluster.minimum}: the others did not come in time")
            return list(there)
        if now > next_note:
            next_note = now + _AGAIN_SECONDS
            note(
                f"waiting for workers{_chosen(connection, view)}: {len(there)} of {cluster.minimum} so far; nothing is "
                f"asked meanwhile"
            )
        time.sleep(_POLL_SECONDS)


def _chosen(connection: Connection, view: View) -> str:
    """Which workers are waited for where not all will do, and who is there instead."""
    choice = connection.code.choice
    if not (choice.names or choice.resource):
        return ""
    others = f" (it has {', '.join(view.others)}, which `cluster.workers` leaves out)" if view.others else ""
    return f" {choice}{others}"
