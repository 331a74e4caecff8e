"""Corrections by people's ratings, and the bias of a judge that they show."""

import re

import numpy as np
import pytest

from evalcube.stages.analyze.verdict import verdict
from tests.stages.analyze.verdict.variants import UNITS, ask, noisy


def test_verdict__gold_ratings_say_whether_the_judge_is_aligned():
    layers = noisy(4.0, 4.3, spread=0.8)
    gold = dict(zip(UNITS, layers[0, :, 2], strict=True))

    assert ask(layers, gold=gold).badges.human_aligned == "yes"
    assert ask(layers, gold=gold, gold_variant="t1").badges.human_aligned == "no"
    assert ask(layers).badges.human_aligned == "unknown"
    with pytest.raises(ValueError, match="`gold_variant`"):
        ask(layers, gold=gold, gold_variant="x")


def rated_pair(offset, *, rated=60):
    """Two variants that the judge takes for equal, and people for `offset` apart."""
    rng = np.random.default_rng(6)
    units = [f"u{place:03}" for place in range(200)]
    layers = np.full((2, 200, 3), np.nan)
    layers[..., 2] = rng.integers(2, 5, (2, 200))
    gold = {
        name: {
            units[place]: layers[arm, place, 2] + arm * offset
            for place in rng.permutation(200)[:rated].tolist()
        }
        for arm, name in enumerate(("before", "after"))
    }
    return verdict(layers, ["before", "after"], units, gold=gold, draws=500)


def test_verdict__people_find_a_difference_that_the_judge_does_not():
    found = rated_pair(1.0)

    (pair,) = found.pairs
    assert (found.verdict, pair.composite.method) == ("PROGRESS", "people")
    assert pair.composite.low < 1.0 < pair.composite.high + 0.3
    assert pair.simultaneous["judge"].positive
    assert float(pair.shown[1][:4]) == pytest.approx(found.arms[1].composite, abs=0.01)
    assert found.arms[1].by_people[0] < found.arms[1].composite < found.arms[1].by_people[1]
    assert len(found.to_rate["after"]) == 100


def test_verdict__too_few_ratings_correct_nothing_and_that_is_said():
    found = rated_pair(1.0, rated=49)

    assert found.pairs[0].composite.method == "sign-flip"
    assert any("people rated 49 of before, 49 of after: from 50 of both on" in note for note in found.notes)


@pytest.mark.parametrize(
    ("kinder", "rated", "branch", "told"),
    [
        (0.0, 0, "positive_clean", "people rate 5"),
        (0.0, 24, "positive_clean", "which excludes it"),
        (1.5, 24, "positive_judge_bias", "which does not exclude it"),
        (1.5, 4, "positive_clean", "people rate 5"),
    ],
)
def test_verdict__ratings_by_people_tell_whether_a_gain_is_the_judges(kinder, rated, branch, told):
    layers = noisy(3.2, 3.2 if kinder else 3.7, spread=0.2)
    people = {
        name: dict(zip(UNITS[:rated], scores, strict=False))
        for name, scores in zip(("base", "t1"), layers[..., 2], strict=True)
    }
    layers[1, :, 2] = np.clip(layers[1, :, 2] + kinder, 1, 5)

    found = ask(layers, gold=people, threshold=2, draws=500)

    assert found.branch == branch
    assert re.search(told, " ".join((*found.reasons, *found.notes)))


def test_verdict__ratings_of_a_cluster_are_one_draw():
    layers = noisy(3.2, 3.7, spread=0.2)
    base, other = layers[..., 2]
    moved = np.clip(other + np.repeat([-0.4, 0.4] * 3, 4), 1, 5)
    people = {"base": dict(zip(UNITS, base, strict=True)), "t1": dict(zip(UNITS, moved, strict=True))}

    alone, together = (
        ask(layers, gold=people, clusters=groups, threshold=2, draws=500).pairs[0].bias
        for groups in (None, np.repeat(np.arange(6), 4) + 1)
    )

    assert together.high - together.low > 1.5 * (alone.high - alone.low)
