import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalcube.stages.analyze.verdict import resampling
from evalcube.stages.analyze.verdict.agreement import gold_agreement
from evalcube.stages.analyze.verdict.paired import paired_intervals, simultaneous_intervals
from evalcube.stages.analyze.verdict.resampling import flips, in_blocks, indices, on_grid, spans, total_flips
from evalcube.stages.analyze.verdict.sensitivity import hotelling, sensitivity

DRAWS = 300


@st.composite
def splits(draw):
    cuts = sorted(draw(st.sets(st.integers(1, DRAWS - 1), max_size=12)))
    return list(zip([0, *cuts], [*cuts, DRAWS], strict=True))


@given(splits(), st.integers(1, 150), st.integers(0, 2**40))
def test_draws__any_split_gives_the_same_numbers(parts, units, seed):
    many = 10 * DRAWS
    whole = flips(units, 0, min(DRAWS, total_flips(units, many)), draws=many, seed=seed)
    inside = [(min(a, len(whole)), min(b, len(whole))) for a, b in parts]

    assert np.array_equal(
        np.concatenate([flips(units, a, b, draws=many, seed=seed) for a, b in inside]), whole
    )
    assert np.array_equal(
        np.concatenate([indices(units, a, b, seed=seed) for a, b in parts]),
        indices(units, 0, DRAWS, seed=seed),
    )


DIFFERENCES = np.random.default_rng(5).normal(0.1, 1.0, (24, 3)).round(2)
DIFFERENCES[3, 1] = np.nan
RATINGS = np.random.default_rng(7).integers(1, 6, (2, 24)).astype(float)


@pytest.mark.parametrize(
    "result",
    [
        lambda: paired_intervals(DIFFERENCES, draws=DRAWS),
        lambda: simultaneous_intervals(DIFFERENCES, draws=DRAWS),
        lambda: hotelling(DIFFERENCES, draws=DRAWS),
        lambda: sensitivity(DIFFERENCES, draws=DRAWS, resolution=6),
        lambda: gold_agreement(*RATINGS, draws=DRAWS),
    ],
    ids=["sign-flip", "max-t", "hotelling", "sensitivity", "gold"],
)
def test_results__no_split_into_blocks_changes_a_bit(result):
    whole = result()

    @settings(max_examples=20)
    @given(splits())
    def check(parts):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(resampling, "spans", lambda _: parts)
            assert result() == whole

    check()


def test_spans__cover_all_draws_once(monkeypatch):
    monkeypatch.setattr(resampling, "BLOCK", 4)

    assert list(spans(10)) == [(0, 4), (4, 8), (8, 10)]
    assert in_blocks(np.arange, 10).tolist() == list(range(10))


def test_flips__all_patterns_if_they_fit_each_once():
    table = flips(5, 0, 32, draws=1000, seed=3)

    assert len({tuple(row) for row in table.tolist()}) == 32
    assert not table[0].any()


def test_flips__row_0_is_the_data_and_the_others_are_fair():
    table = flips(70, 0, 4000, draws=4000, seed=3)

    assert not table[0].any()
    assert abs(table[1:].mean() - 0.5) < 0.004
    assert abs(np.corrcoef(table[1:].T) - np.eye(70)).max() < 0.08


def test_flips__seeds_and_purposes_do_not_share_numbers():
    assert not np.array_equal(flips(40, 1, 9, draws=100, seed=0), flips(40, 1, 9, draws=100, seed=1))
    assert not np.array_equal(flips(40, 1, 9, draws=100, seed=0), flips(40, 2, 10, draws=100, seed=0))


def test_indices__are_uniform():
    counts = np.bincount(indices(7, 0, 5000, seed=1).ravel(), minlength=7)

    assert counts.sum() == 35_000
    assert abs(counts / 5000 - 1).max() < 0.05


@given(st.lists(st.floats(-5, 5).map(lambda x: round(x, 2)), min_size=1, max_size=40))
def test_on_grid__sums_are_exact_in_any_order(values):
    column = np.array(values)[:, np.newaxis]

    whole, step = on_grid(column)

    assert np.all(whole == np.rint(whole))
    assert sum(int(x) for x in whole[:, 0]) == whole.sum() == whole[::-1].sum()
    assert np.allclose(whole * step, column, atol=1e-11, rtol=0)
