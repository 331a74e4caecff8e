"""Asks all workers of a cluster something, also where one of them ends in that moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from distributed import Client

from deploy.clusters.base import ClusterError

T = TypeVar("T")

_ATTEMPTS = 5
_PAUSE_SECONDS = 1.0


def ask_workers(client: Client, function: Callable[..., T], *args: object) -> dict[str, T]:
    """What a function returns on every worker, by the worker's address.

    Parameters
    ----------
    client
        A connected client.
    function, args
        The function and its arguments. An `OSError` must not leave it.

    Raises
    ------
    ClusterError
        If workers end each time while they are asked.
    """
    for _ in range(_ATTEMPTS):
        try:
            found: dict[str, T] = client.run(function, *args)
        except OSError:
            time.sleep(_PAUSE_SECONDS)  # Dask gives the whole call up then; a nanny starts another worker
        else:
            return found
    raise ClusterError(
        "workers of the cluster end while they are asked what they have. Look at their logs, then run again."
    )
