"""The command that imports logs of other tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evalcube.flows.cli.options import JsonOption
from evalcube.flows.cli.output import safe, show, show_json

if TYPE_CHECKING:
    from evalcube.flows.share.imports.logs import ImportSummary


def import_command(
    logs: Annotated[
        list[str],
        typer.Argument(
            metavar="LOG...",
            help="Logs: .eval and .json of Inspect, samples_*.jsonl of lm-eval, JSONL of your own; or directories of "
            "logs.",
        ),
    ],
    into: Annotated[
        str, typer.Option("--into", metavar="CUBE", help="Address of the new cube; nothing may be there.")
    ],
    cache: Annotated[
        str | None, typer.Option("--cache", help="Where the replies go; default: results/cache.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="DIR", help="Where the questions go; default: beside the cube."),
    ] = None,
    map: Annotated[
        str,
        typer.Option(
            "--map",
            metavar="NAME=FIELD,...",
            help="Names that your own JSONL has for prompt, response, correct, id, model, repeat, reference, ...; of "
            "any log cluster=FIELD, what questions have in common.",
        ),
    ] = "",
    model: Annotated[
        str | None, typer.Option("--model", help="Name of the model, in place of the logs'.")
    ] = None,
    task: Annotated[
        str | None, typer.Option("--task", help="Name of the task, in place of the logs'.")
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(
            "--score",
            help="Which of several scores counts, of lm-eval METRIC or METRIC,FILTER; default: the log's first.",
        ),
    ] = None,
    correct_from: Annotated[
        float | None,
        typer.Option("--correct-from", metavar="X", help="Least score of a right answer, from 0 to 1."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Read logs of Inspect, lm-eval or your own into a cube, replies and all; nothing is asked."""
    from evalcube.flows.share.imports.logs import import_logs

    summary = import_logs(
        logs,
        into,
        cache=cache,
        data=data,
        model=model,
        task=task,
        score=score,
        map=map,
        correct_from=correct_from,
    )
    if as_json:
        show_json(summary.to_dict())
    else:
        _print(summary)


def _print(summary: ImportSummary) -> None:
    for note in summary.notes:
        show(safe(f"note: {note}"))
    replies = f"{summary.replies} answers of {len(summary.models)} evaluations to {len(summary.tasks)} tasks"
    failed = f"; {summary.failed} samples without an answer or a score" if summary.failed else ""
    again = f"; {summary.repeated} said again" if summary.repeated else ""
    show(safe(f"{summary.logs} logs: {replies}{failed}{again}"))
    show(safe(f"written to {summary.cube}; replies in {summary.cache}"))


import_command.__name__ = "import"

COMMANDS = (import_command,)
