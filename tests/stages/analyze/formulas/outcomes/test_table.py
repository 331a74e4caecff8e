import gzip
import json
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from evalcube import stats as outcomes

GOLDEN = json.loads(
    gzip.decompress((Path(__file__).parents[4] / "data" / "scorio.json.gz").read_bytes()).decode()
)


def _by_function(items):
    groups = defaultdict(list)
    for item in items:
        groups[item["fn"]].append(item)
    return groups


CASES, ERRORS = _by_function(GOLDEN["cases"]), _by_function(GOLDEN["errors"])


def matrix(name):
    entry = GOLDEN["matrices"][name]
    rows = np.array([[int(digit) for digit in row] for row in entry["rows"]])
    return rows[0] if entry.get("1d") else rows


def arguments(case):
    return case["args"] | ({"R0": matrix(case["R0"])} if "R0" in case else {})


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("tailpass")])
def test_metrics__reproduce_the_exact_values_of_the_golden_file(name):
    function = getattr(outcomes, name)

    for case in CASES[name]:
        found = np.ravel(function(matrix(case["R"]), **arguments(case)))
        wanted = np.ravel(case["exact"])
        tolerance = np.array([1e-12, *[1e-9] * 3])[: wanted.size]
        np.testing.assert_array_less(np.abs(found - wanted), tolerance * np.abs(wanted) + 1e-15, str(case))


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


@pytest.mark.parametrize("name", ERRORS)
def test_metrics__raise_or_return_what_the_golden_file_says(name):
    scope = {"E": outcomes, "np": np, "Fraction": Fraction}

    for case in ERRORS[name]:
        if case["type"] is None:
            found = eval(case["call"], scope)  # noqa: S307 - the golden file holds calls as text
            np.testing.assert_allclose(found, case["returns"], rtol=1e-9, atol=1e-300, err_msg=case["call"])
            continue
        with pytest.raises((ValueError, TypeError)) as error:
            eval(case["call"], scope)  # noqa: S307
        assert type(error.value).__name__ == case["type"], case["call"]
        assert "`" in str(error.value), "a message names the argument"
