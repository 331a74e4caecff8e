"""The contract of a cluster kind: a frozen record of settings that connects, and cleans up after itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager

from distributed import Client

from deploy.errors import DeployError


class ClusterError(DeployError):
    """A cluster cannot be started or reached; the message is meant for the user."""


class Cluster(ABC):
    """Settings of one cluster. Subclasses are frozen dataclasses; nothing happens before `connect`."""

    @abstractmethod
    def connect(self) -> AbstractContextManager[Client]:
        """Start or reach the cluster; its workers can import evalcube when the client is handed out.

        Raises
        ------
        ClusterError
            If that fails, with the reason and the remedy.
        """

    @property
    @abstractmethod
    def inherits_environment(self) -> bool:
        """Whether workers see this process's environment variables, and so its keys."""
