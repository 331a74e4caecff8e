"""Which code this user's own configs name: no other is imported or compiled, whatever a cube says."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

_NAMED: set[str] = set()
"""Each ``module:function``, each ``template: ...`` with code and ``folder: ...`` that a config of this user's names."""


FOLDER = "folder: "
"""Begins the name of what a folder of tasks has as code."""


def folder_code(path: str) -> str:
    """The name of the code in a folder of tasks, which does not depend on where a process works."""
    return f"{FOLDER}{Path(path).absolute()}"


def allow_code(names: Iterable[str]) -> None:
    """Let code be run that the user's own config names; nobody else's word has anything imported or compiled."""
    _NAMED.update(names)


def may_run(name: str) -> bool:
    """Whether code is an installed entry point's, or named by the user's own config."""
    return ":" not in name or name in _NAMED
