"""The command `python -m tests.simulator`, which serves simulated models until it is stopped."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from evalcube.deploy.errors import DeployError
from evalcube.deploy.simulator.__main__ import serve_until_stopped
from tests.simulator.app import Application
from tests.simulator.counts import Log
from tests.simulator.faults import Injector, parse_rules
from tests.simulator.quota import Limits
from tests.simulator.server import serve


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 after SIGTERM, SIGINT or (with ``--follow-parent``) the end of standard input; 2 if it cannot serve.

    Parameters
    ----------
    arguments
        The command line without the program's name; None is that of this process.
    """
    options = _parser().parse_args(arguments)
    try:
        log = None if options.log is None else Log(options.log)
        injector = Injector(parse_rules(options.faults))
        limits = Limits(options.limit_rpm, options.limit_tpm, options.limit_connections, options.limit_window)
        application = Application(_key(options.key_env), injector, log, limits)
    except DeployError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    code = serve_until_stopped(
        partial(_listen, application), options.port, follow_parent=options.follow_parent
    )
    if log is not None:
        log.close()
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulator",
        description="A simulated model behind the APIs of chat, completions and messages, on the loopback address.",
    )
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 (default) takes a free one")
    parser.add_argument("--key-env", metavar="NAME", help="require the API key in this environment variable")
    parser.add_argument("--faults", metavar="JSON", default="[]", help="list of fault rules to begin with")
    parser.add_argument("--limit-rpm", metavar="N", type=float, help="refuse more requests per minute")
    parser.add_argument("--limit-tpm", metavar="N", type=float, help="refuse more tokens per minute")
    parser.add_argument("--limit-connections", metavar="N", type=int, help="refuse more requests at once")
    parser.add_argument(
        "--limit-window",
        metavar="SECONDS",
        type=float,
        default=60.0,
        help="time over which rates are counted",
    )
    parser.add_argument("--log", metavar="FILE", type=Path, help="append one line for each finished request")
    parser.add_argument("--follow-parent", action="store_true", help="stop when standard input ends")
    return parser


def _key(name: str | None) -> str | None:
    if name is None:
        return None
    key = os.environ.get(name)
    if not key:
        raise DeployError(
            f"the environment variable {name} is not set", remedy="Set it, or leave --key-env out."
        )
    return key


async def _listen(application: Application, port: int) -> tuple[str, Callable[[], Awaitable[None]]]:
    server = await serve(application, port)

    async def close() -> None:
        server.close()

    return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", close


if __name__ == "__main__":
    sys.exit(main())
