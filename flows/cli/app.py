"""All commands under one roof, and the one place where errors become messages and exit codes."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import copy
from typing import Annotated

import typer
from typer.main import get_command_name

from evalcube import EvalcubeError
from evalcube.flows.cli import begin, decide, jobs, keep, measure, plan, read, share, statistics, trials
from evalcube.flows.cli.options import Command, CommandGroup
from evalcube.flows.cli.output import EXIT_CODES, ExitStatus, Messages, Output, complain, safe


def _epilog(own: Mapping[int, str]) -> str:
    """What exit codes mean, some of them for one command only; 1 has no meaning where a command declares none."""
    meanings = {code: text for code, text in EXIT_CODES.items() if code != ExitStatus.INCOMPLETE} | dict(own)
    return "Exit codes: " + "; ".join(f"{int(code)} {meanings[code]}" for code in sorted(meanings)) + "."


_SWEEP = {
    1: "the sweep ended with transport errors left",
    130: "stopped by Ctrl-C, `evalcube stop` or the bound under `spend`. After 1 or 130, run it again to resume",
}
OWN_CODES = {
    "run": _SWEEP,
    "upsample": _SWEEP,
    "gate": {0: "GO", 1: "NO-GO", 3: "INCONCLUSIVE"},
    "probe": {1: "the endpoint misbehaves"},
    "verdict": {0: "PROGRESS, or SOLO with each layer at the threshold", 1: "any other verdict"},
    "diff": {0: "the cubes are equal", 1: "they differ"},
    "import": {1: "logs or samples were left out, see the list"},
    "forget": {1: "some cached replies stay: another process writes their file"},
}
"""By command, what exit codes mean there and nowhere else."""

_USED_UP = [getattr(errno, name) for name in "ENOMEM EMFILE ENFILE EAGAIN ENOSPC EDQUOT EFBIG".split()]
ISSUES = "https://github.com/evalcube/evalcube/issues"

app = typer.Typer(
    cls=CommandGroup,
    name="evalcube",
    help="Asks language models questions, yours or generated ones, and compares how well they answer.",
    epilog=_epilog({int(code): text for code, text in EXIT_CODES.items()}),
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
MEASURE, READ, SHARE, KEEP, BEGIN = "Measure", "Read", "Share", "Maintain", "Begin"
"""Headings of ``--help``, under which its commands stand."""
_COMMANDS: dict[str, tuple[Callable[..., None], ...]] = {
    BEGIN: (begin.init, begin.simulate, begin.tasks, begin.sample),
    MEASURE: (measure.run, plan.plan, measure.probe, measure.upsample, jobs.submit, jobs.stop, jobs.status),
    READ: (
        read.leaderboard,
        read.report,
        statistics.table,
        statistics.rank,
        statistics.compare,
        statistics.metrics,
        decide.verdict,
        decide.gate,
        read.show_trial,
        trials.trials,
        read.explore,
    ),
    SHARE: (
        share.merge,
        share.diff,
        share.publish,
        share.pull,
        share.import_command,
        trials.export,
        read.bundle,
    ),
    KEEP: (keep.rescore, keep.forget),
}
_CALCULATING = {"leaderboard", "report", "table", "rank", "compare", "metrics", "verdict"}
"""Commands whose matrices are small, so that numpy's threads only cost time; none starts a server."""
for heading, commands in _COMMANDS.items():
    for function in commands:
        epilog = _epilog(OWN_CODES.get(function.__name__, {}))
        app.command(cls=Command, epilog=epilog, rich_help_panel=heading)(function)
app.add_typer(statistics.analyze, name="analyze", rich_help_panel=READ)
app.add_typer(keep.cube_commands, name="cube", rich_help_panel=KEEP)
app.add_typer(keep.data_commands, name="data", rich_help_panel=KEEP)
app.add_typer(keep.cache_commands, name="cache", rich_help_panel=KEEP)
app.add_typer(begin.local, name="local", rich_help_panel=BEGIN)


def _print_version(wanted: bool) -> None:
    if wanted:
        from evalcube import __version__

        typer.echo(f"evalcube {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line, and end the process with one of `EXIT_CODES`."""
    Messages.install()
    output = Output.install()
    code = _run(output)
    with suppress(OSError):
        sys.stdout.flush()
    if output.failure is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())  # Python flushes once more
        if not isinstance(output.failure, BrokenPipeError):
            complain(f"cannot write to standard output: {output.failure.strerror}. Send it to another place")
            code = ExitStatus.REFUSED
    sys.exit(code)


def app_with(word: str) -> typer.Typer:
    """The application with the one command or group of this name: to inspect them all takes a tenth of a short one."""
    narrowed = copy(app)
    narrowed.registered_commands = [info for info in app.registered_commands if _name(info.callback) == word]
    narrowed.registered_groups = [info for info in app.registered_groups if info.name == word]
    return narrowed if narrowed.registered_commands or narrowed.registered_groups else app


def _name(command: Callable[..., None] | None) -> str:
    return get_command_name(command.__name__) if command else ""


def _run(output: Output) -> int:
    try:
        word = sys.argv[1] if len(sys.argv) > 1 else ""
        if word in _CALCULATING:
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        app_with(word)()
    except (KeyboardInterrupt, SystemExit, Exception) as error:  # noqa: BLE001 - the last place that can tell
        if (interrupt := _interrupt_behind(error)) is not None:
            # That of a run which has ended in good order says so.
            complain(str(interrupt) or "stopped at once; run the same command again to resume")
            return ExitStatus.STOPPED
        if output.failure is not None:
            return ExitStatus.OK  # the reader went away, as `| head` does; `main` tells of anything else
        if isinstance(error, SystemExit):
            return error.code if isinstance(error.code, int) else ExitStatus.OK
        return _report_failure(error)
    return ExitStatus.OK


def _report_failure(error: BaseException) -> int:
    if isinstance(error, EvalcubeError):
        complain(str(error))
        return ExitStatus.REFUSED
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        complain(f"this path is too long for its file system: {error.filename}. Give a shorter one")
        return ExitStatus.REFUSED
    no_thread = isinstance(error, RuntimeError) and str(error) == "can't start new thread"
    if no_thread or isinstance(error, MemoryError) or getattr(error, "errno", None) in _USED_UP:
        complain(
            f"this machine has run out of memory, processes, open files or disk space ({error}): free some, and retry"
        )
        return ExitStatus.REFUSED
    from evalcube.flows.cli.plugins import blame_plugin

    fault = blame_plugin(error)
    if fault is not None:
        complain(safe(fault))
        return ExitStatus.REFUSED
    sys.stderr.write(safe("".join(traceback.format_exception(error))))  # it may quote a cube or an endpoint
    complain(f"this is a defect of evalcube; please report it with the lines above: {ISSUES}")
    return ExitStatus.BUG


def _interrupt_behind(error: BaseException) -> KeyboardInterrupt | None:
    """The Ctrl-C behind an exception, if one is: Typer makes an exit of its own out of it."""
    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, KeyboardInterrupt):
        seen = seen.__cause__ or seen.__context__
    return seen
