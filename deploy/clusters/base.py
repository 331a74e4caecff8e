"""What every kind of cluster offers: settings that connect to it, and a connection that looks after it, in silence."""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Literal

from distributed import Client

from evalcube import EvalcubeError
from evalcube._together import Together
from evalcube.deploy.clusters.asking import is_gone
from evalcube.deploy.clusters.code import Code
from evalcube.deploy.errors import ClusterError

Environment = Literal["own", "inherited"]
"""Whose environment, disks and packages workers have, and so whose keys.

``own``: those of the places where they were started. ``inherited``: this process's.
"""
PATIENCE_SECONDS = 60.0
"""A nanny restarts a dead worker within seconds; a minute without any is nobody's restart."""


class Connection:
    """A cluster that is in use.

    Parameters
    ----------
    client
        A connected client of the cluster.
    code
        How a run's plugin and tasks reach the workers; default: without a look at their evalcube, which is this
        process's own.
    """

    replaces = False
    """Whether it replaces workers that have gone, and says itself why they went."""
    process = 0
    """In which one was made: threads of Dask's are there, and in no fork of it."""

    def __init__(self, client: Client, code: Code | None = None) -> None:
        Connection.process = os.getpid()
        self.client = client
        self.code = Code(client) if code is None else code

    @property
    def dashboard(self) -> str:
        """Address of Dask's dashboard, for people."""
        return str(self.client.dashboard_link)

    @contextmanager
    def explain_if_lost(self) -> Iterator[None]:
        """A context in which nothing fails for want of a scheduler but by an error that says so."""
        try:
            yield
        except EvalcubeError:
            raise
        except Exception as error:
            # Dask says in many ways that a connection ended; whether it has is asked of the client itself.
            if not is_gone(self.client):
                raise
            problem = "the cluster's scheduler went away. Look at its log, and run the same command again to resume."
            raise ClusterError(problem) from error

    def tend(self, present: Mapping[str, str]) -> Sequence[str]:  # noqa: ARG002 - for clusters that start workers
        """Look after the cluster: replace workers that were taken away, for one.

        Called by the driver's thread about once a second while a run waits for workers or has some; what takes longer
        than a moment is begun here and its outcome collected by a later call.
        """
        return ()


def refuse_fork() -> None:
    """Refuse a process that was forked from one which had a connection: without its threads a run would hang."""
    # A fork copies the objects and none of the threads: a future would wait for a loop that nobody runs.
    if Connection.process not in {0, os.getpid()}:
        raise ClusterError(
            f"this process is a fork of one ({Connection.process}) in which a sweep was run, and Dask's threads do not "
            "come along. Run the first sweep after the fork, or start processes without one: "
            "multiprocessing.get_context('spawn'), celery --pool=solo or threads, gunicorn without --preload"
        )


class Cluster(ABC):
    """Settings of one cluster. Subclasses are frozen dataclasses; nothing happens before `connect`."""

    environment: Environment = "own"
    """Whose environment workers have."""
    forks: bool = False
    """Whether its workers are forked here, from `evalcube.deploy.fork_server`."""
    patience: float = PATIENCE_SECONDS
    """Seconds without any worker after which a run gives up."""
    minimum: int = 1
    """Workers to wait for before the first request; after `patience`, as many as there are will do."""

    @abstractmethod
    def connect(self) -> AbstractContextManager[Connection]:
        """A context with a connection to the cluster.

        Entering it starts or reaches the cluster, which may have no worker yet; leaving it stops what was started here.
        """


CLIENTS = ("distributed.client", "distributed.batched", "tornado.application")
"""Loggers that tell of a lost connection with a traceback: the driver reports that, once."""
EVERYTHING = (*CLIENTS, "distributed", "bokeh")
"""... and of clusters that nobody looks at but their run."""


@contextmanager
def _mute(name: str) -> Iterator[None]:
    # Dask's own silence lies on the handlers, and is undone by each cluster for itself.
    logger = logging.getLogger(name)
    level, handlers = logger.level, [(handler, handler.level) for handler in logger.handlers]
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)
        for handler, before in handlers:
            handler.setLevel(before)


_MUTED = {name: Together(partial(_mute, name)) for name in EVERYTHING}


@contextmanager
def quiet(names: tuple[str, ...] = CLIENTS) -> Iterator[None]:
    """Keep some of Dask's loggers from printing."""
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(_MUTED[name]())
        yield
