"""The command that takes results away: forget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evalcube.flows.cli.options import CubeArgument, JsonOption
from evalcube.flows.cli.output import Code, complain, safe, show, show_json

if TYPE_CHECKING:
    from evalcube.flows.keep.forget import Forgetting


def forget(
    cube: CubeArgument,
    where: Annotated[
        list[str],
        typer.Option(
            "--where",
            metavar="NAME=VALUE",
            help="Only these results: a model, task, tier, parameter or facet, trial=0..3, status=invalid,refused, "
            "row_id=ID. Give it again for more conditions.",
        ),
    ],
    cache: Annotated[
        bool,
        typer.Option(
            "--cache", help="Delete the cached replies, too: without that, a run takes them from there."
        ),
    ] = False,
    for_good: Annotated[
        bool,
        typer.Option(
            "--for-good", help="Never ask for these cells again; without it, they are pending again."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Take them away; else only show what would go.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Take results away, so that they are asked again or are gone for good; without --yes, show what would go."""
    from evalcube.flows.keep.forget import forget as take_away
    from evalcube.flows.keep.to_forget import Choice

    def confirmed(shown: Forgetting) -> bool:
        if not as_json:
            _print(shown)
        return yes and bool(shown.trials or shown.cells)

    done = take_away(cube, Choice(tuple(where)), cache=cache, for_good=for_good, confirmed=confirmed)
    if as_json:
        show_json(done.to_dict())
    elif done.done:
        show(
            f"{done.trials:,} results are forgotten"
            + (f", and the replies to {done.replies:,} requests" * cache)
        )
    if done.kept_replies:
        complain(
            f"{done.kept_replies} replies stay: another process writes the pack that they are in. Run this again once "
            "it has ended"
        )
        raise typer.Exit(Code.INCOMPLETE)
    if not done.done and (done.trials or done.cells):
        complain("nothing is forgotten yet: --yes takes these away")


def _print(shown: Forgetting) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    if not shown.rows:
        show("no result fulfils this")
    else:
        table = Table("model", "task", title=escape(safe(shown.cube)), title_justify="left", show_footer=True)
        columns = {
            "results": (shown.trials, [row.trials for row in shown.rows]),
            ("to ask again" if shown.cache else "pending again"): (
                sum(row.requests for row in shown.rows),
                [row.requests for row in shown.rows],
            ),
        }
        for name, (total, _) in columns.items():
            table.add_column(name, justify="right", footer=f"{total:,}")
        table.add_column("USD", justify="right", footer=_usd(sum(row.usd for row in shown.rows)))
        for row in shown.rows:
            cells = (f"{row.trials:,}", f"{row.requests:,}", _usd(row.usd))
            table.add_row(escape(safe(row.model)), escape(safe(row.task)), *cells)
        Console().print(table)
    for note in _notes(shown):
        show(note)


def _usd(value: float) -> str:
    """A cost; a dash where nothing has a price."""
    return f"{value:.2f}" if value else "–"


def _notes(shown: Forgetting) -> list[str]:
    """What a reader has to know before saying yes."""
    notes = []
    if shown.cells:
        notes.append(
            f"{shown.cells:,} cells are never asked again; `evalcube forget` without --for-good lifts that"
        )
    if not shown.trials:
        return notes
    if not shown.cache:
        notes.append(
            "their replies stay in the cache, from where a run takes them: --cache deletes them, too"
        )
        return notes
    notes.append(
        f"replies are deleted from {safe(shown.cache)}, also those of judges; other cubes that use it lose them as well"
    )
    batches = f", {shown.batches} batches under way" if shown.batches else ""
    notes.append(
        f"not reached: copies and archives of cube and cache, logs, older versions that a store keeps{batches}; and "
        "what the cube says of itself: names, templates, rubrics and params of its sweep, ids of rows; and "
        "its copy of a data file, until (with --for-good) no cell asks that any more"
    )
    return notes


COMMANDS = (forget,)
