"""What a live display of a run shows."""

import io
import time

from rich.console import Console

from flows.run.events import Started, Traffic
from flows.run.subscribers.display import Display
from flows.run.summary import Tracker

STARTED = Started("run-1", "cube.zarr", 10, 2, ("alpha",))
WAITING = {"gpt": {"seconds": 44.9, "reason": "429: requests, Retry-After"}}
SHOWN = "waiting 45 s for gpt (429: requests, Retry-After)"


def shown(*events):
    """The line of a pipe, and what a terminal shows."""
    console = Console(file=io.StringIO(), width=120)
    display = Display(console)
    for event in (STARTED, *events):
        display(event)
    console.print(display._render())
    return display._line(), console.file.getvalue()


def test_display__says_for_what_it_waits_and_how_long():
    line, screen = shown(Traffic(waiting=WAITING, worker="a"))

    assert line.endswith(SHOWN)
    assert SHOWN in screen


def test_display__says_nothing_of_a_wait_that_is_over():
    line, screen = shown(Traffic(waiting=WAITING, worker="a"), Traffic(worker="a"))

    assert "waiting" not in line + screen


def test_tracker__of_several_workers_takes_the_longest_wait_and_lets_it_run_out():
    tracker = Tracker()
    short = {"gpt": {"seconds": 0.05, "reason": "429: Retry-After"}}
    tracker(Traffic(waiting={**WAITING, "b": short["gpt"]}, worker="a"))
    tracker(Traffic(waiting=short, worker="b"))

    time.sleep(0.06)

    assert list(tracker.traffic().waiting) == ["gpt"]
    assert 44 < tracker.traffic().waiting["gpt"]["seconds"] < 44.9
