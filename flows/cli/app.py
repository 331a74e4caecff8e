"""All commands under one roof, and the one place where errors become messages and exit codes."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from flows.cli import cubes, setup, sweeps
from flows.cli.output import EXIT_CODES, Code, complain

EPILOG = "Exit codes: " + "; ".join(f"{int(code)} {text}" for code, text in EXIT_CODES.items()) + "."

app = typer.Typer(
    name="evalcube",
    help="Measures how well language models reason: sweeps of parametric tasks, kept in a labelled cube.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
)
for commands in (sweeps.COMMANDS, cubes.COMMANDS, setup.COMMANDS):
    for function in commands:
        app.command(epilog=EPILOG)(function)
app.add_typer(setup.local, name="local")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib import metadata

        typer.echo(f"evalcube {metadata.version('evalcube')}")
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
    """Run the command line."""
    try:
        app()
    except KeyboardInterrupt:
        complain("stopped at once; run the same command again to resume")
        sys.exit(Code.STOPPED)
    except BrokenPipeError:
        # The reader of our output went away, such as `| head`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(Code.OK)
    except Exception as error:
        from flows.errors import user_errors

        if not isinstance(error, user_errors()):
            raise
        complain(str(error))
        sys.exit(Code.REFUSED)
