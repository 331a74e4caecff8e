"""Dask clusters to run a sweep on."""

from evalcube.deploy.clusters.base import Cluster, ClusterError, Connection, refuse_fork
from evalcube.deploy.clusters.existing import ExistingScheduler
from evalcube.deploy.clusters.local import LocalProcesses, ThisProcess
from evalcube.deploy.clusters.made import GivenCluster, MadeCluster, open_client

__all__ = [
    "Cluster",
    "ClusterError",
    "Connection",
    "ExistingScheduler",
    "GivenCluster",
    "LocalProcesses",
    "MadeCluster",
    "ThisProcess",
    "open_client",
    "refuse_fork",
]
