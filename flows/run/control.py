"""Has a run obey what is ordered of it while it goes on: see `evalcube.flows.plan.control` for how orders come.

Whoever can write the cube may lower what the run spends, and only its own user may raise it. A thread reads orders and
writes answers, so that a slow store holds up neither requests nor recording; they are obeyed in the driver's thread.
"""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Self

from evalcube.flows.plan.control import Answer, Order, forget_orders, is_own, own_key, read_order, reply
from evalcube.flows.run.events import Controlled, Event
from evalcube.flows.run.in_flight import shared_connections
from evalcube.flows.run.spending import Spending
from evalcube.stages.infer.endpoint import Endpoint
from evalcube.stages.infer.steering import Steering
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import StorageError

_POLL_SECONDS = 0.5
_STORE_SECONDS = 2.0
"""Where each look is a request that has its price."""
_MOST_AT_ONCE = 20
_CLOSING_SECONDS = 5.0
_ENDPOINT_LIMITS = {"connections": 4096, "requests_per_minute": 1e7, "tokens_per_minute": 1e12}
_SWEEP_LIMITS = {"tokens": 1e15, "usd": 1e9}
"""With the largest that each may be, as in a config."""
_OWN_ONLY = (
    "only the user who runs the sweep may, from an account with the same ~/.local/state/evalcube/control.key"
)


class _RefusedError(Exception):
    """An order is not obeyed; the text says why."""


class Control:
    """What was ordered of a run so far; a context in which orders are read.

    Parameters
    ----------
    records
        Of the cube.
    token
        Of the run's lease.
    models
        Labels of the models that the run may ask.
    spending
        Whose bound can be lowered.
    emit
        Gets an event for each order.
    """

    def __init__(
        self,
        records: Space,
        token: str,
        models: Iterable[str],
        spending: Spending,
        emit: Callable[[Event], None] = lambda _: None,
    ) -> None:
        self._records = records
        self._token = token
        self._models = tuple(dict.fromkeys(models))
        self._spending = spending
        self._emit = emit
        self._key = own_key(make=True)
        self._seconds = _STORE_SECONDS if records.trusted else _POLL_SECONDS
        self._next = 1
        self._orders: queue.SimpleQueue[Order] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[int, Answer]] = queue.SimpleQueue()
        self._over = threading.Event()
        # A daemon: a process that ends in whichever way is not kept alive by it.
        self._thread = threading.Thread(target=self._watch, name="evalcube-control", daemon=True)
        self._paused_by_owner = self._paused_by_others = False
        self._retries = 0
        self._retry = False
        self._endpoints: dict[str, Endpoint] = {}
        self._changed: set[str] = set()
        """Models whose limits are others than the config's."""
        self.dropped: tuple[str, ...] = ()
        """Models that are asked nothing more."""
        self.stopped = ""
        """Who had the run stop; empty if nobody has."""

    def __enter__(self) -> Self:
        with suppress(OSError, StorageError):  # what an earlier run left is not read anyway
            forget_orders(self._records, self._token)
            self._read_orders()  # here and now: what was ordered before the first request holds for it
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join(_CLOSING_SECONDS)
        with suppress(OSError, StorageError):
            forget_orders(self._records)

    def serve(self, endpoints: Mapping[str, Endpoint]) -> None:
        """Take over where the models are asked in this run, and within which limits."""
        self._endpoints = dict(endpoints)

    @property
    def paused(self) -> bool:
        """Whether nothing is to be asked for now."""
        return self._paused_by_owner or self._paused_by_others

    @property
    def steering(self) -> Steering:
        """What workers have to know."""
        return Steering(
            paused=self.paused,
            dropped=frozenset(self.dropped),
            quotas={name: self._endpoints[name].quota for name in sorted(self._changed)},
            retries=self._retries,
        )

    def connections(self, model: str) -> int | None:
        """Connections to the address of a model; None if it is not asked."""
        endpoint = self._endpoints.get(model)
        asked = {name: other for name, other in self._endpoints.items() if name not in self.dropped}
        return shared_connections(endpoint, asked) if endpoint is not None and model in asked else None

    def take_retry(self) -> bool:
        """Whether what failed is to be asked once more; it is asked as often as that is ordered."""
        wanted, self._retry = self._retry, False
        return wanted

    def poll(self) -> bool:
        """Obey what has arrived, in the calling thread; returns whether there was anything."""
        any_at_all = False
        with suppress(queue.Empty):
            while True:
                self._handle(self._orders.get_nowait())
                any_at_all = True
        return any_at_all

    def _handle(self, order: Order) -> None:
        own = is_own(order, self._token, self._key)
        try:
            answer = Answer(True, self._obey(order, own=own))
        except _RefusedError as refusal:
            answer = Answer(False, str(refusal))
        self._answers.put((order.number, answer))
        self._emit(
            Controlled(
                number=order.number,
                command=order.command or "not understood",
                words=order.words,
                by=order.by,
                own=own,
                obeyed=answer.obeyed,
                message=answer.message,
                paused=self.paused,
                connections={
                    name: limit for name in self._endpoints if (limit := self.connections(name)) is not None
                },
                dropped=self.dropped,
            )
        )

    def _obey(self, order: Order, *, own: bool) -> str:
        """Obey an order; returns what was done."""
        if order.command == "pause":
            return self._pause(own=own)
        if order.command == "resume":
            return self._resume(own=own)
        if order.command == "stop":
            self.stopped = self.stopped or order.by or "somebody"
            return "stopping: what is in flight ends first, and everything is recorded"
        if order.command == "limits":
            return self._limit(order.words, own=own)
        if order.command == "drop-model":
            return self._drop(order.words)
        if order.command == "retry-errors":
            return self._retry_errors(own=own)
        raise _RefusedError("the order is not understood: it may be damaged, or of another version")

    def _pause(self, *, own: bool) -> str:
        if own:
            self._paused_by_owner = True
        else:
            self._paused_by_others = True
        return "paused: what is in flight ends, and nothing more is sent until `resume`"

    def _resume(self, *, own: bool) -> str:
        if own:
            self._paused_by_owner = False
        if not self._paused_by_owner:
            self._paused_by_others = False
            return "going on"
        raise _RefusedError(f"the run's own user paused it, and has to end the pause: {_OWN_ONLY}")

    def _drop(self, words: tuple[str, ...]) -> str:
        if not words:
            raise _RefusedError("no model was named")
        self._check_names(words)
        self.dropped = tuple(dict.fromkeys((*self.dropped, *words)))
        named = ", ".join(words)
        return f"{named}: nothing more is asked; what is in flight ends, and a later run asks the rest"

    def _retry_errors(self, *, own: bool) -> str:
        if not own:
            raise _RefusedError(f"asking again costs: {_OWN_ONLY}")
        self._retries += 1
        self._retry = True
        return "endpoints that were given up are tried again now, and failed trials once the others are done"

    def _limit(self, words: tuple[str, ...], *, own: bool) -> str:
        names = [word for word in words if "=" not in word]
        self._check_names(names)
        settings = dict(_setting(word) for word in words if "=" in word)
        if not settings:
            known = ", ".join((*_ENDPOINT_LIMITS, *_SWEEP_LIMITS))
            raise _RefusedError(f"no limit was named; there are {known}, as in connections=4")
        if names and (wrong := [name for name in settings if name in _SWEEP_LIMITS]):
            raise _RefusedError(f"{', '.join(wrong)}: bounds the whole sweep, and no model of it")
        changed = {
            name: self._endpoints[name]
            for name in names or self._endpoints
            if any(limit in _ENDPOINT_LIMITS for limit in settings)
        }
        bound = self._spending.bound
        for limit, value in settings.items():
            if limit in _SWEEP_LIMITS:
                _check_lower(limit, bound.get(limit), value, own=own)
                bound = {**bound, limit: value}
            for name, endpoint in changed.items():
                _check_lower(f"{limit} of {name}", getattr(endpoint, limit, None), value, own=own)
                if limit in _ENDPOINT_LIMITS:
                    changed[name] = _with_limit(endpoint, limit, value)
        # All of them or none: a refusal has left by now.
        self._spending.bound = bound
        self._endpoints.update(changed)
        self._changed.update(changed)
        said = ", ".join(f"{limit} {_shown(value)}" for limit, value in settings.items())
        return f"{', '.join(names)}: {said}{self._shared_with(names)}" if names else said

    def _shared_with(self, names: Sequence[str]) -> str:
        """A warning where other models at the same address bound those that were named."""
        accounts = {self._endpoints[name].account for name in names}
        others = [
            name
            for name, endpoint in self._endpoints.items()
            if endpoint.account in accounts and name not in (*names, *self.dropped)
        ]
        return (
            f" (the strictest of its address counts, and {', '.join(others)} is there, too)" if others else ""
        )

    def _check_names(self, names: Iterable[str]) -> None:
        known = tuple(self._endpoints) or self._models
        for name in names:
            if name not in known:
                raise _RefusedError(
                    f"there is no model '{name}' among those that are asked: {', '.join(known) or 'none'}"
                )

    def _watch(self) -> None:
        while True:
            over = self._over.wait(self._seconds)
            with suppress(OSError, StorageError):  # a store that is away for a moment: looked at again
                self._send_answers()
                if over:
                    return
                self._read_orders()
            if over:
                return

    def _read_orders(self) -> None:
        for _ in range(_MOST_AT_ONCE):
            order = read_order(self._records, self._token, self._next)
            if order is None:
                return
            self._next += 1
            self._orders.put(order)

    def _send_answers(self) -> None:
        with suppress(queue.Empty):
            while True:
                reply(self._records, self._token, *self._answers.get_nowait())


