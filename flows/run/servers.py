"""Where the requests of a config's models go; starts and stops the servers that evalcube manages."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from evalcube.deploy.servers.command import PRESETS, CommandServer, context_length, preset_command
from evalcube.deploy.servers.local_model import LlamaServer
from evalcube.deploy.servers.managed import HEALTH, Simulator
from evalcube.deploy.servers.supervisor import Note, Supervisor
from evalcube.flows.config.models import Model
from evalcube.flows.config.serving import SERVED, Serve
from evalcube.flows.run.worker.context import Route
from evalcube.stages.infer.endpoint import Batching, Endpoint
from evalcube.storage.urls import at_home

LOCAL, SIMULATED = "local:", "sim:"
_BUNDLED = "smollm2"
_PLACES = ("key_file", "ca_file")
_SLOTS = 4
"""Of a local server where none are declared: each takes memory for a whole context."""
_LONGEST_OUTAGE = 86_400.0
_STOPPING_SECONDS = 60.0
"""That a server takes at most from its end to its next start."""


@dataclass(frozen=True)
class Served:
    """Where a run's requests go, and the servers that it started."""

    routes: Mapping[str, Route]
    """By label of the model."""
    servers: Mapping[str, Supervisor] = field(default_factory=dict)
    """By label of the models that have one."""

    def is_over(self, label: str) -> bool:
        """Whether a model's server was given up, so that nothing more is to be asked of it in this run."""
        return label in self.servers and bool(self.servers[label].over)


def is_managed(model: Model) -> bool:
    """Whether the model's server is one that the driver starts, reachable on the driver's machine only."""
    return model.endpoint in (SIMULATED, SERVED) or model.addresses[0].startswith(LOCAL)


@contextmanager
def serve_models(
    models: Sequence[Model], note: Note = lambda _, __: None, answer_tokens: int = 0
) -> Iterator[Served]:
    """Give each model its route; managed servers run as long as the context."""
    with ExitStack() as stack:
        supervisors = _own_servers(models, stack, note, context_length(answer_tokens))
        for supervisor in supervisors.values():
            note(f"starting {supervisor.server.name}", "")
        stack.enter_context(_running(list(dict.fromkeys(supervisors.values()))))
        addresses: dict[str, str] = {}
        for model in models:
            target = model.addresses[0]
            if target in addresses or target == SERVED:
                continue
            if target.startswith(LOCAL):
                note(f"starting the local model {target.removeprefix(LOCAL) or _BUNDLED}", "")
                addresses[target] = stack.enter_context(_local_server(target, model)).base_url
            elif target == SIMULATED:
                addresses[target] = stack.enter_context(Simulator()).base_url
            else:
                addresses[target] = target.removeprefix(SIMULATED)
        routes = {
            model.name: _own_route(model, model.serve, supervisors[model.name])
            if model.serve is not None
            else _route(model, addresses[model.addresses[0]])
            for model in models
        }
        yield Served(routes, supervisors)


@contextmanager
def _running(servers: Sequence[Supervisor]) -> Iterator[None]:
    """Start servers, all at once, and stop them in the end, those that are being started too."""
    pool = ThreadPoolExecutor(max(len(servers), 1), thread_name_prefix="evalcube-servers")
    try:
        # The first that fails ends the others' starts, too: a run without one of its models is no run.
        for future in [pool.submit(server.start) for server in servers]:
            future.result()
        yield
    finally:
        # At the same time: each may take its whole grace to give back a GPU.
        stopping = [threading.Thread(target=server.stop) for server in servers]
        for thread in stopping:
            thread.start()
        for thread in stopping:
            thread.join()
        pool.shutdown(wait=True, cancel_futures=True)
        for server in servers:
            server.stop()  # a start that had not begun when all were stopped


def _own_servers(
    models: Sequence[Model], stack: ExitStack, note: Note, context: int
) -> dict[str, Supervisor]:
    """By label, the server of each model that has one; none of them is started."""
    servers: dict[str, Supervisor] = {}
    by_command: dict[str, Supervisor] = {}
    folder: Path | None = None
    for model in models:
        if model.serve is None:
            continue
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="evalcube-servers-")))
        command = f"{model.model} {model.serve.model_dump_json()}"
        if command not in by_command:
            server = _command_server(model, model.serve, context)
            stack.callback(server.release)
            given_up = folder / f"{len(by_command)}.over"
            by_command[command] = Supervisor(server, given_up=given_up, note=note)
        servers[model.name] = by_command[command]
    return servers


def _command_server(model: Model, serve: Serve, context: int) -> CommandServer:
    weights = serve.model or model.model
    if serve.preset is None:
        command, env = serve.command or (), serve.env
    else:
        command = preset_command(serve.preset, weights, serve.args)
        env = {**PRESETS[serve.preset].env, **serve.env}
    return CommandServer(
        command,
        name=f"the server of {model.name}",
        words={"model": weights, "name": model.model, "context": str(context)},
        env=env,
        secrets=serve.env_from,
        start_timeout=serve.start_limit,
    )


def _own_route(model: Model, serve: Serve, supervisor: Supervisor) -> Route:
    """The route to a server that the run starts: requests wait while it is started again."""
    route = _route(model, f"{supervisor.server.known_address}/v1")
    # As long as all restarts may take: a request that waits costs nothing, and one that fails is asked again.
    outage = (Supervisor.restarts + 1) * (serve.start_limit + _STOPPING_SECONDS)
    endpoint = replace(
        route.endpoint, outage=min(outage, _LONGEST_OUTAGE), given_up=str(supervisor.given_up), health=HEALTH
    )
    return replace(route, endpoint=endpoint)


def _local_server(target: str, model: Model) -> LlamaServer:
    weights = target.removeprefix(LOCAL)
    path = None if weights in {"", _BUNDLED} else Path(weights)
    return LlamaServer(path, slots=_slots(model))


def _slots(model: Model) -> int:
    return model.limits.declared or min(_SLOTS, model.limits.most)


def _route(model: Model, base_url: str) -> Route:
    endpoint = endpoint_of(model, base_url)
    if model.addresses[0].startswith(LOCAL):
        endpoint = replace(endpoint, connections=_slots(model), start=None)
    if len(model.addresses) > 1:
        replicas = tuple(address.removeprefix(SIMULATED) for address in model.addresses)
        endpoint = replace(endpoint, replicas=replicas)
    return Route(endpoint, simulated=model.addresses[0].startswith(SIMULATED))


def endpoint_of(model: Model, base_url: str = "") -> Endpoint:
    """An endpoint with all of a model's settings that its fields are named after, and with its limits."""
    names = {field.name for field in fields(Endpoint)}
    settings = {name: getattr(model, name) for name in names & type(model).model_fields.keys()}
    for name in _PLACES:
        if settings[name] is not None:
            # Workers may have another current folder.
            settings[name] = str(at_home(settings[name]).absolute())
    settings["batch"] = None if model.batch is None else Batching(**model.batch.model_dump())
    settings["model"] = model.request_model
    return Endpoint(base_url=base_url, **settings, **model.limits.endpoint)
