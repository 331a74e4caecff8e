import math

import numpy as np
import pytest

from evalcube.stages.analyze.formulas.reasonscore_v2 import task_score, tier_score

LABELS = ("trials", "completed", "correct", "truncated", "guess_sum")


def test_task_score__is_the_pessimistic_point_value():
    found = task_score([[128, 112, 84, 16, 56], [0, 0, 0, 0, 0], [8, 0, 0, 8, 0]], labels=LABELS)

    assert found == pytest.approx([0.4375, math.nan, 0.0], nan_ok=True)


def test_tier_score__geometric_mean_with_the_floor_of_the_tier():
    good, failed = [100, 100, 64, 0, 0], [100, 100, 0, 0, 0]

    assert tier_score([good, [100, 100, 36, 0, 0]], labels=LABELS).score == pytest.approx(480.0)
    assert tier_score([good, failed], labels=LABELS).score == 10.0
    assert np.isnan(tier_score([[0] * 5], labels=LABELS).score)


def test_tier_score__a_missing_task_is_flagged_and_not_averaged_away():
    found = tier_score(
        [[100, 100, 64, 0, 0], [0] * 5, [100, 100, 0, 0, 0]], labels=LABELS, expected=[1, 1, 0]
    )

    assert found.score == pytest.approx(640.0)
    assert (found.tasks_present, found.tasks_expected, found.incomplete) == (1, 2, True)
