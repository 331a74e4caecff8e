"""How well reasoning traces compress, by outcome.

A trace that repeats itself compresses well: a low ratio among truncated trials separates loops from long thoughts.
Sums of products are all that is kept; they add over chunks and groups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalcube.stages.analyze.formulas.forensics.hazard import Curve
from evalcube.stages.analyze.formulas.intervals import Floats, quantile
from evalcube.stages.errors import ArgumentError
from evalcube.stages.reply.status import OUTCOMES

MOMENTS = (
    "traces",
    "bytes",
    "compressed",
    "tokens",
    "bytes_sq",
    "compressed_sq",
    "tokens_sq",
    "bytes_compressed",
    "bytes_tokens",
    "compressed_tokens",
)
"""The moment axis of the sums: a count, sums, sums of squares and of products."""


@dataclass(frozen=True)
class Compression:
    """Compression of the traces of each outcome; arrays (..., outcome)."""

    traces: Floats
    """Trials with a trace whose lengths are all known."""
    ratio: Curve
    """Compressed bytes per byte."""
    bytes_per_token: Curve
    """Bytes of the trace per completion token."""
    compressed_per_token: Curve
    """Compressed bytes per completion token."""


def sum_traces(
    status: ArrayLike, tokens: ArrayLike, reasoning_bytes: ArrayLike, compressed_bytes: ArrayLike
) -> Floats:
    """Sums over the traces of each outcome.

    Parameters
    ----------
    status, tokens, reasoning_bytes, compressed_bytes
        Trial arrays of shape (..., trial). A trial without a trace, or with a missing (negative) length, counts for
        nothing.

    Returns
    -------
    Array (..., outcome, moment), in the order of `OUTCOMES` and `MOMENTS`

    Raises
    ------
    ValueError
        If the shapes differ.
    """
    outcome = np.atleast_1d(status)
    lengths = [np.atleast_1d(item).astype(np.float64) for item in (reasoning_bytes, compressed_bytes, tokens)]
    if any(item.shape != outcome.shape for item in lengths):
        raise ArgumentError(
            f"the trial arrays differ in shape: {[outcome.shape, *(x.shape for x in lengths)]}"
        )
    raw, small, spent = lengths
    known = (raw > 0) & (small >= 0) & (spent >= 0)
    products = [np.ones_like(raw), raw, small, spent, raw**2, small**2, spent**2]
    products += [raw * small, raw * spent, small * spent]
    sums = [
        [np.where(known & (outcome == code), item, 0.0).sum(axis=-1) for item in products]
        for code in OUTCOMES.values()
    ]
    return np.moveaxis(np.asarray(sums), (0, 1), (-2, -1))


def compression(sums: ArrayLike, *, confidence: float | None = None) -> Compression:
    """Ratios of sums from `sum_traces`, with intervals of linearisation (the delta method).

    Parameters
    ----------
    sums
        Array (..., outcome, moment).
    confidence
        Level of the intervals; None means z = 1.96. An interval needs two traces.

    References
    ----------
    W. G. Cochran (1977), Sampling Techniques, 3rd edition, Wiley, section 6.3: variance of a ratio of sums.
    """
    values = np.asarray(sums, dtype=np.float64)
    if values.ndim == 0 or values.shape[-1] != len(MOMENTS):
        raise ArgumentError(
            f"`sums` has shape {values.shape}; its last axis must hold the {len(MOMENTS)} moments"
        )
    moments = {name: values[..., index] for index, name in enumerate(MOMENTS)}
    return Compression(
        moments["traces"],
        _ratio(moments, "compressed", "bytes", "bytes_compressed", confidence),
        _ratio(moments, "bytes", "tokens", "bytes_tokens", confidence),
        _ratio(moments, "compressed", "tokens", "compressed_tokens", confidence),
    )


def _ratio(moments: dict[str, Floats], top: str, base: str, product: str, confidence: float | None) -> Curve:
    count = moments["traces"]
    with np.errstate(all="ignore"):
        below = np.where(moments[base] > 0, moments[base], np.nan)
        value = moments[top] / below
        residual = moments[f"{top}_sq"] - 2 * value * moments[product] + value**2 * moments[f"{base}_sq"]
        factor = np.where(count > 1, count / (count - 1), np.nan)
        error = np.sqrt(factor * np.maximum(residual, 0.0)) / below
    margin = quantile(confidence) * error
    return Curve(value, np.maximum(value - margin, 0.0), value + margin)
