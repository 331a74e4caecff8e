"""The command that takes results away: forget."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from evalcube.flows.cli.options import CubeArgument, JsonOption, WhereOption
from evalcube.flows.cli.output import Code, complain, safe, show, show_json

if TYPE_CHECKING:
    from evalcube.flows.rework.forget import Forgetting
    from evalcube.flows.rework.to_forget import Choice


def forget(
    cube: CubeArgument,
    where: WhereOption = None,
    trials: Annotated[
        str, typer.Option(metavar="A:B", help="Only trials A to B - 1 of each cell, counted from 0.")
    ] = "",
    status: Annotated[
        str,
        typer.Option(metavar="NAME,...", help="Only results with these outcomes, such as invalid,refused."),
    ] = "",
    rows: Annotated[
        list[str] | None,
        typer.Option(
            "--row", metavar="ID", help="Only the row of a data set with this id; may be given again."
        ),
    ] = None,
    since: Annotated[
        str,
        typer.Option(
            metavar="DATE", help="Only what was recorded then or later: 2026-11-22 or 2026-11-22T09:30."
        ),
    ] = "",
    cache: Annotated[
        bool,
        typer.Option(
            "--cache", help="Delete the cached replies, too: without that, a run takes them from there."
        ),
    ] = False,
    cache_address: Annotated[
        str | None,
        typer.Option("--cache-address", metavar="URL", help="Where they are; default: the sweep's cache."),
    ] = None,
    for_good: Annotated[
        bool,
        typer.Option(
            "--for-good", help="Never ask for these cells again; without it, they are pending again."
        ),
    ] = False,
    all_results: Annotated[
        bool, typer.Option("--all", help="All results of the cube, where nothing says which ones.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask whether it is meant.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Take results away, so that they are asked again or are gone for good; shows first what goes, and asks."""
    from evalcube.flows.rework.forget import forget as take_away
    from evalcube.flows.rework.to_forget import Choice

    choice = Choice(tuple(where or ()), _span(trials), _names(status), tuple(rows or ()), _time(since))
    _refuse_no_choice(cube, choice, all_results=all_results, yes=yes and not dry_run)

    def confirmed(shown: Forgetting) -> bool:
        if not as_json:
            _print(shown)
        if dry_run or not (shown.trials or shown.cells):
            return False
        return yes or _is_meant()

    done = take_away(cube, choice, cache=cache_address or cache, for_good=for_good, confirmed=confirmed)
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
    if not done.done and not dry_run and (done.trials or done.cells):
        complain("nothing is forgotten")
        raise typer.Exit(Code.INCOMPLETE)


def _refuse_no_choice(cube: str, choice: Choice, *, all_results: bool, yes: bool) -> None:
    """Nobody loses a whole cube by a condition that was forgotten."""
    from evalcube.flows.errors import SweepError
    from evalcube.flows.rework.to_forget import Choice

    if choice != Choice():
        if all_results:
            raise SweepError(
                "`all_results` excludes `where`, `trials`, `status`, `rows` and `since`",
                "Leave it or these out",
            )
    elif yes and not all_results:
        raise SweepError(
            f"nothing says which results of '{cube}' are to go, and `yes` would take all of them",
            "Say which with `where`, `trials`, `status`, `rows` or `since`, or give `all_results`",
        )


def _is_meant() -> bool:
    """Whether somebody at the terminal says so; nobody is asked elsewhere."""
    if not sys.stdin.isatty():
        complain("nobody is there to confirm it: give --yes, or --dry-run to see what would go")
        raise typer.Exit(Code.REFUSED)
    return typer.confirm("Take them away?", err=True)


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
    if shown.undated:
        notes.append(
            f"{shown.undated:,} results stay: nothing tells whether they were recorded before the date or after it "
            "(their region was written before and after it, and no cache says when their replies came)"
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


def _span(text: str) -> tuple[int | None, int | None]:
    if not text:
        return None, None
    first, colon, last = text.partition(":")
    if not colon or any(part and not (part.isascii() and part.isdecimal()) for part in (first, last)):
        raise typer.BadParameter("write it like 16:32, 16: or :32", param_hint="--trials")
    begin, end = (int(part) if part else None for part in (first, last))
    if end is not None and end <= (begin or 0):
        raise typer.BadParameter(
            "there is no trial from the first number to the second", param_hint="--trials"
        )
    return begin, end


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _time(text: str) -> float | None:
    """Seconds since the epoch, by this machine's time zone unless the text names one."""
    from datetime import datetime

    if not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise typer.BadParameter(
            "write it like 2026-11-22 or 2026-11-22T09:30", param_hint="--since"
        ) from None


COMMANDS = (forget,)
