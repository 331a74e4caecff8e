"""What a command loads before it does anything: seconds that people feel."""

import subprocess
import sys

import pytest

SLOW = ("scipy", "xarray", "pandas", "jsonschema", "bokeh")
READ = {
    "": (*SLOW, "numpy", "zarr", "dask"),
    ".flows.cli.app": (*SLOW, "numpy", "zarr", "dask"),
    ".flows.read.status": (*SLOW, "dask", "aiohttp", "evalcube.stages.generate"),
    ".flows.read.statistics": (
        "evalcube.stages.generate",
        "evalcube.storage.cache.cache",
        "evalcube.flows.plan.plan",
        "xarray",
        "pandas",
        "pyarrow",
        "dask",
    ),
}
RUN = {
    ".flows.config.suites": (*SLOW, "evalcube.stages.generate.tasks.sort"),
    ".flows.run.sweep": (*SLOW, "dask", "distributed", "aiohttp"),
    ".flows.cli.measure": (*SLOW, "dask", "distributed", "aiohttp"),
    ".flows.config.findings": SLOW,
    ".flows.read.estimate": SLOW,
    ".flows.cli.plan": SLOW,
    ".flows.run.driver": SLOW,
    ".flows.run.worker.tasks": SLOW,
}


@pytest.mark.cluster
@pytest.mark.parametrize("absent", [READ, RUN], ids=["read", "run"])
def test_import__loads_nothing_slow_that_is_not_needed(absent):
    """One process loads the modules in turn, and tells after each what should be absent still."""
    code = f"""import importlib, sys
for module, absent in {absent}.items():
    importlib.import_module("evalcube" + module)
    print(*(f"{{module}}: {{name}}" for name in absent if name in sys.modules))"""

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.split() == []
