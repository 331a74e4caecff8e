"""The right to be the only driver of a cube, for as long as it is renewed.

The record names its holder and never changes; the holder renews it twelve times within its time to live. Whoever finds
that its holder ended, or watches for that long and sees no renewal, takes it over: see `evalcube.storage.cube.holder`.
How that is kept from happening twice at once is up to the space: see `evalcube.storage.cube.space.LeaseRecord` and
`evalcube.storage.cube.directory.records`. No clock of another machine decides anything.

A lease keeps two drivers apart that both behave. A holder that was stopped for longer than its time to live may wake up
in the middle of a write: so drivers call `Lease.check`, and tasks `check_holder`, right before they write, and the
receipt of a region that is to be continued is checked against its content.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Self

from evalcube.storage.clocks import elapsed_seconds
from evalcube.storage.cube.holder import (
    HELD_HERE,
    LONGEST_TTL,
    NAME,
    Hold,
    Holder,
    Watch,
    held_error,
    holder_of,
    read_holder,
    takeover_notice,
    watch_notice,
    where_of,
)
from evalcube.storage.cube.ledger import NAME as LEDGER
from evalcube.storage.cube.space import HeldRecord, LeaseState, Space
from evalcube.storage.errors import LeaseLostError, StorageError, guarded
from evalcube.storage.processes import machine_id, this_process

_RENEWALS = 12
"""Within a time to live. One would do; of many, whoever watches sees one soon."""
_POLL_SECONDS = 0.25


def check_holder(records: Space, token: str) -> None:
    """Make sure, in any process, that the holder of the lease is still the one with this token."""
    current = read_holder(records)
    # The token alone counts, not the time: a lease that expired and that nobody took is the old holder's, who
    # renews it when it wakes up.
    if current is None or current[0].token != token:
        raise _lease_lost("the lease of the run that this belongs to is over", where_of(records))


class Lease:
    """A lease that this process holds; make one with `Lease.acquire`, best in a ``with`` statement."""

    def __init__(self, where: str, held: HeldRecord, holder: Holder) -> None:
        self._where = where
        self.holder = holder
        self.lost = threading.Event()
        """Set once another process has taken over; then nothing more may be written."""
        self._held: HeldRecord | None = held
        self._stamp = holder.since
        self._renewed = elapsed_seconds()
        self._mutex = threading.Lock()
        self._stop = threading.Event()
        # A daemon: a process that ends without releasing its lease is not kept alive by it.
        self._thread = threading.Thread(target=self._renewing, name="evalcube-lease", daemon=True)
        self._thread.start()

    @classmethod
    def acquire(
        cls, records: Space, *, ttl: float = 60.0, notify: Callable[[str], None] = lambda _: None
    ) -> Self:
        """Take the lease, or take it over from a holder that ended or does not renew it any more.

        At once, unless the holder is on another machine: then it is watched, until it renews its lease or has not done
        so for its time to live.
        """
        where = where_of(records)
        if not 0 < ttl <= LONGEST_TTL:
            raise StorageError(f"`ttl` must be positive, and a day at most, got {ttl}", where, "Give 60.")
        with guarded(where, "take the lease"):
            attempt = _Attempt(records, ttl, notify)
            held, holder = attempt.take()
            if attempt.found is not None:
                # It was not given back: whoever held it may wake up between asking for it and appending.
                records.log(LEDGER).claim()
        return cls(where, held, holder)

    def check(self) -> None:
        """Make sure that the lease is still held; cheap, to be called before each commit.

        In time, that is one question to the file system; only a late holder waits for the lock.
        """
        with self._mutex:
            if not self.lost.is_set() and not self._stop.is_set():
                with guarded(self._where, "check the lease"):
                    self._renew(touch=False)
            # Once lost it is lost, though the successor may have ended: it may have written what this one never saw.
            if self.lost.is_set() or self._stop.is_set():
                problem = f"it was released, or not renewed for {self.holder.ttl:g} s and taken over"
                raise _lease_lost(f"this process no longer holds the lease: {problem}", self._where)

    def release(self) -> None:
        """Give the lease back; a lease that went to another process is left alone. May be repeated."""
        self._stop.set()
        # Joined first: a renewal after the removal would find a lease that is lost.
        if threading.current_thread() is not self._thread:
            self._thread.join()
        with self._mutex:
            held, self._held = self._held, None
            if held is None:
                return
            try:
                with guarded(self._where, "release the lease"):
                    held.withdraw()
            finally:
                held.close()
                # Also if the record could not be withdrawn: this process is alive, and yet holds it no more.
                HELD_HERE.discard(self.holder.token)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _renewing(self) -> None:
        while not self._stop.wait(self.holder.ttl / _RENEWALS):
            with self._mutex:
                try:
                    self._renew(touch=True)
                except (OSError, StorageError):
                    # A disk or a mount may come back; if it does not, the next renewal or `check` sees an
                    # expired lease and asks who has it.
                    continue
            if self.lost.is_set():
                return

    def _renew(self, *, touch: bool) -> None:
        """Renew, or only find out whether that is still possible; sets `lost` where it is not."""
        held = self._held
        if held is None:
            return
        begun = elapsed_seconds()
        # By a clock of this machine alone: others count from the last renewal that they saw, which is not earlier.
        late = begun - self._renewed >= self.holder.ttl
        if touch or late:
            # Always another one than the last, though a clock may stand still: others look for a change.
            stamp = time.time()
            stamp += 1e-3 * (stamp == self._stamp)
            mine = held.renew(stamp, late=late)
            if mine:
                # Only now: should the renewal fail, the lease ends when others see it end.
                self._renewed, self._stamp = begun, stamp
        else:
            mine = held.is_mine()
        if not mine:
            self.lost.set()


class _UndecidedError(Exception):
    """Raised under the lock, where nobody may wait: the holder has to be watched first."""


class _Attempt:
    """One process's attempt to take a lease."""

    def __init__(self, records: Space, ttl: float, notify: Callable[[str], None]) -> None:
        self._records, self._notify = records, notify
        self._watch = Watch()
        self._asked = 0.0
        self._holder = Holder(secrets.token_hex(16), this_process(), time.time(), ttl, machine_id())
        self.found: LeaseState | None = None
        """The record that was taken over; None if there was none."""

    def take(self) -> tuple[HeldRecord, Holder]:
        """Take the lease as soon as nobody holds it; who may is watched without a lock."""
        # Before it is there: another thread of this process must not take it for one that nobody gives back.
        HELD_HERE.add(self._holder.token)
        try:
            lease, notified = self._records.lease(NAME), False
            while True:
                self._asked = time.monotonic()
                record = lease.read()
                holder = None if record is None else holder_of(record)
                if record is not None and holder is not None and self._is_watched(record):
                    if not notified:
                        self._notify(watch_notice(holder))
                    notified = True
                    time.sleep(min(_POLL_SECONDS, holder.ttl / _RENEWALS))
                    continue
                if notified and holder is not None:
                    self._notify(takeover_notice(holder))
                self._asked = time.monotonic()
                with suppress(_UndecidedError):
                    return lease.take(self._successor), self._holder
        except BaseException:
            HELD_HERE.discard(self._holder.token)
            raise

    def _successor(self, record: LeaseState | None) -> LeaseState:
        if record is not None and self._is_watched(record):
            raise _UndecidedError
        self.found = record
        # The time begins now: until then another one's hold may have been waited for.
        self._holder = replace(self._holder, since=time.time())
        return LeaseState(json.dumps(asdict(self._holder), indent=1).encode(), self._holder.since)

    def _is_watched(self, record: LeaseState) -> bool:
        """Whether it is still unknown if a record has a holder; raises if it has."""
        hold = self._watch.hold(record, self._asked)
        if hold is Hold.SURE:
            raise held_error(self._records, record)
        return hold is Hold.WATCHED


def _lease_lost(rule: str, where: str) -> LeaseLostError:
    return LeaseLostError(
        rule, where, "Let the other one finish, then run again: nothing that was recorded is lost."
    )
