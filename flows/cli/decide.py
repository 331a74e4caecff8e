"""Commands that tell whether a treatment may replace the control: gate and verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from evalcube.flows.cli import options
from evalcube.flows.cli.options import cubes_and_models, part_of, settings_of
from evalcube.flows.cli.output import (
    complain,
    form_of,
    number,
    print_rows,
    safe,
    show,
    show_json,
    show_table,
    warn,
)

if TYPE_CHECKING:
    from evalcube.flows.config.views import Policy
    from evalcube.flows.read.gate import GateResult
    from evalcube.flows.read.verdict import CubeVerdict
    from evalcube.stages.analyze.verdict.result import PairResult


def gate(
    policy: str,
    cubes: Annotated[list[str] | None, typer.Argument()] = None,
    control: str | None = None,
    treatment: str | None = None,
    config: Annotated[str | None, typer.Option("--run")] = None,
    to_the_end: Annotated[bool, typer.Option("--to-the-end")] = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
    markdown: options.Markdown = False,
) -> None:
    """Decide by accuracy, with the margins of a policy, whether a treatment may replace the control.

    The decision is GO, NO-GO or INCONCLUSIVE. To compare composite scores, use `evalcube verdict`.

    Parameters
    ----------
    policy
        YAML file with a section `policy`; it may be the sweep's config.
    cubes : [CUBE] [CUBE] [CONTROL] [TREATMENT]
        One cube with both variants, or the control's cube and the treatment's, or no cube with --run; then the labels
        or numbers of the two variants, if a cube has other evaluations, too.
    treatment
        The variant that might replace the control.
    config : CONFIG
        Run this sweep as far as the decision needs: look at 40, 55, 70, 85 and 100% of its trials, and stop once the
        decision is certain, or likely to stay INCONCLUSIVE to the end.
    to_the_end
        With --run: stop early only if the decision is certain.
    """
    from evalcube.flows.config.views import load_policy
    from evalcube.flows.errors import SweepError
    from evalcube.flows.read.gate import gate_of, given_names

    form = form_of(as_json=as_json, markdown=markdown)
    rules = load_policy(policy)
    if to_the_end and config is None:
        raise SweepError("--to-the-end goes with --run: a cube is looked at as it is", "Leave it out")
    addresses, names = list[str](), list(cubes or ())
    if config is None:
        if not cubes:
            raise SweepError("nothing to decide about", "Give a cube, or --run CONFIG")
        addresses, names = cubes_and_models(cubes[0], cubes[1:])
    # An argument beside one option is the other of the two.
    models = given_names(addresses, control, treatment, names)
    if config is not None:
        decision = _run(rules, config, models, to_the_end=to_the_end, quiet=quiet)
    else:
        decision = gate_of(rules, addresses, models, part_of())
    if form == "json":
        show_json(decision.to_dict())
    elif form == "markdown":
        show(_markdown(decision))
    else:
        _print_gate(decision)
    warn(decision.warnings)
    raise typer.Exit(decision.exit_code)


def _run(rules: Policy, config: str, models: Sequence[str], *, to_the_end: bool, quiet: bool) -> GateResult:
    from evalcube.flows.cli.measure import subscribers
    from evalcube.flows.config.suites import load_sweep
    from evalcube.flows.run.gate import run_gate

    part_of()
    with subscribers(None, quiet=quiet) as followers:
        decision, summary = run_gate(
            rules, load_sweep(config), models, to_the_end=to_the_end, subscribers=followers
        )
    if summary.reason == "stopped":
        why = summary.bound or summary.ordered or "run it again to go on"
        complain(f"stopped before the decision: {why}")
    return decision


def _print_gate(decision: GateResult) -> None:
    from evalcube.flows.read.decision import decision_table, open_lines

    head = f"{decision.decision}: {decision.treatment} instead of {decision.control}"
    for line in (head, f"  {decision.reason}", *(f"  {text}" for text in open_lines(decision)), ""):
        show(safe(line))
    show_table(decision_table(decision))


def _markdown(decision: GateResult) -> str:
    """The decision as a comment on a merge request; what foreign names say stands in code."""
    from evalcube.flows.read.decision import decision_table, open_lines
    from evalcube.stages.analyze.render.table import markdown_text
    from evalcube.stages.analyze.render.text import code, sentence

    names = [code(name, cell=False) for name in (decision.treatment, decision.control)]
    lines = [f"### {decision.decision}: {' instead of '.join(names)}", "", sentence(decision.reason), ""]
    left = [f"- {sentence(text)}" for text in open_lines(decision)]
    table = markdown_text(decision_table(decision))
    warnings = [f"- {sentence(text)}" for text in decision.warnings]
    return "\n".join([*lines, *left, *[""] * bool(left), table, "", *warnings]).rstrip("\n")


_LAYERS = ("fact", "behavior", "judge")


def verdict(
    cube: options.Cube,
    more: Annotated[list[str] | None, typer.Argument()] = None,
    control: str | None = None,
    treatments: Annotated[list[str] | None, typer.Option("--treatment")] = None,
    threshold: Annotated[float, typer.Option(min=1.0, max=5.0)] = 3.5,
    trivial: Annotated[float, typer.Option(min=0.0, max=4.0)] = 0.1,
    weights: str | None = None,
    gold: str | None = None,
    gold_variant: str | None = None,
    missing: Annotated[float | None, typer.Option(min=0.0, max=1.0)] = None,
    holdout: float | None = None,
    tasks: Annotated[list[str] | None, typer.Option("--task")] = None,
    as_json: options.Json = False,
) -> None:
    """Judge by composite scores, from assertions and judges, whether a treatment is better than the control.

    The verdict is PROGRESS, CAUTIOUS, REGRESS, NOISE or UNDERPOWERED; or SOLO, if no treatment is given. To decide by
    right and wrong answers, use `evalcube gate`.

    Parameters
    ----------
    more : [CUBE]... [TREATMENT]
        More cubes, read as if merged; then treatments, beside those of --treatment.
    treatments
        A variant that might replace the control; may be given again. Default: if the control is the one that the config
        declares, all other variants; else none.
    threshold
        Mean score, from 1 to 5, that each layer (fact, behavior, judge) must reach.
    trivial
        Smallest difference of composite scores that matters.
    weights
        Weights of the layers, such as fact=2,judge=1; default: the config's, else equal.
    gold_variant
        The variant that people rated, where the file of --gold names none; default: the control.
    missing
        Largest share of a variant's scores that may be missing; default: 0.1.
    holdout
        Share of the questions to hold out, such as 0.3: a gain must not be smaller on them than on the other questions.
    tasks
        Compare only on this task; may be given again.
    """
    from evalcube.flows.read.verdict import cube_verdict

    cubes, further = cubes_and_models(cube, more or ())
    numbers = settings_of("--weights", [] if weights is None else weights.split(","), "fact=2,judge=1")
    comparison = cube_verdict(
        cubes,
        control,
        (*(treatments or ()), *further),
        tasks=tasks or (),
        threshold=threshold,
        trivial=trivial,
        weights=None if weights is None else {name: values[0] for name, values in numbers.items()},
        gold=gold,
        gold_variant=gold_variant,
        missing=missing,
        holdout=holdout,
    )
    if as_json:
        show_json(comparison.to_dict())
    else:
        _print_verdict(comparison)
    raise typer.Exit(comparison.exit_code)


def _print_verdict(comparison: CubeVerdict) -> None:
    from evalcube.stages.analyze.render.verdicts import BADGES

    result = comparison.verdict
    pair = "" if result.representative is None else ": '{1}' against '{0}'".format(*result.representative)
    show(f"{result.verdict}{safe(pair)} (rule {result.branch})")
    for reason in result.reasons:
        show(f"  {safe(reason)}")
    show(f"next: {result.next_step}")
    _print_arms(comparison)
    for pair_result in result.pairs:
        show(f"{safe(pair_result.treatment)} - {safe(pair_result.control)}: {pair_result.verdict}")
        _print_intervals(pair_result)
        _print_robustness(pair_result)
    show("badges (what a yes means)")
    for field, (name, meaning) in BADGES.items():
        show(f"  {name:22}  {getattr(result.badges, field):7}  {meaning}")
    if result.gold is not None:
        gold = result.gold
        bounds = f"{number(gold.low)} to {number(gold.high)}"
        show(
            f"judges and people: Krippendorff's alpha {number(gold.alpha)} ({bounds}), {gold.units} rated questions"
        )
    for arm in result.arms:
        if arm.by_people is not None:
            low, high = map(number, arm.by_people)
            rated = f"{number(arm.composite)} ({low} to {high})"
            show(f"  '{safe(arm.name)}': composite corrected by people's ratings, {rated}")
    for name, units in result.to_rate.items():
        show(f"  rate next, of '{safe(name)}': {safe(', '.join(units[:5]))} (--json lists all {len(units)})")
    for note in result.notes:
        show(f"note: {safe(note)}")


def _print_arms(comparison: CubeVerdict) -> None:
    rows = []
    for arm in comparison.verdict.arms:
        layers = (number(arm.layers.get(name, math.nan)) for name in _LAYERS)
        rows.append((arm.name, arm.shown, *layers, "reached" if arm.gate_passed else "missed"))
    title = f"{comparison.units} questions of {', '.join(comparison.tasks)}"
    print_rows(("variant", "composite", *_LAYERS, "threshold"), rows, title)


def _print_intervals(pair: PairResult) -> None:
    from evalcube.stages.analyze.render.table_specs import e_text

    # Of layers those are shown that hold together, and decide whether one moved.
    for name, interval in {"composite": pair.composite, **pair.simultaneous}.items():
        level = f"{100 * (1 - interval.alpha):.4g}%"
        bounds = f"{number(interval.low, sign=True)} to {number(interval.high, sign=True)}"
        p_value = "" if math.isnan(interval.p_value) else f", p {interval.p_value:.3g}"
        p_value += "" if math.isnan(interval.e) else f", e {e_text(interval.e)}"
        show(f"  {name:9} {number(interval.estimate, sign=True)}  ({level}: {bounds}{p_value})")
    if pair.composite.method == "people":
        show("  composite and judge are corrected by people's ratings; intervals are for this look only")
        return
    always = pair.composite.method == "anytime"
    valid = "intervals are for all looks together" if always else "p and intervals are for this look only"
    show(f"  {valid}; an e of {1 / pair.composite.alpha:.4g} or more is significant however often you look")


def _print_robustness(pair: PairResult) -> None:
    """Whether other ways of putting the layers together, and of filling what is missing, come to the same."""
    from evalcube.stages.analyze.verdict.rules import bounds_text, holdout_text

    parts = []
    if pair.holdout is not None:
        parts.append(f"gain on held-out questions: {holdout_text(pair.holdout)}")
    if pair.sensitivity is not None and pair.sensitivity.points:
        weights = zip(_LAYERS, pair.sensitivity.weights, strict=True)
        shares = ", ".join(f"{name} {100 * weight:.3g}%" for name, weight in weights)
        share = 100 * pair.sensitivity.same_result
        parts.append(f"weights {shares}; of the other weightings tried, {share:.0f}% give the same result")
    if pair.joint is not None and not math.isnan(pair.joint.p_value):
        parts.append(f"test for a change in any layer (Hotelling's T²): p {pair.joint.p_value:.3g}")
    if pair.standardised is not None and not math.isnan(pair.standardised.estimate):
        effect = pair.standardised
        bounds = f"{number(effect.low, sign=True)} to {number(effect.high, sign=True)}"
        parts.append(
            f"composite, each layer in its standard deviations: {number(effect.estimate, sign=True)} ({bounds})"
        )
    if pair.missing is not None:
        lacking = ", ".join(
            f"{safe(gap.what)} {gap.control} of {gap.control_expected} and {gap.treatment} of {gap.treatment_expected}"
            for gap in pair.missing.gaps
        )
        parts.append(f"missing (control and treatment): {lacking}")
        parts.append(bounds_text(pair.missing))
    for part in parts:
        show(f"  {part}")
