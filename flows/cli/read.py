"""Commands that show what is in cubes: leaderboard, report, show, explore, bundle."""

from __future__ import annotations

import math
from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.filesize import decimal as size_text

from evalcube.flows.cli import options
from evalcube.flows.cli.options import of_part
from evalcube.flows.cli.output import emit_with, exclusive, progress, safe, show, show_json, warn

if TYPE_CHECKING:
    from evalcube.flows.read.reader import Reader, TrialView
    from evalcube.flows.read.selection import Part


@of_part()
def leaderboard(
    *,
    cube: options.Cubes,
    version: options.Score = "auto",
    mode: str = "auto",
    sort: str = "",
    weigh: str = "tasks",
    gold: str | None = None,
    plot: Annotated[Path | None, typer.Option("--plot", "-o")] = None,
    part: Part,
    form: str,
) -> None:
    """Rank the models of a cube, or of several as if merged, by ReasonScore, or by C_P if there are few trials.

    Parameters
    ----------
    sort : COLUMN
        Order the rows by this column, the best first: score/token, tokens, USD/1000, a tier, ...; default: score or,
        with few trials, C_P.
    weigh : WHAT
        What has equal weight: tasks (within a task, points weigh by their planned trials in the cube's first run), or
        all trials (accuracy over all trials, as in papers).
    plot : FILE.svg
        Also draw what the leaderboard ranks by, with its intervals.
    """
    from evalcube.flows.read.outputs import check_picture, write_output
    from evalcube.flows.read.statistics import leaderboard_of, rated_part

    if plot is not None:
        check_picture(plot)
    opened = rated_part(cube, part, gold)
    options = {"version": version, "mode": mode, "sort": sort, "weigh": weigh}
    board = leaderboard_of(opened, **options)  # type: ignore[arg-type]  # refused there
    if plot is not None:
        write_output(plot, board.plot().encode(), "write the picture")
    emit_with(opened.warnings, board, cube, form)


@of_part()
def report(
    *,
    cube: options.Cubes,
    output: Annotated[Path, typer.Option("--output", "-o")] = Path("report.html"),
    samples: Annotated[int, typer.Option(min=0, max=5)] = 1,
    cache: str | None = None,
    version: options.Score = "auto",
    mode: str = "auto",
    weigh: str = "tasks",
    part: Part,
) -> None:
    """Write a report of a cube, or of several as if merged: one self-contained HTML file.

    Parameters
    ----------
    output
        The HTML file to write.
    samples
        Trials to show for each model and task; needs the cache.
    """
    from evalcube.flows.read.report import report as write_report

    with progress() as subscribers:
        path = write_report(
            cube,
            output,
            samples=samples,
            cache=cache,
            part=part,
            version=version,  # type: ignore[arg-type]  # refused there if it is none
            mode=mode,  # type: ignore[arg-type]
            weigh=weigh,  # type: ignore[arg-type]
            subscribers=subscribers,
        )
    show(str(path))


def show_trial(
    cube: options.Cube,
    task: str | None = None,
    model: str = "0",
    params: str | None = None,
    trial: int | None = None,
    row: str | None = None,
    repeat: int = 0,
    cache: options.Caches = None,
    as_json: options.Json = False,
) -> None:
    """Show one trial: prompt, response, reasoning, parsed answer, reference, status.

    Parameters
    ----------
    task
        Name of the task; required unless --row names the trial.
    model
        Label or number of the evaluation (one model with its template and sampler).
    params
        Point of the task: length=4,max_depth=0, or its number, or JSON (necessary if values contain commas).
    trial
        Number of the trial, from 0; default: 0.
    row : ID
        The trial with this row of a data set: the row's id, or its number if rows have no ids.
    repeat
        Number of the repeat, from 0.
    """
    from evalcube.flows.errors import SweepError
    from evalcube.flows.read.reader import Reader

    reader = Reader(cube, cache)
    exclusive({"--trial": trial is not None, "--row": row is not None})
    if row is not None:
        number, slot, trial = reader.row(row, task, params)
    elif task is None:
        raise SweepError("the task is not named", "Give --task NAME, or --row ID for a row of a data set")
    else:
        number, slot = reader.point(task, params)
    view = reader.view(reader.plan.evaluation_index(model), number, slot, trial or 0, repeat)
    if view.parsed is None:
        warn(reader.plan.tasks[number].not_run)
    if as_json:
        show_json(view.to_dict(), "trial")
    else:
        point = reader.plan.tasks[number].cells[slot].cell.params
        _print_trial(view, point.model_dump(exclude_defaults=True), _why_missing(reader, view))


def _why_missing(reader: Reader, view: TrialView) -> str:
    """What to say in the place of a reply that there is none of."""
    if not view.digest:  # what was sent cannot be made again, so that nobody knows the key
        return f"(the reply is not looked up: {safe('; '.join(note['content'] for note in view.messages))})"
    if reader.cache() is not None:
        return "(the cache does not hold this reply)"
    noted = reader.notes.get("cache")
    named = [f"the cube names {noted}"] if isinstance(noted, str) else []
    reasons = reader.away or [reader.without_cache.replace("`cache`", "--cache"), *named]
    return f"({safe('; '.join(reasons))})"


