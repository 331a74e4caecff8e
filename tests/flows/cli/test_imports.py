"""Commands that only read load neither the cluster nor the client: that would be most of their time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAYING = ("distributed", "aiohttp")
LABELLED = ("xarray", "pandas", "pyarrow", "dask")
"""What labelled datasets need: half of a command's time."""
LADEN = ("export", "cache", "tasks")
"""Commands that need more than others, or come after one that does."""
COMMANDS = [
    ("leaderboard", "cube.zarr"),
    ("table", "cube.zarr"),
    ("status", "cube.zarr"),
    ("show", "cube.zarr", "--task", "boolean"),
    ("trials", "cube.zarr", "--where", "tier=easy"),
    ("report", "cube.zarr", "-o", "imports.html"),
    ("metrics", "cube.zarr"),
    ("analyze", "cost", "cube.zarr"),
    ("analyze", "hazard", "cube.zarr"),
    ("analyze", "clip", "cube.zarr", "--limits", "8"),
    ("leaderboard", "cube.zarr", "--trials", "1"),
    ("export", "cube.zarr", "-o", "exported"),
    ("cache", "stats", "cache"),
    ("tasks",),
]
"""One after the other in one process; those that need the least come first."""
SCRIPT = """
import json, sys
from evalcube.flows.cli import main

for words in json.loads(sys.argv[1]):
    sys.argv = ["evalcube", *words]
    try:
        main()
        code = 0
    except SystemExit as error:
        code = error.code
    print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def ends(small_sweep):
    """How each command ended, and the modules that were loaded then, in the order of `COMMANDS`."""
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(COMMANDS)],
        cwd=small_sweep,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stderr.splitlines()]


@pytest.mark.parametrize("number", range(len(COMMANDS)), ids=lambda number: "-".join(COMMANDS[number][:2]))
def test_readers__load_nothing_that_asks_models(number, ends):
    absent = PAYING if COMMANDS[number][0] in LADEN else (*PAYING, *LABELLED)

    code, modules = ends[number]

    assert code in (0, None)
    assert not set(absent) & set(modules)
