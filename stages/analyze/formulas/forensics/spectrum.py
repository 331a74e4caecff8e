"""Magnitude spectrum of series of token ids: a fingerprint of prompts under one tokenizer.

Ids are labels and no quantities, so that a spectrum says how prompts are built (templates, lists and tables repeat
themselves), and nothing about a model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalcube.stages.analyze.formulas.intervals import Floats

BANDS = 128
"""Bands of frequency from 0 to ½ cycle per token."""
SHORTEST = 4
"""Tokens that a series needs."""


@dataclass(frozen=True)
class Spectrum:
    """Amplitudes of the series of one group of prompts."""

    frequency: Floats
    """Middle of each band in cycles per token, shape (band,)."""
    mean: Floats
    """Mean amplitude over the series, in token ids; NaN where no series is long enough."""
    spread: Floats
    """Standard deviation over the series, with n − 1; NaN with fewer than two."""
    series: int
    """Series that were long enough."""


def token_spectrum(series: Sequence[ArrayLike], *, bands: int = BANDS) -> Spectrum:
    """Mean and spread of the amplitude spectra of series of token ids.

    From each series its mean is taken out, it is weighed by a Hann window, and the discrete Fourier transform of a
    common length (the next power of two) is scaled so that a sinusoid of amplitude A has a peak of A. A band has the
    mean of its amplitudes.

    Parameters
    ----------
    series
        Token ids of each prompt, of any lengths; those shorter than `SHORTEST` are left out.
    bands
        Number of bands, at least 1.

    Returns
    -------
    Frequencies, mean amplitudes and their spread.

    Raises
    ------
    ValueError
        If `bands` is less than 1, or a series is no list of numbers.

    References
    ----------
    F. J. Harris (1978), On the use of windows for harmonic analysis with the discrete Fourier transform, Proceedings
    of the IEEE 66, 51-83. https://doi.org/10.1109/PROC.1978.10837

    Examples
    --------
    >>> wave = 100 + 10 * np.cos(2 * np.pi * np.arange(512) / 8)
    >>> found = token_spectrum([wave], bands=512)
    >>> float(found.frequency[found.mean.argmax()].round(3)), float(found.mean.max().round(1))
    (0.125, 10.0)
    """
    if bands < 1:
        raise ValueError(f"`bands` must be at least 1, got {bands}")
    arrays = [np.asarray(one, dtype=float) for one in series]
    if any(one.ndim != 1 for one in arrays):
        raise ValueError("each of `series` must be a list of token ids")
    kept = [one for one in arrays if len(one) >= SHORTEST]
    edges = np.linspace(0.0, 0.5, bands + 1)
    middle = (edges[:-1] + edges[1:]) / 2
    nothing = np.full(bands, np.nan)
    if not kept:
        return Spectrum(middle, nothing, nothing, 0)
    size = max(2 * bands, 1 << (max(map(len, kept)) - 1).bit_length())
    frequency = np.fft.rfftfreq(size)
    band = np.minimum((frequency * 2 * bands).astype(int), bands - 1)
    counts = np.bincount(band, minlength=bands)
    found = np.stack([np.bincount(band, _amplitudes(one, size), bands) / counts for one in kept])
    spread = found.std(axis=0, ddof=1) if len(found) > 1 else nothing
    return Spectrum(middle, found.mean(axis=0), spread, len(found))


def _amplitudes(series: Floats, size: int) -> Floats:
    """Amplitudes of one series at the frequencies of a transform of `size` terms."""
    # Periodic, so that its sum is half its length and no end counts twice.
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(len(series)) / len(series))
    return np.asarray(2.0 * np.abs(np.fft.rfft((series - series.mean()) * window, size)) / window.sum())
