"""What a run says at its end of endpoints that fail or leave things out, through the command line."""

import json
import re

import pytest

from evalcube.flows.run.sweep import run
from tests.flows.shared_cluster import SHARED
from tests.flows.support import evalcube, set_faults, sweep_config, write_config

TOO_LONG = json.dumps({"error": {"code": "context_length_exceeded", "message": "m"}})
PRICES = {"prompt": 1.0, "completion": 2.0}


@pytest.fixture
def closing_words(tmp_path, simulator):
    """Run a sweep while all requests meet a fault; the exit code, output and errors."""

    def run(**fault):
        config = sweep_config(tmp_path, simulator.base_url, trials=2)
        config["models"][0] |= {"prices": PRICES, "limits": {"retries": 0, "patience": 0}}
        set_faults(simulator, [fault])
        try:
            return evalcube("run", write_config(tmp_path, config), "--quiet", cwd=tmp_path)
        finally:
            set_faults(simulator, [])

    return run


def test_run__whose_prompts_do_not_fit_is_not_told_to_raise_max_tokens(closing_words):
    code, output, _ = closing_words(kind="status", status=400, body=TOO_LONG)

    assert code == 0
    assert "alpha: 100% truncated, " in output
    assert "prompts" in output
    assert "raise" not in output


def test_run__says_that_a_cost_is_estimated_where_no_usage_is_reported(closing_words):
    code, output, _ = closing_words(kind="missing_usage")

    assert code == 0
    estimate = re.search(r"USD \(and an estimated ([\d,]+) tokens", output)
    assert estimate is not None
    assert int(estimate[1].replace(",", "")) > 0


@pytest.mark.parametrize(
    ("status", "words"),
    [(422, "Fix the causes above"), (500, ". Run the same")],
)
def test_run__says_whether_it_is_enough_to_run_again(closing_words, status, words):
    code, _, errors = closing_words(kind="status", status=status)

    assert code == 1
    assert words in errors


def test_run__says_what_the_cache_answered_and_pays_nothing_for_it(tmp_path, simulator):
    config = sweep_config(tmp_path, simulator.base_url, trials=2, cells=2)
    config["models"][0]["prices"] = {"prompt": 1.0, "completion": 2.0}
    first = run(config, cluster=SHARED)

    second = run({**config, "cube": str(tmp_path / "second.zarr")}, cluster=SHARED)

    assert (first.cached, second.cached) == (0, first.graded)
    assert (second.sent, second.usd, second.spent) == (0, 0.0, {"tokens": 0.0, "usd": 0.0})
    assert f"{first.graded} answers from" in str(second)
