"""Spectra of token ids: sinusoids come out at their place and height, and nothing else does."""

import numpy as np
import pytest

from evalcube.stages.analyze.formulas.forensics.spectrum import token_spectrum


@pytest.mark.parametrize("period", [4, 10, 32])
@pytest.mark.parametrize("length", [300, 512, 1000])
def test_token_spectrum__a_sinusoid_has_a_peak_of_its_amplitude_at_its_frequency(period, length):
    wave = 5000 + 70 * np.sin(2 * np.pi * np.arange(length) / period)

    found = token_spectrum([wave], bands=2048)

    assert found.frequency[found.mean.argmax()] == pytest.approx(1 / period, abs=1e-3)
    assert found.mean.max() == pytest.approx(70, rel=0.03)


def test_token_spectrum__the_level_of_ids_does_not_matter_and_constants_have_none():
    ids = np.random.default_rng(3).integers(0, 30_000, 400)

    low, high = token_spectrum([ids]), token_spectrum([ids + 100_000])

    np.testing.assert_allclose(low.mean, high.mean)
    np.testing.assert_allclose(token_spectrum([np.full(64, 7)]).mean, 0, atol=1e-9)


def test_token_spectrum__mean_and_spread_are_over_series_and_short_ones_are_left_out():
    rng = np.random.default_rng(5)
    series = [rng.integers(0, 100, 256) for _ in range(3)]

    found, each = token_spectrum([*series, [1, 2]]), [token_spectrum([one]) for one in series]

    assert found.series == 3
    np.testing.assert_allclose(found.mean, np.mean([one.mean for one in each], axis=0))
    np.testing.assert_allclose(found.spread, np.std([one.mean for one in each], axis=0, ddof=1))
    assert np.isnan(each[0].spread).all()


def test_token_spectrum__of_nothing_is_unknown():
    found = token_spectrum([[1, 2, 3]])

    assert found.series == 0
    assert np.isnan(found.mean).all()


@pytest.mark.parametrize(("series", "bands"), [([[1, 2, 3, 4]], 0), ([[[1, 2], [3, 4]]], 8)])
def test_token_spectrum__refuses(series, bands):
    with pytest.raises(ValueError, match="`"):
        token_spectrum(series, bands=bands)
