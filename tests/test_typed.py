"""What others write against evalcube is clean under a strict type checker, and does what it says."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import evalcube as ec
from evalcube.flows.config.plugin import plugin_files
from tests.flows.support import one_simulator
from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "examples" / "sweep.py"


WRONG = """\
import evalcube as ec
ec.Model(nmae="a", endpoint="sim:")
ec.Manifold(grid=[4])
ec.Sampler(temperature="hot")
ec.Model(name="a", endpoint="sim:", simulate="x")
ec.verify("cube.zarr", subscribers=print)
"""
RIGHT = """\
import evalcube as ec
from evalcube.events import Event, Noted, Subscriber


def follow(event: Event) -> None:
    if isinstance(event, Noted):
        print(event.message)


followers: list[Subscriber] = [follow]
ec.Sweep(
    models=[
        {"name": "a", "endpoint": "sim:", "simulate": {"ability": 3}},
        ec.Model(name="b", endpoint="sim:", prices={"prompt": 1.0}, simulate={"ability": 4}),
    ],
    tasks={"sort": {"manifold": [{"grid": {"length": [4]}}, ec.Manifold(grid={"length": [8]})]}},
    spend={"usd": 3},
    views={"sums": {"where": {"task": "sort"}}},
)
if __name__ == "__main__":
    cube = ec.open_cube("cube.zarr")
    ec.stats.aggregate(cube, by=["tier"])
    ec.verify("cube.zarr", subscribers=[*followers, lambda event: None])
"""


def call(*words: str | Path, cwd: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, *words], cwd=cwd, capture_output=True, text=True, timeout=3 * PATIENCE, check=False
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.integration
def test_types__find_what_is_wrong_and_nothing_in_a_script_and_the_package_that_init_writes(tmp_path):
    shutil.copy(SCRIPT, tmp_path)
    (tmp_path / "wrong.py").write_text(WRONG)
    (tmp_path / "right.py").write_text(RIGHT)
    for name, text in plugin_files("word-games").items():
        (tmp_path / name).write_bytes(text)
    files = sorted(path.name for path in tmp_path.glob("*.py"))

    *lines, _ = call("-m", "mypy", "--strict", "--config-file=", *files, cwd=tmp_path)

    assert {line.rsplit(": error:")[0] for line in lines if ": error:" in line} == {
        f"wrong.py:{line}" for line in range(2, 7)
    }


@pytest.mark.cluster
def test_script__runs_from_the_sweep_to_the_verdict(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), str(tmp_path)])

    with one_simulator():
        runpy.run_path(str(SCRIPT), run_name="__main__")

    output, errors = capsys.readouterr()
    said = output.splitlines()
    assert errors == ""
    assert said[:3] == ["40 requests", "2 models on tasks ['arithmetic']", "large, then small"]
    models = ec.Sweep.from_yaml(tmp_path / "sweep.yaml").models
    assert [model.name for model in models] == ["small", "large"]
    assert len([line for line in SCRIPT.read_text().splitlines() if line.strip()]) <= 45
