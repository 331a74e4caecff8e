"""A live display of a run: on a terminal it moves, elsewhere it is a line now and then."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from evalcube.flows.run.events import Event, Noted, Started
from evalcube.flows.run.progress import ModelProgress, Progress, RunProgress
from evalcube.flows.run.subscribers.facts import facts_of, note_of

_LINE_SECONDS = 10.0
_LOOK_SECONDS = 0.5
_SHOWN_MODELS = 20
_BAR, _MORE, _BESIDE_NAMES, _ROOM = 16, 29, 43, 28
"""Columns of a terminal: of a bar, of bars and tokens, which are there if names have room, of the rest; that room."""
_ROWS_BESIDE = 9
"""Lines of a terminal that the models do not get."""


class Display:
    """A subscriber that shows what happens until it is closed.

    Parameters
    ----------
    console
        Where it is shown; default: standard error.
    progress
        Adds up the events; default: by the clock of this machine.
    """

    def __init__(self, console: Console | None = None, progress: Progress | None = None) -> None:
        self._console = console or Console(file=sys.stderr)
        self._progress = progress or Progress()
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
        self._progress(event)
        if isinstance(event, Noted):
            self._console.print(Text(f"· {note_of(event)}", style="dim"))
        if isinstance(event, Started) and self._live is not None and event.done < event.trials:
            self._live.start()

    def _tick(self) -> None:
        last = time.monotonic()
        while not self._over.wait(_LOOK_SECONDS):
            self._progress.look()
            if self._live is None and time.monotonic() - last >= _LINE_SECONDS:
                last = time.monotonic()
                self._console.print(Text(self._line()))

    def _line(self) -> str:
        now = self._progress.now()
        facts = [f"{name} {value}" for name, value in facts_of(now)]
        waiting = [now.waiting] if now.waiting else []
        return f"{now.done}/{now.trials} trials  " + "  ".join([*facts, *waiting])

    def _render(self) -> Group:
        now = self._progress.now()
        parts: list[RenderableType] = [_bar(now), _in_lines(facts_of(now), self._console.width)]
        if now.waiting:
            parts.append(Text(now.waiting, style="yellow"))
        return Group(*parts, self._models(now))

    def _models(self, now: RunProgress) -> Table:
        from evalcube.stages.analyze.render.table import NAME_LEAST, fold  # with xarray, which takes a while

        # What is going on comes first where there is no room for all.
        most = max(3, min(_SHOWN_MODELS, self._console.height - _ROWS_BESIDE))
        shown, rest = now.models, 0
        if len(shown) > most:
            ordered = sorted(now.models, key=lambda one: (one.finished, not one.rate))
            shown, rest = tuple(ordered[:most]), len(now.models) - most
        room = self._console.width - _BESIDE_NAMES
        wide = room - _MORE >= min(max((len(one.label) for one in shown), default=0), _ROOM)
        room -= _MORE if wide else 0
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("model", no_wrap=True)
        if wide:
            table.add_column("", width=_BAR)
        for head in ("trials", "%", "per s", *(("tokens/s",) if wide else ()), "accuracy"):
            table.add_column(head, justify="right", no_wrap=True)
        table.add_column("", no_wrap=True)
        for one in shown:
            table.add_row(Text(fold(one.label, max(room, NAME_LEAST))), *_cells(one, wide=wide))
        if rest:
            table.add_row(Text(f"… and {rest} more", style="dim"))
        return table


def _bar(now: RunProgress) -> Table:
    """How far all is, in one line."""
    share = 100 * now.done / now.trials if now.trials else 0.0
    line = Table.grid(padding=(0, 1), expand=True)
    for ratio in (None, 1, None, None):
        line.add_column(ratio=ratio, no_wrap=True)
    bar = ProgressBar(total=now.trials or None, completed=now.done)
    line.add_row("[bold]evalcube", bar, f"{now.done:,}/{now.trials:,}", f"{share:.0f}%")
    return line


def _in_lines(facts: Sequence[tuple[str, str]], width: int) -> Text:
    """Facts on as many lines as they need, none of them cut."""
    lines, used = Text(), 0
    for name, value in facts:
        size = len(name) + len(value) + 3
        if used:
            lines.append("\n" if used + size > width else "  ")
            used = 0 if used + size > width else used
        lines.append(f"{name} ", "dim").append(value)
        used += size
    return lines


def _cells(one: ModelProgress, *, wide: bool) -> list[RenderableType]:
    done = one.finished
    bar = [ProgressBar(total=one.trials or None, completed=one.done)] if wide else []
    trials = f"{one.done:,}/{one.trials:,}" if one.trials else f"{one.done:,}"
    share = f"{100 * one.done // one.trials}" if one.trials else ""
    rate = "" if done else f"{one.rate:.1f}"
    tokens = ["" if done else f"{one.tokens:.0f}"] if wide else []
    accuracy = "–" if math.isnan(one.accuracy) else f"{100 * one.accuracy:.1f} %"
    state = Text("done", style="green") if done else Text("waits" if one.waiting else "", style="yellow")
    return [*bar, trials, share, rate, *tokens, accuracy, state]
