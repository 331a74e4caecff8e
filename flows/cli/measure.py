"""Commands that ask models: run, upsample and probe, with their live display and what is left."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import typer

from evalcube.flows.cli import options
from evalcube.flows.cli.output import (
    ExitStatus,
    complain,
    print_leaderboard,
    safe,
    show,
    show_json,
    show_table,
)

if TYPE_CHECKING:
    from evalcube.flows.config.models import Sweep
    from evalcube.flows.events import Event, Subscriber
    from evalcube.flows.run.probe.checks import ProbeFinding
    from evalcube.flows.run.probe.probe import ProbeResult
    from evalcube.flows.run.summary import RunSummary


_KILLED = "worker killed"
_LASTING = frozenset(
    {
        *(f"http {status}" for status in (400, 401, 402, 403, 404, 405, 413, 422)),
        *("address", "redirect", "server", "too large"),
    }
)
"""Causes that are there again in the next run, unless somebody removes them."""


@contextmanager
def subscribers(log: str | None, *, quiet: bool, draws: bool = False) -> Iterator[list[Subscriber]]:
    """Open the followers of a run: a live display unless `quiet`, and a log if one is wanted.

    What draws the leaderboard is got ready if it `draws` one in the end.
    """
    with ExitStack() as stack:
        followers: list[Subscriber] = [_drawing_prepared()] if draws else []
        if log is not None:
            from evalcube.flows.run.follow.records import EventLog

            written = stack.enter_context(EventLog(log))
            stack.callback(lambda: complain(written.problem) if written.problem else None)
            followers.append(written)
        if not quiet:
            from evalcube.flows.run.follow.display import Display

            followers.append(stack.enter_context(Display()))
        else:
            followers.append(_complain_if_urgent)
        yield followers


def _drawing_prepared() -> Callable[[Event], None]:
    """A subscriber that imports what draws the leaderboard while answers are awaited, not behind the last one."""
    begun: list[Thread] = []

    def prepare(event: Event) -> None:
        from evalcube.flows.events import Traffic

        if isinstance(event, Traffic) and event.sent and not begun:
            begun.append(Thread(target=import_module, args=("evalcube.flows.read.statistics",), daemon=True))
            begun[0].start()

    return prepare


def _complain_if_urgent(event: Event) -> None:
    from evalcube.flows.events import Noted

    if isinstance(event, Noted) and event.urgent:
        complain(str(event))


def by_model(flag: str, texts: Sequence[str]) -> dict[str, str] | str:
    """What ``[NAME=]VALUE`` texts mean: a value for each name, or one for all models."""
    from evalcube.flows.config.suites import NAMED
    from evalcube.flows.errors import SweepError

    named = [NAMED.fullmatch(text) for text in texts]
    if len(texts) == 1 and named[0] is None:
        return texts[0]
    if None in named:
        raise SweepError(f"{flag}: several values need names", f"Write each as in {flag} NAME={texts[0]}")
    values = {match[1]: match[2] for match in named if match is not None}
    if len(values) < len(texts):
        raise SweepError(f"{flag}: a name is given twice", "Give each once")
    return values


def tell(summary: RunSummary, *, as_json: bool) -> None:
    """Print what a run did; ends the command with another exit code if something is left."""
    from evalcube.flows.run.summary import lines_of

    if as_json:
        show_json(summary.to_dict(), "run")
    else:
        for line in lines_of(summary):
            show(safe(line))
        if summary.done:
            _print_standing(summary.cube)
    tell_what_is_left(summary)


def _print_standing(cube: str) -> None:
    """The leaderboard, if there are right answers; how to compare variants, if outputs have layer scores."""
    from evalcube.flows.read.reader import Reader

    plan = Reader(cube).plan
    if plan.ranked.any() or not plan.layers:
        print_leaderboard(cube)
    if plan.layers and len(plan.labels) > 1:
        named = ("evalcube", "verdict", cube, "--control", plan.labels[0], "--treatment", plan.labels[1])
        show(f"compare variants: {shlex.join(named)}")


def _how_to_resume(summary: RunSummary) -> str:
    if summary.causes and _LASTING.issuperset(cause.partition(":")[0] for cause in summary.causes):
        return "Fix the causes above, then run the same command again to resume."
    return "Run the same command again to resume."


def tell_what_is_left(summary: RunSummary) -> None:
    """Say what a run left undone; ends the command with another exit code if it left anything."""
    if summary.reason == "complete":
        return
    for cause, count in sorted(summary.causes.items(), key=lambda item: -item[1]):
        detail = summary.details.get(cause, "")
        complain(f"{count} trials: {cause}" + (f" ({detail})" if detail else ""))
    if _KILLED in summary.causes:
        complain(
            "worker processes ended with these trials: by a crash, or out of memory (Dask ends a worker at its memory "
            "limit). Look at the workers' logs; use fewer workers (--workers), or give each more memory"
        )
    if summary.in_batches:
        complain(
            f"{summary.in_batches} requests are in batches at the endpoint; the same command collects their answers"
        )
    if summary.unrated:
        complain(f"{summary.unrated} recorded trials still lack ratings of some judges")
    again = _how_to_resume(summary)
    if summary.reason == "stopped":
        if summary.ordered:
            complain(summary.ordered)
        if summary.bound:
            again = "Raise the bound in the config, then run the same command again to resume."
            complain(summary.bound)
        complain(f"stopped with {summary.left} trials left. {again}")
        raise typer.Exit(ExitStatus.STOPPED)
    complain(f"incomplete: {summary.left} trials left after transport errors. {again}")
    raise typer.Exit(ExitStatus.INCOMPLETE)


def run(
    config: options.Configs,
    models: options.Endpoints = None,
    key_envs: options.Keys = None,
    judges: options.Judges = None,
    scheduler: str | None = None,
    cube: options.Results = None,
    cache: str | None = None,
    workers: options.Workers = None,
    cluster: str | None = None,
    only: list[str] | None = None,
    trials: options.AskedTrials = None,
    repeats: int | None = None,
    log: str | None = None,
    quiet: options.Quiet = False,
    grader: options.Grader = "current",
    fresh: options.Fresh = None,
    wait: Annotated[float, typer.Option(min=0)] = 0.0,
    as_json: options.Json = False,
) -> None:
    """Run a sweep, or resume it: recorded trials are not asked again.

    Parameters
    ----------
    fresh : WHAT
        all: use no cached replies; new ones go into a separate cache. refused: ask refused trials again. unrated: ask
        judges again about answers to which they gave no score.
    wait : SECONDS
        How long to wait for another run of the same cube to end.
    """
    from evalcube.flows.config.suites import load_sweep
    from evalcube.flows.plan.part import Only
    from evalcube.flows.run.stopping import RunInterrupted
    from evalcube.flows.run.sweep import run as run_sweep

    Only.of(only or (), trials)  # what is wrong with these is told before a data set is fetched
    sweep = load_sweep(config, models or (), key_envs or (), judges or ())
    if fresh in ("refused", "unrated"):
        _forget(fresh, sweep, cube, cache, only or ())
    with subscribers(log, quiet=quiet, draws=not as_json) as followers:
        try:
            summary = run_sweep(
                sweep,
                cube=cube,
                cache=cache,
                scheduler=scheduler,
                workers=workers,
                cluster=cluster,
                only=only or (),
                trials=trials,
                repeats=repeats,
                grader=grader,  # type: ignore[arg-type]  # refused above if it is neither
                fresh=fresh == "all",
                subscribers=followers,
                wait=wait,
            )
        except RunInterrupted as stopped:
            summary = stopped.summary
    tell(summary, as_json=as_json)


def _forget(kind: str, sweep: Sweep, cube: str | None, cache: str | None, only: Sequence[str]) -> None:
    """Have the refused trials of a part, or the unrated ones, be pending again."""
    from evalcube.flows.config.load import as_config
    from evalcube.flows.keep.choice import Choice
    from evalcube.flows.keep.forget import forget, forget_unrated
    from evalcube.storage.cube.cube import Cube

    settings = as_config(sweep, cube=cube, cache=cache)
    if kind == "unrated" and Cube.exists(settings.cube):
        forget_unrated(settings.cube, only, settings.cache)
    elif Cube.exists(settings.cube):
        forget(settings.cube, Choice((*only, "status=refused")), cache=settings.cache)


def upsample(
    source: str,
    trials: Annotated[int | None, typer.Option(min=1)] = None,
    repeats: Annotated[int | None, typer.Option(min=1)] = None,
    precision: str | None = None,
    budget: str | None = None,
    purpose: Annotated[str, typer.Option("--goal")] = "ranking",
    where: list[str] | None = None,
    config: str | None = None,
    endpoints: Annotated[list[str] | None, typer.Option("--endpoint")] = None,
    key_envs: Annotated[list[str] | None, typer.Option("--key-env")] = None,
    scheduler: str | None = None,
    cube: options.Results = None,
    cache: str | None = None,
    workers: options.Workers = None,
    cluster: str | None = None,
    log: str | None = None,
    quiet: options.Quiet = False,
    grader: options.Grader = "current",
    as_json: options.Json = False,
) -> None:
    """Add trials or repeats to a sweep, to all cells or to those that you select; only new ones are asked.

    Parameters
    ----------
    source
        The sweep's config, or its cube.
    trials
        Number of trials that each selected cell then has.
    repeats
        How often each question will have been asked.
    precision
        low, medium or high: as many trials as each selected cell needs for this precision, instead of --trials.
    budget
        Spend this much, such as 2M (tokens) or 5USD, where it helps most, instead of --trials.
    purpose
        What --budget improves: ranking (order of the models) or intervals.
    config : FILE
        For a cube that you did not run: its config.
    endpoints : [NAME=]URL
        For a cube that you did not run: address of its models, or of the model NAME.
    key_envs : [NAME=]VARIABLE
        Environment variable with the API key for these addresses, or for the model NAME.
    """
    from evalcube.flows.run.stopping import RunInterrupted
    from evalcube.flows.run.upsample import upsample as add_trials

    with subscribers(log, quiet=quiet, draws=not as_json) as followers:
        try:
            summary = add_trials(
                source,
                trials=trials,
                repeats=repeats,
                precision=precision,
                budget=budget,
                purpose=purpose,  # type: ignore[arg-type]  # refused there if it is none
                where=where or (),
                cube=cube,
                cache=cache,
                scheduler=scheduler,
                workers=workers,
                cluster=cluster,
                grader=grader,  # type: ignore[arg-type]  # refused above if it is neither
                subscribers=followers,
                config=config,
                endpoints=by_model("--endpoint", endpoints or ()),
                key_envs=by_model("--key-env", key_envs or ()),
            )
        except RunInterrupted as stopped:
            summary = stopped.summary
    tell(summary, as_json=as_json)


def probe(model: str, key_envs: options.Keys = None, as_json: options.Json = False) -> None:
    """Find out what an endpoint really does, in at most 40 requests; exit code 1 if it misbehaves.

    Parameters
    ----------
    model : MODEL
        What to probe, as in `evalcube run --model MODEL`: sim:, local:smollm2, https://host/v1#MODEL; or a config
        with one model.
    """
    from evalcube.flows.run.probe.probe import probe as find_out

    result = find_out(model, key_envs or ())
    if as_json:
        show_json(result.to_dict())
    else:
        _print_probe(result)
    raise typer.Exit(result.exit_code)


def _print_probe(result: ProbeResult) -> None:
    from evalcube.stages.analyze.render.table import Column, TableSpec

    def text(finding: ProbeFinding) -> str:
        detail = f" ({finding.detail})" if finding.detail else ""
        return f"{'' if finding.verdict == 'ok' else f'{finding.verdict}: '}{finding.seen}{detail}"

    show(safe(f"{result.model} at {result.endpoint}, {result.requests} requests\n"))
    columns = (
        Column("finding", lambda finding: finding.name, right=False),
        Column("seen", text, right=False, name=True),
    )
    show_table(TableSpec(columns, list(result.findings)))
    vices = [f"! {text}" for text in result.vices] or ["No misbehaviour was found."]
    show(safe("\n".join(["", *vices, "", *result.config])))
