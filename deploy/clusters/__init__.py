"""Dask clusters to run a sweep on, one module per kind."""

from evalcube.deploy.clusters.base import Cluster, ClusterError, Connection
from evalcube.deploy.clusters.existing import Certificates, ExistingScheduler
from evalcube.deploy.clusters.local import LocalProcesses, ThisProcess

__all__ = [
    "Certificates",
    "Cluster",
    "ClusterError",
    "Connection",
    "ExistingScheduler",
    "LocalProcesses",
    "ThisProcess",
]
