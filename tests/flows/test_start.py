"""What a command loads before it does anything: seconds that people feel."""

import subprocess
import sys

import pytest

SLOW = ("scipy", "xarray", "pandas", "jsonschema", "bokeh", "matplotlib")


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("modules", "absent"),
    [
        ("evalcube.flows.cli.app, flows.config.suites, flows.run.sweep, flows.cli.running", SLOW),
        (
            "evalcube.flows.config.findings, flows.plan.estimate, flows.cli.planned, stages.analyze.render.text",
            SLOW,
        ),
        ("evalcube.flows.cubes.status", (*SLOW, "dask", "distributed", "aiohttp")),
        ("evalcube", (*SLOW, "numpy", "zarr", "dask")),
        (
            "evalcube.flows.cubes.statistics",
            (
                "evalcube.stages.generate",
                "evalcube.storage.cache.cache",
                "evalcube.flows.plan.plan",
                "matplotlib",
            ),
        ),
    ],
)
def test_import__loads_nothing_slow_that_is_not_needed(modules, absent):
    code = f"import sys, {modules}; print(*(name for name in {absent} if name in sys.modules))"

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.split() == []
