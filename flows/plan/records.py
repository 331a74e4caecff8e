"""The small records that runs leave beside a cube: notes, what was spent, how far a run is."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage.cube.cube import Cube

LEDGER, LEASE, NOTES, SPENT, LIVE = "ledger.jsonl", "lease.json", "sweep.json", "spent.json", "live.json"
"""Their names beside the cube."""

_READ_BYTES = 1_000_000


@dataclass(frozen=True)
class Spent:
    """What requests have cost; answers of the cache cost nothing."""

    tokens: float = 0.0
    """Of prompts and completions."""
    usd: float = 0.0


def read_notes(cube: Cube) -> dict[str, Any]:
    """What the last run noted beside the cube; empty if nothing can be read."""
    try:
        notes = json.loads((cube.side / NOTES).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return notes if isinstance(notes, dict) else {}


def read_spent(path: Path) -> Spent | None:
    """The sum that earlier runs kept; None if there is none that can be read."""
    try:
        document: Any = json.loads(path.read_bytes())
        kept = Spent(float(document["tokens"]), float(document["usd"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return kept if math.isfinite(kept.tokens) and math.isfinite(kept.usd) else None


def read_live(path: Path) -> dict[str, Any] | None:
    """What the last run said of itself; None if nothing can be read."""
    try:
        with path.open("rb") as file:
            document = json.loads(file.read(_READ_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    numbers = ("time", "seconds", "trials", "done", "sent", "in_flight", "cached", "transport")
    if not isinstance(document, dict) or not isinstance(document.get("retries"), dict):
        return None
    if not all(type(document.get(name)) in (int, float) for name in numbers):
        return None
    return document
