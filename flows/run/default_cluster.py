"""Chooses where a run works that names no cluster."""

from __future__ import annotations

from importlib.metadata import entry_points

from deploy.clusters import Cluster, LocalProcesses, ThisProcess

_FEW = 10_000
"""Trials that one process asks and grades before further ones have started: about 2 500 a second."""
_OUR_GROUPS = "evalcube."
"""What the entry point groups of plugins begin with."""


def default_cluster(trials: int) -> Cluster:
    """The cluster of a run that names none: this process for few trials, else worker processes.

    Parameters
    ----------
    trials
        How many are left to ask.
    """
    # A process of its own dies alone; code that is not ours might kill it, and the driver finds the trial to blame.
    foreign = any(group.startswith(_OUR_GROUPS) for group in entry_points().groups)
    return LocalProcesses() if trials > _FEW or foreign else ThisProcess()
