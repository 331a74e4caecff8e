"""Admits workers to a run, before anything is sent and when they join later: each must be able to take part."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from urllib.parse import urlsplit

from evalcube.deploy.clusters import ClusterError
from evalcube.deploy.clusters.asking import Question
from evalcube.deploy.clusters.code import Code, State
from evalcube.flows.config.models import ModelConfig
from evalcube.flows.errors import SweepError
from evalcube.flows.run.servers import is_managed
from evalcube.storage.reach import Token

_PATIENCE_SECONDS = 120.0
"""A first worker gets ready within that time: it imports evalcube, maybe over a network, on a busy machine."""
_OTHERS_SECONDS = 10.0
"""Others are waited for that long after the first; then they are as if they joined later."""
_LOOK_SECONDS, _NOTE_SECONDS = 1.0, 5.0
"""Between two looks at which workers there are while none is ready, and until it is said that they are waited for."""
_POLL_SECONDS = 0.05
_LATE_SECONDS = 0.25
"""Between two questions to workers that joined and are not ready, where they are few."""
_MOST_QUESTIONS = 500
"""To such workers per second, where they are many."""
_ANSWER_SECONDS = 30.0
"""So long after a worker left its answer in the cube and the cache it may take to be seen here."""
_CLOCK_SECONDS = 60.0
_RENEWAL_SECONDS = 600.0


class Admission:
    """Who may take part in a run.

    Parameters
    ----------
    code
        How the run's plugin reached the workers.
    name
        Of that plugin.
    tokens
        What was left in cube and cache for workers to find.
    note
        Called with what the user should read.
    """

    def __init__(
        self,
        code: Code,
        name: str,
        tokens: Sequence[Token] = (),
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._code = code
        self._name = name
        self._tokens = tuple(tokens)
        self._note = note
        self._ready: dict[str, str] = {}
        """Workers that take part, with the unique names of their processes."""
        self._refused: dict[str, str] = {}
        """Why others never will."""
        self._answered_at: dict[str, float] = {}
        self._announced: set[str] = set()
        """Refused workers that the user has heard of."""
        self._barred: frozenset[str] = frozenset()
        self._barring: Question[None] | None = None
        """On its way to the scheduler: that these are kept away."""
        self._question: Question[Mapping[str, State]] | None = None
        self._asked_at = 0.0
        self._renewed_at = time.monotonic()
        self.undecided = False
        """Whether more may be known in a moment of somebody who was there at the last call of `admitted`."""
        self._clocks: set[str] = set()
        self._hosts: dict[str, str] = {}

    def first(
        self, addresses: Sequence[str], there: Callable[[], Collection[str]] | None = None
    ) -> list[str]:
        """Wait for the workers that are there; those that take part.

        Parameters
        ----------
        addresses
            Of the workers.
        there
            Says which workers there are by now: while none is ready, others may have taken their places.

        Raises
        ------
        SweepError
            If one of them cannot take part; it names the worker.
        ClusterError
            If none gets ready.
        """
        if not self._code.carried:
            return list(addresses)
        began = looked_at = time.monotonic()
        first_at: float | None = None
        said = ""
        while (waiting := [address for address in addresses if address not in self._ready]) or not addresses:
            with suppress(OSError):
                self._take(self._code.states(self._name, waiting).answer())
            self._refuse_run()
            now = time.monotonic()
            if self._ready and first_at is None:
                first_at = now
            if first_at is None and there is not None and now - looked_at > _LOOK_SECONDS:
                looked_at = now
                with suppress(OSError):
                    addresses = sorted(there())
            if first_at is None:
                said = self._still_waits(len(addresses), now - began, said)
            if first_at is not None and now - first_at > _OTHERS_SECONDS:
                self._note(
                    f"{len(waiting)} workers of {len(addresses)} do not answer ({_some(waiting)}): the run begins "
                    f"without them, and they take part once they do"
                )
                break
            time.sleep(_POLL_SECONDS)
        barring = self._bar(addresses)
        if barring is not None:
            with suppress(OSError):
                barring.answer()
        return list(self._ready)

    def _still_waits(self, workers: int, seconds: float, said: str) -> str:
        """Say once that so many workers are waited for, and again when it changes; raises after too many seconds."""
        if seconds > _PATIENCE_SECONDS:
            what = "got ready for the run" if workers else "was left or came, after all had gone,"
            raise ClusterError(
                f"no worker of the cluster {what} within {_PATIENCE_SECONDS:g} s. Look at the workers' logs, then run "
                f"the same command again."
            )
        state = f"{workers} workers get ready" if workers else "all workers have gone: waiting for others"
        if seconds > _NOTE_SECONDS and state != said:
            self._note(f"{state}; nothing is asked meanwhile")
            return state
        return said

    def _refuse_run(self) -> None:
        """Raise if a worker cannot take part: before anything was sent, that is for the user to mend."""
        if not self._refused:
            return
        address, problem = next(iter(self._refused.items()))
        others = len(self._refused) - 1
        more = f" ({others} more workers cannot take part either.)" if others else ""
        raise SweepError(f"worker {self._named(address)}: {problem.rstrip('.')}.{more}")

    def admitted(self, there: Collection[str]) -> list[str]:
        """Those of the workers that take part; asks the others, and never waits for an answer.

        Parameters
        ----------
        there
            Workers that serve.
        """
        if not self._code.carried:
            return sorted(there)
        self._renew()
        # One that is out of sight for a moment stays ready: barred anew, it would lose tasks that it is at.
        for address in set(self._refused).difference(there):
            del self._refused[address]
        if self._question is not None and self._question.done:
            with suppress(OSError):
                self._take(self._question.answer())
            self._question = None
        now = time.monotonic()
        waiting = sorted(set(there).difference(self._ready, self._refused))
        pause = max(_LATE_SECONDS, len(waiting) / _MOST_QUESTIONS)
        if waiting and self._question is None and now - self._asked_at > pause:
            self._asked_at = now
            self._question = self._code.states(self._name, waiting)
        for address in sorted(set(self._refused) - self._announced):
            self._announced.add(address)
            self._note(f"worker {self._named(address)} takes no part in the run: {self._refused[address]}")
        self._bar(there)
        # Whoever may still lose its tasks sends nothing: others would be given them, and ask the same once more.
        losing = frozenset() if self._barring is None or self._barring.done else self._barred
        ready = set(self._ready).intersection(there)
        self.undecided = bool(waiting or ready & losing)
        return sorted(ready - losing)

    def _bar(self, there: Collection[str]) -> Question[None] | None:
        """Keep tasks away from workers that are not ready, as long as others are; the question, if it has to be asked.

        One that hangs, or cannot take part, would hold them for minutes.
        """
        if self._barring is not None and not self._barring.done:
            return None  # one after the other, so that the last one holds
        barred = frozenset(there).difference(self._ready) if self._ready else frozenset(self._refused)
        if barred == self._barred:
            return None
        self._barred = barred
        self._barring = self._code.bar(self._name, sorted(barred))
        return self._barring

    def _take(self, states: Mapping[str, State]) -> None:
        now = time.monotonic()
        for address, state in states.items():
            self._hosts[address] = state.host
            self._compare_clock(address, state)
            if state.problem:
                self._refused[address] = state.problem
            elif state.ready and self._sees_answers(state.id):
                self._ready[address] = state.id
            elif state.ready and now - self._answered_at.setdefault(address, now) > _ANSWER_SECONDS:
                places = " and ".join(f"the {token.what} ({token.url})" for token in self._tokens)
                self._refused[address] = (
                    f"wrote into {places}, and this process does not see it. Mount the same file systems on both, or "
                    f"give addresses that all reach (such as s3://...)"
                )

    def _named(self, address: str) -> str:
        host = self._hosts.get(address, "")
        return f"{address} ({host})" if host else address

    def _sees_answers(self, who: str) -> bool:
        return all(token.answered(who) for token in self._tokens)

    def _compare_clock(self, address: str, state: State) -> None:
        if state.time is None or address in self._clocks:
            return
        self._clocks.add(address)
        apart = state.time - time.time()
        if abs(apart) > _CLOCK_SECONDS:
            way = "ahead" if apart > 0 else "behind"
            self._note(
                f"the clock of worker {self._named(address)} is {abs(apart) / 60:.1f} minutes {way}: have it set "
                f"(NTP); times of day in logs and notes will differ"
            )

    def _renew(self) -> None:
        if self._tokens and time.monotonic() - self._renewed_at > _RENEWAL_SECONDS:
            self._renewed_at = time.monotonic()
            for token in self._tokens:
                with suppress(Exception):  # a worker that joins is refused then, no more
                    token.leave()

    def close(self) -> None:
        """Take the tokens away."""
        for token in self._tokens:
            token.remove(self._ready.values())


def refuse_far_workers(models: Sequence[ModelConfig], addresses: Sequence[str]) -> None:
    """Refuse models that are served on this machine only, where there are workers elsewhere.

    Parameters
    ----------
    models
        The models that will be asked.
    addresses
        Of the workers.

    Raises
    ------
    SweepError
        If a server of this machine is out of a worker's reach.
    """
    far = [address for address in addresses if not _is_here(address)]
    for model in models:
        if far and is_managed(model):
            raise SweepError(
                f"models[{model.name}].endpoint: '{model.endpoint}' is served on this machine only, and worker "
                f"{far[0]} is elsewhere",
                "Serve the model at an address that the workers reach and give that as the endpoint",
            )


def _some(addresses: Sequence[str]) -> str:
    return ", ".join(addresses[:3]) + (" and others" if len(addresses) > 3 else "")


def _is_here(address: str) -> bool:
    if address.startswith("inproc:"):
        return True
    host = urlsplit(address).hostname or ""
    return host in {"127.0.0.1", "::1", "localhost", socket.gethostname()} or host == _own_address()


def _own_address() -> str:
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return ""
