"""Where the requests of a config's models go; starts and stops the servers that evalcube manages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from deploy.servers.llama import LlamaServer
from deploy.servers.simulator import Simulator
from flows.config.models import ModelConfig
from flows.run.worker import Route
from stages.infer.endpoint import Batching, Endpoint

LOCAL, SIMULATED = "local:", "sim:"
_BUNDLED = "smollm2"


def is_managed(model: ModelConfig) -> bool:
    """Whether the model's server is one that the driver starts, reachable on the driver's machine only."""
    return model.endpoint.startswith(LOCAL) or model.endpoint == SIMULATED


@contextmanager
def serve_models(
    models: Sequence[ModelConfig], note: Callable[[str], None] = lambda _: None
) -> Iterator[dict[str, Route]]:
    """Give each model its route; managed servers run as long as the context.

    Parameters
    ----------
    models
        The models that have requests to answer. Two of the same local weights share one server.
    note
        Called with what is being started.

    Raises
    ------
    DeployError
        If a managed server does not start.
    """
    with ExitStack() as stack:
        addresses: dict[str, str] = {}
        for model in models:
            if model.endpoint in addresses:
                continue
            if model.endpoint.startswith(LOCAL):
                note(f"starting the local model {model.endpoint.removeprefix(LOCAL) or _BUNDLED}")
                server = stack.enter_context(_local_server(model))
                addresses[model.endpoint] = server.base_url
            elif model.endpoint == SIMULATED:
                addresses[model.endpoint] = stack.enter_context(Simulator()).base_url
            else:
                addresses[model.endpoint] = model.endpoint.removeprefix(SIMULATED)
        yield {model.name: _route(model, addresses[model.endpoint]) for model in models}


def _local_server(model: ModelConfig) -> LlamaServer:
    target = model.endpoint.removeprefix(LOCAL)
    path = None if target in {"", _BUNDLED} else Path(target)
    return LlamaServer(path, slots=model.limits.connections)


def keyed(model: ModelConfig, base_url: str = "") -> Endpoint:
    """An endpoint with the name and the key of a model, and nothing else.

    Parameters
    ----------
    model
        A model of the config.
    base_url
        Its address; not needed to look for its key.
    """
    return Endpoint(
        name=model.name,
        base_url=base_url,
        key_env=model.key_env,
        key_file=None if model.key_file is None else _place(model.key_file),
        key_command=model.key_command,
    )


def _place(path: str) -> str:
    """A path as workers, which may have another current folder, find it."""
    return str(Path(path).expanduser().absolute())


def _route(model: ModelConfig, base_url: str) -> Route:
    limits = model.limits
    endpoint = replace(
        keyed(model, base_url),
        connections=limits.connections,
        requests_per_minute=limits.requests_per_minute,
        tokens_per_minute=limits.tokens_per_minute,
        timeout=limits.timeout,
        retries=limits.retries,
        patience=limits.patience,
        response_bytes=limits.response_bytes,
        headers=dict(model.headers),
        ca_file=None if model.ca_file is None else _place(model.ca_file),
        api=model.api,
        stream=model.stream,
        batch=None if model.batch is None else Batching(**model.batch.model_dump()),
    )
    return Route(endpoint, simulated=model.endpoint.startswith(SIMULATED))
