"""Logs of other tools for tests, made by these tools; see tests/data/logs/README.md."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evalcube.flows.share.imports.logs import READERS
from evalcube.flows.share.imports.samples import LogHints, Sample

LOGS = Path(__file__).parents[3] / "data" / "logs"
INSPECT, LM_EVAL = LOGS / "inspect", LOGS / "lm-eval"


def samples(form: str, path: Path, wanted: LogHints | None = None, **fields: Any) -> list[Sample]:
    """What a log has."""
    found: Iterator[Sample] = READERS[form](path, LogHints(**fields) if wanted is None else wanted)
    return list(found)


def write_lines(path: Path, rows: list[Any]) -> Path:
    """A JSONL file."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
