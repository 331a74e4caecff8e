"""Commands that compute from a cube's counters and outcomes: table, rank, compare, metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer

from evalcube.flows.cli.options import (
    CacheOption,
    ClipOption,
    CsvOption,
    CubeArgument,
    CubesArgument,
    JsonOption,
    MarkdownOption,
    ModeOption,
    PoolingOption,
    ScoreOption,
    TrialsOption,
    UniqueOption,
    ViewOption,
    WhereOption,
)
from evalcube.flows.cli.selecting import cubes_and_models, names_of, part_of, several
from evalcube.flows.cli.tables import emit, noted, one_form, show_below, warn

GroupsOption = Annotated[
    str,
    typer.Option(
        help="What to group by: model, task, tier, a facet, a parameter as param_length, difficulty; several with "
        "commas."
    ),
]


def table(
    cube: CubesArgument,
    by: GroupsOption = "model",
    mode: ModeOption = "C_P",
    pooling: PoolingOption = "pooled",
    joint: Annotated[
        str,
        typer.Option(
            help="none, or bonferroni: intervals of the products C_P and C_O that are sure to cover."
        ),
    ] = "none",
    where: WhereOption = None,
    view: ViewOption = None,
    trials: TrialsOption = None,
    unique_only: UniqueOption = False,
    clip_tokens: ClipOption = None,
    as_json: JsonOption = False,
    markdown: MarkdownOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Success rates with intervals, of any groups."""
    from evalcube.flows.cubes.statistics import aggregate
    from evalcube.stages.analyze.labelled import axes
    from evalcube.stages.analyze.render.rows import group_rows
    from evalcube.stages.analyze.render.table_specs import group_spec

    one_form(as_json=as_json, markdown=markdown, as_csv=as_csv)
    part = part_of(where, view, trials, unique_only=unique_only, clip_tokens=clip_tokens)
    opened, found = aggregate(cube, part, by=names_of(by), mode=mode, pooling=pooling, joint=joint)  # type: ignore[arg-type]
    warn(opened.warnings)
    dims = [str(name) for name in found["point"].dims]
    rows = group_rows(found, axes.evaluation_labels(opened.dataset))
    how = {
        "": "every trial weighs the same",
        "known": "points weigh as in the first plan, however many trials were added",
    }[found.attrs["base_design"] if pooling == "pooled" else ""]
    how = "every point weighs the same" if pooling == "stratified" else how
    notes = (*([f"Part of the cube ({opened.selection})."] if opened.selection else []), f"{pooling}: {how}.")
    if axes.most_repeats(opened.dataset) > 1 and joint == "none":
        notes = (*notes, "Questions were asked several times: intervals go by question.")
    document = {
        "schema": "evalcube.table",
        "schema_version": 2,
        **several(cube),
        **found.attrs,
        "by": dims,
        "selection": opened.selection,
        "rows": rows,
        **noted(opened.warnings),
    }
    emit(group_spec(rows, dims, mode, notes), document, as_json=as_json, markdown=markdown, as_csv=as_csv)
    if markdown:
        show_below(opened.warnings)


