"""Commands that look after a response cache: stats, verify, gc, export, import."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from evalcube.flows.cli.flags import Command
from evalcube.flows.cli.options import CacheArgument, JsonOption
from evalcube.flows.cli.output import Code, complain, progress, safe, show, show_json, size_text

commands = typer.Typer(help="Look after a response cache.", no_args_is_help=True)


@commands.command(cls=Command)
def stats(cache: CacheArgument, as_json: JsonOption = False) -> None:
    """Count entries, their bytes, damaged ones in quarantine, and packs that are being written."""
    from evalcube.flows.keep.cache import stats as make

    document = make(cache)
    if as_json:
        show_json(document)
        return
    show(f"{document['entries']} entries, {size_text(document['bytes'])}")
    show(f"{document['damaged']} in quarantine, {document['journals']} packs being written")


@commands.command(cls=Command)
def verify(
    cache: CacheArgument,
    repair: Annotated[
        bool, typer.Option("--repair", help="Move damaged entries away; the next run asks for them again.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Read every entry and check it; exit code 1 if one is damaged."""
    from evalcube.flows.keep.cache import verify as make

    with progress() as tick:
        found = make(cache, repair=repair, tick=tick)
    if as_json:
        show_json(asdict(found))
    else:
        show(f"{found.entries} entries read, {size_text(found.bytes)}: {found.damaged} damaged")
        for key in found.keys:
            show(f"damaged: {key}")
        if found.damaged > len(found.keys):
            show(f"... and {found.damaged - len(found.keys)} more")
    if found.damaged:
        remedy = f"{found.repaired} moved away" if repair else "run again with --repair to move them away"
        complain(f"{found.damaged} entries are damaged; {remedy}")
        raise typer.Exit(Code.INCOMPLETE)


@commands.command(cls=Command)
def gc(
    cache: CacheArgument,
    cubes: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="CUBE",
            help="A cube whose replies stay; give it again for more.",
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Delete. Without it, the command only tells what it would delete.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete the entries that none of the cubes references; let no sweep of another cube run meanwhile."""
    from evalcube.flows.keep.cache import collect

    with progress() as tick:
        found = collect(cache, cubes or (), delete=yes, tick=tick)
    if as_json:
        show_json(asdict(found))
        return
    verb = "deleted" if found.deleted else "would delete"
    show(f"{verb} {found.unreferenced - found.in_use} of {found.entries} entries, {size_text(found.bytes)}")
    if found.in_use:
        show(f"{found.in_use} more are in packs that other processes write: run again when they have ended")
    show(f"{verb} {found.temporaries} temporary files of killed writers")
    show(f"{found.referenced} requests are referenced; {found.missing} of them are not in the cache")
    if not found.deleted and (found.unreferenced or found.temporaries):
        show("nothing is deleted yet: run again with --yes")


@commands.command("export", cls=Command)
def export_entries(
    cache: CacheArgument,
    file: Annotated[Path, typer.Argument(help="The file to write, such as replies.tar.zst.")],
    cube: Annotated[
        str | None,
        typer.Option("--cube", help="Export only the replies that this cube references."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write entries into one file, for `evalcube cache import` elsewhere."""
    from evalcube.flows.keep.cache import export

    with progress() as tick:
        made = export(cache, file, cube=cube, tick=tick)
    if as_json:
        show_json({"file": str(file), **asdict(made)})
    else:
        show(f"{made.entries} entries written to {safe(str(file))}, {size_text(file.stat().st_size)}")
    if made.skipped:
        complain(f"{made.skipped} damaged entries were left out; see `evalcube cache verify`")
    if made.missing:
        complain(f"{made.missing} requests of the cube are not answered by this cache")


@commands.command("import", cls=Command)
def import_entries(
    cache: CacheArgument,
    file: Annotated[Path, typer.Argument(help="A file that `evalcube cache export` wrote.")],
    as_json: JsonOption = False,
) -> None:
    """Put the entries of a file into a cache; those that are there stay. Import only files that you trust."""
    from evalcube.flows.keep.cache import load

    with progress() as tick:
        made = load(cache, file, tick=tick)
    if as_json:
        show_json({"file": str(file), **asdict(made)})
    else:
        show(f"{made.entries} entries read, {made.new} of them new")
