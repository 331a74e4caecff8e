"""Writes how far a run is into a small file beside the cube, for whoever reads the cube."""

from __future__ import annotations

import json
import logging
import time
from contextlib import suppress

from evalcube.flows.run.follow.events import Event, Finished, Noted, Started
from evalcube.flows.run.follow.progress import Tracker
from evalcube.flows.state.records import LIVE
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


_LOGGER = logging.getLogger("evalcube")
_LOGGER.addHandler(logging.NullHandler())  # silent unless somebody listens


def to_logging(event: Event) -> None:
    """A subscriber: what a reader should act on is a warning, all else information."""
    if isinstance(event, Noted):
        _LOGGER.log(
            logging.WARNING if event.urgent else logging.INFO, "%s", event.message
        )  # no log holds what a server said
    elif isinstance(event, Finished):
        _LOGGER.log(
            logging.INFO if event.reason == "complete" else logging.WARNING, "the run is %s", event.reason
        )
