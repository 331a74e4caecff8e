"""Tokens of prompts that an endpoint had in its cache cost what the config says, wherever costs are told."""

import json

import pytest

import evalcube as ec
from evalcube.flows.read.forensics import cost
from evalcube.flows.run.sweep import run
from tests.flows.shared_cluster import SHARED
from tests.flows.support import sweep_config
from tests.stages.infer.echo import GOOD, Echo, http

pytestmark = pytest.mark.cluster

USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 60}}
EACH = (40 * 1.0 + 60 * 0.1 + 10 * 2.0) / 1e6


def test_run__cached_tokens_have_their_price(tmp_path):
    answer = http(json.dumps({**json.loads(GOOD), "usage": USAGE}).encode())
    config = sweep_config(tmp_path, "", trials=2, cells=1)
    with Echo(lambda _: answer) as echo:
        config["models"] = [
            {
                "name": "m",
                "endpoint": echo.base_url,
                "prices": {"prompt": 1, "completion": 2, "cached": 0.1},
            }
        ]
        summary = run(config, cluster=SHARED)

    assert summary.sent == 4
    assert (summary.usd, summary.spent["usd"]) == (pytest.approx(4 * EACH), pytest.approx(4 * EACH))
    assert [row["cost"] for row in ec.trials(summary).rows()] == [pytest.approx(EACH)] * 4
    (row,) = cost(summary.cube)[2]
    assert row["total"] == pytest.approx(4 * EACH)
    assert summary.spent["tokens"] == 440
