"""Runs the explorer's server until it is stopped."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Sequence

from aiohttp import web

from evalcube.flows.errors import SweepError
from evalcube.flows.explore.answers import ask
from evalcube.flows.explore.explored import Explored
from evalcube.flows.explore.query import Query
from evalcube.flows.explore.server import LOOPBACK, application

_FIRST = (("overview", Query()), ("ranking", Query.make(quick="1")))
"""What every first page asks for."""


def serve(
    cubes: Sequence[str],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    with_token: bool = False,
    cache: str | None = None,
    ready: Callable[[str], None],
) -> None:
    """Serve the explorer until Ctrl-C.

    Parameters
    ----------
    cubes
        Addresses of the cubes, which are read as one.
    host, port
        Where to listen; port 0 is any that is free.
    with_token
        Whether a token is asked for on this machine too; elsewhere it always is.
    cache
        Address of the response cache; default: those at hand.
    ready
        Called with the address when the server listens.

    Raises
    ------
    StorageError, SweepError
        If a cube cannot be read, plotly is not installed, or the address cannot be listened at.
    """
    explored = Explored(cubes, cache)
    # What is wrong with a cube is told here, and not in the browser; and the first page finds its answers made.
    for name, query in _FIRST:
        ask(explored, name, query)
    token = secrets.token_urlsafe(24) if with_token or host not in LOOPBACK else ""
    app = application(explored, token)
    try:
        bound = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, UnicodeError) as error:
        raise SweepError(
            f"`port`: cannot listen at {host}:{port}: {getattr(error, 'strerror', None) or error}",
            "Give another port, or none",
        ) from error
    named = f"[{host}]" if ":" in host else host
    ready(f"http://{named}:{bound.getsockname()[1]}/" + (f"?token={token}" if token else ""))
    web.run_app(app, sock=bound, print=None, access_log=None)
