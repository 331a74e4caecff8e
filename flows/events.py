"""What happens during a sweep and other long work, as values to which anyone may subscribe; nothing knows a display."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from evalcube.flows.errors import WrongTypeError, told
from evalcube.stages.infer.jobs import Slowdown

KILLED = "worker killed"
"""Cause of the transport error that a trial is with which workers end."""


@dataclass(frozen=True)
class Asked:
    """What a run has to ask of one evaluation."""

    model: str
    """Label of the model, by which requests are counted; evaluations may share it."""
    trials: int
    """Planned, repeats included."""
    left: int
    """Of these, without a result."""


@dataclass(frozen=True)
class Started:
    """The sweep is planned and its cube is open."""

    run: str
    cube: str
    trials: int
    """Trials of the whole sweep, repeats included."""
    done: int
    """Of these, finished by earlier runs."""
    models: tuple[str, ...]
    """Labels of the evaluations, in the cube's order."""
    recorded: tuple[int, ...] = ()
    """Of the trials of each evaluation, those finished by earlier runs."""
    asked: tuple[Asked, ...] = ()
    """Of each evaluation, what is asked."""
    prices: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """By label of a model whose prices are declared: USD per million tokens, see `Traffic.usage`."""


@dataclass(frozen=True)
class Extended:
    """A round is over, and the sampling wants more trials."""

    trials: int
    """Trials of the whole sweep now, repeats included."""
    asked: tuple[Asked, ...] = ()
    """Of each evaluation, what is asked since the run started."""


@dataclass(frozen=True)
class Traffic:
    """Totals of one worker's requests since it started."""

    sent: int = 0
    replies: int = 0
    in_flight: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usage: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Tokens of prompts and of completions, guessed where an endpoint reports none, and those of prompts that it had in
    its cache; by label of the model."""
    late: Mapping[str, float] = field(default_factory=dict)
    """By label of the model, seconds that requests with replies that count waited for the worker's CPU."""
    answered: Mapping[str, int] = field(default_factory=dict)
    """Replies that count, by label of the model."""
    retries: Mapping[str, int] = field(default_factory=dict)
    """By cause."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """By cause."""
    models: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By label of the model: ``requests``, ``answers`` and their ``seconds``, of blocks that are over."""
    active: float = 0.0
    """Seconds since the worker's first request."""
    asked: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """By label of the model, when its first request was sent and its last one ended, counted as `active` is; of
    totals, when that was on the driver's clock."""
    starved: Sequence[str] = ()
    """Labels of models of which the worker could ask more at this moment, if it had more blocks."""
    waiting: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By label of any model at an endpoint that asked for a pause for which requests wait: its ``seconds``, and the
    ``reason``."""
    found: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    """By label of any model at an endpoint, limits that nobody declared: ``requests`` per second, and the
    ``window`` of this worker, requests in flight that were of use and were not refused."""
    engines: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    """By label of the model, the fields of each `evalcube.stages.infer.endpoint.EngineInfo` that serves it."""
    worker: str = ""
    """Address and process; one without a process says that nobody is at the address any more."""


@dataclass(frozen=True)
class InDoubt:
    """A worker's requests fail, maybe by its own trouble; it holds them back until it hears more. For the driver."""

    worker: str
    """Address."""
    model: str
    """Label."""
    cause: str
    """Of the failures, one of our own words."""
    where: str
    """Host and port of the endpoint."""


@dataclass(frozen=True)
class BlockDone:
    """A block is graded; said again, with the same key, if a worker died and its block was graded anew."""

    key: tuple[int, ...]
    """Names the block within the run."""
    model: int
    """Index of the evaluation."""
    trials: int
    """Finished trials."""
    cached: int
    """Answers from the cache: of the run itself, too, where a worker died after it had asked."""
    transport: int
    """Transport errors."""
    missing: int
    """Never sent, because the run stops."""
    causes: Mapping[str, int] = field(default_factory=dict)
    """Transport errors by cause."""
    details: Mapping[str, str] = field(default_factory=dict)
    """One thing that the endpoint said, by cause."""


@dataclass(frozen=True)
class RegionWritten:
    """A region is in the cube and recorded."""

    model: int
    complete: bool


@dataclass(frozen=True)
class Noted:
    """Something that a person should read."""

    message: str
    said: str = ""
    """What a server said to that, for a terminal: no log holds it."""
    urgent: bool = False
    """Whether it is told where nothing shows the run, too."""

    def __str__(self) -> str:
        return f"{self.message}: {self.said}" if self.said else self.message


@dataclass(frozen=True)
class Finished:
    """The run ended in good order; one that fails raises."""

    reason: str
    """``complete``, ``incomplete`` (transport errors are left) or ``stopped``."""
    summary: Mapping[str, Any] = field(default_factory=dict)
    """Of the run, as JSON values."""


@dataclass(frozen=True)
class Counted:
    """How far a long step is."""

    noun: str
    """What is counted, such as ``regions compared``."""
    number: int
    """Of these so far."""


Event = Started | Extended | Traffic | Slowdown | BlockDone | RegionWritten | Noted | Counted | Finished
Subscriber = Callable[[Event], None]
T = TypeVar("T")


class Announcer:
    """Calls subscribers with each event, one call at a time whatever threads events come from; itself a subscriber."""

    def __init__(self, subscribers: Any) -> None:  # noqa: ANN401 - refused unless they are
        if not isinstance(subscribers, Sequence) or not all(map(callable, subscribers)):
            raise WrongTypeError(
                f"`subscribers`: {told(subscribers)} is no list of functions",
                "Give a list, such as [print], of functions that take an event",
            )
        self._subscribers, self._lock = tuple(subscribers), threading.Lock()

    def __call__(self, event: Event) -> None:
        """Pass an event on."""
        with self._lock:
            for subscriber in self._subscribers:
                subscriber(event)

    def note(self, message: str, said: str = "", *, urgent: bool = False) -> None:
        """Tell what a person should read."""
        self(Noted(message, said, urgent))

    def count(self, noun: str, number: int) -> None:
        """Tell how far a step is."""
        self(Counted(noun, number))

    def count_each(self, items: Iterable[T], noun: str) -> Iterator[T]:
        """Pass items on, and tell their number."""
        for number, item in enumerate(items, 1):
            self.count(noun, number)
            yield item


def process_at(address: str, process: object = "") -> str:
    """What names a worker's process in `Traffic`."""
    return f"{address}/{process}"


def address_of(worker: str) -> str:
    """The address in what `process_at` returned."""
    return worker.rpartition("/")[0] or worker


def topic(run: str) -> str:
    """Dask topic on which a run's workers report."""
    return f"evalcube-{run}"


Reported = Traffic | Slowdown | BlockDone | InDoubt


def as_message(event: Reported) -> dict[str, bytes]:
    """An event as Dask can send it."""
    # In one piece: Dask looks at each value of a message, several times, and here they are some for each model.
    return {"event": pickle.dumps(event)}


def from_message(message: Mapping[str, Any]) -> Reported:
    """Read what `as_message` wrote; Dask adds entries of its own around it, and unpickles all else that it brings."""
    event: Reported = pickle.loads(message["event"])  # noqa: S301
    return event
