"""Dask clusters, one module per kind: settings in, a connected client out."""

from deploy.clusters.base import Cluster, ClusterError
from deploy.clusters.existing import ExistingScheduler
from deploy.clusters.local import LocalProcesses

__all__ = ["Cluster", "ClusterError", "ExistingScheduler", "LocalProcesses"]
