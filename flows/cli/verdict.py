"""The command that tells whether a treatment may replace the control: verdict."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from evalcube.flows.cli import options
from evalcube.flows.cli.output import number, outlived, print_rows, safe, show, show_json

if TYPE_CHECKING:
    from evalcube.flows.read.verdict import CubeVerdict
    from evalcube.stages.analyze.verdict.result import PairResult

_LAYERS = ("fact", "behavior", "judge")


def verdict(
    cube: options.Cube,
    more: Annotated[list[str] | None, typer.Argument()] = None,
    control: str | None = None,
    treatments: Annotated[list[str] | None, typer.Option("--treatment")] = None,
    method: str | None = None,
    threshold: Annotated[float, typer.Option(min=1.0, max=5.0)] = 3.5,
    trivial: Annotated[float, typer.Option(min=0.0, max=4.0)] = 0.1,
    weights: str | None = None,
    gold: str | None = None,
    gold_variant: str | None = None,
    missing: Annotated[float | None, typer.Option(min=0.0, max=1.0)] = None,
    holdout: float | None = None,
    tasks: options.Tasks = None,
    as_json: options.Json = False,
) -> None:
    """Tell whether a treatment may replace the control. Exit code 0: it may (PROGRESS, or a gate passed alone).

    Parameters
    ----------
    more : [TREATMENT]...
        Further treatments.
    treatments
        What might replace it; more may follow. None: only the gate.
    method
        How intervals are found: sign-flip, studentised (a bootstrap), or anytime, which hold at all looks; default:
        what makes all looks together err in 5 %.
    threshold
        Lowest mean of a layer that passes the gate.
    trivial
        Smallest difference of composites that matters, for gains, harm and advice.
    weights
        Weights of the layers, such as fact=2,judge=1; default: all the same.
    gold_variant
        The variant whose answers they rated, where rows name none; default: the control.
    missing
        Largest share of a variant's scores that may be missing; default: 0.1.
    holdout
        Share of the questions, such as 0.3, on which a gain is to hold that the others show.
    """
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
    from evalcube.stages.analyze.render.verdicts import BADGES

    result = found.verdict
    pair = (
        ""
        if result.representative is None
        else f": {result.representative[1]} against {result.representative[0]}"
    )
    show(f"{result.verdict} ({result.branch}){safe(pair)}")
    for reason in result.reasons:
        show(f"  {safe(reason)}")
    show(f"next: {result.next_step}")
    _print_arms(found)
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
    for arm in result.arms:
        if arm.by_people is not None:
            low, high = map(number, arm.by_people)
            show(
                f"  {safe(arm.name)}: composite and judge as people rate, {number(arm.composite)} ({low} to {high})"
            )
    for name, units in result.to_rate.items():
        show(f"  rate next of {safe(name)}: {safe(', '.join(units[:5]))} (--json has {len(units)})")
    for note in result.notes:
        show(f"note: {safe(note)}")


def _print_arms(found: CubeVerdict) -> None:
    rows = []
    for arm in found.verdict.arms:
        layers = (number(arm.layers.get(name, math.nan)) for name in _LAYERS)
        rows.append((arm.name, arm.shown, *layers, "passed" if arm.gate_passed else "failed"))
    title = f"{found.units} questions of {', '.join(found.tasks)}"
    print_rows(("variant", "composite", *_LAYERS, "gate"), rows, title)


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
    if pair.composite.method == "people":
        show("  composite and judge as people rate, at this look")
        return
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
