"""The command that finds out what an endpoint really does: probe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evalcube.flows.cli import options
from evalcube.flows.cli.output import outlived, safe, show, show_json, show_table

if TYPE_CHECKING:
    from evalcube.flows.run.probe.checks import ProbeFinding
    from evalcube.flows.run.probe.probe import Probed, ProbeResult
    from evalcube.stages.analyze.render.table import TableSpec


def probe(
    models: list[str],
    key_envs: options.Keys = None,
    against: str | None = None,
    cache: str | None = None,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 40,
    since: str | None = None,
    as_json: options.Json = False,
) -> None:
    """Find out what an endpoint really does, in at most 40 requests: exit code 1 where it has a vice or has changed.

    Parameters
    ----------
    models : MODEL [MODEL]
        What to probe, as in `evalcube run --model MODEL`: sim:, local:smollm2, https://host/v1#MODEL; or a config
        with a model. Two are shown side by side.
    against : CUBE
        In its place ask some of the model's answers in a cube again: is it still the same?
    cache
        Where that cube's replies are; default: this user's own, or those beside it.
    limit
        How many of that cube's answers are asked again.
    since : FILE
        JSON of an earlier probe: tell what it saw otherwise.
    """
    from evalcube.flows.run.probe.probe import probe as find_out

    found = find_out(models, key_envs or (), against=against, cache=cache, limit=limit, since=since)
    with outlived():
        if as_json:
            show_json(found.to_dict())
        else:
            _print(found)
    raise typer.Exit(found.exit_code)


def _print(found: ProbeResult) -> None:
    lines = [f"{one.model} at {one.endpoint}, {one.requests} requests" for one in found.models]
    show(safe("\n".join(lines)))
    if found.models[0].findings:
        show("")
        show_table(_table(found.models))
    told, pairs, lines = [*found.vices, *found.changes], found.paired, []
    if pairs is not None:
        told += pairs.changes
        lines = [
            "",
            f"{pairs.before}: {pairs.right[0]} of {pairs.pairs} right; {pairs.now}: {pairs.right[1]}",
            "right answers lost: {}, gained: {}, p = {:.2g}".format(*pairs.outcomes),
            "replies shorter: {}, longer: {}, p = {:.2g}".format(*pairs.tokens),
            f"prompts with other tokens: {pairs.other_prompts}",
            f"answered by: {'; '.join(name or 'not said' for name in pairs.systems) or 'not known'}",
            pairs.unseen,
        ]
        if pairs.unanswered:
            lines.append(
                f"{pairs.unanswered} more questions have no answer now, and are not compared: ask again."
            )
    elif found.unpaired:
        lines = ["", f"Not compared: {found.unpaired}."]
    nothing = "Nothing was found." if found.exit_code == 0 else "Nothing was found in what could be compared."
    lines += ["", *(f"! {text}" for text in told)] if told else ["", nothing]
    lines += [line for one in found.models for line in ("", *one.config) if one.config]
    show(safe("\n".join(lines)))


def _table(models: tuple[Probed, ...]) -> TableSpec:
    from evalcube.stages.analyze.render.table import Column, TableSpec

    def text(finding: ProbeFinding) -> str:
        detail = f" ({finding.detail})" if finding.detail else ""
        return f"{'' if finding.verdict == 'ok' else f'{finding.verdict}: '}{finding.seen}{detail}"

    def differs(row: tuple[ProbeFinding, ...]) -> str:
        return "≠" if len({(one.verdict, one.seen) for one in row}) > 1 else ""

    def column(place: int) -> Column:
        return Column(models[place].model, lambda row: text(row[place]), right=False, name=True)

    columns = [Column("", lambda row: row[0].name, right=False), *map(column, range(len(models)))]
    columns += [Column("", differs, right=False)] if len(models) > 1 else []
    return TableSpec(tuple(columns), list(zip(*(one.findings for one in models), strict=True)))
