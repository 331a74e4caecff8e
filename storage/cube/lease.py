"""The right to be the only driver of a cube, for as long as it is renewed.

The record names its holder and never changes; the holder renews it every third of its time to live. Whoever finds it
expired, or its holder ended, takes it over. How that is kept from happening twice at once is up to the space: see
`storage.cube.space.LeaseRecord` and `storage.cube.directory.lease`. Clocks of machines that share a cube may
differ by less than a third of the time to live.

A lease keeps two drivers apart that both behave. A holder that was stopped for longer than its time to live may wake up
in the middle of a write: so drivers call `Lease.check`, and tasks `check_holder`, right before they write, and the
receipt of a region that is to be continued is checked against its content.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from storage.cube.space import HeldRecord, Renewed, Space
from storage.errors import LeaseHeldError, LeaseLostError, StorageError, guarded
from storage.processes import ProcessIdentity, is_gone, this_process

NAME = "lease.json"
"""Key of the lease among a cube's records."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lease."""

    token: str
    """Differs for every lease."""
    process: ProcessIdentity
    since: float
    """When it was acquired, seconds since the epoch."""
    ttl: float
    """Time to live after a renewal, seconds."""


def read_holder(records: Space) -> tuple[Holder, float] | None:
    """Holder of the lease and when it expires (seconds since the epoch); None if there is none.

    Parameters
    ----------
    records
        Where the lease is, usually `storage.cube.cube.Cube.records`.

    Raises
    ------
    StorageError
        It cannot be read.
    """
    with guarded(_where(records), "read the lease"):
        found = records.lease(NAME).read()
    return None if found is None else _holder(found)


def _holder(record: Renewed) -> tuple[Holder, float]:
    """Who wrote a record, and when it expires."""
    try:
        fields = json.loads(record.data)
        process = ProcessIdentity(**fields["process"])
        holder = Holder(str(fields["token"]), process, float(fields["since"]), float(fields["ttl"]))
    except (ValueError, TypeError, KeyError):
        # Not ours, or damaged: it holds for as long as a default lease without renewal.
        holder = Holder("", ProcessIdentity("unknown", "", 0, 0), record.at, 60.0)
    return holder, record.at + holder.ttl


def check_holder(records: Space, token: str) -> None:
    """Make sure, in any process, that the holder of the lease is still the one with this token.

    Raises
    ------
    LeaseLostError
        The lease was released, or another process took over.
    StorageError
        It cannot be read.
    """
    found = read_holder(records)
    # The token alone counts, not the time: a lease that expired and that nobody took is the old holder's, who
    # renews it when it wakes up.
    if found is None or found[0].token != token:
        raise _lost("the lease of the run that this belongs to is over", _where(records))


class Lease:
    """A lease that this process holds; make one with `Lease.acquire`, best in a ``with`` statement."""

    def __init__(self, where: str, held: HeldRecord, holder: Holder) -> None:
        self._where = where
        self.holder = holder
        self.lost = threading.Event()
        """Set once another process has taken over; then nothing more may be written."""
        self._held: HeldRecord | None = held
        self._renewed = holder.since
        self._mutex = threading.Lock()
        self._stop = threading.Event()
        # A daemon: a process that ends without releasing its lease is not kept alive by it.
        self._thread = threading.Thread(target=self._renewing, name="evalcube-lease", daemon=True)
        self._thread.start()

    @classmethod
    def acquire(cls, records: Space, *, ttl: float = 60.0) -> Self:
        """Take the lease, or take it over from a holder that ended or has not renewed it in time.

        Parameters
        ----------
        records
            Where the lease is, usually `storage.cube.cube.Cube.records`.
        ttl
            Seconds that it lasts without renewal; renewed each third of that.

        Raises
        ------
        LeaseHeldError
            Another process, or another part of this one, holds it.
        StorageError
            It cannot be written, or the file system has no locks.
        """
        where = _where(records)
        if not ttl > 0:
            raise StorageError(f"`ttl` must be positive, got {ttl}", where, "Give seconds, such as 60.")
        holder = Holder(secrets.token_hex(16), this_process(), time.time(), ttl)

        def successor(found: Renewed | None) -> Renewed:
            nonlocal holder
            if found is not None:
                known, expires = _holder(found)
                # A holder that ended is not waited for. Of another machine's processes nothing is known: the time
                # decides.
                if not is_gone(known.process) and time.time() < expires:
                    raise _held(where, known, expires)
            # The time begins now: until then another one's hold may have been waited for.
            holder = replace(holder, since=time.time())
            return Renewed(json.dumps(asdict(holder), indent=1).encode(), holder.since)

        with guarded(where, "take the lease"):
            held = records.lease(NAME).take(successor)
        return cls(where, held, holder)

    @property
    def expires(self) -> float:
        """When it ends unless it is renewed, seconds since the epoch."""
        return self._renewed + self.holder.ttl

    def check(self) -> None:
        """Make sure that the lease is still held; cheap, to be called before each commit.

        In time, that is one question to the file system; only a late holder waits for the lock.

        Raises
        ------
        LeaseLostError
            Another process took over.
        """
        with self._mutex:
            if not self.lost.is_set() and not self._stop.is_set():
                with guarded(self._where, "check the lease"):
                    self._renew(touch=False)
            # Once lost it is lost, though the successor may have ended: it may have written what this one never saw.
            if self.lost.is_set() or self._stop.is_set():
                raise _lost(
                    "this process no longer holds the lease: it was released, or another process took over"
                    f" because it was not renewed for {self.holder.ttl:g} s",
                    self._where,
                )

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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _renewing(self) -> None:
        # Each third: one renewal may fail and the next comes in time.
        while not self._stop.wait(self.holder.ttl / 3):
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
        now = time.time()
        late = now >= self.expires
        if touch or late:
            mine = held.renew(now, late=late)
            if mine:
                # Only now: should the renewal fail, the lease ends when others see it end.
                self._renewed = now
        else:
            mine = held.is_mine()
        if not mine:
            self.lost.set()


def _where(records: Space) -> str:
    return f"{records.address}/{NAME}"


def _held(where: str, holder: Holder, expires: float) -> LeaseHeldError:
    process = holder.process
    return LeaseHeldError(
        f"process {process.pid} on {process.host} works on it since {_utc(holder.since)};"
        f" its lease expires at {_utc(expires)} unless it is renewed",
        where,
        "Wait for it to finish, or stop it and run again: on the same machine a dead process's lease is taken"
        " over at once, on another one after it expires.",
    )


def _lost(rule: str, where: str) -> LeaseLostError:
    return LeaseLostError(
        rule, where, "Let the other one finish, then run again: nothing that was recorded is lost."
    )


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
