"""Refusals that come by chance are told from those of a limit, by counts at several rates."""

import random

import pytest

from evalcube.stages.infer.chance import ChanceRefusals


def noted(*stages):
    chance = ChanceRefusals()
    for stage in stages:
        chance.note(*stage)
    return chance


def test_guess__the_same_share_at_rates_far_apart_is_chance():
    chance = noted((100.0, 20, 4), (50.0, 20, 4), (25.0, 20, 4), (12.0, 20, 4))

    assert 0.2 <= chance.guess() <= 0.3


@pytest.mark.parametrize(
    "stages",
    [
        [],
        [(100.0, 20, 16), (50.0, 20, 12), (25.0, 20, 4), (20.0, 200, 1)],
        [(100.0, 10, 3)],
        [(100.0, 20, 4), (99.0, 20, 4), (98.0, 20, 4)],
        [(100.0, 300, 4), (50.0, 300, 4), (25.0, 300, 4)],
        [(100.0, 20, 19), (50.0, 20, 19), (25.0, 20, 19)],
        [(0.5, 1, 1)] * 20,
    ],
    ids=["nothing", "a limit of 20", "little", "one rate", "few", "nearly all", "all"],
)
def test_guess__what_a_limit_explains_is_none(stages):
    assert noted(*stages).guess() == 0.0


def answered(chance, share, count, in_flight=8):
    """How many of so many requests at full speed it took to see a limit; None if none was seen."""
    rng = random.Random(1)
    for number in range(count):
        chance.count(refused=rng.random() < share)
        if chance.is_exceeded(in_flight):
            return number
    return None


@pytest.mark.parametrize("share", [0.05, 0.1, 0.3, 0.5])
def test_is_exceeded__not_by_the_share_itself(share):
    chance = ChanceRefusals()
    chance.assume(share)

    assert answered(chance, share, 20_000) is None
    assert chance.share == pytest.approx(share, abs=0.05)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_is_exceeded__soon_where_a_limit_refuses_nearly_all(share):
    chance = ChanceRefusals()
    chance.assume(share)

    assert answered(chance, 0.97, 150) is not None


def test_count__where_no_more_are_refused_chance_is_forgotten():
    chance = ChanceRefusals()
    chance.assume(0.3)
    for _ in range(5_000):
        chance.count(refused=False)

    assert chance.share == 0.0


def test_count__all_that_are_refused_keep_the_share_within_bounds():
    chance = ChanceRefusals()
    chance.assume(0.6)
    for _ in range(5_000):
        chance.count(refused=True)

    assert chance.share < 0.95
    assert chance.is_exceeded(64)
