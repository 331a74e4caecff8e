"""What a command loads before it does anything: seconds that people feel."""

import subprocess
import sys

import pytest

SLOW = ("scipy", "xarray", "pandas", "jsonschema", "bokeh")


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("modules", "absent"),
    [
        ("cli.app, config.suites, run.sweep, cli.measure", (*SLOW, "dask", "distributed", "aiohttp")),
        ("run.driver, run.worker.tasks", SLOW),
        ("config.suites", (*SLOW, "evalcube.stages.generate.tasks.sort")),
        ("config.findings, read.estimate, cli.plan", SLOW),
        ("read.status", (*SLOW, "dask", "aiohttp", "evalcube.stages.generate")),
        ("", (*SLOW, "numpy", "zarr", "dask")),
        ("cli.app", (*SLOW, "numpy", "zarr", "dask")),
        (
            "read.statistics",
            (
                "evalcube.stages.generate",
                "evalcube.storage.cache.cache",
                "evalcube.flows.plan.plan",
                "xarray",
                "pandas",
                "pyarrow",
                "dask",
            ),
        ),
    ],
)
def test_import__loads_nothing_slow_that_is_not_needed(modules, absent):
    named = ", ".join(f"evalcube.flows.{name}" if name else "evalcube" for name in modules.split(", "))
    code = f"import sys, {named}; print(*(name for name in {absent} if name in sys.modules))"

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.split() == []
