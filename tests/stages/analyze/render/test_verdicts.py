"""Verdicts in the words that reports show."""

from evalcube.stages.analyze.render.verdicts import shown_verdict
from tests.stages.analyze.verdict.test_verdict import ask, noisy


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
