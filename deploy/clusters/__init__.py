"""Dask clusters to run a sweep on."""

from evalcube.deploy.clusters.base import Cluster, Connection, refuse_fork
from evalcube.deploy.clusters.dask_cluster import ExistingScheduler, GivenCluster, MadeCluster, open_client
from evalcube.deploy.clusters.local import LocalProcesses, ThisProcess
from evalcube.deploy.errors import ClusterError

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
