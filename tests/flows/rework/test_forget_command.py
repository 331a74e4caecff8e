"""`evalcube forget` shows what would go, asks first, and takes nothing by mistake."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from evalcube.flows.cli import forget as forget_command
from evalcube.flows.plan.forgotten import FORGOTTEN
from tests.flows.rework.forgetting import (
    TRIALS,
    statuses,
)
from tests.flows.support import evalcube, refused


def test_command__shows_what_would_go_and_asks_first(sweep, tmp_path, monkeypatch):
    arguments = ("forget", "cube.zarr", "--where", "model=beta", "--trials", "6:")
    before = statuses(sweep)

    code, output, errors = evalcube(*arguments, "--dry-run", cwd=tmp_path)
    assert (code, errors) == (0, "")
    assert "beta" in output
    assert "their replies stay in the cache" in output
    refused(evalcube(*arguments, cwd=tmp_path), "--yes", "--dry-run")
    terminal = SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(forget_command, "sys", terminal)
    monkeypatch.setattr(forget_command.typer, "confirm", lambda *_, **__: False)
    code, _, errors = evalcube(*arguments, cwd=tmp_path)
    assert (code, "nothing is forgotten" in errors) == (1, True)
    np.testing.assert_array_equal(statuses(sweep), before)

    monkeypatch.setattr(forget_command.typer, "confirm", lambda *_, **__: True)
    code, output, _ = evalcube(*arguments, cwd=tmp_path)
    assert (code, "12 results are forgotten" in output) == (0, True)
    assert evalcube(*arguments, "--yes", cwd=tmp_path)[1] == "no result fulfils this\n"


def test_command__takes_a_whole_cube_only_if_told_so(sweep, tmp_path):
    before = statuses(sweep)

    refused(evalcube("forget", "cube.zarr", "--yes", cwd=tmp_path), "--where", "--all", "cube.zarr")
    refused(
        evalcube("forget", "cube.zarr", "--all", "--trials", "1:2", "--yes", cwd=tmp_path),
        "--all",
        "--trials",
    )
    np.testing.assert_array_equal(statuses(sweep), before)
    assert evalcube("forget", "cube.zarr", "--dry-run", cwd=tmp_path)[0] == 0
    assert evalcube("forget", "cube.zarr", "--all", "--yes", cwd=tmp_path)[0] == 0
    assert (statuses(sweep) == 255).all()


@pytest.mark.usefixtures("sweep")
def test_command__as_json(tmp_path):
    arguments = (
        "forget",
        "cube.zarr",
        "--where",
        "model=beta",
        "--cache-address",
        "cache",
        "--for-good",
        "--yes",
        "--json",
    )
    code, output, _ = evalcube(*arguments, cwd=tmp_path)

    document = json.loads(output)
    assert code == 0
    assert (document["schema"], document["done"], document["trials"]) == ("evalcube.forget", True, TRIALS)
    assert (document["replies"], document["cells"]) == (TRIALS, 3)
    assert {row["task"] for row in document["rows"]} == {"arithmetic", "boolean"}
    assert (tmp_path / "cube.zarr" / "_evalcube" / FORGOTTEN).is_file()


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (("--where", "model=gamma"), ("gamma",)),
        (("--trials", "8:4"), ("--trials",)),
        (("--trials", "some"), ("--trials", "16:32")),
        (("--since", "yesterday"), ("--since", "2026")),
        (("--status", "wrong"), ("--status", "incorrect")),
        (("--row", "peru"), ("--row", "no ids")),
        (("--for-good", "--trials", "1:2"), ("--for-good", "--where")),
        (("--cache-address", "nowhere"), ("nowhere",)),
    ],
)
@pytest.mark.usefixtures("sweep")
def test_command__refuses_what_makes_no_sense(tmp_path, arguments, fragments):
    refused(evalcube("forget", "cube.zarr", *arguments, "--dry-run", cwd=tmp_path), *fragments)
