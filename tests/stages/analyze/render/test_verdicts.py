"""Verdicts in the words that reports show."""

import math
from dataclasses import replace

import pytest

from evalcube.stages.analyze.labelled.results import Estimate
from evalcube.stages.analyze.render.text import ABSENT
from evalcube.stages.analyze.render.verdicts import BADGES, MEANINGS, ShownPair, shown_verdict
from tests.stages.analyze.verdict.variants import ask, noisy


def test_shown_verdict__says_which_of_several_treatments_decided():
    means = (4.0, 4.6, 3.6)
    one, two = (ask(noisy(*means[:count])) for count in (2, 3))

    shown = [
        shown_verdict(found, {arm.name: f"id of {arm.name}" for arm in found.arms}) for found in (one, two)
    ]

    assert shown[0].words == "t1 against base"
    assert shown[1].words.startswith("t2 against base, the worst of 2 ")
    assert list(shown[1].pairs) == ["id of t1", "id of t2"]
    assert (shown[1].control, shown[1].level) == ("id of base", "97.5%")


@pytest.mark.parametrize(
    ("bounds", "texts"),
    [
        ((0.4, 0.25, 0.55), ("+0.40", "+0.25 to +0.55")),
        ((-0.4, -0.55, 0.0), ("-0.40", "-0.55 to +0.00")),
        ((math.nan, math.nan, math.nan), (ABSENT, "")),
    ],
)
def test_shown_pair__has_signs(bounds, texts):
    assert ShownPair("NOISE", Estimate(*bounds), ()).texts == texts


def test_shown_verdict__of_one_variant_compares_nothing():
    alone = ask(noisy(4.0))
    shown = shown_verdict(alone, {arm.name: f"id of {arm.name}" for arm in alone.arms})

    assert (shown.verdict, shown.words, shown.control, shown.level) == ("SOLO", alone.arms[0].name, "", "")
    assert shown.meaning == MEANINGS["SOLO"]
    assert dict(shown.pairs) == {}
    assert [name for name, *_ in shown.badges] == [name for name, _ in BADGES.values()]


def test_shown_verdict__keeps_intervals_within_the_scale():
    found = ask(noisy(4.0, 4.6))
    wide = replace(found.pairs[0], composite=replace(found.pairs[0].composite, low=-math.inf, high=math.inf))
    shown = shown_verdict(replace(found, pairs=(wide,)), {arm.name: arm.name for arm in found.arms})

    (pair,) = shown.pairs.values()
    assert (pair.difference.lower, pair.difference.upper) == (-4.0, 4.0)
    assert pair.difference.value == found.pairs[0].composite.estimate
    assert shown.words == "t1 against base"
