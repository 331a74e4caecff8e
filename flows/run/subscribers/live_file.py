"""Writes how far a run is into a small file beside the cube, for whoever reads the cube."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path

from flows.run.events import Event, Finished, Started
from flows.run.summary import Tracker

_WRITE_SECONDS = 2.0


class LiveFile:
    """A subscriber that writes the file every two seconds. What it cannot write is nobody's loss."""

    def __init__(self, path: Path, tracker: Tracker) -> None:
        self._path = path
        self._tracker = tracker
        self._written_at = 0.0
        self._reason = ""

    def __call__(self, event: Event) -> None:
        """Take an event in; the tracker has seen it already."""
        if isinstance(event, Finished):
            self._reason = event.reason
        due = time.monotonic() - self._written_at > _WRITE_SECONDS
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
            "prompt_tokens": traffic.prompt_tokens,
            "completion_tokens": traffic.completion_tokens,
            "retries": dict(traffic.retries),
            "reason": self._reason,
        }
        temporary = self._path.with_name(f".{self._path.name}.partial")
        with suppress(OSError):
            temporary.write_text(json.dumps(document))
            temporary.replace(self._path)
