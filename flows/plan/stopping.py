"""The wish that a run ends in good order, left beside its cube by whoever can write there.

It names the run by a digest of its lease's token: what was meant for an earlier run stops no later one.
"""

from __future__ import annotations

import hashlib
import json

from evalcube.flows.plan.records import read_record
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import guarded

STOP = "stop.json"
"""Its key among a cube's records."""
_MOST_BYTES, _LONGEST_NAME = 10_000, 200


def ask_to_stop(records: Space, token: str, by: str) -> None:
    """Leave the wish for the run that holds a cube's lease.

    Parameters
    ----------
    records
        Those of the cube.
    token
        Of the lease.
    by
        Who wants it, for people; anybody can say anything here.

    Raises
    ------
    StorageError
        If the cube cannot be written.
    """
    with guarded(f"{records.address}/{STOP}", "ask the run to stop"):
        records.put(STOP, json.dumps({"run": _digest(token), "by": by}).encode())


def who_stops(records: Space, token: str) -> str:
    """Who wants the run with that lease to stop; empty if nobody does."""
    found = read_record(records, STOP, _MOST_BYTES)
    if not isinstance(found, dict) or found.get("run") != _digest(token):
        return ""
    by = found.get("by")
    # What is shown to people, and written into logs, does nothing to a terminal.
    shown = "".join(c for c in by if c.isprintable()) if isinstance(by, str) else ""
    return shown[:_LONGEST_NAME] or "somebody"


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()[:24]
