"""The public face: its one list of names, its command, and that modules of a user's disturb neither."""

from __future__ import annotations

import importlib
import os
import pickle
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

import evalcube as ec
from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("flows", "stages", "storage", "deploy")
LATE = ("xarray", "numpy", "dask", "ast", *(f"evalcube.{room}" for room in ROOMS))


def python(*arguments, cwd, path=ROOT, **environment):
    """A Python that finds our sources where those that are installed would be."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env={**inherited, "PYTHONPATH": str(path), **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.fixture
def project(tmp_path):
    """A folder of a user's that has modules of its own under the names of our rooms."""
    for room in ROOMS:
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").write_text("raise SystemExit('the wrong one')")
    return tmp_path


def test_names__all_are_there_and_in_order():
    names = ec.__all__

    assert len(names) == len(set(names)) <= 43
    assert [name for name in names if getattr(ec, name, None) is None] == []
    assert names == dir(ec) == sorted(names)
    assert (ec.merge.__name__, ec.stats.pass_at_k(np.eye(2), 1)) == ("merge", 0.5)


PUBLIC = {
    "evalcube": ec.__all__,
    **{
        f"evalcube.{module}": getattr(ec, module).__all__
        for module in ("config", "plugins", "results", "stats")
    },
}


def test_names__are_those_under_which_things_know_themselves():
    things = [
        getattr(importlib.import_module(module), name) for module, names in PUBLIC.items() for name in names
    ]

    named = [thing for thing in things if isinstance(thing, type | FunctionType)]
    assert {thing.__module__ for thing in named} == set(PUBLIC)
    for thing in named:
        assert getattr(importlib.import_module(thing.__module__), thing.__qualname__) is thing


@pytest.mark.cluster
def test_results__are_unpickled_where_nothing_is_imported_yet(tmp_path):
    made = [
        ec.results.Merged.__new__(ec.results.Merged),
        ec.config.Precision(base=1, target=0.1, max=2),
        ec.Sampler(temperature=0),
        ec.ConfigError([]),
        ec.stats.pass_at_k,
        ec.merge,
    ]

    packed = pickle.dumps(made)

    assert not re.search(rb"evalcube\.(flows|stages|storage|deploy)", packed)
    code = f"import pickle; print([type(one).__name__ for one in pickle.loads({packed!r})])"
    result = python("-c", code, cwd=tmp_path)
    assert result.stdout == f"{[type(one).__name__ for one in made]}\n", result.stderr


@pytest.mark.parametrize("module", [ec.config, ec.plugins, ec.results, ec.stats])
def test_modules__have_what_they_list(module):
    listed = module.__all__

    assert listed == sorted(listed)
    assert [name for name in listed if not hasattr(module, name)] == []


def test_formulas__answer_at_the_top_too_where_they_are_not_listed():
    assert ec.pass_at_k is ec.stats.pass_at_k
    assert "pass_at_k" not in dir(ec)


@pytest.mark.cluster
def test_names__are_imported_when_first_used(tmp_path):
    code = f"import sys; import evalcube; print([name for name in {LATE} if name in sys.modules])"

    result = python("-c", code, cwd=tmp_path)

    assert (result.stdout, result.stderr) == ("[]\n", "")


def test_names__others_are_missing():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ec.nothing
    with pytest.raises(AttributeError, match="__wrapped__"):
        _ = ec.__wrapped__


@pytest.mark.cluster
def test_names__are_found_in_an_archive(tmp_path):
    archive = tmp_path / "sent.zip"
    with zipfile.ZipFile(archive, "w") as target:
        for name in ("__init__.py", "__init__.pyi"):
            target.write(ROOT / "evalcube" / name, f"evalcube/{name}")
        target.writestr("evalcube/flows/__init__.py", "")
        target.writestr("evalcube/flows/errors.py", "class SweepError(Exception): pass")

    result = python(
        "-c",
        "import evalcube; print(len(evalcube.__all__), evalcube.SweepError.__module__)",
        cwd=tmp_path,
        path=archive,
    )

    assert result.stdout == f"{len(ec.__all__)} evalcube\n", result.stderr


@pytest.mark.cluster
def test_command__runs_as_a_script_in_a_folder_beside_modules_of_a_user_with_our_rooms_names(project):
    (project / "bin").mkdir()
    (project / "bin" / "evalcube").write_text("from evalcube.__main__ import main; main()")

    result = python("bin/evalcube", "tasks", "sort", cwd=project)

    assert (result.returncode, result.stderr) == (0, "")
    assert "sort" in result.stdout


@pytest.mark.cluster
def test_run__with_worker_processes_beside_modules_of_a_user_with_our_rooms_names(project):
    config = "run quick --model sim: --only task=sort --trials 1 --workers 1 --quiet".split()

    result = python("-m", "evalcube", *config, cwd=project)

    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.cluster
def test_version__is_that_of_the_command(tmp_path):
    result = python("-m", "evalcube", "--version", cwd=tmp_path)

    assert result.stdout == f"evalcube {ec.__version__}\n"