def _print_trial(view: TrialView, names: Container[str], missing: str) -> None:
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    console = Console()
    params = ", ".join(f"{name}={value}" for name, value in view.params.items() if name in names)
    point = " · ".join(filter(None, (view.model, view.task, params)))
    head = f"{point} · trial {view.trial} · repeat {view.repeat}"
    if view.row is not None:
        head += f" · row {view.row}" + (f" ({view.row_id})" if view.row_id else "")
    console.print(Text(safe(head)))
    for message in view.messages:
        title = Text(safe(message["role"]))
        console.print(Panel(Text(safe(message["content"])), title=title, title_align="left"))
    if view.reasoning:
        console.print(Panel(Text(safe(view.reasoning)), title="reasoning", title_align="left"))
    response = missing if view.response is None else safe(view.response)
    console.print(Panel(Text(response), title="response", title_align="left"))
    parsed = "none" if view.parsed is None else safe(view.parsed)
    status = f"{view.status} ({safe(view.fault)})" if view.fault else view.status
    console.print(Text(f"parsed {parsed}   reference {safe(view.reference)}   status {status}"))
    if view.theirs is not None:
        parsed_text = f"parsed {safe(view.theirs.parsed)}   " if view.theirs.parsed is not None else ""
        console.print(Text(f"{safe(view.theirs.reader)}: {parsed_text}status {view.theirs.status}"))
    for name, score in view.layers.items():
        console.print(Text(f"{name:8} {score:.2f}"))
    for sent in view.judged:
        title = Text(safe(f"to judge {sent['judge']}: {sent['role']}"))
        console.print(Panel(Text(safe(sent["content"])), title=title, title_align="left"))
    for opinion in view.opinions:
        score_text = "no score" if math.isnan(opinion.score) else f"{opinion.score:.0f}"
        judge = f"judge {safe(opinion.judge)}, repeat {opinion.repeat}"
        console.print(Text(f"{judge}: {score_text}  {safe(opinion.reason)}"))
    first = "" if math.isnan(view.first_token) else f"   first token {view.first_token:.3f} s"
    tokens = "not known" if view.tokens < 0 else str(view.tokens)
    latency = "not known" if math.isnan(view.latency) else f"{view.latency:.3f} s"
    counts = {name: getattr(view, f"{name}_tokens") for name in ("prompt", "cached", "reasoning")}
    more = "".join(f"   {name} {count}" for name, count in counts.items() if count is not None)
    console.print(Text(f"tokens {tokens}{more}   latency {latency}{first}", style="dim"))
    loops = "its end repeats itself: it loops" if view.looping else None
    for remark in filter(None, (view.read_as and f"read: {view.read_as}", loops, view.ending)):
        console.print(Text(safe(remark), style="dim"))
    if view.provider:
        console.print(Text(f"answered by {safe(view.provider)}", style="dim"))
    # On one line however narrow the terminal is: it is there to be copied.
    console.print(Text(f"cache key {view.digest}", style="dim"), soft_wrap=True)


show_trial.__name__ = "show"


def explore(
    cube: options.Cubes,
    host: str = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 0,
    token: Annotated[bool, typer.Option("--token")] = False,
    cache: str | None = None,
    browser: Annotated[bool, typer.Option("--browser")] = False,
) -> None:
    """Explore cubes in the browser: ranking, weak spots, single trials; also while a sweep runs.

    Parameters
    ----------
    host : ADDRESS
        Address to listen on; the page asks for a token if other machines can reach it.
    port
        Port to listen on; 0 takes a free one.
    token
        Ask for a token even at 127.0.0.1, for example because the machine has other users.
    browser
        Open it in a browser.
    """
    from evalcube.flows.explore.server import serve

    serve(cube, host=host, port=port, with_token=token, cache=cache, ready=lambda url: _ready(url, browser))


def _ready(url: str, browser: bool) -> None:
    import sys

    show(url)
    sys.stdout.flush()
    if browser:
        import webbrowser

        webbrowser.open(url)


def bundle(
    cube: options.Cubes,
    output: options.NewFolder,
    trials: str = "sample",
    most: Annotated[int, typer.Option(min=1)] = 20_000,
    cache: str | None = None,
    as_json: options.Json = False,
) -> None:
    """Write the explorer's views as a folder of files, which opens from disk or from any web server.

    Parameters
    ----------
    trials : WHICH
        Single trials with their texts: sample (some of each outcome), wrong, all, none.
    most : N
        Maximum number of trials, divided evenly among models and tasks.
    """
    from evalcube.flows.explore.bundle import bundle as write

    with progress() as subscribers:
        done = write(cube, output, trials=trials, most=most, cache=cache, subscribers=subscribers)  # type: ignore[arg-type]
    if as_json:
        from dataclasses import asdict

        show_json(asdict(done), "bundle")
    else:
        written = f"{done.trials:,} trials, {done.files:,} files, {size_text(done.size)}"
        show(safe(f"{done.folder}/index.html: {written}"))
    warn(done.notes)
