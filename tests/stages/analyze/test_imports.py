"""What analysing costs before it begins: a command that reads a cube waits for every import."""

import json
import subprocess
import sys

import pytest

IMPORT = """
import importlib, json, pkgutil, sys
sys.path.insert(0, ".")
package = importlib.import_module("evalcube.stages.analyze")
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(module.name)
print(json.dumps(sorted(sys.modules)))
"""
RARELY_USED = {"scipy.special", "scipy.sparse", "scipy.stats", "dask", "distributed", "aiohttp", "xarray"}


@pytest.mark.cluster
def test_import__leaves_out_what_is_slow_and_not_needed():
    found = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, check=True).stdout

    assert not RARELY_USED & set(json.loads(found))
