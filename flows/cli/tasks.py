"""Commands about tasks: tasks, sample."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from evalcube.flows.cli.options import JsonOption
from evalcube.flows.cli.output import show, show_json
from evalcube.flows.cli.tables import warn


def tasks(
    name: Annotated[
        str | None,
        typer.Argument(help="A task, to see its parameters and an example."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the tasks, or show one task's parameters and an example."""
    from evalcube.flows.read.catalogue import find_task
    from evalcube.stages.generate import all_tasks

    if name is not None:
        _one_task(find_task(name), as_json=as_json)
        return
    known, problems = all_tasks().sound()
    rows = [
        {"name": t.name, "version": t.version, "summary": t.summary, "guess": t.guess_rule} for t in known
    ]
    warn(problems)
    if as_json:
        show_json({"tasks": rows}, "tasks")
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("task", "what is asked", "guessing")
    for row in rows:
        table.add_row(*(escape(str(row[column])) for column in ("name", "summary", "guess")))
    Console().print(table)


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
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("param", "default", "range", "meaning")
    for param in params:
        table.add_row(
            *(escape(str(value)) for value in (param.name, param.default, param.allowed, param.description))
        )
    console = Console()
    console.print(
        f"[bold]{escape(task.name)}[/]: {escape(task.summary)}. Guess chance: {escape(task.guess_rule)}"
    )
    console.print(table)
    show(f"\n{example.prompt}\n\nReference answer: {example.answer}")


def sample(
    task: Annotated[
        str,
        typer.Argument(help="Name of the task; `evalcube tasks` lists them."),
    ],
    params: Annotated[
        str | None, typer.Option(help="length=4,max_depth=0, or JSON; the others keep their defaults.")
    ] = None,
    n: Annotated[int, typer.Option("--n", min=1, max=10_000, help="Number of trials.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sweep.")] = 42,
    as_json: JsonOption = False,
) -> None:
    """Print the first trials of a task's cell: prompts and reference answers."""
    from dataclasses import asdict

    from evalcube.flows.plan.filters import read_params
    from evalcube.flows.read.catalogue import find_task, sample_trials

    trials = list(sample_trials(find_task(task), read_params(params) if params else {}, n, seed))
    if as_json:
        show_json([asdict(trial) for trial in trials])
        return
    for index, trial in enumerate(trials):
        show(f"--- trial {index}\n{trial.prompt}\n\nReference answer: {trial.answer}")


COMMANDS = (tasks, sample)
