"""Asks each worker of a cluster what a run asks it before its first request; nothing is sent to any model."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

from evalcube.deploy.clusters import ThisProcess
from evalcube.flows.config.models import Sweep
from evalcube.flows.plan.build import build_plan
from evalcube.flows.run.chosen_cluster import chosen_cluster
from evalcube.flows.run.plugin import install, plugin_name
from evalcube.flows.run.preflight import Admission
from evalcube.flows.run.proof import Proof, keyed
from evalcube.flows.run.servers import SIMULATED, is_managed
from evalcube.flows.run.waiting import wait_for_workers
from evalcube.flows.run.worker import RunContext
from evalcube.flows.run.workers import present
from evalcube.storage.cache.cache import open_cache
from evalcube.storage.cube.address import space_of
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import StorageError, guarded
from evalcube.storage.reach import leave_tokens
from evalcube.storage.urls import absolute


def check_workers(
    settings: Sweep,
    *,
    cluster: Any = None,  # noqa: ANN401 - a cluster of anybody's, too
    scheduler: str | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> dict[str, str]:
    """Ask each worker whether it could take part in a sweep.

    Parameters
    ----------
    settings
        The sweep's config.
    cluster, scheduler
        As for `evalcube.flows.run.sweep.run`; default: the config's, else this process.
    note
        Called with what the user should read.

    Returns
    -------
    dict
        By each worker's address why it could not; empty for one that could.

    Raises
    ------
    SweepError
        If none of them could.
    StorageError
        If this process cannot write where cube and cache are.
    ClusterError
        If the cluster cannot be started or reached, or has no worker.
    """
    plan, run = build_plan(settings), uuid.uuid4().hex[:12]
    chosen = chosen_cluster(settings, cluster=cluster, scheduler=scheduler) or ThisProcess()
    # Beside the cube, which may not be there yet, or be in use.
    cube, cache = f"{absolute(settings.cube)}.check-{run}", absolute(settings.cache)
    asked = [model for model in settings.models if not is_managed(model)]
    endpoints = tuple(
        keyed(model, address.removeprefix(SIMULATED)) for model in asked for address in model.addresses
    )
    open_cache(cache).close()
    with ExitStack() as stack:
        connection = stack.enter_context(chosen.connect())
        addresses = wait_for_workers(chosen, connection, None, note)
        stack.callback(_remove, cube)
        with guarded(cube, "write beside the sweep's cube"):
            space_of(cube).assemble(_begin)
        tokens = leave_tokens(run, cube, cache)
        proof = Proof(tokens, endpoints, endpoints)
        context = RunContext.of(run, plan, (cube, cache), {}, "", proof)
        admission = Admission(connection.code, plugin_name(run), tokens, note)
        stack.callback(admission.close)
        stack.callback(connection.code.remove, plugin_name(run))
        install(connection, context, settings.name)
        admission.first(addresses, lambda: present(connection))
        return admission.verdicts(present(connection))


def _begin(draft: Space) -> None:
    draft.put("check", b"")


def _remove(cube: str) -> None:
    with suppress(OSError, StorageError):
        space = space_of(cube)
        if not space.remove():
            space.clear("")
