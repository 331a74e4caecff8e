"""A log of a run's events, one JSON object per line: ``time``, ``run``, ``event``, and the event's fields.

Nothing that a model or an endpoint said is in it, and no line is longer than `MOST_BYTES`.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from evalcube import EvalcubeError
from evalcube.deploy.errors import DeployError
from evalcube.flows.errors import SweepError
from evalcube.flows.run.events import (
    BlockDone,
    Event,
    Extended,
    Finished,
    Noted,
    RegionWritten,
    Slowed,
    Started,
    Traffic,
)
from evalcube.flows.run.summary import Tracker

MOST_BYTES = 16_384
_MOST_ITEMS = 100
_MOST_CHARACTERS = 1000
_TRAFFIC_SECONDS = 5.0

_Fields = dict[str, Any]


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
        self._tell: Mapping[type[Event], Callable[[Any], _Fields]] = {
            Started: _started,
            Extended: lambda event: {"trials": event.trials},
            Slowed: _slowed,
            BlockDone: self._block,
            RegionWritten: lambda event: {"model": self._label(event.model), "complete": event.complete},
            Noted: lambda event: {"message": event.message},
            Finished: _finished,
        }

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
            self._write("failed", {"error": type(error).__name__, "message": _shown(error)})
        if self._file is not None:
            self._file.close()
            self._file = None

    def __call__(self, event: Event) -> None:
        """Take an event in."""
        self._tracker(event)
        if isinstance(event, Finished):
            self._write_traffic()
        if isinstance(event, Traffic):
            if time.monotonic() - self._traffic_at >= _TRAFFIC_SECONDS:
                self._write_traffic()
            return
        self._write(_NAMES[type(event)], self._tell[type(event)](event))

    def _write_traffic(self) -> None:
        """All workers together and not too often: with many of them, their own reports would fill a disk."""
        self._traffic_at = time.monotonic()
        total = self._tracker.traffic()
        self._write(
            "traffic",
            {
                "sent": total.sent,
                "replies": total.replies,
                "in_flight": total.in_flight,
                "prompt_tokens": total.prompt_tokens,
                "completion_tokens": total.completion_tokens,
                "retries": total.retries,
                "failures": total.failures,
                "models": total.models,
                "waiting": total.waiting,
            },
        )

    def _block(self, event: BlockDone) -> _Fields:
        return {
            "model": self._label(event.model),
            "block": list(event.key),
            "trials": event.trials,
            "cached": event.cached - event.found_again,
            "found_again": event.found_again,
            "transport": event.transport,
            "missing": event.missing,
            "causes": event.causes,
        }

    def _label(self, model: int) -> str:
        started = self._tracker.started
        return str(model) if started is None else started.models[model]

    def _write(self, name: str, fields: Mapping[str, Any]) -> None:
        if self._file is None or self.problem:
            return
        started = self._tracker.started
        head = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "run": None if started is None else started.run,
            "event": name,
        }
        line = json.dumps({**head, **_bounded(fields)}, allow_nan=False)
        if len(line) >= MOST_BYTES:
            line = json.dumps({**head, "shortened": True})
        try:
            self._file.write(f"{line}\n".encode())
        except OSError as error:
            self.problem = f"the log {self._path} ends early: {error.strerror}"


_NAMES: Mapping[type[Event], str] = {
    Started: "started",
    Extended: "extended",
    Slowed: "slowed",
    BlockDone: "block",
    RegionWritten: "region",
    Noted: "note",
    Finished: "finished",
}


def _shown(error: BaseException) -> str:
    """An error's message, without the output of a server that failed: it may quote questions and answers."""
    if isinstance(error, DeployError):
        return f"{error.message}. {error.remedy}".strip()
    return str(error) if isinstance(error, EvalcubeError) else ""


def _started(event: Started) -> _Fields:
    return {"cube": event.cube, "trials": event.trials, "done": event.done, "models": event.models}


def _slowed(event: Slowed) -> _Fields:
    return {
        "model": event.model,
        "overload": event.overload,
        "pause": event.pause,
        "reason": event.reason,
    }


def _finished(event: Finished) -> _Fields:
    """The summary without what endpoints said: their errors may quote a model's answer."""
    summary = {name: value for name, value in event.summary.items() if name != "details"}
    return {"reason": event.reason, **summary}


def _bounded(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str):
        return value[:_MOST_CHARACTERS]
    if isinstance(value, Mapping):
        return {str(key): _bounded(item) for key, item in list(value.items())[:_MOST_ITEMS]}
    if isinstance(value, (list, tuple)):
        return [_bounded(item) for item in value[:_MOST_ITEMS]]
    return value