def _setting(word: str) -> tuple[str, float | None]:
    name, _, text = word.partition("=")
    name = name.replace("-", "_")
    if name not in (*_ENDPOINT_LIMITS, *_SWEEP_LIMITS):
        raise _RefusedError(
            f"there is no limit '{name}'; there are {', '.join((*_ENDPOINT_LIMITS, *_SWEEP_LIMITS))}"
        )
    if text == "none" and name != "connections":
        return name, None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    most = {**_ENDPOINT_LIMITS, **_SWEEP_LIMITS}[name]
    if not 0 < value <= most or (name == "connections" and not value.is_integer()):
        kind = "a whole number" if name == "connections" else "none or a number"
        raise _RefusedError(f"{name}: must be {kind} above 0, at most {most:,.0f}, got '{text}'")
    return name, value


def _with_limit(endpoint: Endpoint, limit: str, value: float | None) -> Endpoint:
    if limit == "connections":
        return endpoint if value is None else replace(endpoint, connections=int(value))
    if limit == "requests_per_minute":
        return replace(endpoint, requests_per_minute=value)
    return replace(endpoint, tokens_per_minute=value)


def _check_lower(what: str, now: float | None, value: float | None, *, own: bool) -> None:
    lower = value is not None and (now is None or value <= now)
    if not (lower or own or value == now):
        raise _RefusedError(f"{what} is {_shown(now)}, and {_shown(value)} is more: {_OWN_ONLY}")


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:,.10g}"
