"""Where a run's events are kept: Python's logger, a small file beside the cube, and a log that the user names.

The log has one JSON object per line: ``time``, ``run``, ``event``, and the event's fields. Nothing that a model or an
endpoint said is in it, and no line is longer than `MOST_BYTES`.
"""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from evalcube import EvalcubeError
from evalcube.deploy.errors import DeployError
from evalcube.flows.errors import SweepError
from evalcube.flows.events import (
    BlockDone,
    Counted,
    Event,
    Extended,
    Finished,
    Noted,
    RegionWritten,
    Started,
    Traffic,
)
from evalcube.flows.run.follow.progress import Tracker
from evalcube.flows.state.records import LIVE
from evalcube.stages.infer.jobs import Slowdown
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import StorageError

MOST_BYTES = 16_384
_MOST_ITEMS = 100
_MOST_CHARACTERS = 1000
_TRAFFIC_SECONDS = 5.0

_TOLD: Mapping[type[Event], tuple[str, Sequence[str]]] = {
    Started: ("started", ("cube", "trials", "done", "models")),
    Extended: ("extended", ("trials",)),
    Slowdown: ("slowed", ("model", "overload", "pause", "reason")),
    BlockDone: ("block", ("model", "trials", "cached", "transport", "missing", "causes")),
    RegionWritten: ("region", ("model", "complete")),
    Noted: ("note", ("message",)),
    Counted: ("counted", ("noun", "number")),
    Finished: ("finished", ("reason",)),
    Traffic: (
        "traffic",
        (
            *("sent", "replies", "in_flight", "prompt_tokens", "completion_tokens"),
            *("retries", "failures", "models", "waiting"),
        ),
    ),
}
"""What an event is called, and which of its fields are told: none that may quote an endpoint."""


class EventLog:
    """A subscriber that appends to a file, from entering its context to leaving it.

    Parameters
    ----------
    path
        The file. Several runs may append to one.

    Raises
    ------
    SweepError
        If it cannot be opened.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._tracker = Tracker()
        self._traffic_at = -math.inf
        self._file: FileIO | None = None
        self.problem = ""
        """Why events are missing from the file; empty if none is."""

    def __enter__(self) -> Self:
        try:
            # Unbuffered: whoever follows the file sees each event when it happens, and runs may share it.
            self._file = self._path.open("ab", buffering=0)
        except OSError as error:
            raise SweepError(
                f"the log {self._path} cannot be written: {error.strerror}", "Give another file"
            ) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._write("failed", {"error": type(error).__name__, "message": _error_text(error)})
        if self._file is not None:
            self._file.close()
            self._file = None

    def __call__(self, event: Event) -> None:
        """Take an event in."""
        self._tracker(event)
        # All workers together and not too often: with many of them, their own reports would fill a disk.
        due = time.monotonic() - self._traffic_at >= _TRAFFIC_SECONDS
        if isinstance(event, Finished) or (isinstance(event, Traffic) and due):
            self._traffic_at = time.monotonic()
            self._tell(self._tracker.traffic())
        if not isinstance(event, Traffic):
            self._tell(event)

    def _tell(self, event: Event) -> None:
        name, names = _TOLD[type(event)]
        fields = {field: getattr(event, field) for field in names}
        started = self._tracker.started
        if isinstance(event, (BlockDone, RegionWritten)) and started is not None:
            fields["model"] = started.models[event.model]
        if isinstance(event, BlockDone):
            fields["block"] = event.key
        if isinstance(event, Finished):
            # What endpoints said may quote a model's answer.
            fields |= {name: value for name, value in event.summary.items() if name != "details"}
        self._write(name, fields)

    def _write(self, name: str, fields: Mapping[str, Any]) -> None:
        if self._file is None or self.problem:
            return
        started = self._tracker.started
        head = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "run": None if started is None else started.run,
            "event": name,
        }
        # Bounded, and without NaN: any program has to be able to read each line.
        line = json.dumps({**head, **_bound(fields)}, allow_nan=False)
        if len(line) >= MOST_BYTES:
            line = json.dumps({**head, "shortened": True})
        try:
            self._file.write(f"{line}\n".encode())
        except OSError as error:
            self.problem = f"the log {self._path} ends early: {error.strerror}"


def _error_text(error: BaseException) -> str:
    """An error's message, without the output of a server that failed: it may quote questions and answers."""
    if isinstance(error, DeployError):
        return f"{error.message}. {error.remedy}".strip()
    return str(error) if isinstance(error, EvalcubeError) else ""


def _bound(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str):
        return value[:_MOST_CHARACTERS]
    if isinstance(value, Mapping):
        return {str(key): _bound(item) for key, item in list(value.items())[:_MOST_ITEMS]}
    if isinstance(value, (list, tuple)):
        return [_bound(item) for item in value[:_MOST_ITEMS]]
    return value


_WRITE_SECONDS = 2.0
_STORE_SECONDS = 10.0
"""Where each writing is a request that has its price."""


class LiveFile:
    """A subscriber that writes the file every few seconds. What it cannot write is nobody's loss."""

    def __init__(self, records: Space, tracker: Tracker) -> None:
        self._records = records
        self._tracker = tracker
        self._seconds = _STORE_SECONDS if records.is_object_store else _WRITE_SECONDS
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
        started, progress = self._tracker.started, self._tracker.progress()
        if started is None:
            return
        traffic = progress.traffic
        document = {
            "run": started.run,
            "time": time.time(),
            "seconds": self._tracker.seconds,
            "trials": progress.trials,
            "done": progress.done,
            "rate": progress.replies,
            "eta": progress.eta,
            "cached": self._tracker.cached,
            "transport": self._tracker.transport,
            "sent": traffic.sent,
            "in_flight": traffic.in_flight,
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
        # The message alone: no log holds what a server said.
        _LOGGER.log(logging.WARNING if event.urgent else logging.INFO, "%s", event.message)
    elif isinstance(event, Finished):
        level = logging.INFO if event.reason == "complete" else logging.WARNING
        _LOGGER.log(level, "the run is %s", event.reason)
