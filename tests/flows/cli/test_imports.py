"""Commands that only read load neither the cluster nor the client: that would be most of their time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAYING = ("distributed", "aiohttp")
COUNTED = ("leaderboard", "table")
"""Commands that read counters, which are in memory: they need no arrays of Dask either, a tenth of their time."""


@pytest.mark.parametrize(
    "arguments",
    [
        ("status", "cube.zarr"),
        ("leaderboard", "cube.zarr"),
        ("report", "cube.zarr", "-o", "imports.html"),
        ("show", "cube.zarr", "--task", "boolean"),
        ("trials", "cube.zarr", "--where", "tier=easy"),
        ("export", "cube.zarr", "--to", "inspect", "-o", "exported"),
        ("table", "cube.zarr"),
        ("metrics", "cube.zarr"),
        ("cache", "stats", "cache"),
        ("tasks",),
    ],
    ids=lambda arguments: arguments[0],
)
def test_readers__load_nothing_that_asks_models(arguments, small_sweep):
    absent = (*PAYING, "dask.array") if arguments[0] in COUNTED else PAYING
    code = (
        "import atexit, sys\n"
        f"atexit.register(lambda: sys.stderr.write(repr([name for name in {absent} if name in sys.modules])))\n"
        "from flows.cli import main\n"
        "main()\n"
    )

    result = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=small_sweep,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (result.returncode, result.stderr) == (0, "[]")
