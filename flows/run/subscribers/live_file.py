"""Writes how far a run is into a small file beside the cube, for whoever reads the cube."""

from __future__ import annotations

import json
import time
from contextlib import suppress

from evalcube.flows.plan.records import LIVE
from evalcube.flows.run.events import Event, Finished, Started
from evalcube.flows.run.progress import Tracker
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import StorageError

_WRITE_SECONDS = 2.0
_STORE_SECONDS = 10.0
"""Where each writing is a request that has its price."""


class LiveFile:
    """A subscriber that writes the file every few seconds. What it cannot write is nobody's loss."""

    def __init__(self, records: Space, tracker: Tracker) -> None:
        self._records = records
        self._tracker = tracker
        self._seconds = _STORE_SECONDS if records.trusted else _WRITE_SECONDS
        self._written_at = 0.0
        self._reason = ""

    def __call__(self, event: Event) -> None:
        """Take an event in; the tracker has seen it already."""
        if isinstance(event, Finished):
            self._reason = event.reason
        due = time.monotonic() - self._written_at > self._seconds
        if due or isinstance(event, (Started, Finished)):
            self._write()

    def _write(self) -> None:
        self._written_at = time.monotonic()
        started, traffic = self._tracker.started, self._tracker.traffic()
        if started is None:
            return
        graded = sum(self._tracker.done().values())
        document = {
            "run": started.run,
            "time": time.time(),
            "seconds": self._tracker.seconds,
            "trials": started.trials,
            "done": min(started.done + graded, started.trials),
            "cached": self._tracker.cached,
            "transport": self._tracker.transport,
            "sent": traffic.sent,
            "in_flight": traffic.in_flight,
            "window": int(sum(found.get("window") or 0 for found in traffic.found.values())),
            "prompt_tokens": traffic.prompt_tokens,
            "completion_tokens": traffic.completion_tokens,
            "retries": dict(traffic.retries),
            "waiting": dict(traffic.waiting),
            "reason": self._reason,
        }
        with suppress(OSError, StorageError):
            # Not durable: it says what a living run does, and waiting for a disk would hold up the run's events.
            self._records.put(LIVE, json.dumps(document).encode(), durable=False)
