"""Whether another process has the evalcube that this one has, and what to type there if it has not."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
from functools import cache
from pathlib import Path

from packaging.requirements import Requirement

import evalcube

_ROOT = Path(evalcube.__file__).parents[1]
_PACKAGE = "evalcube"


@cache
def source_digest() -> str:
    """What distinguishes this source from any other."""
    files = [
        Path(folder) / name
        for folder, _, names in os.walk(_ROOT / _PACKAGE, followlinks=True)  # a checkout links to its rooms
        for name in names
        if not name.endswith(".pyc")
    ]
    digest = hashlib.sha256()
    for path in sorted(files, key=lambda path: path.relative_to(_ROOT).parts):
        digest.update(path.relative_to(_ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def line_to_type(python: str) -> str:
    """What installs this process's evalcube for a Python elsewhere, which sees the same files where it is a checkout.

    Parameters
    ----------
    python
        Path of that Python.
    """
    checkout = (_ROOT / "pyproject.toml").is_file()
    return f"{python} -m pip install {_ROOT if checkout else f'evalcube=={evalcube.__version__}'}"


def unlike(digest: str) -> str:
    """Why this process cannot stand in for one with another source; empty if it can.

    Parameters
    ----------
    digest
        Of the other's source; where it is empty, the two share one environment.
    """
    if not digest:
        return ""
    if source_digest() != digest:
        return f"has another version of evalcube ({_ROOT})"
    lacks = _lacks()
    return f"{'; '.join(lacks)}. Install what evalcube requires" if lacks else ""


def _lacks() -> list[str]:
    """What evalcube requires, by its own metadata, and this process has not."""
    lacks = []
    try:
        required = importlib.metadata.requires(_PACKAGE) or ()
    except importlib.metadata.PackageNotFoundError:
        required = ()  # a checkout on a path, which says nothing of itself
    for requirement in map(Requirement, required):
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            version = importlib.metadata.version(requirement.name)
            fits = requirement.specifier.contains(version, prereleases=True)
        except importlib.metadata.PackageNotFoundError:
            version, fits = "is missing", False
        if not fits:
            lacks.append(f"{requirement.name} {version} (needs {requirement.specifier})")
    return lacks
