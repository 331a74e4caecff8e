"""`evalcube forget` shows what would go, asks first, and takes nothing by mistake."""

import json

import numpy as np
import pytest

from evalcube.flows.cli.keep import _print_forgetting
from evalcube.flows.keep.forget import Forgetting, ForgottenRow
from tests.flows.keep.forgetting import (
    TRIALS,
    statuses,
)
from tests.flows.support import evalcube, refused


def test_command__shows_what_would_go_until_it_is_told_to(sweep, tmp_path):
    arguments = ("forget", "cube.zarr", "--where", "model=beta", "--where", "trial=6..")
    before = statuses(sweep)

    code, output, errors = evalcube(*arguments, cwd=tmp_path)
    assert (code, "nothing is deleted yet" in errors) == (0, True)
    assert "beta" in output
    assert "their replies stay in the cache" in output
    np.testing.assert_array_equal(statuses(sweep), before)

    code, output, _ = evalcube(*arguments, "--yes", cwd=tmp_path)
    assert (code, "12 results are forgotten" in output) == (0, True)
    assert evalcube(*arguments, "--yes", cwd=tmp_path)[1] == "no result fulfils this\n"


def test_command__shows_all_that_would_go(capsys):
    rows = [ForgottenRow(f"model{number}", "arithmetic", 1, 1) for number in range(60)]

    _print_forgetting(Forgetting("cube.zarr", "", done=False, rows=rows))

    said = capsys.readouterr().out
    assert [row.model for row in rows if row.model not in said] == []


def test_command__never_takes_a_whole_cube_by_a_condition_that_was_left_out(sweep, tmp_path):
    before = statuses(sweep)

    refused(evalcube("forget", "cube.zarr", "--yes", cwd=tmp_path), "--where")
    np.testing.assert_array_equal(statuses(sweep), before)


@pytest.mark.usefixtures("sweep")
def test_command__as_json(tmp_path):
    arguments = (
        "forget",
        "cube.zarr",
        "--where",
        "model=beta",
        "--cache",
        "--yes",
        "--json",
    )
    code, output, _ = evalcube(*arguments, cwd=tmp_path)

    document = json.loads(output)
    assert code == 0
    assert (document["schema"], document["done"], document["trials"]) == ("evalcube.forget", True, TRIALS)
    assert document["replies"] == TRIALS
    assert {row["task"] for row in document["rows"]} == {"arithmetic", "boolean"}


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (("--where", "model=gamma"), ("gamma",)),
        (("--where", "trial=some"), ("--where", "some")),
        (("--where", "status=wrong"), ("--where", "incorrect")),
        (("--where", "row_id=peru"), ("--where", "no row_id")),
        (("--where", "tokens=5.."), ("--where", "tokens")),
    ],
)
@pytest.mark.usefixtures("sweep")
def test_command__refuses_what_makes_no_sense(tmp_path, arguments, fragments):
    refused(evalcube("forget", "cube.zarr", *arguments, "--yes", cwd=tmp_path), *fragments)
