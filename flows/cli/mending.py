"""Commands that look after a cube: verify, rescore."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evalcube.flows.cli.flags import Command
from evalcube.flows.cli.options import CacheOption, CubeArgument, JsonOption
from evalcube.flows.cli.output import Code, complain, safe, show, show_json

if TYPE_CHECKING:
    from evalcube.flows.state.rescoring import Rescoring

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
    from evalcube.flows.state.verify import verify_cube

    found = verify_cube(cube, heal=heal, cache=cache, notify=complain)
    if as_json:
        show_json(found.to_dict(), "verification")
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


def rescore(
    cube: CubeArgument,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="NEW", help="Write a new cube and leave this one as it is."),
    ] = None,
    cache: CacheOption = None,
    as_json: JsonOption = False,
) -> None:
    """Grade every reply of a cube again from the cache, without asking; shows old and new counts."""
    from evalcube.flows.keep.rescore import rescore_cube

    done = rescore_cube(cube, output=output, cache=cache, notify=complain)
    if as_json:
        show_json(done.to_dict(), "rescoring")
    else:
        _print_recounts(done)
    if done.lost:
        complain(f"{done.lost} regions are left as they were: the cache lacks some of their replies")
    if done.imported:
        complain(
            f"{done.imported} imported regions are left as the tool graded them that they come from; grade them again "
            "with that tool, and import its new log into a new cube"
        )


def _print_recounts(done: Rescoring) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from evalcube.stages.process.grading import IMPORTED

    graders = ", ".join(grader for grader in done.before if grader != IMPORTED)
    table = Table("model", "task", title=f"grader {graders} → {done.grader}", title_justify="left")
    for name in ("correct", "incorrect", "invalid"):
        table.add_column(name, justify="right")
    for row in done.rows:
        cells = (
            str(row.new[name]) if row.old[name] == row.new[name] else f"{row.old[name]} → {row.new[name]}"
            for name in row.new
        )
        table.add_row(escape(safe(row.model)), escape(safe(row.task)), *cells)
    Console().print(table)
    show(f"{done.regions} regions graded again: {done.changed} trials changed")


COMMANDS = (rescore,)


def _remedy(heal: bool, requests: int) -> str:
    if not heal:
        return "the cube is damaged; --heal makes it again from the cache"
    if requests:
        return f"the cache lacks what the rest needs: running the sweep again asks {requests} requests"
    return "the rest needs the sweep's config: run the sweep again"
