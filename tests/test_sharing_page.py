"""Every command of the page about sharing is executed, section by section, as a reader would type it."""

import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.storage.support.cache_stores import s3_server

PAGE = (Path(__file__).parents[1] / "docs" / "sharing.md").read_text(encoding="utf-8")
SECTIONS = {text.partition("\n")[0]: text for text in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]}
FIRST = next(iter(SECTIONS))

pytestmark = pytest.mark.cluster


def blocks(text, language):
    """The blocks of code in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def execute(section, folder, environment=()):
    """Type a section's commands in a folder, which has the page's named files; the first that fails ends it."""
    for language in ("yaml", "json", "python"):
        for block in blocks(PAGE, language):
            named = re.match(r"# (\S+\.\w+)\n", block)
            if named:
                (folder / named[1]).write_text(block, encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail"],
        input="\n".join(blocks(SECTIONS[section], "sh")),
        cwd=folder,
        env={**os.environ, "PATH": path, "XDG_CACHE_HOME": str(folder / "user-cache"), **dict(environment)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def teams(tmp_path_factory):
    """A folder with what the first section makes: two cubes and their cache."""
    folder = tmp_path_factory.mktemp("teams")
    execute(FIRST, folder)
    return folder


def test_two_teams__have_two_cubes(teams):
    assert (teams / "a.zarr" / "zarr.json").exists()
    assert (teams / "b.zarr" / "zarr.json").exists()


@pytest.mark.parametrize("section", list(SECTIONS)[1:])
def test_section__is_true(section, teams, tmp_path):
    """Each section begins with the two teams' cubes and is independent of the others."""
    folder = tmp_path / "here"
    shutil.copytree(teams, folder)

    with stores_of(section) as environment:
        execute(section, folder, environment)


@contextmanager
def stores_of(section):
    """The environment that leads to the stores which a section's commands name."""
    if any("s3://" in block for block in blocks(SECTIONS[section], "sh")):
        with s3_server() as environment:
            yield environment
    else:
        yield {}
