"""What analysing costs before it begins: a command that reads a cube waits for every import."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.cluster

IMPORT = """
import importlib, json, pkgutil, sys
sys.path.insert(0, ".")
package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(module.name)
print(json.dumps(sorted(sys.modules)))
"""
RARELY_USED = {
    "scipy.stats",
    "scipy.signal",
    "scipy.optimize",
    "scipy.sparse",
    "dask",
    "distributed",
    "aiohttp",
}
LABELS_AND_PAGES = {"xarray", "pandas", "zarr", "pydantic", "rich", "jinja2", "asyncio"}


@pytest.mark.parametrize(
    ("package", "left_out"),
    [
        ("evalcube.stages.analyze.formulas", RARELY_USED | LABELS_AND_PAGES),
        ("evalcube.stages.analyze.verdict", RARELY_USED | LABELS_AND_PAGES),
        ("evalcube.stages.analyze", RARELY_USED),
    ],
)
def test_import__leaves_out_what_is_slow_and_not_needed(package, left_out):
    found = subprocess.run([sys.executable, "-c", IMPORT, package], capture_output=True, check=True).stdout

    assert not left_out & set(json.loads(found))
