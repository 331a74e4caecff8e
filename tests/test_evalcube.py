"""The public face: its one list of names, and what it says of modules of the user's that hide ours."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import evalcube as ec
from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[1]
LATE = ("xarray", "numpy", "dask", "ast", "flows", "stages", "storage", "deploy")


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


def hiding(folder, name):
    """A folder with a module of the user's; `name` is a package, or a file with its ending."""
    if name.endswith(".py"):
        (folder / name).write_text("")
        return folder / name
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text("")
    return folder / name


def message(place):
    package = place.stem
    return (
        f"'{place}' hides evalcube's own package '{package}'. Rename it, or run Python where '{place.parent}' is not "
        f"on its module path, such as from another directory or with another PYTHONPATH"
    )


def test_names__all_are_there_and_in_order():
    names = ec.__all__

    assert len(names) == len(set(names)) > 100
    assert [name for name in names if getattr(ec, name, None) is None] == []
    assert names == [
        *sorted(name for name in names if name.isupper()),
        *sorted(name for name in names if name[0].isupper() and not name.isupper()),
        *sorted(name for name in names if name[0].islower()),
    ]
    assert dir(ec) == sorted(names)
    assert (ec.estimate_success.__name__, ec.reason_score_v1.__module__.rpartition(".")[2]) == (
        "estimate",
        "reasonscore",
    )


@pytest.mark.cluster
def test_names__are_imported_when_first_used(tmp_path):
    code = f"import sys; import evalcube; print([name for name in {LATE} if name in sys.modules])"

    result = python("-c", code, cwd=tmp_path)

    assert (result.stdout, result.stderr) == ("[]\n", "")


def test_names__others_are_missing():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ec.nothing
    with pytest.raises(AttributeError, match="__path__"):
        _ = ec.__path__


@pytest.mark.cluster
def test_names__are_found_in_an_archive(tmp_path):
    archive = tmp_path / "sent.zip"
    with zipfile.ZipFile(archive, "w") as target:
        for path in (ROOT / "evalcube.py", ROOT / "evalcube.pyi"):
            target.write(path, path.name)
        for package in ("flows", "stages", "storage", "deploy"):
            target.writestr(f"{package}/__init__.py", "")
        target.writestr("flows/errors.py", "class SweepError(Exception): pass")

    result = python(
        "-c",
        "import evalcube; print(len(evalcube.__all__), evalcube.SweepError.__module__)",
        cwd=tmp_path,
        path=archive,
    )

    assert result.stdout == f"{len(ec.__all__)} flows.errors\n", result.stderr


@pytest.mark.cluster
@pytest.mark.parametrize("name", ["flows", "stages", "storage", "deploy.py"])
def test_import__names_what_hides_a_package(tmp_path, name):
    place = hiding(tmp_path, name)

    result = python("-c", "import evalcube", cwd=tmp_path)

    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == f"ImportError: {message(place)}"


@pytest.mark.cluster
@pytest.mark.parametrize("name", ["flows", "storage", "deploy.py"])
@pytest.mark.parametrize(
    "how",
    [("-m", "evalcube_command"), ("-c", "from evalcube_command import main; main()")],
    ids=["python -m", "console script"],
)
def test_command__says_in_one_line_what_hides_a_package(tmp_path, name, how):
    place = hiding(tmp_path, name)

    result = python(*how, "tasks", cwd=tmp_path)

    assert (result.returncode, result.stdout, result.stderr) == (2, "", f"evalcube: {message(place)}\n")


@pytest.mark.cluster
def test_command__is_not_disturbed_by_a_folder_beside_its_script(tmp_path):
    """The module path of a script begins at the script, not in the current directory."""
    hiding(tmp_path, "flows")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "evalcube").write_text("from evalcube_command import main; main()")

    result = python("bin/evalcube", "tasks", "sort", cwd=tmp_path)

    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.cluster
def test_command__runs_by_the_name_of_its_package(tmp_path):
    place = hiding(tmp_path, "storage")

    result = python("-m", "flows", "tasks", cwd=tmp_path)

    assert (result.returncode, result.stderr) == (2, f"evalcube: {message(place)}\n")


@pytest.mark.cluster
def test_import__a_folder_that_is_no_package_hides_nothing(tmp_path):
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "first.py").write_text("")

    result = python("-c", "import evalcube; evalcube.SweepError", cwd=tmp_path)

    assert (result.returncode, result.stderr) == (0, "")
