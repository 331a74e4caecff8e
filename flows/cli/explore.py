"""Commands that show cubes in a browser: the explorer, served live or as files."""

from __future__ import annotations

from typing import Annotated

import typer

from evalcube.flows.cli.options import CacheOption, CubesArgument, JsonOption, NewFolderOption
from evalcube.flows.cli.output import safe, show, show_json
from evalcube.flows.cli.tables import warn


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
    from evalcube.flows.explore.server import serve

    serve(
        cube,
        host=host,
        port=port,
        with_token=token,
        cache=cache,
        ready=lambda url: _ready(url, browser),
    )


def _ready(url: str, browser: bool) -> None:
    import sys

    show(url)
    sys.stdout.flush()
    if browser:
        import webbrowser

        webbrowser.open(url)


def bundle(
    cube: CubesArgument,
    output: NewFolderOption,
    trials: Annotated[
        str,
        typer.Option(
            metavar="WHICH",
            help="Single trials with their texts: sample (some of each outcome), wrong, all, none.",
        ),
    ] = "sample",
    most: Annotated[
        int, typer.Option(min=1, metavar="N", help="Most trials, shared out evenly to models and tasks.")
    ] = 20_000,
    cache: CacheOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the explorer's views as a folder of files, which opens from disk or from any web server."""
    from evalcube.flows.cli.output import progress, size_text
    from evalcube.flows.explore.bundle import bundle as write

    with progress() as tick:
        done = write(cube, output, trials=trials, most=most, cache=cache, tick=tick)  # type: ignore[arg-type]
    if as_json:
        from dataclasses import asdict

        show_json(asdict(done), "bundle")
    else:
        show(
            safe(
                f"{done.folder}/index.html: {done.trials:,} trials, {done.files:,} files, {size_text(done.size)}"
            )
        )
    warn(done.notes)


COMMANDS = (explore,)
