"""The identity of a process, which process writes a file, and whether that process is gone.

A process id alone is reused. Here an identity is (host, kernel boot and process id namespace, process id, start time),
so that containers that share a host name and an NFS directory are not taken for one machine.

A file of a cache begins with a heading that names its process: magic, length, checksum, JSON. The process holds an
advisory lock on the file as long as it writes. Both are asked, since there are file systems without locks, and machines
whose processes nothing is known of.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path

_PROC = Path("/proc")
_INITIAL_NAMESPACE = "/pid:[4026531836]"
"""End of the boot id of a process outside of all containers: the kernel's fixed number of that namespace."""


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """Which process, on which machine."""

    host: str
    """Host name, for people."""
    boot: str
    """Kernel boot id and process id namespace; empty where /proc has none."""
    pid: int
    """Process id within that namespace."""
    start: int
    """Start time in clock ticks since boot; 0 where /proc has none."""


def _boot() -> str:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""


def _state_and_start(pid: int) -> tuple[str, int] | None:
    """State letter and start time of a live or zombie process; None where /proc does not know it."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The command name is in brackets and may itself hold brackets and spaces.
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[19])


def this_process() -> ProcessIdentity:
    """Identity of the calling process."""
    pid = os.getpid()
    status = _state_and_start(pid)
    return ProcessIdentity(host=socket.gethostname(), boot=_boot(), pid=pid, start=status[1] if status else 0)


def machine_id() -> str:
    """Id that the machine, or its installation, keeps over boots; empty where there is none."""
    try:
        return Path("/etc/machine-id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def same_kernel(one: ProcessIdentity, other: ProcessIdentity) -> bool:
    """Whether both ran under the same boot of the same kernel, maybe in different containers."""
    return one.boot.partition("/")[0] == other.boot.partition("/")[0]


def is_before_restart(process: ProcessIdentity, machine: str) -> bool:
    """Whether a process ran on this machine before that was started anew; False whenever that cannot be known.

    Only of processes outside of containers: those of several hosts may have one image's machine id and host name.
    """
    here = this_process()
    if not machine or not process.boot or same_kernel(process, here):
        return False
    outside = process.boot.endswith(_INITIAL_NAMESPACE) and here.boot.endswith(_INITIAL_NAMESPACE)
    return outside and (process.host, machine) == (here.host, machine_id())


class Life(Enum):
    """What is known of a process."""

    RUNNING = "running"
    STOPPED = "stopped"
    """It is there, but a signal, as that of Ctrl-Z, keeps it from running."""
    ENDED = "ended"
    UNKNOWN = "unknown"
    """It belongs to another machine, or the system does not say."""


def life_of(process: ProcessIdentity) -> Life:
    """Whether a process of this machine runs, exactly; `Life.UNKNOWN` whenever that cannot be known from here.

    A zombie has ended, and so has a process whose id now belongs to one that started later.
    """
    if process.boot != _boot() or process.host != socket.gethostname():
        return Life.UNKNOWN
    status = _state_and_start(process.pid)
    if status and process.start:
        if status[0] in "ZX" or status[1] != process.start:
            return Life.ENDED
        return Life.STOPPED if status[0] in "Tt" else Life.RUNNING
    # /proc may be absent, or hide the processes of others: then an id that is in use may have come again.
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return Life.ENDED
    except OSError:  # another user's
        pass
    return Life.UNKNOWN


FOREIGN_SECONDS = 7 * 86400.0
"""Age from which a file of another machine, of which nothing can be known from here, is taken for abandoned."""

_HEADING = struct.Struct("<4sII")
_MAX_HEADING = 1 << 16
_STALE_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that writes a file."""

    process: ProcessIdentity
    machine: str
    """Machine id, which distinguishes machines with the same host name; may be empty."""


def this_owner() -> Owner:
    """The calling process."""
    return Owner(this_process(), machine_id())


def heading(magic: bytes, owner: Owner) -> bytes:
    """What a file of `owner` begins with."""
    text = json.dumps({"machine": owner.machine, **asdict(owner.process)}).encode()
    return _HEADING.pack(magic, len(text), zlib.crc32(text)) + text


def read_heading(descriptor: int, magic: bytes) -> tuple[Owner, int] | None:
    """Owner in a file's heading, and where the heading ends; None if it is torn or damaged."""
    data = os.pread(descriptor, _HEADING.size + _MAX_HEADING, 0)
    if len(data) < _HEADING.size:
        return None
    stored_magic, length, check = _HEADING.unpack_from(data)
    text = data[_HEADING.size : _HEADING.size + length]
    if stored_magic != magic or len(text) != length or zlib.crc32(text) != check:
        return None
    try:
        fields = json.loads(text)
        owner = Owner(machine=fields.pop("machine"), process=ProcessIdentity(**fields))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return owner, _HEADING.size + length


def lock(descriptor: int) -> None:
    """Take the lock of a new file, which nobody else can hold; nothing where there are no locks."""
    # Never released by hand: it goes with the last descriptor, however the process ends.
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def is_abandoned(
    descriptor: int, magic: bytes, *, clock: Callable[[], float] | None = None, take: bool = False
) -> bool:
    """Whether a file's process is gone; False whenever that is in doubt."""
    # The heading first: asking for the lock of a file that lives would, for a moment, keep it from its owner.
    life = _owner_life(descriptor, magic)
    if life is Life.RUNNING:
        return False
    if life is Life.UNKNOWN and not _is_old(descriptor, magic, clock):
        return False
    # A shared lock, given back at once: any number of readers may ask, and none is taken for a writer for long.
    free = _is_free(descriptor, fcntl.LOCK_EX) if take else _is_free(descriptor, fcntl.LOCK_SH, back=True)
    return free is not False  # no locks here: the heading alone was sure


def _is_free(descriptor: int, kind: int, *, back: bool = False) -> bool | None:
    """Take the lock of a file, and perhaps give it back, if nobody holds it; None where there are no locks."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    if back:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    return True


def _owner_life(descriptor: int, magic: bytes) -> Life:
    """What is known here of the process in a file's heading, by its identity and its lock, whatever clocks say.

    A process that is stopped counts as running: its file is still its own.
    """
    parsed = read_heading(descriptor, magic)
    if parsed is None:
        return Life.UNKNOWN  # killed before its heading was written, or writing it now
    owner, here = parsed[0], this_process()
    process = owner.process
    if process.boot and here.boot:
        if same_kernel(process, here) and process.boot != here.boot:
            # Process ids of another container mean nothing here, but its locks are in the same kernel.
            free = _is_free(descriptor, fcntl.LOCK_SH, back=True)
            return Life.UNKNOWN if free is None else Life.ENDED if free else Life.RUNNING
        if not same_kernel(process, here) and (process.host, owner.machine) == (here.host, machine_id()):
            return Life.ENDED  # this machine before it started anew
    life = life_of(process)
    return Life.RUNNING if life is Life.STOPPED else life


def _is_old(descriptor: int, magic: bytes, clock: Callable[[], float] | None) -> bool:
    if clock is None:
        return False
    # Of another machine, of which the lock says nothing on many mounts. A pack that is indexed too early costs a scan
    # at each opening, and no entry; a week is longer than runs go without an append.
    longest = _STALE_SECONDS if read_heading(descriptor, magic) is None else FOREIGN_SECONDS
    return clock() - os.fstat(descriptor).st_mtime > longest
