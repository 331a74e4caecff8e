"""The verdict on a control and its treatments by the reference's rules, by tests that hold for few units.

Runs of a unit are averaged before anything is compared, because the unit is what a comparison may generalise to.
Failed executions are missing, everywhere. Units are in the order of their ids.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from evalcube.stages.analyze.formulas.arguments import mean_present, one_of
from evalcube.stages.analyze.formulas.corrected import LEAST_SCORES
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.verdict.agreement import (
    LEAST_RATED,
    Agreement,
    GoldAgreement,
    gold_agreement,
    judge_agreement,
)
from evalcube.stages.analyze.verdict.comparison import compare, for_this_look, missing_alone, missing_of_pair
from evalcube.stages.analyze.verdict.composite import (
    LAYERS,
    SLACK,
    THRESHOLD,
    check_layers,
    checked_weights,
    composite,
    describe,
    judge_layer,
    layer_bits,
    layer_means,
    weighted_mean,
    weighty,
)
from evalcube.stages.analyze.verdict.inputs import JUDGE, Scores, checked_scores
from evalcube.stages.analyze.verdict.measures import MIN_RUNS, cumulative, saturation
from evalcube.stages.analyze.verdict.paired import DRAWS, Method
from evalcube.stages.analyze.verdict.people import ByVariant, by_variant, corrected_arm, to_rate
from evalcube.stages.analyze.verdict.result import NEXT_STEP, Arm, Badge, Badges, PairResult, Verdict
from evalcube.stages.analyze.verdict.rules import Options, Thresholds, dissents, next_step, worst
from evalcube.stages.errors import ArgumentError


def verdict(
    layers: ArrayLike,
    variants: Sequence[str],
    units: Sequence[str],
    *,
    judges: ArrayLike | None = None,
    ok: ArrayLike | None = None,
    entries: ArrayLike | None = None,
    judge_names: Sequence[str] | None = None,
    shares: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    due: ArrayLike | None = None,
    alpha: float = 0.05,
    threshold: float = THRESHOLD,
    trivial: float = 0.1,
    missing: float = 0.1,
    method: Method | None = "sign-flip",
    grown: bool = False,
    draws: int = DRAWS,
    seed: int = 0,
    weights: Sequence[float] | None = None,
    layer_set: Literal["common", "own"] = "common",
    holdout_ratio: float = 0.0,
    gold: Mapping[str, float] | ByVariant | None = None,
    gold_variant: str | None = None,
) -> Verdict:
    """Whether a treatment may replace the control.

    Parameters
    ----------
    layers
        Scores from 1 to 5 of the layers fact, behavior and judge, shape ([run,] variant, unit, layer); NaN if missing.
    variants
        Names of the variants, at least one; the first is the control.
    units
        Ids of the units (questions), at least one, the same for all variants.
    judges
        Ratings from 1 to 5, shape ([run,] variant, unit, judge[, repeat]); NaN or <= 0 if a judge failed. They give the
        agreement of the judges, and the judge layer if `layers` has none. Default: no judges.
    ok, entries
        Booleans ([run,] variant, unit): whether the answer is finished, and whether there is one at all. Default: both
        are true wherever a score is.
    judge_names
        Names of the judges for messages; default: their numbers.
    shares
        Weight of each unit in all means; default: equal weights.
    clusters
        Number of each unit's cluster, 0 for none. Units of one cluster, such as questions about one passage, count as
        one observation in all intervals and tests, in what is held out, and in the number of pairs. Default: no
        clusters.
    due
        Booleans (unit, layer): layers that a unit must have, and which are missing if no variant has them there.
        Default: those that at least one variant has there.
    alpha
        Error level of the whole comparison; each of K treatments is tested at alpha / K.
    threshold
        Lowest mean, from 1 to 5, that each layer must reach.
    trivial
        Smallest difference of composite scores that matters: a smaller gain is not PROGRESS, a loss of this size must
        be excluded before "no harm" is stated, and the next step says how many pairs detect it.
    missing
        Largest share of a variant's scores that may be missing, from 0 to 1; beyond it, the verdict is neither PROGRESS
        nor NOISE. The same holds if the shares of two variants differ by more than 0.05, or if a gain would not be
        significant with all missing scores at 1.
    method, draws, seed
        Test, number of random draws, and their seed. "sign-flip" is valid for one look, "anytime" for any number. With
        None, all looks together have the error level alpha: a first look at enough pairs to detect `trivial` with 80%
        power uses all of it; any other first look uses half, by sign flips, and later looks the other half, by
        "anytime".
    grown
        With `method` None: whether these data were looked at before, with fewer units.
    weights
        Weights of the three layers; default: equal.
    layer_set
        "common" compares the layers that both variants have for a unit, "own" all that each has.
    holdout_ratio
        Share of units to hold out, on which a gain must not be smaller than on the others; 0 for none.
    gold, gold_variant
        Ratings by people from 1 to 5, as mappings by unit, or by variant and unit; and the variant to which ratings by
        unit belong (default: the control). 50 or more ratings of a variant correct its composite; with 50 or more of
        each variant of a pair, the corrected difference decides. Default: none.

    Returns
    -------
    The verdict of all treatments together, with every pair, interval and reason behind it.

    Raises
    ------
    ValueError
        If shapes, names or choices do not fit, a score is not from 1 to 5, or there is no variant or no unit.

    References
    ----------
    Of the tests, see `evalcube.stages.analyze.verdict.paired` and `evalcube.stages.analyze.verdict.sensitivity`.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.full((2, 24, 3), 4.0)
    >>> scores[1, :, 0] = 4.6
    >>> result = verdict(scores, ["base", "new"], [f"u{i}" for i in range(24)])
    >>> result.verdict, result.exit_code, result.pairs[0].shown
    ('PROGRESS', 0, ('4.00 (3/3)', '4.20 (3/3)'))
    """
    scores = checked_scores(
        layers,
        variants,
        units,
        judges=judges,
        ok=ok,
        entries=entries,
        judge_names=judge_names,
        shares=shares,
        clusters=clusters,
        due=due,
    )
    one_of(layer_set, "layer_set", ("common", "own"))
    for name, share in (("missing", missing), ("holdout_ratio", holdout_ratio)):
        if not 0.0 <= share <= 1.0:
            raise ArgumentError(f"`{name}` must be a share from 0 to 1, got {share!r}")
    declared = None if weights is None else tuple(checked_weights(list(weights), len(LAYERS)).tolist())
    options = Options(
        alpha=alpha,
        threshold=threshold,
        limits=Thresholds(trivial=trivial, missing=missing),
        method=method,
        grown=grown,
        draws=draws,
        seed=seed,
        weights=declared,
        layer_set=layer_set,
        holdout_ratio=holdout_ratio,
        gold=by_variant(gold, scores.variants, gold_variant),
        gold_variant=gold_variant,
    )
    return _evaluate(scores.by_unit(), options)


STRONG_PEARSON, STRONG_AC2 = 0.7, 0.8
FAIR_ALPHA, STRONG_ALPHA = 0.667, 0.8


def _evaluate(scores: Scores, options: Options) -> Verdict:
    """Verdict of all treatments against the control."""
    runs = _measured_layers(scores)
    layers = mean_present(runs, axis=0)
    arms = tuple(_arm(scores, runs, layers[index], index, options) for index in range(len(scores.variants)))
    gold = _gold(scores, layers, options)
    if len(arms) < 2:
        return _solo(scores, runs, layers, arms[0], gold, options)
    pairs, looks = [], []
    for index in range(1, len(arms)):
        look = for_this_look(scores, layers[0], layers[index], options, len(arms) - 1)
        missing = missing_of_pair(scores, runs, index, look)
        pairs.append(compare(scores, arms[0], arms[index], layers[0], layers[index], look, missing))
        looks.append(look)
    decided = pairs[worst([pair.decision for pair in pairs])]
    return Verdict(
        verdict=decided.verdict,
        branch=decided.branch,
        reasons=decided.decision.reasons,
        next_step=next_step(decided.decision, decided.reach, decided.composite, options.limits),
        representative=(decided.control, decided.treatment),
        pairs=tuple(pairs),
        arms=arms,
        badges=_badges(arms, decided, gold, options.limits),
        gate_passed=all(arm.gate_passed for arm in arms),
        notes=(*_notes(arms, pairs, scores), *_rating_notes(scores, options), *_of_looks(pairs, looks)),
        gold=gold,
        to_rate=to_rate(scores, layers, options),
    )


def _measured_layers(scores: Scores) -> Floats:
    """Layers (run, variant, unit, layer) of finished executions, the judge layer filled in from the ensemble."""
    layers = scores.layers.copy()
    judged = layers[..., JUDGE]
    layers[..., JUDGE] = np.where(np.isnan(judged), judge_layer(scores.judges), judged)
    layers[~(scores.ok & scores.entries)] = np.nan
    return layers


def _arm(scores: Scores, runs: Floats, layers: Floats, variant: int, options: Options) -> Arm:
    totals = composite(layers, options.weights)
    people = corrected_arm(scores, scores.variants[variant], layers, options)
    mean = people["composite"].estimate if people else weighted_mean(totals, scores.shares)
    means = layer_means(layers, scores.shares)
    if people:
        means["judge"] = people["judge"].estimate
    check = check_layers(means, options.threshold)
    per_run = composite(runs[:, variant], options.weights)
    curve = saturation(cumulative(list(per_run))) if len(per_run) >= MIN_RUNS else None
    bits = layer_bits(layers)
    return Arm(
        name=scores.variants[variant],
        units=int((~np.isnan(totals)).sum()),
        composite=mean,
        shown=describe(mean, weighty(bits, options.weights)),
        bits=int(np.bitwise_or.reduce(bits, initial=0)),
        layers=check.means,
        gate_passed=check.passes,
        failed_layers=check.failed,
        agreement=judge_agreement(scores.judges[:, variant][scores.ok[:, variant]]),
        variation=_variation(per_run, scores.shares),
        saturation=curve,
        by_people=people["composite"].interval(options.alpha, scores.clusters) if people else None,
    )


def _rating_notes(scores: Scores, options: Options) -> list[str]:
    """Say how many ratings by people are needed to correct a difference, if there are too few."""
    units = set(scores.units)
    counts = {name: len(units.intersection(options.gold.get(name, ()))) for name in scores.variants}
    if not any(counts.values()) or min(counts.values()) >= LEAST_SCORES:
        return []
    amounts = ", ".join(f"{count} of {name}" for name, count in counts.items())
    return [f"people rated {amounts}: from {LEAST_SCORES} of both on, their ratings correct a difference"]


def _variation(per_run: Floats, shares: Floats) -> float:
    """Coefficient of variation of the run means of a composite (run, unit)."""
    means = [weighted_mean(run, shares) for run in per_run if not np.isnan(run).all()]
    if len(means) < 2 or np.mean(means) <= 0:
        return math.nan
    return float(np.std(means, ddof=1) / np.mean(means))


def _solo(
    scores: Scores, runs: Floats, layers: Floats, arm: Arm, gold: GoldAgreement | None, options: Options
) -> Verdict:
    kind, lost, expected = missing_alone(scores, runs, 0)
    scored = lost <= (options.limits.missing + SLACK) * expected
    if not arm.gate_passed:
        branch = "solo_gate_fail"
        text = f"below the threshold of {options.threshold:g}: {', '.join(arm.failed_layers) or 'nothing measured'}"
    elif not scored:
        branch = "solo_missing"
        text = f"{lost} of {expected} answers lack {kind}: those that have it reach the threshold, others may not"
    else:
        branch, text = "solo_gate_pass", "every layer reaches the threshold"
    return Verdict(
        verdict="SOLO",
        branch=branch,
        reasons=("only one variant was asked for: there is nothing to compare with", text),
        next_step=NEXT_STEP["SOLO"],
        representative=None,
        pairs=(),
        arms=(arm,),
        badges=_badges((arm,), None, gold, options.limits),
        gate_passed=arm.gate_passed and scored,
        notes=tuple(_rating_notes(scores, options)),
        gold=gold,
        to_rate=to_rate(scores, layers, options),
    )


def _gold(scores: Scores, layers: Floats, options: Options) -> GoldAgreement | None:
    rated_ones = [name for name in scores.variants if name in options.gold]
    if not rated_ones:
        return None
    variant = options.gold_variant or rated_ones[0]
    ratings = options.gold.get(variant, {})
    rated = np.array([ratings.get(unit, math.nan) for unit in scores.units], dtype=float)
    judged = layers[scores.variants.index(variant), :, JUDGE]
    return gold_agreement(rated, judged, seed=options.seed, clusters=scores.clusters)


def _badges(
    arms: Sequence[Arm], decided: PairResult | None, gold: GoldAgreement | None, limits: Thresholds
) -> Badges:
    judged = [_agreement_badge(arm.agreement, limits) for arm in arms if arm.agreement is not None]
    curve, interval = None, None
    if decided is not None:
        curve = next(arm.saturation for arm in arms if arm.name == decided.treatment)
        interval = decided.composite
    return Badges(
        judges_agree=min(judged, key=("no", "partly", "yes").index, default="unknown"),
        significant=_yes(None if interval is None else interval.significant),
        saturated=_yes(None if curve is None else curve.saturated),
        human_aligned="unknown" if gold is None else _people_badge(gold),
    )


def _yes(answer: bool | None) -> Badge:
    return "unknown" if answer is None else "yes" if answer else "no"


def _agreement_badge(agreement: Agreement, limits: Thresholds) -> Badge:
    """Whether judges agree: by their order or by their distance, whichever speaks for them."""
    if agreement.pearson >= STRONG_PEARSON or agreement.ac2 >= STRONG_AC2:
        return "yes"
    return "no" if dissents(agreement, limits.dissent, limits.apart) else "partly"


def _people_badge(gold: GoldAgreement) -> Badge:
    """How far judges agree with people; unknown from ratings so few that both yes and no fit them."""
    ends = {_alpha_badge(end) for end in (gold.low, gold.high)}
    few = gold.units < LEAST_RATED or "unknown" in ends or ends == {"no", "yes"}
    return "unknown" if few else _alpha_badge(gold.alpha)


def _alpha_badge(alpha: float) -> Badge:
    if math.isnan(alpha):
        return "unknown"
    return "yes" if alpha >= STRONG_ALPHA else "partly" if alpha >= FAIR_ALPHA else "no"


def _notes(arms: Sequence[Arm], pairs: Sequence[PairResult], scores: Scores) -> tuple[str, ...]:
    notes = list[str]()
    for pair, treatment in zip(pairs, arms[1:], strict=True):
        if pair.bias is not None and not pair.bias.is_shown:  # else it is among the reasons
            notes.append(f"'{pair.treatment}': {pair.bias.text}")
        if treatment.bits != arms[0].bits:
            notes.append(
                f"'{pair.control}' was measured as {arms[0].shown}, '{treatment.name}' as {treatment.shown}: "
                f"they are compared as {pair.shown[0]} and {pair.shown[1]}"
            )
        lost = len(scores.units) - pair.complete_pairs
        if lost:
            notes.append(
                f"{lost} of {len(scores.units)} questions lack a composite of '{pair.control}' or '{pair.treatment}'"
            )
    return tuple(notes)


def _of_looks(pairs: Sequence[PairResult], looks: Sequence[Options]) -> list[str]:
    """Which part of the error this look has, where it is not all of it."""
    for pair, look in zip(pairs, looks, strict=True):
        if look.alpha < look.planned:
            share = f"half of the error level of {100 * look.planned:.3g}%; later looks share the rest"
            if look.method == "anytime":
                return [f"the first look used {share}"]
            gain, seen = pair.composite, pair.reach
            fewer = f"{gain.amount} are fewer than the {seen.pairs:,} {gain.noun} that detect a difference of"
            return [f"{fewer} {seen.difference:g} with 80% power, so this look uses {share}"]
    return []
