"""What is made ready before anything is submitted."""

import os
import subprocess
from pathlib import Path

import pytest

from flows.config.load import from_mapping
from flows.submit.prepare import prepare

ROOT = str(Path(__file__).parents[3])


def sweep(folder, *models, **cluster):
    return from_mapping(
        {
            "cube": str(folder / "all.zarr"),
            "cache": str(folder / "cache"),
            "models": [{"name": name, "endpoint": "sim:"} for name in models or ("a",)],
            "tasks": {"boolean": {"params": {"length": 4}}},
            "cluster": {"kind": "slurm", **cluster},
        }
    )


@pytest.mark.cluster
def test_script__starts_our_code_whatever_lies_in_the_users_directory(tmp_path):
    (tmp_path / "flows").mkdir()
    for name in ("queue.py", "flows/__init__.py", "flows/__main__.py"):
        (tmp_path / name).write_text("raise SystemExit('the code of others ran')")
    [script] = prepare(sweep(tmp_path)).scripts
    environment = {key: value for key, value in os.environ.items() if key != "SLURM_JOB_ID"}

    done = subprocess.run(
        ["bash", "-c", script.splitlines()[-1]],
        cwd=tmp_path, env={**environment, "PYTHONPATH": ROOT}, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert "this is no job of Slurm" in done.stderr
    assert "the code of others ran" not in done.stderr
