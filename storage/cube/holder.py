"""Who holds a cube's lease, and whether that process still does.

Of a process of the same machine the system knows, whatever clocks say: one that ended, also as the machine restarted,
holds nothing, and one that is there holds its lease for as long as it is there. Of another machine's process only its
renewals are known. They are watched: a record that changes has a holder, and one that stays the same for its time to
live, by the watcher's own monotonic clock, has none. The times in a record are for people.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

from evalcube.storage.cube.space import LeaseState, Space
from evalcube.storage.errors import LeaseHeldError, guarded
from evalcube.storage.processes import Life, ProcessIdentity, is_before_restart, life_of, this_process

NAME = "lease.json"
"""Key of the lease among a cube's records."""

LONGEST_TTL = 86400.0
"""Seconds to live of a lease at most; a record that says more is damaged, or not ours."""

HELD_HERE: set[str] = set()
"""Tokens of the leases that this process holds."""

_UNREADABLE_TTL = 60.0
"""Of a record that nobody can read: as of a default lease."""
_GREATEST_PID = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lease."""

    token: str
    """Differs for every lease."""
    process: ProcessIdentity
    since: float
    """When it was acquired, seconds since the epoch by the holder's clock; shown, and never compared."""
    ttl: float
    """Time to live after a renewal, seconds."""
    machine: str = ""
    """Id of its machine, see `evalcube.storage.processes.machine_id`; empty where it is not known."""


class Hold(Enum):
    """What is known of a holder."""

    SURE = "sure"
    """It holds the lease."""
    OVER = "over"
    """It has ended, or has not renewed the lease in time."""
    WATCHED = "watched"
    """Not known yet: it has to be watched."""


def holder_of(record: LeaseState) -> Holder:
    """Who wrote a record."""
    try:
        fields = json.loads(record.data)
        process = ProcessIdentity(**fields["process"])
        names, numbers = (process.host, process.boot), (process.pid, process.start)
        machine = str(fields.get("machine", ""))
        holder = Holder(str(fields["token"]), process, float(fields["since"]), float(fields["ttl"]), machine)
        # Anybody may have made the file. Exact types: True would pass for a process id.
        well_typed = all(type(name) is str for name in names) and all(type(n) is int for n in numbers)
        if well_typed and 0 < holder.ttl <= LONGEST_TTL and 0 < process.pid <= _GREATEST_PID:
            return holder
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        pass
    # Not ours, or damaged: it holds for as long as a default lease without renewal.
    return Holder("", ProcessIdentity("unknown", "", 0, 0), record.at, _UNREADABLE_TTL)


class Watch:
    """What one process sees of a lease that may be another one's, by reading its record again and again.

    Parameters
    ----------
    longest
        Seconds after which a record that stays the same has no holder, whatever it says of its time to live.
    """

    def __init__(self, longest: float = LONGEST_TTL) -> None:
        self._longest = longest
        self._last: LeaseState | None = None
        self._since = 0.0

    def hold(self, record: LeaseState, asked: float) -> Hold:
        """What is known after one more reading."""
        holder = holder_of(record)
        life = life_of(holder.process)
        if life is Life.ENDED or is_before_restart(holder.process, holder.machine):
            return Hold.OVER
        if life is not Life.UNKNOWN:
            # A part of this process that could not give its lease back, since the disk failed, never will.
            leaked = holder.process == this_process() and holder.token not in HELD_HERE
            return Hold.OVER if leaked else Hold.SURE
        if self._last is None or not record.same(self._last):
            # From after this reading to before the last one: what is in between was seen by nobody.
            first, self._last, self._since = self._last is None, record, time.monotonic()
            return Hold.WATCHED if first else Hold.SURE
        ttl = min(holder.ttl, self._longest)
        return Hold.OVER if asked - self._since >= ttl else Hold.WATCHED


def read_holder(records: Space) -> tuple[Holder, float] | None:
    """Holder of the lease, and when it renewed it (seconds since the epoch, by its clock); None if there is none."""
    record = _read_record(records)
    return None if record is None else (holder_of(record), record.at)


def apparent_holder(records: Space) -> Holder | None:
    """Who seems to work on a cube at this moment, for readers that do not want to wait; None if nobody does.

    For display: of another machine's process, the store's time of its last renewal is compared with this machine's
    clock, which may be wrong.
    """
    record = _read_record(records)
    if record is None:
        return None
    holder, hold = holder_of(record), Watch().hold(record, 0.0)
    idle = time.time() - (record.at if record.stored is None else record.stored)
    return None if hold is Hold.OVER or (hold is Hold.WATCHED and idle > holder.ttl) else holder


def _read_record(records: Space) -> LeaseState | None:
    with guarded(where_of(records), "read the lease"):
        return records.lease(NAME).read()


def where_of(records: Space) -> str:
    """Address of the lease, for messages."""
    return f"{records.address}/{NAME}"


def watch_notice(holder: Holder) -> str:
    """What is done while a holder on another machine is watched, for people."""
    return (
        f"{_name(holder)} has the lease of this cube, and whether it still runs is not known here: its renewals are"
        f" watched for up to {holder.ttl:g} s (Ctrl-C ends that)"
    )


def takeover_notice(holder: Holder) -> str:
    """What was found out by watching a holder in vain, for people."""
    return f"{_name(holder)} has not renewed the lease for {holder.ttl:g} s: taken over"


def held_error(records: Space, record: LeaseState) -> LeaseHeldError:
    """The refusal of a lease that another process is known to hold; says what the user can do about it."""
    holder = holder_of(record)
    process, life = holder.process, life_of(holder.process)
    problem = f"{_name(holder)} has been working on it since {_utc(holder.since)} (by its clock)"
    again = "then run again: the lease of a process that ended is taken over."
    if process == this_process():
        remedy = "Another part of this process works on it: wait for that to finish."
    elif life is Life.STOPPED:
        problem += ", and is stopped, as by Ctrl-Z"
        remedy = f"Resume it (`kill -CONT {process.pid}`) or end it (`kill -KILL {process.pid}`), {again}"
    else:
        remedy = f"Wait for it to finish, or end it (`kill {process.pid}` on {process.host}), {again}"
    return LeaseHeldError(problem, where_of(records), remedy)


def _name(holder: Holder) -> str:
    return f"process {holder.process.pid} on {holder.process.host}"


def _utc(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "an unknown time"
