"""The command `python -m evalcube.deploy.simulator`, which serves simulated models until it is stopped."""

from __future__ import annotations

import argparse
import asyncio
import gc
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress

from evalcube.deploy.servers.lifeline import when_parent_dies
from evalcube.deploy.simulator.server import Listen, listen


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 after SIGTERM, SIGINT or (with ``--follow-parent``) the end of standard input; 2 if it cannot serve.

    Parameters
    ----------
    arguments
        The command line without the program's name; None is that of this process.
    """
    parser = argparse.ArgumentParser(
        prog="python -m evalcube.deploy.simulator", description="Simulated models on the loopback address."
    )
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 (default) takes a free one")
    parser.add_argument("--follow-parent", action="store_true", help="stop when standard input ends")
    options = parser.parse_args(arguments)
    return serve_until_stopped(listen, options.port, follow_parent=options.follow_parent)


def serve_until_stopped(listen: Listen, port: int, *, follow_parent: bool) -> int:
    """Serve until SIGTERM, SIGINT or the end of the parent; exit code: 2 if the port cannot be listened on.

    Parameters
    ----------
    listen
        Begins to serve on a port, and returns the server's address and what closes it.
    port
        Port to listen on; 0 takes a free one.
    follow_parent
        Whether to stop when standard input ends, too.
    """
    try:
        asyncio.run(_run(listen, port, follow_parent=follow_parent))
    except OSError as error:
        sys.stderr.write(f"cannot listen on port {port}: {error.strerror}. Use --port 0 for a free port.\n")
        return 2
    return 0


async def _run(listen: Listen, port: int, *, follow_parent: bool) -> None:
    loop = asyncio.get_running_loop()
    # A handler of the loop's runs between two steps of it, so that no reply is cut off by the signal itself.
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    address, close = await listen(port)
    if follow_parent:
        when_parent_dies(lambda: _notify(loop, stop))
    sys.stdout.write(f"listening on {address}\n")
    sys.stdout.flush()
    gc.freeze()  # nothing that exists now becomes garbage; not to scan it shortens the pauses of a busy server
    await stop.wait()
    await close()


def _notify(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Set an event of a loop from another thread."""
    with suppress(RuntimeError):  # a signal may have ended the loop already
        loop.call_soon_threadsafe(stop.set)


if __name__ == "__main__":
    sys.exit(main())
