"""What a live display of a run shows."""

import io

import pytest
from rich.console import Console

from evalcube.flows.events import Asked, BlockDone, Noted, Started, Traffic
from evalcube.flows.run.follow.display import Display
from evalcube.flows.run.follow.progress import Tracker

STARTED = Started("run-1", "cube.zarr", 10, 2, ("alpha",))
WAITING = {"gpt": {"seconds": 44.9, "reason": "429: requests, Retry-After"}}
SHOWN = "waiting 45 s for gpt (429: requests, Retry-After)"
MODELS = ("org/a-model-with-a-rather-long-name-72b", "beta [red]", "gpt")
TWO_PRICED = Started(
    "run-1",
    "cube.zarr",
    300,
    60,
    MODELS,
    recorded=(60, 0, 0),
    asked=tuple(Asked(name, 100, 40 if not i else 100) for i, name in enumerate(MODELS)),
    prices={MODELS[0]: (1.0, 2.0), "gpt": (0.0, 0.0)},
)


def shown(*events, started=STARTED, width=120, height=40):
    """The line of a pipe, and what a terminal shows."""
    console = Console(file=io.StringIO(), width=width, height=height)
    display = Display(console, Tracker(lambda: 0.0))
    for event in (started, *events):
        display(event)
    console.print(display._render())
    return display._line(), console.file.getvalue()


def test_display__says_for_what_it_waits_and_how_long():
    line, screen = shown(Traffic(waiting=WAITING, worker="a"))

    assert line.endswith(SHOWN)
    assert SHOWN in screen


def test_display__writes_one_line_of_each_event_into_a_pipe():
    console = Console(file=io.StringIO(), width=40)
    display = Display(console, Tracker(lambda: 0.0))
    display(STARTED)
    display(Noted("a note that is longer than forty columns,\nand has lines of its own"))
    display._drawn_at = float("-inf")
    display._draw()

    lines = console.file.getvalue().splitlines()
    assert lines[0] == "· a note that is longer than forty columns, and has lines of its own"
    assert lines[1].startswith("2/10 trials  ETA")
    assert len(lines) == 2


def test_display__says_nothing_of_a_wait_that_is_over():
    line, screen = shown(Traffic(waiting=WAITING, worker="a"), Traffic(worker="a"))

    assert "waiting" not in line + screen


def test_display__shows_how_far_each_model_is_and_what_it_costs():
    traffic = Traffic(
        sent=50,
        replies=45,
        in_flight=5,
        usage={MODELS[0]: (1000, 500), "gpt": (9, 9)},
        answered={MODELS[0]: 40, "gpt": 5},
        waiting=WAITING,
        worker="a",
    )
    graded = BlockDone((0,), 0, trials=40, cached=0, transport=0, missing=0)

    line, screen = shown(traffic, graded, started=TWO_PRICED)

    (first, second, third) = screen.splitlines()[-3:]
    assert MODELS[0] in first
    assert "100/100" in first
    assert first.rstrip().endswith("done")
    assert "beta [red]" in second
    assert "0/100" in second
    assert "5/100" in third
    assert third.rstrip().endswith("waits")
    assert SHOWN in screen
    assert "in flight 5" in line
    assert "USD 0.002" in line
    assert "USD" not in shown(traffic)[0]


def test_display__cuts_nothing_at_80_columns_and_fits_the_height():
    many = tuple(f"model-{place}" for place in range(60))
    started = Started("r", "c", 600, 0, many, asked=tuple(Asked(name, 10, 10) for name in many))

    screen = shown(started=TWO_PRICED, width=80)[1]
    tall = shown(BlockDone((0,), 59, 3, 0, 0, 0), started=started, height=20)[1]

    assert "…" not in screen
    assert max(map(len, screen.splitlines())) <= 80
    assert MODELS[0] in "".join(line[:38].strip() for line in screen.splitlines())
    assert len(tall.splitlines()) <= 20
    assert "… and 49 more" in tall


def test_tracker__of_several_workers_takes_the_longest_wait_and_lets_it_run_out():
    now = 0.0
    tracker = Tracker(lambda: now)
    short = {"gpt": {"seconds": 0.05, "reason": "429: Retry-After"}}
    tracker(Traffic(waiting={**WAITING, "b": short["gpt"]}, worker="a"))
    tracker(Traffic(waiting=short, worker="b"))

    now = 0.5

    assert list(tracker.traffic().waiting) == ["gpt"]
    assert tracker.traffic().waiting["gpt"]["seconds"] == pytest.approx(WAITING["gpt"]["seconds"] - 0.5)
