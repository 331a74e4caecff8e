"""Commands that compute from counters, outcomes and traces: table, rank, compare, metrics, analyze."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalcube.flows.cli import options
from evalcube.flows.cli.options import Command, CommandGroup, cubes_and_models, names_of, of_part, settings_of
from evalcube.flows.cli.output import emit, emit_with, form_of, print_table, several, show, warn

if TYPE_CHECKING:
    from evalcube.flows.read.selection import OpenPart, Part
    from evalcube.stages.analyze.render.table import TableSpec


@of_part()
def table(
    *,
    cube: options.Cubes,
    by: str = "model",
    mode: str = "C_P",
    weigh: str = "tasks",
    part: Part,
    form: str,
) -> None:
    """Show success rates with intervals, for any groups."""
    from evalcube.flows.read.statistics import table as estimate_groups

    estimates = estimate_groups(cube, part, by=names_of(by), mode=mode, weigh=weigh)  # type: ignore[arg-type]
    emit_with(estimates.part.warnings, estimates, cube, form)


@of_part()
def rank(*, cube: options.Cubes, version: options.Score = "auto", part: Part, form: str) -> None:
    """Rank models: rank intervals, groups that cannot be told apart, expected wins, ratings."""
    from evalcube.flows.read.statistics import rank as make_ranking
    from evalcube.stages.analyze.render.board_spec import matrix_spec

    standing = make_ranking(cube, part, version=version)  # type: ignore[arg-type]
    emit_with(standing.part.warnings, standing, cube, form)
    if form in ("", "markdown") and (matrix := matrix_spec(standing.ranking)):
        show("")
        print_table(matrix, markdown=bool(form))


@of_part()
def compare(
    *,
    cube: options.Cube,
    models: Annotated[list[str] | None, typer.Argument()] = None,
    repeats: Annotated[int | None, typer.Option(min=1)] = None,
    truncated: str = "wrong",
    flips: Annotated[bool, typer.Option("--flips")] = False,
    limit: Annotated[int | None, typer.Option(min=0)] = None,
    weigh: str = "tasks",
    cache: str | None = None,
    part: Part,
    form: str,
) -> None:
    """Compare models on the questions that both answered, task by task and overall.

    Parameters
    ----------
    models
        More cubes, read as if merged with the first; then the evaluations to compare, two or more labels or numbers;
        default: all.
    repeats
        Only the first N answers to each question.
    truncated
        wrong: a truncated answer counts as wrong. drop: leave out trials in which either model's answer was truncated.
    flips
        Show the questions that only one of two models got right, with both answers. With it, two cubes are not merged:
        A.zarr B.zarr M N compares model M of A with model N of B; A.zarr B.zarr M compares M of A with M of B.
    limit
        With --flips: maximum number of questions to show; default: 20, with --json and --csv all.
    """
    from evalcube.flows.errors import SweepError

    cubes, chosen = cubes_and_models(cube, models or ())
    if flips:
        if weigh != "tasks":
            raise SweepError(f"--weigh {weigh} does not go with --flips", "Leave one of them out")
        from evalcube.flows.cli.trials import print_flips
        from evalcube.flows.read.trials.flips import flips as find

        changed = find(cubes, chosen, part, repeats=repeats, truncated=truncated, cache=cache)
        print_flips(changed, limit, truncated, form)
        return
    if limit is not None or cache is not None:
        raise SweepError("--limit and --cache go with --flips", "Add --flips, or leave them out")
    from evalcube.flows.read.statistics import compare as compare_models
    from evalcube.stages.analyze.render.table_specs import pair_spec, pairs_spec

    comparison = compare_models(cubes, chosen, part, repeats=repeats, truncated=truncated, weigh=weigh)  # type: ignore[arg-type]
    opened, pairs = comparison
    document = {
        "schema": "evalcube.comparison",
        "schema_version": 2,
        **several(cubes),
        "truncated": truncated,
        "confidence": 0.95,
        **comparison.to_dict(),
    }
    counted = {
        "wrong": "Truncated trials count as wrong, as in accuracy and C_P; --truncated drop leaves them out.",
        "drop": "Trials that either truncated are left out; the leaderboard's accuracy and C_P count them as wrong.",
    }
    cut = any(row > 0 for pair in pairs for row in pair.truncated)
    part_note = (
        *((f"Part of the cube ({opened.selection}).",) if opened.selection else ()),
        *((counted[truncated],) if cut else ()),
    )
    notes = (*part_note, "Name two models to see their tasks.")
    sheet = pair_spec(pairs[0], part_note) if len(pairs) == 1 else pairs_spec(pairs, notes)
    emit(sheet, document, form, comparison.records())
    warn(opened.warnings)


@of_part()
def metrics(
    *,
    cube: options.Cubes,
    k: str = "",
    names: Annotated[str, typer.Option("--metrics")] = "pass_at_k,pass_hat_k",
    by: str = "model",
    settings: Annotated[list[str] | None, typer.Option("--set")] = None,
    part: Part,
    as_json: options.Json = False,
) -> None:
    """Compute pass@k and related metrics, from several answers to each question.

    Parameters
    ----------
    k
        Values of k, such as 1,4,8; default: powers of two up to the number of repeats.
    names
        pass_at_k, pass_hat_k, g_pass_at_k_tau, mg_pass_at_k, auc_at_k, bayes, avg, ...; each also as NAME_ci, a
        Bayesian estimate with its interval.
    settings
        An argument of the metrics' functions in evalcube.stats, such as tau=0.5 or alpha0=0.5. Some have several
        values: bounds=0,1 (to clip intervals), w=-1,1 (value of a wrong and of a right answer). Give it again for more.
    """
    from evalcube.flows.read.statistics import metrics as evaluate

    numbers = settings_of("--set", settings or (), "tau=0.5 or weights=0.2,0.8")
    arguments = {name: result if len(result) > 1 else result[0] for name, result in numbers.items()}
    result = evaluate(cube, part, names=names_of(names), k=_numbers(k), by=names_of(by), settings=arguments)
    emit_with(result.part.warnings, result, cube, form_of(as_json=as_json))


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in names_of(text)]
    except ValueError as error:
        from evalcube.flows.errors import SweepError

        raise SweepError(f"--k: '{text}' is no list of whole numbers", "Write it like 1,4,8") from error


analyze = typer.Typer(
    cls=CommandGroup,
    help="Analyze the compression of traces, when answers end (hazard), shorter limits (clip), and cost.",
    no_args_is_help=True,
)


@analyze.command(cls=Command)
@of_part("where", "view", "trials")
def compression(
    *, cube: options.Cube, by_task: options.ByTask = False, part: Part, as_json: options.Json = False
) -> None:
    """Show how well reasoning traces compress, by outcome: traces that loop compress well."""
    from evalcube.flows.read.forensics import compression as measure

    _answer("compression", measure(cube, part, by_task=by_task), as_json)


@analyze.command(cls=Command)
@of_part("where", "view", "trials")
def hazard(
    *,
    cube: options.Cube,
    width: Annotated[int, typer.Option(min=1)] = 256,
    by_task: options.ByTask = False,
    part: Part,
    as_json: options.Json = False,
) -> None:
    """Show when answers come: of trials that reach N tokens, how many end right or wrong within --width more.

    Parameters
    ----------
    width
        Number of tokens that each line of the table covers.
    """
    from evalcube.flows.read.forensics import hazard as measure

    _answer("hazard", measure(cube, part, width=width, by_task=by_task), as_json)


_VERSIONS = {"clip": 2}
"""Versions of documents whose keys have changed their meaning."""


@analyze.command(cls=Command)
@of_part("where", "view", "trials")
def clip(
    *,
    cube: options.Cube,
    limits: str = "",
    version: options.Score = "auto",
    part: Part,
    as_json: options.Json = False,
) -> None:
    """Show what the models would have scored with smaller token limits; no request is repeated.

    Parameters
    ----------
    limits
        Limits of completion tokens, such as 256,1024; default: the five largest powers of two below the longest
        answer.
    """
    from evalcube.flows.read.forensics import clip as measure

    _answer("clip", measure(cube, part, limits=names_of(limits), version=version), as_json)


@analyze.command(cls=Command)
@of_part("where", "view", "trials")
def cost(
    *, cube: options.Cube, by_task: options.ByTask = False, part: Part, as_json: options.Json = False
) -> None:
    """Show what trials and right answers cost, and which models are on the Pareto front."""
    from evalcube.flows.read.forensics import cost as measure

    _answer("cost", measure(cube, part, by_task=by_task), as_json)


def _answer(name: str, analysis: tuple[OpenPart, TableSpec, Sequence[dict[str, Any]]], as_json: bool) -> None:
    opened, table, rows = analysis
    warn(opened.warnings)
    schema = {"schema": f"evalcube.{name}", "schema_version": _VERSIONS.get(name, 1)}
    emit(table, {**schema, "selection": opened.selection, "rows": list(rows)}, form_of(as_json=as_json))
