"""What commands share: exit codes, JSON, messages."""

from __future__ import annotations

import json
import math
import sys
from enum import IntEnum
from typing import Any


class Code(IntEnum):
    """Exit codes of all commands."""

    OK = 0
    INCOMPLETE = 1
    REFUSED = 2
    STOPPED = 130


EXIT_CODES = {
    Code.OK: "done",
    Code.INCOMPLETE: "the sweep ended with transport errors left, run it again to resume",
    Code.REFUSED: "refused or failed for a reason that is told (config, cube, disk, cluster, key)",
    Code.STOPPED: "stopped by Ctrl-C, run it again to resume",
}


def complain(message: str) -> None:
    """Write a message to standard error."""
    sys.stderr.write(f"evalcube: {message}\n")


def show(text: str) -> None:
    """Write a line to standard output."""
    sys.stdout.write(f"{text}\n")


def show_json(document: Any) -> None:  # noqa: ANN401 - any JSON value
    """Write a JSON document to standard output; NaN becomes null."""
    show(json.dumps(_plain(document), indent=2, ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def safe(text: str) -> str:
    """A model's text for a terminal: control characters other than line breaks and tabs made visible."""
    return "".join(c if c in "\n\t" or c.isprintable() else repr(c)[1:-1] for c in text)
