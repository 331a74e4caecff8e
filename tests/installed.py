"""The built sdist and wheel, and environments that have the wheel and what it depends on, but not the sources."""

from __future__ import annotations

import os
import site
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def run(*command: object, cwd: Path) -> str:
    """Run a program without what this Python's environment says of Python and make; return what it prints."""
    ours = ("PYTHON", "PYTEST", "MAKE", "MFLAGS", "VIRTUAL_ENV", "VENV", "JOBS")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    result = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def environment_with(wheel: Path, home: Path) -> Path:
    """Make an environment with a wheel and the installed dependencies; return its Python."""
    python = environment_without(home)
    run(python, "-m", "pip", "install", "--no-deps", "--no-index", wheel, cwd=home)
    return python


def environment_without(home: Path) -> Path:
    """Make an environment with the installed dependencies, pip among them; return its Python."""
    run(sys.executable, "-m", "venv", "--without-pip", home, cwd=home.parent)

    # A directory named in a .pth file is searched; its own .pth files (our editable install) are not read.
    paths = sysconfig.get_paths("venv", {"base": str(home), "platbase": str(home)})
    (Path(paths["purelib"]) / "dependencies.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return home / "bin" / "python"


def build(source: Path, out: Path, kind: str = "wheel") -> Path:
    """Build a wheel or an sdist with the installed backend; return its path."""
    run(sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", out, source, cwd=out)
    (path,) = out.iterdir()
    return path


def unpack(sdist: Path, folder: Path) -> Path:
    """Unpack an sdist; return the folder of its sources."""
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = getattr(
            tarfile, "data_filter", None
        )  # not in Python 3.11.2, which Debian has
        archive.extractall(folder)  # noqa: S202 - our own file
    (sources,) = folder.iterdir()
    return sources


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, built from the sources."""
    return build(ROOT, tmp_path_factory.mktemp("sdist"), "sdist")


@pytest.fixture(scope="session")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the sdist as installers do."""
    return build(unpack(sdist, tmp_path_factory.mktemp("unpacked")), tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def wheel_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has the wheel and the installed dependencies, but not the sources."""
    return environment_with(wheel, tmp_path_factory.mktemp("installed"))
