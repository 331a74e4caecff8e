"""TailPass against the golden file."""

import numpy as np

from evalcube import stats as outcomes
from tests.stages.analyze.formulas.outcomes.golden import CASES, arguments, matrix


def test_tailpass__reproduces_the_golden_file():
    for case in CASES["tailpass"]:
        profile = outcomes.tailpass(matrix(case["R"]), **arguments(case))
        wanted = case["out"]
        found = {
            "linear_uniform": profile.linear(np.full(len(profile.thresholds), 1 / len(profile.thresholds))),
            "discovery": profile.discovery(),
            "stability": profile.stability(),
            "ci_normal": profile.ci(method="normal"),
            "moment": [profile.moment(float(power)) for power in wanted["moment"]],
        }
        for key, value in wanted.items():
            expected = list(value.values()) if key == "moment" else value
            result = found[key] if key in found else getattr(profile, key)
            np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-12, err_msg=str(case)[:200])


def test_tailpass_empirical__reproduces_the_golden_file():
    for case in CASES["tailpass_empirical"]:
        found = outcomes.tailpass_empirical(matrix(case["R"]), **arguments(case))
        np.testing.assert_allclose(found, case["out"], rtol=1e-12, atol=1e-15)
