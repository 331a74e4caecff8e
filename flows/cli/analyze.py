"""Commands of `evalcube analyze`: what traces, token counts and prices of a cube tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalcube.flows.cli.flags import Command
from evalcube.flows.cli.options import (
    ByTaskOption,
    CachesOption,
    CubeArgument,
    JsonOption,
    PlotOption,
    ScoreOption,
    TrialsOption,
    ViewOption,
    WhereOption,
    names_of,
    part_of,
)
from evalcube.flows.cli.output import show
from evalcube.flows.cli.tables import emit, warn

if TYPE_CHECKING:
    from evalcube.flows.read.selection import OpenPart
    from evalcube.stages.analyze.render.table import TableSpec

analyze = typer.Typer(
    name="analyze",
    help="What traces, token counts and prices tell: compression, hazard, clip, cost.",
    no_args_is_help=True,
)


@analyze.command(cls=Command)
def compression(
    cube: CubeArgument,
    replies: Annotated[
        bool,
        typer.Option(
            "--replies",
            help="Where a trial has no reasoning trace of its own, take what its reply says, from the cache.",
        ),
    ] = False,
    cache: CachesOption = None,
    by_task: ByTaskOption = False,
    plot: PlotOption = None,
    where: WhereOption = None,
    view: ViewOption = None,
    trials: TrialsOption = None,
    as_json: JsonOption = False,
) -> None:
    """How well reasoning traces compress, by outcome: traces that loop compress well."""
    from evalcube.flows.read.forensics import compression as measure

    part = part_of(where, view, trials)
    lengths = None
    if replies:
        from evalcube.flows.read.forensics import with_replies

        lengths = partial(with_replies, cube=cube, cache=cache)
    _answer(
        "compression",
        plot,
        as_json,
        lambda: measure(cube, part, by_task=by_task, plot=plot, traces=lengths),
    )


@analyze.command(cls=Command)
def hazard(
    cube: CubeArgument,
    width: Annotated[int, typer.Option(min=1, help="Tokens in a line of the table.")] = 256,
    by_task: ByTaskOption = False,
    plot: PlotOption = None,
    where: WhereOption = None,
    view: ViewOption = None,
    trials: TrialsOption = None,
    as_json: JsonOption = False,
) -> None:
    """When answers come: of the trials that still think at so many tokens, how many end right or wrong."""
    from evalcube.flows.read.forensics import hazard as measure

    part = part_of(where, view, trials)
    _answer(
        "hazard",
        plot,
        as_json,
        lambda: measure(cube, part, width=width, by_task=by_task, plot=plot),
    )


_VERSIONS = {"clip": 2}
"""Versions of documents whose keys have changed their meaning."""


@analyze.command(cls=Command)
def clip(
    cube: CubeArgument,
    limits: Annotated[
        str,
        typer.Option(
            help="Limits of completion tokens, such as 256,1024; default: the five largest powers of two below the "
            "longest answer."
        ),
    ] = "",
    version: ScoreOption = "auto",
    plot: PlotOption = None,
    where: WhereOption = None,
    view: ViewOption = None,
    trials: TrialsOption = None,
    as_json: JsonOption = False,
) -> None:
    """What the models would have scored with smaller token limits; nothing is asked again."""
    from evalcube.flows.read.forensics import clip as measure

    part = part_of(where, view, trials)
    _answer(
        "clip",
        plot,
        as_json,
        lambda: measure(cube, part, limits=names_of(limits), version=version, plot=plot),
    )


@analyze.command(cls=Command)
def cost(
    cube: CubeArgument,
    by_task: ByTaskOption = False,
    plot: PlotOption = None,
    where: WhereOption = None,
    view: ViewOption = None,
    trials: TrialsOption = None,
    as_json: JsonOption = False,
) -> None:
    """What trials and right answers cost, and which models give most for it."""
    from evalcube.flows.read.forensics import cost as measure

    part = part_of(where, view, trials)
    _answer(
        "cost",
        plot,
        as_json,
        lambda: measure(cube, part, by_task=by_task, plot=plot),
    )


def _answer(
    name: str,
    plot: Path | None,
    as_json: bool,
    measure: Callable[[], tuple[OpenPart, TableSpec, Sequence[dict[str, Any]]]],
) -> None:
    opened, table, rows = measure()
    warn(opened.warnings)
    document = {
        "schema": f"evalcube.{name}",
        "schema_version": _VERSIONS.get(name, 1),
        "selection": opened.selection,
        "rows": list(rows),
    }
    emit(table, document, as_json=as_json)
    if plot is not None and not as_json:
        show(str(plot))
