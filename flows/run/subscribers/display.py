"""A live display of a run: on a terminal it moves, elsewhere it is a line now and then."""

from __future__ import annotations

import math
import sys
import threading
import time
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn
from rich.table import Table
from rich.text import Text

from flows.run.events import Controlled, Event, Noted, Started
from flows.run.subscribers.duration import duration, waits
from flows.run.summary import Tracker

_LINE_SECONDS = 10.0
_RATE_WINDOW = 10.0
_SHOWN_MODELS = 20


class Display:
    """A subscriber that shows what happens until it is closed."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(file=sys.stderr)
        self._tracker = Tracker()
        self._rates = _Rates()
        self._live: Live | None = None
        self._ticker: threading.Thread | None = None
        self._over = threading.Event()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(
                get_renderable=self._render, console=self._console, refresh_per_second=4, transient=True
            )
        self._ticker = threading.Thread(target=self._tick, name="evalcube-display", daemon=True)
        self._ticker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._ticker is not None:
            self._ticker.join()
        if self._live is not None:
            self._live.stop()

    def __call__(self, event: Event) -> None:
        """Take an event in."""
        self._tracker(event)
        if isinstance(event, Noted):
            said = f": {event.said}" if event.said else ""
            self._console.print(Text(f"· {event.message}{said}", style="dim"))
        if isinstance(event, Controlled):
            refused = "" if event.obeyed else "refused: "
            by = event.by or "somebody"
            self._console.print(Text(f"· {event.command} by {by}: {refused}{event.message}", style="yellow"))
        if isinstance(event, Started) and self._live is not None and event.done < event.trials:
            self._live.start()

    def _tick(self) -> None:
        last = time.monotonic()
        while not self._over.wait(0.5):
            traffic = self._tracker.traffic()
            self._rates.add(traffic.replies, traffic.completion_tokens, self._progress()[0])
            if self._live is None and time.monotonic() - last >= _LINE_SECONDS:
                last = time.monotonic()
                self._console.print(Text(self._line()))

    def _line(self) -> str:
        done, total = self._progress()
        facts = [f"{name} {value}" for name, value in self._facts()]
        return f"{done}/{total} trials  " + "  ".join([*facts, *self._waits()])

    def _waits(self) -> list[str]:
        """One text, where the run waits for an endpoint."""
        text = waits(self._tracker.traffic().waiting)
        paused = ["paused until `evalcube ctl CUBE resume`"] if self._tracker.paused else []
        return [*paused, text] if text else paused

    def _progress(self) -> tuple[int, int]:
        started = self._tracker.started
        if started is None:
            return 0, 0
        # Replies count when they arrive, before their block is graded: a slow model should be seen to move.
        graded, arrived = (
            sum(self._tracker.done().values()),
            self._tracker.traffic().replies + self._tracker.cached,
        )
        return min(started.done + max(graded, arrived), started.trials), started.trials

    def _facts(self) -> list[tuple[str, str]]:
        tracker, traffic, rates = self._tracker, self._tracker.traffic(), self._rates
        done, total = self._progress()
        errors = str(tracker.transport)
        retries = sum(traffic.retries.values())
        if retries:
            errors += f" (+{retries} retried)"
        return [
            ("requests/s", f"{rates.replies:.1f}"),
            ("tokens/s", f"{rates.tokens:.0f}"),
            ("in flight", str(traffic.in_flight)),
            ("cached", str(tracker.cached)),
            ("errors", errors),
            ("ETA", duration((total - done) / rates.trials) if rates.trials else "–"),
            ("after", duration(tracker.seconds)),
        ]

    def _render(self) -> Group:
        done, total = self._progress()
        bar = Progress(
            TextColumn("[bold]evalcube"),
            BarColumn(None),
            MofNCompleteColumn(),
            TaskProgressColumn(),
            console=self._console,
        )
        bar.add_task("", total=total or None, completed=done)
        facts = Text("  ").join(Text.assemble((f"{name} ", "dim"), value) for name, value in self._facts())
        facts.no_wrap, facts.overflow = True, "ellipsis"
        paused = [Text(text, style="yellow") for text in self._waits()]
        return Group(bar.get_renderable(), facts, *paused, self._models())

    def _models(self) -> Table:
        table = Table(box=None, padding=(0, 2), header_style="dim")
        table.add_column("model")
        table.add_column("trials", justify="right")
        table.add_column("accuracy so far", justify="right")
        accuracies, done = self._tracker.accuracies(), self._tracker.done()
        started = self._tracker.started
        names = started.models if started else ()
        before = dict(enumerate(started.recorded)) if started else {}
        for i, name in enumerate(names[:_SHOWN_MODELS]):
            accuracy = accuracies.get(i, math.nan)
            table.add_row(
                escape(name),
                str(before.get(i, 0) + done.get(i, 0)),
                "–" if math.isnan(accuracy) else f"{100 * accuracy:.1f} %",
            )
        if len(names) > _SHOWN_MODELS:
            table.add_row(f"… and {len(names) - _SHOWN_MODELS} more", "", "")
        return table


class _Rates:
    """Speeds over the last seconds, from totals."""

    def __init__(self) -> None:
        self._points: list[tuple[float, int, int, int]] = []
        self.replies = 0.0
        self.tokens = 0.0
        self.trials = 0.0

    def add(self, replies: int, tokens: int, trials: int) -> None:
        now = time.monotonic()
        self._points.append((now, replies, tokens, trials))
        self._points = [point for point in self._points if now - point[0] <= _RATE_WINDOW] or self._points[
            -1:
        ]
        first, last = self._points[0], self._points[-1]
        span = last[0] - first[0]
        if span > 0:
            self.replies, self.tokens, self.trials = (
                (b - a) / span for a, b in zip(first[1:], last[1:], strict=True)
            )
