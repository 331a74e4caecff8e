"""What a worker is told of a run, and what it proves first: that it reaches cube and cache, and has the keys."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from evalcube import EvalcubeError
from evalcube.flows.plan.plan import Plan
from evalcube.stages.generate.foreign.rendered import RenderedTask
from evalcube.stages.infer.endpoint import Endpoint, InferenceError
from evalcube.stages.infer.keys import check_source
from evalcube.stages.named_code import may_run
from evalcube.storage.reach import Token

CONNECT_SECONDS = 8.0


def cut_off(endpoints: Sequence[Endpoint]) -> dict[str, str]:
    """Addresses of endpoints that cannot be connected to, and why; each is tried once, all at the same time."""
    distinct = {(endpoint.urls, endpoint.ca_file): endpoint for endpoint in endpoints}
    problems: dict[str, str] = {
        place(each): f"no answer within {CONNECT_SECONDS:g} s" for each in distinct.values()
    }

    def probe(endpoint: Endpoint) -> None:
        problems[place(endpoint)] = why_unreachable(endpoint)

    # Daemons: a name that nobody resolves takes longer than anybody waits.
    probes = [threading.Thread(target=probe, args=[each], daemon=True) for each in distinct.values()]
    for thread in probes:
        thread.start()
    for thread in probes:
        thread.join(CONNECT_SECONDS + 1.0)
    # A copy: a probe that nobody waited for to its end may write at this moment.
    return {where: problem for where, problem in dict(problems).items() if problem}


def place(endpoint: Endpoint) -> str:
    """An endpoint's address for people: host and port, without what else may stand in a URL."""
    try:
        parts = urlsplit(endpoint.urls[0])
        return f"{parts.hostname}:{_port(parts.port, parts.scheme)}"
    except ValueError:
        return endpoint.name


def why_unreachable(endpoint: Endpoint) -> str:
    """Why an endpoint cannot be reached, by connecting and no more; empty if one of its servers can.

    Of one behind a proxy, the proxy is connected to.
    """
    problem = ""
    for url in endpoint.urls:
        problem = _why_url_unreachable(endpoint, url)
        if not problem:
            break
    return problem


def _why_url_unreachable(endpoint: Endpoint, url: str) -> str:
    where = url
    try:
        proxy = endpoint.proxy(url)
        parts = urlsplit(proxy or url)
        port = _port(parts.port, parts.scheme)
        where = f"{'the proxy ' if proxy else ''}{parts.hostname}:{port}"
        with ExitStack() as stack:
            connected = socket.create_connection((parts.hostname or "", port), CONNECT_SECONDS)
            stack.callback(connected.close)
            # With a handshake: an authority that is not believed shows here, and not at the first paid request.
            if proxy is None and parts.scheme == "https":
                context = endpoint.tls()
                settings = context if isinstance(context, ssl.SSLContext) else ssl.create_default_context()
                stack.enter_context(settings.wrap_socket(connected, server_hostname=parts.hostname))
    except InferenceError as error:
        return str(error)
    except (OSError, ValueError) as error:
        # A certificate's error says there what is wrong with it, and elsewhere only that something is.
        reason = getattr(error, "verify_message", None) or error.__class__.__name__
        return f"{endpoint.name}: {where} cannot be reached ({getattr(error, 'strerror', None) or reason})"
    return ""


def _port(port: int | None, scheme: str) -> int:
    return port or (443 if scheme == "https" else 80)


@dataclass(frozen=True)
class Proof:
    """What workers have to prove."""

    tokens: tuple[Token, ...] = ()
    """What they find in the places that all see."""
    keyed: tuple[Endpoint, ...] = ()
    """Endpoints whose keys they need."""
    reached: tuple[Endpoint, ...] = ()
    """Endpoints that they connect to, where some of them may and others may not."""

    def lacking(self, who: str) -> str:
        """Runs on a worker: why it cannot take part; empty if it can."""
        for token in self.tokens:
            if problem := token.answer(who):
                return problem
        return missing_key(self.keyed)

    def cut_off(self) -> dict[str, str]:
        """Runs on a worker: addresses of endpoints that it cannot connect to, and why."""
        return cut_off(self.reached)


@dataclass(frozen=True)
class Route:
    """How one model's requests travel in this run; no part of the sweep's identity."""

    endpoint: Endpoint
    simulated: bool = False
    """Whether the truth goes along, which only the project's own simulator may see."""


@dataclass(frozen=True)
class RunContext:
    """All that a worker knows of a run. Holds names of secrets' variables, never secrets."""

    run: str
    """Unique name of the run."""
    spec: Mapping[str, Any]
    trials: int
    repeats: int
    prices: tuple[tuple[float, float], ...]
    cube: str
    """URL."""
    cache: str
    """URL."""
    routes: Mapping[str, Route]
    """By label of the model."""
    lease: str
    """Token of the driver's lease."""
    code: tuple[str, ...] = ()
    """Graders and templates that the driver may run, as its user's config names them."""
    proof: Proof = field(default_factory=Proof)
    """What a worker proves before it takes part, where that is not certain."""

    @classmethod
    def of(
        cls,
        run: str,
        plan: Plan,
        places: tuple[str, str],
        routes: Mapping[str, Route],
        lease: str,
        proof: Proof,
    ) -> RunContext:
        """What workers are told of a run; `places` are the addresses of cube and cache."""
        code = tuple(filter(may_run, plan.code))
        spec, prices = plan.spec(), plan.prices
        return cls(run, spec, plan.trials, plan.repeats, prices, *places, routes, lease, code, proof)


def unmade(plan: Plan) -> str:
    """Why this process cannot make a plan's questions from its data files; empty if it can: one of each is made.

    Nor may a package be missing that grades the replies.
    """
    files = {
        planned.cell.plain_params.get("file"): planned.cell for task in plan.tasks for planned in task.cells
    }
    file: object = None
    try:
        for task in plan.tasks:
            if isinstance(task.task, RenderedTask):
                task.task.check_package()
        for file, cell in files.items():
            if file is not None:
                cell.trial(0)
    except EvalcubeError as error:
        return str(error)
    except OSError as error:
        return f"cannot read {file}: {error}"
    return ""


def missing_key(endpoints: Sequence[Endpoint]) -> str:
    """Why a key is missing in this process; empty if none is known to be."""
    try:
        for endpoint in endpoints:
            check_source(endpoint)
    except InferenceError as error:
        return str(error)
    return ""
