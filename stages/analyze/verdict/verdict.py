"""The verdict on a control and its treatments, by tests that hold for few units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from numpy.typing import ArrayLike

from evalcube.stages.analyze.verdict import reference
from evalcube.stages.analyze.verdict.composite import LAYERS, THRESHOLD, checked_weights
from evalcube.stages.analyze.verdict.inputs import checked_scores
from evalcube.stages.analyze.verdict.paired import DRAWS, Method
from evalcube.stages.analyze.verdict.people import ByVariant, by_variant
from evalcube.stages.analyze.verdict.result import Verdict
from evalcube.stages.analyze.verdict.rules import Options, Thresholds
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
        Scores ([run,] variant, unit, layer) from 1 to 5 of the layers fact, behavior, judge; NaN where absent.
    variants
        Names, at least one; the first is the control.
    units
        Ids of the units (samples), at least one, the same for all variants.
    judges
        Readings ([run,] variant, unit, judge[, repeat]) from 1 to 5; NaN or <= 0 where a judge failed. They
        give the agreement of the judges, and the judge layer where `layers` has none.
    ok, entries
        Booleans ([run,] variant, unit): the execution finished, there is an execution at all.
    judge_names
        Names of the judges, for what is said about them; by default they are numbered.
    shares
        Weight of each unit in every mean; by default all weigh alike.
    clusters
        Number of each unit's cluster, 0 where it has none. Units that share one, such as a passage, are one draw: in
        every interval and test, in what is held out, and in how many are enough.
    alpha
        Error of the whole comparison; K treatments are tested at alpha / K each.
    threshold, trivial
        Lowest layer mean that passes the gate; smallest difference that matters: a lower gain is no PROGRESS, an
        excluded loss of it is no harm, and what to do next says how many pairs find it.
    missing
        Largest share of a variant's scores that may be missing; beyond it there is no PROGRESS and no NOISE. Nor is
        there where the shares of two arms differ by more than .05, or where a gain does not survive that all that is
        missing had failed.
    method, draws, seed
        Test and its resampling; see `evalcube.stages.analyze.verdict.paired`. With None as method all looks together
        err with alpha: a first look at too few pairs to find `trivial` in 4 of 5 cases has half of it, by sign flips,
        and later ones have the other half, by "anytime"; a first look at enough pairs has all of it.
    grown
        Without a method: whether it was looked at before, with fewer units.
    weights
        Declared weights of the three layers; equal by default.
    layer_set
        "common" compares the layers that both arms have of a unit, "own" whatever each has.
    holdout_ratio
        Share of units to hold out, on which the gain is to be no smaller; 0 for none.
    gold, gold_variant
        Ratings by people of 1 to 5, by unit, or by variant and unit; and the variant that those by unit are of (the
        control by default). From 50 ratings of a variant on they correct its composite, and from 50 of each of a pair
        on they decide: its interval is then that of `evalcube.stages.analyze.formulas.corrected.corrected_mean`.

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
    )
    if layer_set not in ("common", "own"):
        raise ArgumentError(f"`layer_set` must be 'common' or 'own', got {layer_set!r}")
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
    return reference.evaluate(scores, options)
