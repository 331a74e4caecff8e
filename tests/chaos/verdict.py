"""Two cubes, a cache and a tally in; the violations of what a resumed sweep promises out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from evalcube.storage.cube.cube import Cube
from tests.chaos.processes import ROOT

TIMED = ("latency",)
_TIMED_COUNTER = "latency_sum"
_KEPT_BESIDE = {"zarr.json", "live.json", "spent.json", "ledger.jsonl", "sweep.json", "lease.json.lock"}
_LONG_AGO = 2 * 3600.0


def differences(left: str | Path, right: str | Path) -> list[str]:
    """Arrays and coordinates that are not the same, bit for bit; measured times are left out."""
    ours, theirs = (Cube.open(cube).dataset().load() for cube in (left, right))
    found = [f"only one cube has {name}" for name in sorted(set(ours.variables) ^ set(theirs.variables))]
    for name in sorted(set(ours.variables) & set(theirs.variables) - set(TIMED)):
        one, other = ours[name], theirs[name]
        if name == "counters":
            one, other = (array.drop_sel(counter=_TIMED_COUNTER) for array in (one, other))
        here, there = one.to_numpy(), other.to_numpy()
        if here.dtype != there.dtype or here.shape != there.shape:
            found.append(f"{name}: {here.dtype}{here.shape} and {there.dtype}{there.shape}")
        elif _bits(here) != _bits(there):
            where = np.argwhere(np.atleast_1d(~_same(here, there)))
            found.append(f"{name}: {len(where)} cells differ, the first at {where[:1].tolist()}")
    return found


def _bits(array: np.ndarray) -> object:
    return array.tolist() if array.dtype == object else np.ascontiguousarray(array).tobytes()


def _same(here: np.ndarray, there: np.ndarray) -> np.ndarray:
    if here.dtype.kind == "f":
        return (here == there) | (np.isnan(here) & np.isnan(there))
    return np.asarray(here == there)


def leftovers(cube: Path, cache: Path) -> list[Path]:
    """Files that no finished sweep has any use for."""
    found = list(_strays(cube, cache))
    found += [file for file in (cube / "_evalcube").iterdir() if file.name not in _KEPT_BESIDE]
    return sorted(set(found))


def _strays(cube: Path, cache: Path) -> Iterator[Path]:
    yield from cube.parent.glob(f".{cube.name}.*")
    yield from (
        file for file in cube.rglob("*") if file.is_file() and file.name.endswith((".partial", ".tmp"))
    )
    yield from (file for file in (cache / "tmp").iterdir() if file.name != "lock")
    yield from (pack for pack in (cache / "packs").glob("*.pack") if not pack.with_suffix(".idx").exists())
    yield from (cache / "damaged").iterdir()


def collect_garbage(cube: Path, cache: Path) -> str:
    """Run `evalcube cache gc` as if two hours had passed; what it printed."""
    for file in leftovers(cube, cache):
        past = time.time() - _LONG_AGO
        os.utime(file, (past, past))
    done = subprocess.run(
        [sys.executable, "-m", "evalcube", "cache", "gc", cache, "--keep", cube, "--yes", "--json"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"evalcube cache gc failed: {done.stderr}")
    found = json.loads(done.stdout)
    return f"{found['temporaries']} temporary files and {found['unreferenced']} entries deleted"
