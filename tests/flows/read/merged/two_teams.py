"""Cubes of two teams that have one model in common."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.flows.read.merged.generated import Recipe, make_cube

A = Recipe(models=("alpha", "beta"), lengths=(3, 4), depths=(3,), repeats=2, trials=(0, 6))
OURS = Recipe(models=("alpha", "beta"), depths=(), trials=(0, 4), at=1_000)
THEIRS = replace(OURS, models=("beta", "gamma"), salt="theirs", at=2_000)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two teams' cubes, which tests copy."""
    folder = tmp_path_factory.mktemp("made")
    make_cube(folder / "ours.zarr", OURS)
    make_cube(folder / "theirs.zarr", THEIRS)
    return folder


@pytest.fixture
def ours(made: Path, tmp_path: Path) -> str:
    """The address of one team's cube."""
    return str(shutil.copytree(made / "ours.zarr", tmp_path / "ours.zarr"))


@pytest.fixture
def pair(made: Path, ours: str, tmp_path: Path) -> tuple[str, str]:
    """Two teams' cubes, which have one model in common."""
    return ours, str(shutil.copytree(made / "theirs.zarr", tmp_path / "theirs.zarr"))
