"""Commands that show cubes in a browser: the explorer, served live."""

from __future__ import annotations

from typing import Annotated

import typer

from flows.cli.options import CacheOption, CubesArgument
from flows.cli.output import show


def explore(
    cube: CubesArgument,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="Where it listens; anything but this machine itself asks for a token."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Default: any that is free.")] = 0,
    token: Annotated[
        bool, typer.Option("--token", help="Ask for a token here too, as on a machine with other users.")
    ] = False,
    cache: CacheOption = None,
    browser: Annotated[bool, typer.Option("--browser", help="Open it in a browser.")] = False,
) -> None:
    """Explore cubes in the browser: ranking, where it breaks, single trials; also while a sweep runs."""
    from flows.explore.serve import serve

    serve(cube, host=host, port=port, with_token=token, cache=cache, ready=lambda url: _ready(url, browser))


def _ready(url: str, browser: bool) -> None:
    import sys

    show(url)
    sys.stdout.flush()
    if browser:
        import webbrowser

        webbrowser.open(url)


COMMANDS = (explore,)
