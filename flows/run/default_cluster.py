"""Chooses where a run works that names no cluster."""

from __future__ import annotations

from evalcube.deploy.clusters import Cluster, LocalProcesses, ThisProcess
from evalcube.flows.config.plugins import installed_plugins

_FEW = 10_000
"""Trials that one process asks and grades before further ones have started: about 2 500 a second."""


def default_cluster(trials: int) -> Cluster:
    """The cluster of a run that names none: this process for few trials, else worker processes.

    Parameters
    ----------
    trials
        How many are left to ask.
    """
    # A process of its own dies alone; code that is not ours might kill it, and the driver finds the trial to blame.
    return LocalProcesses() if trials > _FEW or installed_plugins() else ThisProcess()
