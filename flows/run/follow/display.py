"""Displays of a run: moving on a terminal, an output of the cell in a notebook, elsewhere a line now and then."""

from __future__ import annotations

import contextvars
import io
import sys
import threading
import time
from html import escape
from importlib import import_module
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from evalcube.flows.events import Event, Finished, Noted, Started
from evalcube.flows.run.follow.progress import RunProgress, Tracker, duration, eta_text, waits

_LINE_SECONDS = 10.0
_LOOK_SECONDS = 0.5
_MOST_MODELS = 30
_ROWS_BESIDE = 9
"""Lines of a terminal that the models do not get."""
_NOTEBOOK_WIDTH, _NOTEBOOK_HEIGHT, _SHOWN_NOTES = 110, 50, 4


class Display:
    """A subscriber that shows what happens until it is closed.

    Parameters
    ----------
    console
        Where it is shown; default: standard error.
    tracker
        Adds up the events; default: by the clock of this machine.
    """

    def __init__(self, console: Console | None = None, tracker: Tracker | None = None) -> None:
        self._console = console or Console(file=sys.stderr)
        self._tracker = tracker or Tracker()
        self._live: Live | None = None
        self._ticker: threading.Thread | None = None
        self._over = threading.Event()
        self._drawn_at = time.monotonic()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(
                get_renderable=self._render, console=self._console, refresh_per_second=4, transient=True
            )
        # In the context of a notebook's cell, by which its output finds its place.
        context = contextvars.copy_context()
        self._ticker = threading.Thread(
            target=context.run, args=(self._tick,), name="evalcube-display", daemon=True
        )
        self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._ticker is not None:
            self._ticker.join()
        if self._live is not None:
            self._live.stop()

    def __call__(self, event: Event) -> None:
        """Take an event in."""
        self._tracker(event)
        if isinstance(event, Noted):
            self._note(str(event))
        if isinstance(event, Started) and self._live is not None and event.done < event.trials:
            self._live.start()

    def _note(self, text: str) -> None:
        self._print(Text(f"· {text}", style="dim"))

    def _print(self, text: Text) -> None:
        """Print a text; one line in a pipe or a log, whatever width is assumed there."""
        piped = not self._console.is_terminal
        self._console.print(Text(" ").join(text.split()) if piped else text, soft_wrap=piped)

    def _tick(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            self._draw()

    def _draw(self) -> None:
        if self._live is None and time.monotonic() - self._drawn_at >= _LINE_SECONDS:
            self._drawn_at = time.monotonic()
            self._print(Text(self._line()))

    def _line(self) -> str:
        now = self._tracker.progress()
        return f"{now.done}/{now.trials} trials  " + "  ".join(
            [*self._facts(now), waits(now.traffic.waiting)]
        )

    def _facts(self, now: RunProgress) -> list[str]:
        """What is said of a run beside how far it is."""
        traffic, retried = now.traffic, sum(now.traffic.retries.values())
        facts = [
            f"ETA {eta_text(now.eta)}",
            f"after {duration(self._tracker.seconds)}",
            f"requests/s {now.replies:.1f}",
            f"in flight {traffic.in_flight}",
            f"cached {self._tracker.cached}",
            f"errors {self._tracker.transport}" + (f" (+{retried} retried)" if retried else ""),
        ]
        if now.usd is None:
            return facts
        return [*facts, f"USD {now.usd:.2g}" if now.usd < 1 else f"USD {now.usd:.2f}"]

    def _render(self) -> Group:
        now = self._tracker.progress()
        line = Table.grid(padding=(0, 1), expand=True)
        for ratio in (None, 1, None, None):
            line.add_column(ratio=ratio, no_wrap=True)
        share = 100 * now.done // now.trials if now.trials else 0
        bar = ProgressBar(total=now.trials or None, completed=now.done)
        line.add_row("[bold]evalcube", bar, f"{now.done:,}/{now.trials:,}", f"{share}%")
        facts = Text("  ".join(fact.replace(" ", "\u00a0") for fact in self._facts(now)))
        waiting = Text(waits(now.traffic.waiting), style="yellow")
        return Group(line, facts, *([waiting] if waiting else []), self._models(now))

    def _models(self, now: RunProgress) -> Table:
        # What is going on comes first where there is no room for all.
        most = max(3, min(_MOST_MODELS, self._console.height - _ROWS_BESIDE))
        shown = now.models
        if len(shown) > most:
            shown = tuple(sorted(shown, key=lambda row: (row.is_finished, not row.rate))[:most])
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("model", overflow="fold")
        for head in ("trials", "%", "per s", ""):
            table.add_column(head, justify="right", no_wrap=True)
        for row in shown:
            pace = "" if row.is_finished else f"{row.rate:.1f}"
            state = "[green]done" if row.is_finished else "[yellow]waits" if row.waiting else ""
            share = f"{100 * row.done // row.trials}" if row.trials else ""
            trials = f"{row.done:,}" + (f"/{row.trials:,}" if row.trials else "")
            table.add_row(Text(row.label), trials, share, pace, state)
        if len(shown) < len(now.models):
            table.add_row(f"[dim]… and {len(now.models) - len(shown)} more")
        return table


class NotebookDisplay(Display):
    """A subscriber that shows a run below the cell that runs it; needs IPython."""

    def __init__(self, tracker: Tracker | None = None) -> None:
        super().__init__(_recorder(), tracker)
        self._notes: list[str] = []
        self._ended = ""
        self._output: Any = None

    def __enter__(self) -> Self:
        shows = import_module("IPython.display")
        self._output = shows.display(shows.HTML(self.html()), display_id=True)
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._ended = self._ended or "stopped"
        self._draw()

    def __call__(self, event: Event) -> None:
        """Take an event in."""
        super().__call__(event)
        if isinstance(event, Finished):
            self._ended = event.reason

    def _note(self, text: str) -> None:
        self._notes = [*self._notes, text][-_SHOWN_NOTES:]

    def _draw(self) -> None:
        self._output.update(import_module("IPython.display").HTML(self.html()))

    def html(self) -> str:
        """What is shown; names and notes as text."""
        now = self._tracker.progress()
        share = f"{100 * now.done // now.trials}%" if now.trials else ""
        lines = [] if self._ended else ["  ".join(self._facts(now)), waits(now.traffic.waiting)]
        console = _recorder()
        for part in (*map(Text, filter(None, lines)), self._models(now), *map(Text, self._notes)):
            console.print(part)
        text = console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")
        return (
            f"<b>evalcube</b> {now.done:,} of {now.trials:,} trials, {share} {escape(self._ended)}<br>"
            f'<progress value="{now.done}" max="{max(now.trials, 1)}" style="width:60em"></progress>{text}'
        )


def _recorder() -> Console:
    return Console(
        file=io.StringIO(), force_jupyter=False, width=_NOTEBOOK_WIDTH, height=_NOTEBOOK_HEIGHT, record=True
    )
