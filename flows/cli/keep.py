"""Commands that look after cubes, caches and fetched data sets: forget, rescore, cube, cache, data."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.filesize import decimal as size_text

from evalcube.flows.cli import options
from evalcube.flows.cli.options import Command, CommandGroup
from evalcube.flows.cli.output import (
    MOST_ROWS,
    ExitStatus,
    complain,
    print_rows,
    progress,
    safe,
    show,
    show_json,
)

if TYPE_CHECKING:
    from evalcube.flows.keep.forget import Forgetting
    from evalcube.flows.state.damage import Verification
    from evalcube.flows.state.rescoring import Rescoring
    from evalcube.stages.generate.dataset.hub.shelf import FetchedRows


cache_commands = typer.Typer(cls=CommandGroup, help="Manage a response cache.", no_args_is_help=True)


@cache_commands.command(cls=Command)
def stats(cache: options.Cache, as_json: options.Json = False) -> None:
    """Count entries and their bytes, damaged entries set aside, and packs (files of entries) being written."""
    from evalcube.flows.keep.cache import stats as make

    document = make(cache)
    if as_json:
        show_json(document)
        return
    show(f"{document['entries']} entries, {size_text(document['bytes'])}")
    show(f"{document['damaged']} in quarantine, {document['journals']} packs being written")


@cache_commands.command("verify", cls=Command)
def verify_cache(
    cache: options.Cache,
    repair: Annotated[bool, typer.Option("--repair")] = False,
    as_json: options.Json = False,
) -> None:
    """Read every entry and check it; exit code 1 if one is damaged.

    Parameters
    ----------
    repair
        Move damaged entries away; the next run asks for them again.
    """
    from evalcube.flows.keep.cache import verify as make

    with progress() as subscribers:
        report = make(cache, repair=repair, subscribers=subscribers)
    if as_json:
        show_json(asdict(report))
    else:
        show(f"{report.entries} entries read, {size_text(report.bytes)}: {report.damaged} damaged")
        for key in report.keys:
            show(f"damaged: {key}")
        if report.damaged > len(report.keys):
            show(f"... and {report.damaged - len(report.keys)} more")
    if report.damaged:
        remedy = f"{report.repaired} moved away" if repair else "run again with --repair to move them away"
        complain(f"{report.damaged} entries are damaged; {remedy}")
        raise typer.Exit(ExitStatus.INCOMPLETE)


@cache_commands.command(cls=Command)
def gc(
    cache: options.Cache,
    cubes: Annotated[list[str] | None, typer.Option("--keep")] = None,
    yes: Annotated[bool, typer.Option("--yes")] = False,
    as_json: options.Json = False,
) -> None:
    """Delete all entries but those of the cubes named with --keep; while it works, run sweeps of these cubes only.

    Parameters
    ----------
    cubes : CUBE
        A cube whose replies stay. Give it again for more.
    yes
        Delete; without it, only show what would be deleted.
    """
    from evalcube.flows.keep.cache import collect

    with progress() as subscribers:
        report = collect(cache, cubes or (), delete=yes, subscribers=subscribers)
    if as_json:
        show_json(asdict(report))
        return
    verb = "deleted" if report.deleted else "would delete"
    show(
        f"{verb} {report.unreferenced - report.in_use} of {report.entries} entries, {size_text(report.bytes)}"
    )
    if report.in_use:
        show(f"{report.in_use} more are in packs that other processes write: run again when they have ended")
    show(f"{verb} {report.temporaries} temporary files of killed writers")
    show(f"{report.referenced} requests are referenced; {report.missing} of them are not in the cache")
    if not report.deleted and (report.unreferenced or report.temporaries):
        show("nothing is deleted yet: run again with --yes")


@cache_commands.command("export", cls=Command)
def export_entries(
    cache: options.Cache, file: Path, cube: str | None = None, as_json: options.Json = False
) -> None:
    """Write entries into one file, for `evalcube cache import` elsewhere.

    Parameters
    ----------
    file
        The file to write, such as replies.tar.zst.
    cube
        Export only the replies that this cube references.
    """
    from evalcube.flows.keep.cache import export

    with progress() as subscribers:
        transfer = export(cache, file, cube=cube, subscribers=subscribers)
    if as_json:
        show_json({"file": str(file), **asdict(transfer)})
    else:
        show(f"{transfer.entries} entries written to {safe(str(file))}, {size_text(file.stat().st_size)}")
    if transfer.skipped:
        complain(f"{transfer.skipped} damaged entries were left out; see `evalcube cache verify`")
    if transfer.missing:
        complain(f"{transfer.missing} requests of the cube are not answered by this cache")


@cache_commands.command("import", cls=Command)
def import_entries(cache: options.Cache, file: Path, as_json: options.Json = False) -> None:
    """Add the entries of a file to a cache, except those that it already has. Import only files that you trust.

    Parameters
    ----------
    file
        A file that `evalcube cache export` wrote.
    """
    from evalcube.flows.keep.cache import load

    with progress() as subscribers:
        transfer = load(cache, file, subscribers=subscribers)
    if as_json:
        show_json({"file": str(file), **asdict(transfer)})
    else:
        show(f"{transfer.entries} entries read, {transfer.new} of them new")


cube_commands = typer.Typer(cls=CommandGroup, help="Verify or repair a cube.", no_args_is_help=True)


@cube_commands.command(cls=Command)
def verify(
    cube: options.Cube,
    heal: Annotated[bool, typer.Option("--heal")] = False,
    cache: str | None = None,
    as_json: options.Json = False,
) -> None:
    """Compare a whole cube with the digests in its ledger; exit code 2 if damage remains.

    Parameters
    ----------
    heal
        Repair damage with replies from the cache; no request is sent.
    """
    from evalcube.flows.state.verify import verify_cube
    from evalcube.storage.cube.group import heal as heal_words

    with progress() as subscribers:
        report = verify_cube(cube, heal=heal, cache=cache, subscribers=subscribers)
    if as_json:
        show_json(report.to_dict(), "verification")
    else:
        from evalcube.stages.analyze.labelled.axes import count_text

        show(f"{count_text(report.regions, 'region')} checked: {len(report.damages) or 'none'} damaged")
        for damage in report.damages[:MOST_ROWS]:
            cost = f"; the cache lacks {damage.requests} of its replies" if damage.requests else ""
            show(safe(f"{'healed' if damage.healed else 'damaged'}: {damage}{cost}"))
        if len(report.damages) > MOST_ROWS:
            show(f"... and {len(report.damages) - MOST_ROWS} more")
    if report.lines:
        complain(
            f"{report.lines} lines of the ledger are damaged: run the sweep again; no request is repeated"
        )
    if not report.whole:
        complain(_remedy(report) if heal else f"the cube is damaged. {heal_words(report.cube)}")
        raise typer.Exit(ExitStatus.REFUSED)


def rescore(
    cube: options.Cube,
    output: Annotated[str | None, typer.Option("--output", "-o")] = None,
    cache: str | None = None,
    as_json: options.Json = False,
) -> None:
    """Grade every reply of a cube again, from the cache, without sending a request; shows old and new counts.

    Parameters
    ----------
    output : NEW
        Write a new cube and leave this one as it is.
    """
    from evalcube.flows.keep.rescore import rescore_cube

    with progress() as subscribers:
        done = rescore_cube(cube, output=output, cache=cache, subscribers=subscribers)
    if as_json:
        show_json(done.to_dict(), "rescoring")
    else:
        _print_recounts(done)
    if done.lost:
        complain(f"{done.lost} regions are left as they were: the cache lacks some of their replies")
    if done.imported:
        complain(
            f"{done.imported} imported regions keep the grades of the tool that they come from; grade them again with "
            "that tool, and import its new log into a new cube"
        )


def _print_recounts(done: Rescoring) -> None:
    from evalcube.stages.process.grading import IMPORTED

    def cell(before: int, after: int) -> object:
        return after if before == after else f"{before} → {after}"

    graders = ", ".join(grader for grader in done.before if grader != IMPORTED)
    rows = [
        (row.model, row.task, *(cell(row.old[name], count) for name, count in row.new.items()))
        for row in done.rows
    ]
    names = ("model", "task", "correct", "incorrect", "invalid")
    print_rows(names, rows, f"grader {graders} → {done.grader}")
    show(f"{done.regions} regions graded again: {done.changed} trials changed")


def _remedy(report: Verification) -> str:
    if report.requests:
        return (
            f"the cache lacks replies for the rest: running the sweep again sends {report.requests} requests"
        )
    return "the rest needs the sweep's config: run the sweep again"


def forget(
    cube: options.Cube,
    where: Annotated[list[str], typer.Option()],
    cache: Annotated[bool, typer.Option("--cache")] = False,
    yes: Annotated[bool, typer.Option("--yes")] = False,
    as_json: options.Json = False,
) -> None:
    """Delete results from a cube, so that the next run measures them again; without --yes, only list them.

    Parameters
    ----------
    where : NAME=VALUE
        Only these results: a model, task, tier, parameter or facet, trial=0..3, status=invalid,refused, row_id=ID. If
        given again, all must hold.
    cache
        Delete the cached replies, too, so that the next run asks again; otherwise, it reads them from the cache.
    yes
        Delete these results; otherwise, only list them.
    """
    from evalcube.flows.keep.choice import Choice
    from evalcube.flows.keep.forget import forget as take_away

    def confirm(shown: Forgetting) -> bool:
        if not as_json:
            _print_forgetting(shown)
        return yes and bool(shown.trials)

    done = take_away(cube, Choice(tuple(where)), cache=cache, confirmed=confirm)
    if as_json:
        show_json(done.to_dict())
    elif done.done:
        replies = f", and the replies to {done.replies:,} requests" * cache
        show(f"{done.trials:,} results are forgotten{replies}")
    if done.kept_replies:
        complain(
            f"{done.kept_replies} replies stay: another process writes the pack that they are in. Run this again once "
            "it has ended"
        )
        raise typer.Exit(ExitStatus.INCOMPLETE)
    if not done.done and done.trials:
        complain("nothing is deleted yet: run again with --yes")


def _print_forgetting(shown: Forgetting) -> None:
    if not shown.rows:
        show("no result fulfils this")
    else:
        rows = [(row.model, row.task, row.trials, row.requests) for row in shown.rows]
        trials, requests = shown.trials, sum(row.requests for row in shown.rows)
        asked = "to ask again" if shown.cache else "pending again"
        print_rows(("model", "task", "results", asked), [("all", "", trials, requests), *rows], shown.cube)
    for note in _forgetting_notes(shown):
        show(note)


def _forgetting_notes(shown: Forgetting) -> list[str]:
    """What a reader has to know before saying yes."""
    if not shown.trials:
        return []
    if not shown.cache:
        return ["their replies stay in the cache, where a run finds them: --cache deletes them, too"]
    batches = f", {shown.batches} batches under way" if shown.batches else ""
    cache = safe(shown.cache)
    return [
        f"replies are deleted from {cache}, also those of judges; other cubes that use it lose them as well",
        f"not reached: copies and archives of cube and cache, logs, older versions that a store keeps{batches}",
        "not reached, in the cube: names, templates, rubrics and params, ids of rows, its copy of a data file",
    ]


data_commands = typer.Typer(
    cls=CommandGroup, help="Fetch data sets of the Hugging Face Hub, and list them.", no_args_is_help=True
)


@data_commands.command(cls=Command)
def fetch(targets: list[str], as_json: options.Json = False) -> None:
    """Bring data sets here, so that runs need no network for them; a token is read from HF_TOKEN, and not stored.

    Parameters
    ----------
    targets : SUITE|CONFIG|ADDRESS
        Suites or configs that use the data sets, or addresses of data sets, such as hf://openai/gsm8k?split=test.
    """
    from evalcube.flows.keep.data import fetch_data, record_fields

    records = fetch_data(targets, (lambda _: None) if as_json else _tell)
    if as_json:
        show_json({"data": [record_fields(record) for record in records]})


def _tell(record: FetchedRows) -> None:
    terms = f"licence {record.licence or 'not stated'}" + (", gated" if record.gated else "")
    show(safe(f"{record.address}: {record.rows:,} rows, {size_text(record.size)}, {terms}"))
    if not record.is_pinned:
        show(safe(f"  now what {record.asked} means here; to pin it, write the line above into the config"))


@data_commands.command("list", cls=Command)
def list_data(as_json: options.Json = False) -> None:
    """List the data sets that were fetched to this machine."""
    from evalcube.flows.keep.data import data_here
    from evalcube.stages.generate.dataset.hub.shelf import folder

    rows = data_here()
    if as_json:
        show_json({"folder": str(folder()), "data": rows})
        return
    if not rows:
        show(f"nothing was fetched to {safe(str(folder()))}; evalcube data fetch hf://OWNER/NAME does that")
        return
    lines = [
        (
            *(row["asked"], row["commit"][:12], "yes" if row["pinned"] else "no"),
            *(row["licence"] or "not stated", row["rows"], size_text(row["size"]), row["fetched"]),
        )
        for row in rows
    ]
    print_rows(("data", "revision", "pinned", "licence", "rows", "size", "fetched"), lines)
    show(safe(f"in {folder()}"))
