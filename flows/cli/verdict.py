"""The command that tells whether a treatment may replace the control: verdict, by layers or by a policy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from evalcube.flows.cli.options import CubeArgument, JsonOption, TasksOption, cubes_and_models, part_of
from evalcube.flows.cli.output import number, one_form, outlived, safe, show, show_json, show_table, warn

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from evalcube.flows.read.policy import Check, PolicyVerdict
    from evalcube.flows.read.verdict import CubeVerdict
    from evalcube.stages.analyze.render.table import TableSpec
    from evalcube.stages.analyze.verdict.result import PairResult

_LAYERS = ("fact", "behavior", "judge")


def verdict(
    context: typer.Context,
    cube: CubeArgument,
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TREATMENT]...", help="Further treatments."),
    ] = None,
    control: Annotated[
        str | None,
        typer.Option(
            help="The variant in use: a model's label, or an evaluation's name or number.",
        ),
    ] = None,
    treatments: Annotated[
        list[str] | None,
        typer.Option(
            "--treatment",
            help="What might replace it; more may follow. None: only the gate.",
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="How intervals are found: sign-flip, studentised (a bootstrap), or anytime, which hold at all looks; "
            "default: what makes all looks together err in 5 %."
        ),
    ] = None,
    threshold: Annotated[
        float, typer.Option(min=1.0, max=5.0, help="Lowest mean of a layer that passes the gate.")
    ] = 3.5,
    trivial: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=4.0,
            help="Smallest difference of composites that matters, for gains, harm and advice.",
        ),
    ] = 0.1,
    weights: Annotated[
        str | None, typer.Option(help="Weights of the layers, such as fact=2,judge=1; default: all the same.")
    ] = None,
    gold: Annotated[
        str | None, typer.Option(help="File of ratings by people, to see how well judges agree with them.")
    ] = None,
    gold_variant: Annotated[
        str | None,
        typer.Option(help="The variant whose answers they rated; default: the control."),
    ] = None,
    missing: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=1.0, help="Largest share of a variant's scores that may be missing; default: 0.1."
        ),
    ] = None,
    holdout: Annotated[
        float | None,
        typer.Option(
            help="Share of the questions, such as 0.3, on which a gain is to hold that the others show."
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Decide by a YAML file with a section `policy` how far right answers may drop, by task and tier. The "
            "treatment may be in a second cube: CONTROL.zarr TREATMENT.zarr.",
        ),
    ] = None,
    tasks: TasksOption = None,
    as_json: JsonOption = False,
    markdown: Annotated[
        bool,
        typer.Option(
            "--markdown", help="Print what the policy says as Markdown, such as a comment on a merge request."
        ),
    ] = False,
) -> None:
    """Tell whether a treatment may replace the control. Exit code 0: it may (PROGRESS, or a gate passed alone)."""
    one_form(as_json=as_json, markdown=markdown)
    if policy is not None:
        named = [name for name in (control, *(treatments or ())) if name is not None]
        cubes = (cube, *(more or ()))
        decide_by_policy(policy, cubes, named, _of_layers(context), as_json=as_json, markdown=markdown)
    if markdown:
        from evalcube.flows.errors import SweepError

        raise SweepError("--markdown goes with --policy", "Add --policy FILE, or leave it out")
    from evalcube.flows.read.verdict import cube_verdict

    found = cube_verdict(
        cube,
        control,
        (*(treatments or ()), *(more or ())),
        tasks=tasks or (),
        method=method,  # type: ignore[arg-type]  # refused there if it is none
        threshold=threshold,
        trivial=trivial,
        weights=None if weights is None else _read_weights(weights),
        gold=gold,
        gold_variant=gold_variant,
        missing=missing,
        holdout=holdout,
    )
    with outlived():
        if as_json:
            show_json(found.to_dict())
        else:
            _print(found)
    raise typer.Exit(found.exit_code)


def _of_layers(context: typer.Context) -> list[str]:
    """Flags that were given and mean nothing to a policy."""
    shared = ("cube", "more", "control", "treatments", "policy", "as_json", "markdown")
    sources = {name: context.get_parameter_source(name) for name in context.params if name not in shared}
    given = [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    return [parameter.opts[0] for parameter in context.command.params if parameter.name in given]


def _read_weights(text: str) -> dict[str, float]:
    from evalcube.flows.errors import SweepError

    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, number = (piece.strip() for piece in part.partition("="))
        try:
            weight = float(number)
        except ValueError:
            raise SweepError(f"--weights: '{part}' is no weight", "Write it like fact=2,judge=1") from None
        if name in found:
            raise SweepError(f"--weights: {name} is given twice", "Give each layer one weight")
        found[name] = weight
    return found


def _print(found: CubeVerdict) -> None:
    from rich.console import Console

    from evalcube.stages.analyze.render.verdicts import BADGES

    result, console = found.verdict, Console()
    pair = (
        ""
        if result.representative is None
        else f": {result.representative[1]} against {result.representative[0]}"
    )
    show(f"{result.verdict} ({result.branch}){safe(pair)}")
    for reason in result.reasons:
        show(f"  {safe(reason)}")
    show(f"next: {result.next_step}")
    _print_arms(found, console)
    for pair_result in result.pairs:
        show(f"{safe(pair_result.treatment)} - {safe(pair_result.control)}: {pair_result.verdict}")
        _print_intervals(pair_result)
        _print_robustness(pair_result)
    show("badges")
    for field, (name, _) in BADGES.items():
        show(f"  {name:22}  {getattr(result.badges, field)}")
    if result.gold is not None:
        gold = result.gold
        show(
            f"gold: alpha {number(gold.alpha)} ({number(gold.low)} to {number(gold.high)}), {gold.units} units"
        )
    for note in result.notes:
        show(f"note: {safe(note)}")


def _print_arms(found: CubeVerdict, console: Console) -> None:
    from rich.markup import escape
    from rich.table import Table

    title = f"{found.units} questions of {', '.join(found.tasks)}"
    table: Table = Table("variant", "composite", title=escape(safe(title)), title_justify="left")
    for name in _LAYERS:
        table.add_column(name, justify="right")
    table.add_column("gate")
    for arm in found.verdict.arms:
        layers = (number(arm.layers.get(name, math.nan)) for name in _LAYERS)
        table.add_row(escape(safe(arm.name)), arm.shown, *layers, "passed" if arm.gate_passed else "failed")
    console.print(table)


def _print_intervals(pair: PairResult) -> None:
    from evalcube.stages.analyze.render.table_specs import e_text

    # By sign flips and at any time those are shown that hold together, and decide whether a layer moved.
    layers = pair.simultaneous if pair.composite.method != "studentised" else pair.layers
    for name, interval in {"composite": pair.composite, **layers}.items():
        level = f"{100 * (1 - interval.alpha):.4g} %"
        bounds = f"{number(interval.low, sign=True)} to {number(interval.high, sign=True)}"
        p_value = "" if math.isnan(interval.p_value) else f", p {interval.p_value:.3g}"
        p_value += "" if math.isnan(interval.e) else f", e {e_text(interval.e)}"
        show(f"  {name:9} {number(interval.estimate, sign=True)}  ({level}: {bounds}{p_value})")
    enough = f"e from {1 / pair.composite.alpha:.4g} on holds however often you look"
    once = pair.composite.method != "anytime"
    show(
        f"  p and intervals are for this look; {enough}"
        if once
        else f"  intervals hold at all looks together; {enough}"
    )


def _print_robustness(pair: PairResult) -> None:
    """Whether other ways of putting the layers together, and of filling what is missing, come to the same."""
    from evalcube.stages.analyze.verdict.rules import difference_text, holdout_text

    parts = []
    if pair.holdout is not None:
        parts.append(f"gain on held-out questions: {holdout_text(pair.holdout)}")
    if pair.sensitivity is not None and pair.sensitivity.points:
        weights = zip(_LAYERS, pair.sensitivity.weights, strict=True)
        told = ", ".join(f"{name} {100 * weight:.3g} %" for name, weight in weights)
        share = 100 * pair.sensitivity.same_result
        parts.append(f"weights {told}; {share:.0f} % of all others give the same")
    if pair.joint is not None and not math.isnan(pair.joint.p_value):
        parts.append(f"any layer changed (T²): p {pair.joint.p_value:.3g}")
    if pair.standardised is not None and not math.isnan(pair.standardised.estimate):
        one = pair.standardised
        bounds = f"{number(one.low, sign=True)} to {number(one.high, sign=True)}"
        parts.append(f"in standard deviations {number(one.estimate, sign=True)} ({bounds})")
    if pair.missing is not None:
        lacking = ", ".join(
            f"{safe(gap.what)} {gap.control} of {gap.control_expected} and {gap.treatment} of {gap.treatment_expected}"
            for gap in pair.missing.gaps
        )
        parts.append(f"missing (control and treatment): {lacking}")
        failed, worst = difference_text(pair.missing.if_failed), difference_text(pair.missing.worst)
        parts.append(f"had all of that failed {failed}; at worst {worst}")
    for part in parts:
        show(f"  {part}")


_MEANING = {
    "GO": "no critical or supporting rule is broken",
    "REVIEW": "a supporting rule is broken: a person has to decide",
    "NO-GO": "a critical rule is broken, or what a rule needs was not measured",
}


def decide_by_policy(
    path: str,
    arguments: Sequence[str],
    named: Sequence[str],
    others: Sequence[str],
    *,
    as_json: bool,
    markdown: bool,
) -> None:
    """Print what the policy says, and end with its exit code.

    Parameters
    ----------
    path
        File with the policy.
    arguments
        A cube; then a second one, or names of evaluations.
    named
        The control and the treatment, as far as flags name them.
    others
        Flags that were given and say nothing to a policy.
    as_json, markdown
        Whether to print JSON or Markdown; at most one of them.

    Raises
    ------
    SweepError, ConfigError
        If the policy is wrong, or the two cannot be compared.
    typer.Exit
        With exit code 0 for GO, else 1.
    """
    from evalcube.flows.config.load import load_policy
    from evalcube.flows.errors import SweepError
    from evalcube.flows.read.policy import policy_verdict

    if others:
        raise SweepError(
            f"{', '.join(others)}: not with --policy, whose rules say all", "Leave one of the two out"
        )
    policy = load_policy(path)
    cubes, models = cubes_and_models(arguments[0], arguments[1:])
    found = policy_verdict(policy, cubes, [*named, *models], part_of())
    with outlived():
        if as_json:
            show_json(found.to_dict())
        else:
            _print_decision(found, markdown=markdown)
    warn(found.warnings)
    raise typer.Exit(found.exit_code)


def _print_decision(found: PolicyVerdict, *, markdown: bool) -> None:
    meaning = _MEANING[found.decision]
    broken = [
        f"{check.level}, {_place(check)}: {_reason(check, found.missing)}"
        for check in found.checks
        if not check.passed
    ]
    if markdown:
        show(_markdown(found, meaning, broken))
        return
    head = f"{found.decision}: {found.treatment} in the place of {found.control}"
    for line in (head, f"  {meaning}", *(f"  {text}" for text in broken), ""):
        show(safe(line))
    show_table(_table(found))


def _markdown(found: PolicyVerdict, meaning: str, broken: Sequence[str]) -> str:
    """The verdict as a comment on a merge request; what foreign names say stands in code."""
    from evalcube.stages.analyze.render.table import markdown_text
    from evalcube.stages.analyze.render.text import code, sentence

    names = [code(name, cell=False) for name in (found.treatment, found.control)]
    lines = [f"### {found.decision}: {' in the place of '.join(names)}", "", sentence(meaning), ""]
    lines += [f"- {sentence(text)}" for text in broken] + [""] * bool(broken)
    return "\n".join([*lines, markdown_text(_table(found))]).rstrip("\n")


def _place(check: Check) -> str:
    return " ".join(filter(None, (check.task or "all tasks", f"({check.tier})" if check.tier else "")))


def _reason(check: Check, missing: float) -> str:
    if check.outcome == "missing":
        return _lacking(check, missing)
    drop, limit = 100 * check.drop, 100 * check.limit
    span = f"95 %: {100 * check.lower:+.1f} to {100 * check.upper:+.1f}"
    if check.outcome == "unsure":
        return (
            f"dropped by {drop:.1f} points, within {limit:.1f}, but more is not excluded ({span}): ask more"
        )
    noise = "" if check.lower > check.limit else "; so few questions do not exclude a smaller drop"
    return f"dropped by {drop:.1f} points, more than {limit:.1f} ({span}){noise}"


def _lacking(check: Check, missing: float) -> str:
    if not check.questions and not check.lacking:
        return "not measured: neither side has such questions, or only the treatment"
    allowed = f", {100 * missing:g} % are allowed" if missing else ""
    return f"{check.lacking:,} of the control's questions are not answered by both{allowed}"


def _table(found: PolicyVerdict) -> TableSpec:
    from evalcube.stages.analyze.labelled.axes import plain
    from evalcube.stages.analyze.render.table import Column, TableSpec
    from evalcube.stages.analyze.render.text import ABSENT, number, percent

    columns = (
        Column("level", lambda row: row.level, right=False),
        Column("task", lambda row: plain(row.task) or "all", right=False, name=True),
        Column("tier", lambda row: plain(row.tier) or "all", right=False),
        Column("control", lambda row: percent(row.control), 1),
        Column("treatment", lambda row: percent(row.treatment), 1),
        Column("drop", lambda row: _points(row.drop)),
        Column(
            "95 %",
            lambda row: ABSENT if math.isnan(row.lower) else f"{_points(row.lower)} to {_points(row.upper)}",
            2,
        ),
        Column("allowed", lambda row: ABSENT if math.isnan(row.limit) else f"{100 * row.limit:.1f}"),
        Column("questions", lambda row: number(row.questions), 3),
        Column("", lambda row: row.outcome, right=False),
    )
    words = (
        "drop: the control's share right less the treatment's, in points of 100, of the questions that both answered; "
        "truncated answers count as wrong; tasks weigh the same, and their points as in the first plan."
    )
    alone = "95 %: the interval of each line by itself."
    floor = [_place(row) for row in found.checks if row.control == 0]
    notes = [words, alone]
    if floor:
        notes.append(f"The control is never right in {', '.join(floor)}: nothing could drop there.")
    if found.selection:
        notes.append(f"Part of the cube ({found.selection}).")
    return TableSpec(columns, found.checks, tuple(notes), explains={alone: "95 %"})


def _points(value: float) -> str:
    return "–" if math.isnan(value) else f"{100 * value:+.1f}"
