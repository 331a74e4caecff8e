"""Words, stories and films that the tasks build their questions from; no tasks of their own."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any


def material(name: str) -> dict[str, Any]:
    """What a file of this folder has, by name."""
    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text("utf-8"))
