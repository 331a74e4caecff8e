"""A Dask scheduler in this process, to which workers elsewhere connect with a key of this run."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from distributed import Client, Scheduler, SpecCluster
from distributed.security import Security

from evalcube.deploy.clusters.base import ClusterError, Connection
from evalcube.deploy.clusters.carried import CarriedCode
from evalcube.deploy.clusters.local import interrupts_blocked


class SchedulerHere(Connection):
    """A connection to a scheduler of this process, whose workers are brought evalcube and replaced when they go.

    Parameters
    ----------
    client
        A connected client of the scheduler.
    """

    replaces = True

    def __init__(self, client: Client) -> None:
        super().__init__(client, CarriedCode(client))

    @property
    def dashboard(self) -> str:
        """Where it is served: on this machine only."""
        link = urlsplit(super().dashboard)
        return f"http://127.0.0.1:{link.port}{link.path}"


def key_of_run(kind: str) -> Security:
    """What encrypts all connections with a key of this run.

    Whoever reaches a Dask scheduler may run code in its user's name, and the network of a cluster is everybody's.

    Parameters
    ----------
    kind
        Of the cluster, and the extra of that name.

    Raises
    ------
    ClusterError
        The package `cryptography` is not installed.
    """
    try:
        made: Security = Security.temporary()
    except ImportError:
        raise ClusterError(
            f"clusters of kind {kind} encrypt their connections, for which the package cryptography is missing here: "
            f"pip install 'evalcube[{kind}]'"
        ) from None
    return made


@contextmanager
def scheduler_here(
    security: Security, *, host: str | None = None, interface: str | None = None, port: int = 0
) -> Iterator[tuple[Client, str]]:
    """A context with a client of a new scheduler without workers, and the scheduler's address.

    Parameters
    ----------
    security
        What encrypts its connections.
    host
        This machine's address, as workers reach it.
    interface
        Network interface by which they do; default: that of the way out of this machine.
    port
        Of the scheduler; 0 for a free one.

    Raises
    ------
    ClusterError
        It cannot be started.
    """
    options = {
        "protocol": "tls://",
        "host": host,
        "interface": interface,
        "port": port,
        # What it serves in plain text stays on this machine.
        "dashboard_address": "127.0.0.1:0",
        "security": security,
    }
    try:
        with interrupts_blocked():
            cluster = SpecCluster(
                scheduler={"cls": Scheduler, "options": options},
                workers={},
                security=security,
                silence_logs=logging.CRITICAL,
            )
    except (OSError, RuntimeError, TimeoutError, ValueError) as error:
        where, setting = ("here", "interface") if host is None else (f"at {host}", "scheduler_host")
        raise ClusterError(
            f"no Dask scheduler could be started {where}: {error}. Check the cluster's `{setting}` and `port`"
        ) from error
    # The client ends before the cluster, which it would otherwise report as lost.
    with cluster, Client(cluster, set_as_default=False) as client:
        yield client, cluster.scheduler_address
