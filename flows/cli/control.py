"""The command that orders something of a run that goes on: ctl."""

from __future__ import annotations

from typing import Annotated

import typer

from evalcube.flows.cli.options import CubeArgument, JsonOption
from evalcube.flows.cli.output import Code, complain, safe, show, show_json


def ctl(
    cube: CubeArgument,
    command: Annotated[
        str,
        typer.Argument(help="pause, resume, stop, limits, drop-model or retry-errors."),
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="For limits: connections=4, requests_per_minute=60, tokens_per_minute=9000 of all models or of those "
            "that are named too, or tokens=2000000, usd=20 of the whole sweep. For drop-model: names of models.",
        ),
    ] = None,
    wait: Annotated[
        float, typer.Option("--wait", min=0, metavar="SECONDS", help="How long to wait for the run's answer.")
    ] = 30.0,
    as_json: JsonOption = False,
) -> None:
    """Order something of the run that works on a cube, from any machine that reaches the cube.

    Whoever can write the cube may lower what is spent: by pause, stop, drop-model, and tighter limits.
    What raises it is for the user who runs the sweep.
    """
    from evalcube.flows.cubes.orders import order

    answer = order(cube, command, words or (), wait=wait)
    if as_json:
        show_json({"command": command, "words": words or [], **vars(answer)})
    elif answer.obeyed:
        show(safe(answer.message))
    if not answer.obeyed:
        complain(f"{command} was refused: {answer.message}")
        raise typer.Exit(Code.REFUSED)


COMMANDS = (ctl,)
