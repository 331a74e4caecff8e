"""Commands about where a sweep works: cluster script."""

from __future__ import annotations

import typer

from flows.cli.flags import Command
from flows.cli.options import ClusterOption, ConfigArgument

commands = typer.Typer(help="Look at where a sweep works.", no_args_is_help=True)


@commands.command(cls=Command)
def script(config: ConfigArgument, cluster: ClusterOption = None) -> None:
    """Print the job script with which a run asks Slurm for workers; nothing is submitted."""
    from flows.cli.output import show
    from flows.config.suites import load_sweep
    from flows.run.chosen_cluster import script_of

    show(script_of(load_sweep(config), cluster).rstrip())