def rank(
    cube: CubesArgument,
    version: ScoreOption = "auto",
    prior: Annotated[
        float,
        typer.Option(min=0.0, help="Drawn games that each model is taken to have played, for the ratings."),
    ] = 1.0,
    where: WhereOption = None,
    view: ViewOption = None,
    trials: TrialsOption = None,
    unique_only: UniqueOption = False,
    clip_tokens: ClipOption = None,
    as_json: JsonOption = False,
    markdown: MarkdownOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Who stands where: rank intervals, groups not told apart, expected wins, ratings."""
    from evalcube.flows.cubes.statistics import rank as make_ranking
    from evalcube.stages.analyze.render.board_spec import ranking_spec

    one_form(as_json=as_json, markdown=markdown, as_csv=as_csv)
    part = part_of(where, view, trials, unique_only=unique_only, clip_tokens=clip_tokens)
    found = make_ranking(cube, part, version=version, prior=prior)  # type: ignore[arg-type]
    warn(found.part.warnings)
    emit(
        ranking_spec(found.ranking, found.board),
        {**several(cube), **found.to_dict(), **noted(found.part.warnings)},
        as_json=as_json,
        markdown=markdown,
        as_csv=as_csv,
    )
    if markdown:
        show_below(found.part.warnings)


def compare(
    cube: CubeArgument,
    models: Annotated[
        list[str] | None,
        typer.Argument(
            help="More cubes, read as if they were merged; then labels or numbers of two models or more; default: all.",
        ),
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Only the first so many answers to each question.")
    ] = None,
    truncated: Annotated[
        str,
        typer.Option(
            help="wrong: a truncated trial is a failure. drop: leave out trials that either truncated."
        ),
    ] = "wrong",
    flips: Annotated[
        bool,
        typer.Option(
            "--flips",
            help="The questions that two models, or the same model in two cubes, answered differently, with both "
            "answers. Of two cubes: A.zarr B.zarr [MODEL [MODEL OF B]].",
        ),
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            min=0, help="With --flips: most questions that are shown; default: 20, with --json and --csv all."
        ),
    ] = None,
    cache: CacheOption = None,
    where: WhereOption = None,
    view: ViewOption = None,
    trials: TrialsOption = None,
    unique_only: UniqueOption = False,
    clip_tokens: ClipOption = None,
    as_json: JsonOption = False,
    markdown: MarkdownOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Compare models on the questions that both answered, task by task and overall."""
    from evalcube.flows.errors import SweepError

    one_form(as_json=as_json, markdown=markdown, as_csv=as_csv)
    part = part_of(where, view, trials, unique_only=unique_only, clip_tokens=clip_tokens)
    cubes, chosen = cubes_and_models(cube, models or ())
    if flips:
        from evalcube.flows.cli.flips import print_flips
        from evalcube.flows.trials.flips import flips as find

        changed = find(cubes, chosen, part, repeats=repeats, truncated=truncated, cache=cache)
        print_flips(changed, limit, truncated=truncated, as_json=as_json, as_csv=as_csv, markdown=markdown)
        return
    if limit is not None or cache is not None:
        raise SweepError("--limit and --cache go with --flips", "Add --flips, or leave them out")
    from evalcube.flows.cubes.statistics import compare as compare_models
    from evalcube.stages.analyze.render.table_specs import pair_spec, pairs_spec

    found = compare_models(cubes, chosen, part, repeats=repeats, truncated=truncated)
    opened, pairs = found
    document = {
        "schema": "evalcube.comparison",
        "schema_version": 2,
        **several(cubes),
        "truncated": truncated,
        "confidence": 0.95,
        **found.to_dict(),
    }
    counted = {
        "wrong": "Truncated trials count as wrong, as in the leaderboard's accuracy and C_P; C_I leaves them out.",
        "drop": "Trials that either truncated are left out; the leaderboard's accuracy and C_P count them as wrong.",
    }
    cut = any(row > 0 for pair in pairs for row in pair.truncated)
    part_note = (
        *((f"Part of the cube ({opened.selection}).",) if opened.selection else ()),
        *((counted[truncated],) if cut else ()),
    )
    sheet = (
        pair_spec(pairs[0], part_note)
        if len(pairs) == 1
        else pairs_spec(pairs, (*part_note, "Name two models to see their tasks."))
    )
    emit(sheet, document, as_json=as_json, markdown=markdown, as_csv=as_csv, rows=found.records())
    warn(opened.warnings)


def metrics(
    cube: CubesArgument,
    k: Annotated[
        str, typer.Option(help="Numbers of draws, such as 1,4,8; default: powers of two up to the repeats.")
    ] = "",
    names: Annotated[
        str,
        typer.Option(
            "--metrics",
            help="pass_at_k, pass_hat_k, g_pass_at_k_tau, mg_pass_at_k, maj_at_k, auc_at_k, bayes, avg, ...; each also "
            "as NAME_ci with an interval.",
        ),
    ] = "pass_at_k,pass_hat_k,maj_at_k",
    by: GroupsOption = "model",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="An argument of the metrics, such as tau=0.5, confidence=0.9, alpha0=0.5, pass_power=1, "
            "weights=0.2,0.8; may be given again.",
        ),
    ] = None,
    where: WhereOption = None,
    view: ViewOption = None,
    trials: TrialsOption = None,
    unique_only: UniqueOption = False,
    clip_tokens: ClipOption = None,
    as_json: JsonOption = False,
) -> None:
    """Pass@k and its family: what several answers to each question are worth."""
    from evalcube.flows.cubes.statistics import metrics as evaluate
    from evalcube.stages.analyze.labelled import axes
    from evalcube.stages.analyze.labelled.counters import weighing
    from evalcube.stages.analyze.render.rows import metric_rows
    from evalcube.stages.analyze.render.table_specs import metric_spec

    part = part_of(where, view, trials, unique_only=unique_only, clip_tokens=clip_tokens)
    wanted = names_of(names)
    given = _settings(settings or ())
    opened, found = evaluate(cube, part, names=wanted, k=_numbers(k), by=names_of(by), settings=given)
    warn(opened.warnings)
    dims = [str(dim) for dim in found["questions"].dims]
    rows = metric_rows(found, wanted, axes.evaluation_labels(opened.dataset))
    document = {
        "schema": "evalcube.metrics",
        "schema_version": 1,
        **several(cube),
        "metrics": wanted,
        "by": dims,
        "settings": given,
        "selection": opened.selection,
        "rows": rows,
    }
    sheet = metric_spec(rows, dims, wanted, opened.selection, float(given.get("confidence", 0.95)))  # type: ignore[arg-type]  # no list, which the metrics refuse
    if weighing(opened.dataset):
        # A question is what is averaged here, and its point has no weight of its own.
        told = "Every question weighs the same: points that were asked more often than the first plan says weigh more."
        sheet = replace(sheet, notes=(*sheet.notes, told))
    emit(sheet, document, as_json=as_json)


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in names_of(text)]
    except ValueError as error:
        from evalcube.flows.errors import SweepError

        raise SweepError(f"--k: '{text}' is no list of whole numbers", "Write it like 1,4,8") from error


def _settings(texts: Sequence[str]) -> dict[str, float | list[float]]:
    """Arguments of metrics as they were typed: NAME=NUMBER, or NAME=NUMBER,NUMBER,..."""
    found: dict[str, float | list[float]] = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            numbers = [float(part) for part in names_of(value)]
            found[name.strip()] = numbers if "," in value else numbers[0]
        except (ValueError, IndexError) as error:
            from evalcube.flows.errors import SweepError

            raise SweepError(
                f"--set: '{text}' sets nothing", "Write it like tau=0.5 or weights=0.2,0.8"
            ) from error
    return found


COMMANDS = (table, rank, compare, metrics)
