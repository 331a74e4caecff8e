from fractions import Fraction

import numpy as np
import pytest

from evalcube import stats as outcomes
from evalcube.stages.analyze.formulas.outcomes.table import METRICS, metric_table
from tests.stages.analyze.formulas.outcomes.golden import CASES, ERRORS, arguments, matrix


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("tailpass")])
def test_metrics__reproduce_the_exact_values_of_the_golden_file(name):
    function = getattr(outcomes, name)

    for case in CASES[name]:
        found = np.ravel(function(matrix(case["R"]), **arguments(case)))
        wanted = np.ravel(case["exact"])
        tolerance = np.array([1e-12, *[1e-9] * 3])[: wanted.size]
        np.testing.assert_array_less(np.abs(found - wanted), tolerance * np.abs(wanted) + 1e-15, str(case))


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


R = np.random.default_rng(0).integers(0, 2, (2000, 37))


C = np.random.default_rng(1).integers(0, 4, (900, 13))


def test_metric_table__equals_the_single_calls():
    options = {
        name: {metric.required: 0.6 if metric.required == "tau" else [0.1, 0.2, 0.3]}
        for name, metric in METRICS.items()
        if metric.required
    }

    table = metric_table(R, k=[3], options=options)

    assert set(table) == set(METRICS)
    for name, metric in METRICS.items():
        single = getattr(outcomes, name)
        arguments = options.get(name, {})
        wanted = single(R, 3, **arguments) if metric.takes_k else single(R, **arguments)
        assert (table[name][3] if metric.takes_k else table[name]) == wanted, name


def test_metric_table__categorical_weights_leave_out_the_binary_metrics():
    w = [0.0, 0.2, 0.5, 1.0]

    table = metric_table(C, k=2, w=w)

    assert set(table) == {"bayes", "bayes_ci", "avg", "avg_ci", "max_at_k", "max_at_k_ci"}
    assert table["bayes"] == outcomes.bayes(C, w)
    assert table["avg"] == outcomes.avg(C, w)
    assert table["max_at_k_ci"][2] == outcomes.max_at_k_ci(C, 2, w)


def test_metric_table__names_what_is_unknown_or_lacking():
    with pytest.raises(ValueError, match="unknown metric 'pass@k'"):
        metric_table(R, ["pass@k"])
    with pytest.raises(ValueError, match="needs `tau`"):
        metric_table(R, ["g_pass_at_k_tau"])
