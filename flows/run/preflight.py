"""Checks before anything is sent that the workers have the keys and reach the servers."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from urllib.parse import urlsplit

from distributed import Client

from deploy.clusters import ask_workers
from flows.config.models import ModelConfig
from flows.errors import SweepError
from flows.run.servers import is_managed, keyed
from stages.infer.endpoint import Endpoint, InferenceError
from stages.infer.key_source import check_source


def check_workers(
    client: Client, models: Sequence[ModelConfig], addresses: Sequence[str], *, unset_keys: bool
) -> None:
    """Refuse what workers cannot do before anything is sent.

    Parameters
    ----------
    client
        A connected client.
    models
        The models that will be asked.
    addresses
        Of the workers.
    unset_keys
        Whether keys may be unset on the workers though they are set here.

    Raises
    ------
    SweepError
        If a key is not set on a worker, or a server of this machine is out of its reach.
    ClusterError
        If workers end while they are asked.
    """
    if unset_keys:
        sources = [keyed(model) for model in models]
        for address, problem in ask_workers(client, _problem, sources).items():
            if problem:
                raise SweepError(f"worker {address}: {problem}")
    far = [address for address in addresses if not _is_here(address)]
    for model in models:
        if far and is_managed(model):
            raise SweepError(
                f"models[{model.name}].endpoint: '{model.endpoint}' is served on this machine only, and worker "
                f"{far[0]} is elsewhere",
                "Serve the model at an address that the workers reach and give that as the endpoint",
            )


def _problem(sources: Sequence[Endpoint]) -> str:
    """Runs on workers: why a key is missing there; empty if none is known to be."""
    try:
        for source in sources:
            check_source(source)
    except InferenceError as error:
        return str(error)
    return ""


def _is_here(address: str) -> bool:
    if address.startswith("inproc:"):
        return True
    host = urlsplit(address).hostname or ""
    return host in {"127.0.0.1", "::1", "localhost", socket.gethostname()} or host == _own_address()


def _own_address() -> str:
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return ""
