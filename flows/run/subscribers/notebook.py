"""A progress bar in a notebook: one output of a cell, drawn anew while the run goes on."""

from __future__ import annotations

import contextvars
import math
import sys
import threading
from html import escape
from importlib import import_module
from types import TracebackType
from typing import Any, Self

from evalcube.flows.run.events import Event, Finished, Noted
from evalcube.flows.run.progress import ModelProgress, Progress, RunProgress
from evalcube.flows.run.subscribers.facts import facts_of, note_of

_LOOK_SECONDS = 0.5
_SHOWN_MODELS = 30
_SHOWN_NOTES = 4


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook; IPython is not imported to find that out."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


class NotebookDisplay:
    """A subscriber that shows a run below the cell that runs it; needs IPython.

    Parameters
    ----------
    progress
        Adds up the events; default: by the clock of this machine.
    """

    def __init__(self, progress: Progress | None = None) -> None:
        self._progress = progress or Progress()
        self._notes: list[str] = []
        self._over = threading.Event()
        self._ended = ""
        self._ticker: threading.Thread | None = None
        self._output: Any = None

    def __enter__(self) -> Self:
        shows = _shows()
        self._output = shows.display(shows.HTML(self.html()), display_id=True)
        # In the context of the cell, by which its output finds its place.
        context = contextvars.copy_context()
        self._ticker = threading.Thread(
            target=context.run, args=(self._tick,), name="evalcube-notebook", daemon=True
        )
        self._ticker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._ticker is not None:
            self._ticker.join()
        self._ended = self._ended or "stopped"
        self._draw()

    def __call__(self, event: Event) -> None:
        """Take an event in."""
        self._progress(event)
        if isinstance(event, Noted):
            self._notes = [*self._notes, note_of(event)][-_SHOWN_NOTES:]
        elif isinstance(event, Finished):
            self._ended = event.reason

    def _tick(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            self._progress.look()
            self._draw()

    def _draw(self) -> None:
        self._output.update(_shows().HTML(self.html()))

    def html(self) -> str:
        """What is shown; names and notes as text."""
        now = self._progress.now()
        share = f"{100 * now.done // now.trials} %" if now.trials else ""
        over = ("ETA", "in flight", "requests/s", "tokens/s") if self._ended else ()
        facts = "&ensp; ".join(
            f'<span style="opacity:.65">{escape(name)}</span> {escape(value)}'
            for name, value in facts_of(now)
            if name not in over
        )
        notes = "".join(f'<div style="opacity:.65">{escape(note)}</div>' for note in self._notes)
        waiting = (
            f'<div style="color:#b35900">{escape(now.waiting)}</div>'
            if now.waiting and not self._ended
            else ""
        )
        return (
            '<div style="max-width:60em;font-size:13px;line-height:1.5;font-variant-numeric:tabular-nums">'
            f"<div><b>evalcube</b> {now.done:,} of {now.trials:,} trials, {share} {escape(self._ended)}</div>"
            f"{_bar(now.done, now.trials, '100%')}<div>{facts}</div>{waiting}{_models(now)}{notes}</div>"
        )


def _shows() -> Any:  # noqa: ANN401 - a module without types, of a package that only notebooks have
    return import_module("IPython.display")


def _bar(done: int, trials: int, width: str) -> str:
    return f'<progress value="{done}" max="{max(trials, 1)}" style="width:{width}"></progress>'


def _models(now: RunProgress) -> str:
    shown = now.models[:_SHOWN_MODELS]
    rest = len(now.models) - len(shown)
    rows = "".join(map(_row, shown))
    more = f'<tr><td style="text-align:left">… and {rest} more</td></tr>' if rest else ""
    heads = "".join(
        f'<th style="text-align:{"left" if not head or head == "model" else "right"}">{head}</th>'
        for head in ("model", "", "trials", "per s", "tokens/s", "accuracy", "")
    )
    return f'<table style="margin:4px 0"><thead><tr>{heads}</tr></thead><tbody>{rows}{more}</tbody></table>'


def _row(one: ModelProgress) -> str:
    done = one.finished
    cells = (
        f"{one.done:,}" + (f" of {one.trials:,}" if one.trials else ""),
        "" if done else f"{one.rate:.1f}",
        "" if done else f"{one.tokens:.0f}",
        "–" if math.isnan(one.accuracy) else f"{100 * one.accuracy:.1f} %",
        "done" if done else "waits" if one.waiting else "",
    )
    name = f'<td style="text-align:left">{escape(one.label)}</td><td>{_bar(one.done, one.trials, "8em")}</td>'
    return "<tr>" + name + "".join(f'<td style="text-align:right">{cell}</td>' for cell in cells) + "</tr>"
