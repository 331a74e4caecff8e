"""Commands that look after a cube: verify."""

from __future__ import annotations

from typing import Annotated

import typer

from flows.cli.flags import Command
from flows.cli.options import CacheOption, CubeArgument, JsonOption
from flows.cli.output import Code, complain, safe, show, show_json

_SHOWN = 50

commands = typer.Typer(help="Look after a cube.", no_args_is_help=True)


@commands.command(cls=Command)
def verify(
    cube: CubeArgument,
    heal: Annotated[
        bool, typer.Option("--heal", help="Make what is damaged again from the cache; no request is sent.")
    ] = False,
    cache: CacheOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare all of a cube with what was recorded of it; exit code 2 if something is damaged and not healed."""
    from flows.rework.verify import verify_cube

    found = verify_cube(cube, heal=heal, cache=cache)
    if as_json:
        show_json(found.to_dict())
    else:
        show(f"{found.regions} regions compared: {len(found.damages)} damages")
        for damage in found.damages[:_SHOWN]:
            cost = f"; the cache lacks {damage.requests} of its replies" if damage.requests else ""
            show(safe(f"{'healed' if damage.healed else 'damaged'}: {damage}{cost}"))
        if len(found.damages) > _SHOWN:
            show(f"... and {len(found.damages) - _SHOWN} more")
    if found.lines:
        complain(
            f"{found.lines} lines of the ledger are damaged: run the sweep again, which asks nothing twice"
        )
    if not found.whole:
        complain(_remedy(heal, found.requests))
        raise typer.Exit(Code.REFUSED)


def _remedy(heal: bool, requests: int) -> str:
    if not heal:
        return "the cube is damaged; --heal makes it again from the cache"
    if requests:
        return f"the cache lacks what the rest needs: running the sweep again asks {requests} requests"
    return "the rest needs the sweep's config: run the sweep again"
