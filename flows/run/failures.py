"""How tasks of a sweep fail: by an error of their own, or because workers died with them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from distributed import Future as DaskFuture
from distributed import KilledWorker

from evalcube.deploy.clusters import ClusterError
from evalcube.deploy.clusters.asking import Question
from evalcube.flows.errors import SweepError


class WorkerDiedError(Exception):
    """A task was not run, because the last worker that ran it died."""


class KilledTaskError(SweepError):
    """Workers died with a task, or with one that it needs."""


def is_killed(future: DaskFuture[Any]) -> bool:
    """Whether workers died with a task, or with one that it needs."""
    return future.status == "error" and isinstance(future.exception(), KilledWorker | WorkerDiedError)


def raise_if_failed(future: DaskFuture[Any]) -> None:
    """Raise what a task raised; nothing if it finished.

    One that finished and was lost with its worker is no failure: Dask computes it again for whoever needs it.

    Raises
    ------
    ClusterError
        If the cluster gave the task up.
    KilledTaskError
        If workers died with it.
    Exception
        The task's own error.
    """
    if future.status in ("finished", "lost"):
        return
    if future.status != "error":
        raise ClusterError(
            f"the cluster gave a task of the sweep up ({future.status}): its scheduler may have ended. "
            f"Run the same command again to resume."
        )
    error = future.exception()
    if isinstance(error, KilledWorker | WorkerDiedError):
        seen = (
            f" ({error.task}) saw {error.allowed_failures} workers die"
            if isinstance(error, KilledWorker)
            else " saw workers die again and again"
        )
        raise KilledTaskError(
            f"a task of the sweep{seen}",
            "Look at the workers' logs, and whether they reached their memory limit, where Dask ends them: give fewer "
            "workers, or more memory for each. Then run the same command again to resume",
        ) from error
    if isinstance(error, Exception):
        # With the lines of the worker, which show whether a plugin is at fault.
        raise error.with_traceback(future.traceback())
    raise RuntimeError(f"a task of the sweep raised {error!r}")


def fetched(question: Question[Any]) -> Any:  # noqa: ANN401 - what a task returned
    """What a task returned that was asked for, once that is here.

    Raises
    ------
    ClusterError
        The scheduler ended before it had handed it over.
    """
    try:
        return question.answer()
    except OSError as error:
        raise ClusterError(
            f"the cluster did not hand over what a task of the sweep returned ({error}): its scheduler may have ended. "
            f"Run the same command again to resume."
        ) from error


def raise_own_error(future: DaskFuture[Any]) -> None:
    """Raise what a task raised; nothing if workers died with it, even a moment ago.

    For results that another task will need: it fails as well, and that is where deaths are dealt with.

    Raises
    ------
    ClusterError
        If the cluster gave the task up.
    Exception
        The task's own error.
    """
    with suppress(KilledTaskError):
        raise_if_failed(future)
