"""The command that imports logs of other tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from evalcube.flows.cli.options import JsonOption
from evalcube.flows.cli.output import safe, show, show_json
from evalcube.flows.errors import SweepError

if TYPE_CHECKING:
    from evalcube.flows.imports.logs import ImportSummary


def import_command(
    logs: Annotated[
        list[str],
        typer.Argument(
            metavar="LOG...",
            help="Logs: .eval and .json of Inspect, samples_*.jsonl of lm-eval, "
            "JSONL or Parquet with --map; or directories with them.",
        ),
    ],
    into: Annotated[str, typer.Option("--into", metavar="CUBE", help="Address of the cube to write.")],
    cache: Annotated[
        str | None, typer.Option("--cache", help="Where the replies go; default: results/cache.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="DIR", help="Where the questions go; default: beside the cube."),
    ] = None,
    format: Annotated[
        str, typer.Option("--format", help="Who wrote the logs: auto, inspect, lm-eval, rows.")
    ] = "auto",
    map: Annotated[
        str | None,
        typer.Option(
            "--map",
            metavar="NAME=FIELD,...",
            help="Which field has what, of files of no known tool: prompt, response, correct, id, model, repeat, "
            "reference, ...; or a YAML file that says so.",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="Name of the model, in place of the logs'.")
    ] = None,
    task: Annotated[
        str | None, typer.Option("--task", help="Name of the task, in place of the logs'.")
    ] = None,
    score: Annotated[
        str | None, typer.Option("--score", help="Which of several scores counts; default: the log's first.")
    ] = None,
    filter: Annotated[
        str | None,
        typer.Option("--filter", help="Which of lm-eval's filters counts; default: the log's first."),
    ] = None,
    correct_from: Annotated[
        list[str] | None,
        typer.Option(
            "--correct-from",
            metavar="[SCORER=]X",
            help="Least score of a right answer, where scores are shares; give it again for other scorers.",
        ),
    ] = None,
    score_range: Annotated[
        str, typer.Option("--score-range", metavar="LOW:HIGH", help="What scores range over.")
    ] = "0:1",
    as_json: JsonOption = False,
) -> None:
    """Read logs of Inspect, lm-eval or your own into a cube, replies and all; nothing is asked."""
    from evalcube.flows.imports.logs import import_logs
    from evalcube.flows.imports.rows import parse_map
    from evalcube.flows.imports.samples import Scale, Wanted

    wanted = Wanted(model, task, score, filter, parse_map(map) if map is not None else {})
    summary = import_logs(
        logs,
        into,
        cache=cache,
        data=data,
        format=format,
        wanted=wanted,
        scale=Scale(_least(correct_from or ()), *_range(score_range)),
    )
    if as_json:
        show_json(summary.to_dict())
    else:
        _print(summary)


def _least(given: Sequence[str]) -> dict[str, float]:
    found = {}
    for text in given:
        scorer, _, least = text.rpartition("=")
        try:
            found[scorer] = float(least)
        except ValueError:
            raise SweepError(
                f"`correct_from`: '{text}' is no score", "Write a number, or SCORER=NUMBER"
            ) from None
    return found


def _range(text: str) -> tuple[float, float]:
    low, colon, high = text.partition(":")
    try:
        if colon:
            return float(low), float(high)
    except ValueError:
        pass
    raise SweepError(f"`score_range`: '{text}' is no range", "Write LOW:HIGH, such as 0:10")


def _print(summary: ImportSummary) -> None:
    for note in summary.notes:
        show(safe(f"note: {note}"))
    replies = f"{summary.replies} answers of {len(summary.models)} evaluations to {len(summary.tasks)} tasks"
    failed = f"; {summary.failed} samples without an answer or a score" if summary.failed else ""
    again = f"; {summary.repeated} said again" if summary.repeated else ""
    show(safe(f"{summary.logs} logs: {replies}{failed}{again}"))
    if summary.new_regions:
        show(safe(f"written to {summary.cube}; replies in {summary.cache}"))
    else:
        show(safe(f"{summary.cube} has all of it already: nothing was added"))


import_command.__name__ = "import"

COMMANDS = (import_command,)
