"""Admits workers to a run, before anything is sent and when they join later: each must be able to take part."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from urllib.parse import urlsplit

from evalcube.deploy.clusters import ClusterError
from evalcube.deploy.clusters.asking import PendingAnswer
from evalcube.deploy.clusters.code import Code, State
from evalcube.flows.config.models import Model
from evalcube.flows.errors import SweepError
from evalcube.flows.run.servers import is_managed
from evalcube.storage.reach import Token

_FIRST_SECONDS = 120.0
"""A first worker gets ready within that time: it imports evalcube, maybe over a network, on a busy machine."""
_OTHERS_SECONDS = 10.0
"""Others are waited for that long after the first; then they are as if they joined later."""
_LOOK_SECONDS, _NOTE_SECONDS = 1.0, 5.0
"""Between two looks at which workers there are while none is ready, and until it is said that they are waited for."""
_POLL_SECONDS = 0.02
_LATE_SECONDS = 0.25
"""Between two questions to workers that joined and are not ready, where they are few."""
_MOST_QUESTIONS = 500
"""To such workers per second, where they are many."""
_ANSWER_SECONDS = 30.0
"""So long after a worker left its answer in the cube and the cache it may take to be seen here."""
_RENEWAL_SECONDS = 600.0
"""After which tokens are left anew: caches are cleaned of temporary files that are an hour old."""


class Members:
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
        self._ids: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        """Why others never will."""
        self._answered_at: dict[str, float] = {}
        self._announced: set[str] = set()
        """Refused workers that the user has heard of."""
        self._cut_off: set[str] = set()
        """Workers that would be ready, but for endpoints that they cannot connect to."""
        self._lacks: dict[str, Mapping[str, str]] = {}
        """What each worker could not connect to when it was asked last, and why."""
        self._allowed: tuple[frozenset[str], frozenset[str]] | None = None
        """Whom the scheduler lets in, and which others are silent; None if it may not have heard of it."""
        self._allowing: PendingAnswer[None] | None = None
        """On its way to the scheduler: that these are let in."""
        self._question: PendingAnswer[Mapping[str, State]] | None = None
        self._asked_at = 0.0
        self._renewed_at = time.monotonic()
        self.undecided = False
        """Whether more may be known in a moment of somebody who was there at the last call of `admit`."""
        self._hosts: dict[str, str] = {}

    def first(
        self,
        addresses: Sequence[str],
        there: Callable[[], Collection[str]] | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> list[str]:
        """Wait for the workers that are there; those that take part."""
        began = looked_at = time.monotonic()
        first_at: float | None = None
        state_said = ""
        while ((waiting := self._unknown(addresses)) or not addresses) and not stopped():
            with suppress(OSError):
                # Whoever does not answer in time is asked again in the next round of this loop.
                self._take(self._code.states(self._name, waiting).answer())
            # Each question would fail at once, and the loop turn until its time is over.
            if self._code.is_gone:
                raise ClusterError(
                    "the cluster's scheduler went away before any request. Look at its log, and run the same command "
                    "again."
                )
            now = time.monotonic()
            if (self._ready or self._cut_off) and first_at is None:
                first_at = now
            if first_at is None and there is not None and now - looked_at > _LOOK_SECONDS:
                looked_at = now
                with suppress(OSError):
                    addresses = sorted(there())
            if first_at is None:
                state_said = self._still_waits(len(addresses), now - began, state_said)
            # From the first one that is ready on: a worker that hangs must not hold up a thousand others.
            if first_at is not None and now - first_at > _OTHERS_SECONDS:
                some = ", ".join(waiting[:3]) + (" and others" if len(waiting) > 3 else "")
                self._note(
                    f"{len(waiting)} workers of {len(addresses)} do not answer ({some}): the run begins without them, "
                    f"and they take part once they do"
                )
                break
            time.sleep(_POLL_SECONDS)
        self._tell_apart()
        self._refuse_run()
        self._announce()
        allowing = self._allow(self._ready)
        if allowing is not None:
            with suppress(OSError):
                allowing.answer()
        return list(self._ready)

    def verdicts(self, addresses: Iterable[str]) -> dict[str, str]:
        """Why each of some workers takes no part; empty for those that do."""
        reasons = self._refused | {address: self._why_cut_off(address) for address in self._cut_off}
        reasons |= dict.fromkeys(self._ready, "")
        return {address: reasons.get(address, "does not answer") for address in sorted(addresses)}

    def _still_waits(self, workers: int, seconds: float, said: str) -> str:
        """Say once that so many workers are waited for, and again when it changes; raises after too many seconds."""
        if seconds > _FIRST_SECONDS:
            self._refuse_run()
            event = "got ready for the run" if workers else "was left or came, after all had gone,"
            raise ClusterError(
                f"no worker of the cluster {event} within {_FIRST_SECONDS:g} s. Look at the workers' logs, then run "
                f"the same command again."
            )
        state = f"{workers} workers get ready" if workers else "all workers have gone: waiting for others"
        if seconds > _NOTE_SECONDS and state != said:
            self._note(f"{state}; no request is sent meanwhile")
            return state
        return said

    def _unknown(self, addresses: Sequence[str]) -> list[str]:
        """Those of the workers of which nothing is known yet."""
        decided = self._cut_off.union(self._ready, self._refused)
        return [address for address in addresses if address not in decided]

    def _refuse_run(self) -> None:
        """Raise if no worker can take part: before anything was sent, that is for the user to correct."""
        unfit = self._refused | {each: self._why_cut_off(each) for each in sorted(self._cut_off)}
        if self._ready or not unfit:
            return
        address, problem = next(iter(unfit.items()))
        further = len(unfit) - 1
        more = f" ({further} more workers cannot take part either.)" if further else ""
        raise SweepError(f"worker {self.describe(address)}: {problem.rstrip('.')}.{more}")

    def set_aside(self, address: str, why: str) -> None:
        """Have a worker take no further part, for a reason that is told from the next call of `admit` on."""
        self._ready.pop(address, None)
        self._refused[address] = why

    def admit(
        self, there: Collection[str], aside: Collection[str] = (), silent: Collection[str] = ()
    ) -> list[str]:
        """Those of the workers that take part; asks the others, and never waits for an answer."""
        self._renew()
        # Forgotten, as another process may come with the address, which has to prove itself anew.
        for address in set(self._ready).difference(there):
            del self._ready[address]
        for address in set(self._refused).difference(there):
            del self._refused[address]
            self._announced.discard(address)
        self._cut_off.intersection_update(there)
        if self._question is not None and self._question.done:
            with suppress(OSError):
                self._take(self._question.answer())
            self._question = None
        now = time.monotonic()
        waiting = sorted(set(there).difference(self._ready, self._refused, aside))
        interval = max(_LATE_SECONDS, len(waiting) / _MOST_QUESTIONS)
        if waiting and self._question is None and now - self._asked_at > interval:
            self._asked_at = now
            self._question = self._code.states(self._name, waiting)
        self._tell_apart()
        self._announce()
        ready = set(self._ready).difference(aside)
        self._allow(ready, frozenset(silent).intersection(aside))
        # Whoever may still lose its tasks sends nothing: others would be given them, and ask the same once more.
        under_way = self._allowing is not None and not self._allowing.done
        sure = ready & self._allowed[0] if under_way and self._allowed is not None else ready
        self.undecided = bool(waiting or ready - sure)
        return sorted(sure)

    def _tell_apart(self) -> None:
        """Take in workers that reach no less than all others do: what nobody reaches is the endpoint's trouble."""
        for address in [candidate for candidate in sorted(self._cut_off) if not self._alone(candidate)]:
            self._cut_off.remove(address)
            self._ready[address] = self._ids[address]

    def _alone(self, address: str) -> dict[str, str]:
        """What a worker cannot connect to and others can, and why."""
        of_peers = [self._lacks.get(peer, {}) for peer in self._cut_off.union(self._ready)]
        lacks = self._lacks.get(address, {})
        return {where: why for where, why in lacks.items() if any(where not in lack for lack in of_peers)}

    def _why_cut_off(self, address: str) -> str:
        alone = self._alone(address)
        return f"{'; '.join(alone.values())}, and other workers reach {' and '.join(alone)}"

    def _announce(self) -> None:
        """Name those that take no part, once each."""
        out = self._refused | {worker: self._why_cut_off(worker) for worker in sorted(self._cut_off)}
        for address in sorted(out.keys() - self._announced):
            self._announced.add(address)
            self._note(f"worker {self.describe(address)} does not take part in the run: {out[address]}")

    def _allow(
        self, ready: Collection[str], silent: frozenset[str] = frozenset()
    ) -> PendingAnswer[None] | None:
        """Have tasks go to these workers only; the question, if it has to be asked."""
        if self._allowing is not None:
            if not self._allowing.done:
                return None  # one after the other, so that the last one holds
            try:
                self._allowing.answer()
            except OSError:  # said again
                self._allowed = None
            self._allowing = None
        wanted = frozenset(ready), silent
        if wanted == self._allowed:
            return None
        # Only those that fell silent since: what they had was given up once.
        before = frozenset() if self._allowed is None else self._allowed[1]
        newly, self._allowed = sorted(silent - before), wanted
        self._allowing = self._code.allow(self._name, sorted(ready), newly)
        return self._allowing

    def _take(self, states: Mapping[str, State]) -> None:
        now = time.monotonic()
        for address, state in states.items():
            self._hosts[address] = state.host
            if state.problem:
                self._refused[address] = state.problem
            # That it wrote its answer is not enough: this process must be able to read it.
            elif state.ready and all(token.has_answer(state.id) for token in self._tokens):
                self._ids[address], self._lacks[address] = state.id, state.cut_off
                if state.cut_off:
                    self._cut_off.add(address)
                else:
                    self._cut_off.discard(address)
                    self._ready[address] = state.id
            elif state.ready and now - self._answered_at.setdefault(address, now) > _ANSWER_SECONDS:
                places = " and ".join(f"the {token.what} ({token.url})" for token in self._tokens)
                self._refused[address] = (
                    f"wrote into {places}, and this process does not see it. Mount the same file systems on both, or "
                    f"give addresses that all reach (such as s3://...)"
                )

    def describe(self, address: str) -> str:
        """A worker for people: its address and its machine."""
        host = self._hosts.get(address, "")
        return f"{address} ({host})" if host else address

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


def refuse_far_workers(models: Sequence[Model], addresses: Sequence[str]) -> None:
    """Refuse models that are served on this machine only, where there are workers elsewhere."""
    far = [address for address in addresses if not _is_here(address)]
    for model in models:
        if far and is_managed(model):
            raise SweepError(
                f"models[{model.name}].endpoint: '{model.endpoint}' is served on this machine only, and worker "
                f"{far[0]} is elsewhere",
                "Serve the model at an address that the workers reach and give that as the endpoint",
            )


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
