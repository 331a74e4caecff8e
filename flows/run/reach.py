"""Whether this process reaches the models' endpoints: by connecting, which costs nothing and shows no key."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from urllib.parse import urlsplit

from evalcube.stages.infer.endpoint import Endpoint, InferenceError

CONNECT_SECONDS = 8.0


def cut_off(endpoints: Sequence[Endpoint]) -> dict[str, str]:
    """Addresses of endpoints that cannot be connected to, and why; each is tried once, all at the same time.

    Parameters
    ----------
    endpoints
        Their settings; several may have one address.
    """
    distinct = {(endpoint.urls, endpoint.ca_file): endpoint for endpoint in endpoints}
    found: dict[str, str] = {
        place(one): f"no answer within {CONNECT_SECONDS:g} s" for one in distinct.values()
    }

    def probe(endpoint: Endpoint) -> None:
        found[place(endpoint)] = unreached(endpoint)

    # Daemons: a name that nobody resolves takes longer than anybody waits.
    probes = [threading.Thread(target=probe, args=[one], daemon=True) for one in distinct.values()]
    for thread in probes:
        thread.start()
    for thread in probes:
        thread.join(CONNECT_SECONDS + 1.0)
    return {where: problem for where, problem in dict(found).items() if problem}


def place(endpoint: Endpoint) -> str:
    """An endpoint's address for people: host and port, without what else may stand in a URL."""
    try:
        parts = urlsplit(endpoint.urls[0])
        return f"{parts.hostname}:{_port(parts.port, parts.scheme)}"
    except ValueError:
        return endpoint.name


def unreached(endpoint: Endpoint) -> str:
    """Why an endpoint cannot be reached, by connecting and no more; empty if one of its servers can.

    Of one behind a proxy, the proxy is connected to.
    """
    problem = ""
    for url in endpoint.urls:
        problem = _unreached(endpoint, url)
        if not problem:
            break
    return problem


def _unreached(endpoint: Endpoint, url: str) -> str:
    where = url
    try:
        proxy = endpoint.proxy(url)
        parts = urlsplit(proxy or url)
        port = _port(parts.port, parts.scheme)
        where = f"{'the proxy ' if proxy else ''}{parts.hostname}:{port}"
        with ExitStack() as stack:
            connected = socket.create_connection((parts.hostname or "", port), CONNECT_SECONDS)
            stack.callback(connected.close)
            if proxy is None and parts.scheme == "https":
                context = endpoint.tls()
                made = context if isinstance(context, ssl.SSLContext) else ssl.create_default_context()
                stack.enter_context(made.wrap_socket(connected, server_hostname=parts.hostname))
    except InferenceError as error:
        return str(error)
    except (OSError, ValueError) as error:
        said = getattr(error, "verify_message", None) or error.__class__.__name__
        return f"{endpoint.name}: {where} cannot be reached ({getattr(error, 'strerror', None) or said})"
    return ""


def _port(port: int | None, scheme: str) -> int:
    return port or (443 if scheme == "https" else 80)
