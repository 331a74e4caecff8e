"""Where a copy came from: the record of the publication that it was pulled from."""

from __future__ import annotations

import json
from typing import Any

from evalcube.storage.cube.space import Space

ORIGIN = "pulled.json"
"""Key among a copy's records of what it was pulled from."""

_READ_BYTES = 1_000_000


def read_origin(records: Space) -> dict[str, Any]:
    """What a copy was pulled from; empty if it was not, or nobody knows.

    Parameters
    ----------
    records
        The cube's.
    """
    found = records.get(ORIGIN, _READ_BYTES)
    try:
        document = json.loads(found.data) if found else {}
    except (ValueError, RecursionError):
        return {}
    if not isinstance(document, dict) or not isinstance(document.get("publication", {}), dict):
        return {}
    return document
