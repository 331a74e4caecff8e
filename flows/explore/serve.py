"""Runs the explorer's server until it is stopped."""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress

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
    asyncio.run(_run(app, host, port, token, ready))


async def _run(
    app: web.Application,
    host: str,
    port: int,
    token: str,
    ready: Callable[[str], None],
) -> None:
    runner = web.AppRunner(app, access_log=None, handle_signals=False)
    await runner.setup()
    site = web.TCPSite(runner, host, port)
    try:
        await site.start()
    except OSError as error:
        await runner.cleanup()
        raise SweepError(
            f"`port`: cannot listen at {host}:{port}: {error.strerror or error}", "Give another port, or none"
        ) from error
    bound = runner.addresses[0][1]
    named = f"[{host}]" if ":" in host else host
    ready(f"http://{named}:{bound}/" + (f"?token={token}" if token else ""))
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError, RuntimeError):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        await stop.wait()
    finally:
        await runner.cleanup()
