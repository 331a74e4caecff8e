"""Words, wordings, stories and films that the tasks build their questions from; no tasks of their own."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from types import SimpleNamespace
from typing import Any


@cache
def material(name: str) -> dict[str, Any]:
    """Return what a file of this folder has, by name."""
    return tomllib.loads(files(__package__).joinpath(f"{name}.toml").read_text("utf-8"))


def wordings(task: str) -> SimpleNamespace:
    """What the prompts of a task say: texts, lists and tables of them, by name."""
    return SimpleNamespace(**material("wordings")[task])
