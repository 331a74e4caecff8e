"""What every kind of cluster offers: settings that connect to it, and clean up afterwards."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager

from distributed import Client

from deploy.errors import DeployError


class ClusterError(DeployError):
    """A cluster cannot be started or reached, or its nodes cannot run our code."""


class Cluster(ABC):
    """Settings of one cluster. Subclasses are frozen dataclasses; nothing happens before `connect`."""

    @abstractmethod
    def connect(self) -> AbstractContextManager[Client]:
        """A context with a client of the cluster, whose workers can import evalcube.

        Entering it starts or reaches the cluster; leaving it stops what was started here.

        Raises
        ------
        ClusterError
            The cluster cannot be started or reached; raised when the context is entered.
        """

    @property
    @abstractmethod
    def inherits_environment(self) -> bool:
        """Whether workers see this process's environment variables, and so its keys."""
