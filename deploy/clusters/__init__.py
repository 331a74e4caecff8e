"""Dask clusters to run a sweep on, one module per kind."""

from deploy.clusters.base import Cluster, ClusterError, Connection
from deploy.clusters.existing import Certificates, ExistingScheduler
from deploy.clusters.local import LocalProcesses, ThisProcess

__all__ = [
    "Certificates",
    "Cluster",
    "ClusterError",
    "Connection",
    "ExistingScheduler",
    "LocalProcesses",
    "ThisProcess",
]
