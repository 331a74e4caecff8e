"""Figures of one run of a benchmark in; a line of the history file, and the run before this one, out."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

HISTORY = Path("results/benchmarks.jsonl")


def add_option(parser: argparse.ArgumentParser) -> None:
    """Let the user choose the file."""
    parser.add_argument(
        "--history", type=Path, default=HISTORY, help="file that gets the figures, as JSON lines"
    )


def append(
    name: str, settings: Mapping[str, object], figures: Sequence[Mapping[str, object]], file: Path
) -> None:
    """Append the figures of a run to a file, with what is needed to compare them with others."""
    entry = {
        "benchmark": name,
        "date": datetime.datetime.now(tz=datetime.UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        **settings,
        "figures": figures,
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(entry) + "\n")


def previous(name: str, settings: Mapping[str, object], file: Path) -> dict[str, object] | None:
    """The newest entry of a benchmark with the same settings; None if there is none."""
    if not file.exists():
        return None
    for line in reversed(file.read_text(encoding="utf-8").splitlines()):
        entry: dict[str, object] = json.loads(line)
        if entry["benchmark"] == name and all(entry.get(key) == value for key, value in settings.items()):
            return entry
    return None


def _commit() -> str:
    """Short name of the checkout's commit, with a plus sign if files differ from it; empty outside of a checkout."""
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty=+"], capture_output=True, text=True, check=False
    )
    return told.stdout.strip()
