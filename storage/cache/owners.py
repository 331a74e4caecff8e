"""Which process writes a file, and whether that process is gone.

The file begins with a heading that names its process: magic, length, checksum, JSON. The process holds an advisory lock
on the file as long as it writes. Both are asked, since there are file systems without locks, and machines whose
processes nothing is known of.
"""

from __future__ import annotations

import fcntl
import json
import os
import struct
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass

from evalcube.storage.processes import Life, ProcessIdentity, life_of, machine_id, same_kernel, this_process

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
    found, length, check = _HEADING.unpack_from(data)
    text = data[_HEADING.size : _HEADING.size + length]
    if found != magic or len(text) != length or zlib.crc32(text) != check:
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
    """Whether a file's process is gone; False whenever that is in doubt.

    Parameters
    ----------
    clock
        Returns the time by the clock that gave the file its own (`evalcube.storage.clocks.file_clock`): a file that is
        very old by it is abandoned, too. Without it, age means nothing.
    take
        Whether the descriptor, which is open for writing then, keeps the file's lock to itself.
    """
    # The heading first: asking for the lock of a file that lives would, for a moment, keep it from its owner.
    life = owner_life(descriptor, magic)
    if life is Life.RUNNING:
        return False
    if life is Life.UNKNOWN and not _is_old(descriptor, magic, clock):
        return False
    kind = fcntl.LOCK_EX if take else fcntl.LOCK_SH
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False  # it lives, on whatever machine
    except OSError:
        return True  # no locks here: the heading alone was sure
    if not take:
        # A shared lock, given back at once: any number of readers may ask, and none is taken for a writer for long.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    return True


def owner_life(descriptor: int, magic: bytes) -> Life:
    """What is known here of the process in a file's heading, by its identity and its lock, whatever clocks say.

    A process that is stopped counts as running: its file is still its own.
    """
    known = read_heading(descriptor, magic)
    if known is None:
        return Life.UNKNOWN  # killed before its heading was written, or writing it now
    owner, here = known[0], this_process()
    process = owner.process
    if process.boot and here.boot:
        if same_kernel(process, here) and process.boot != here.boot:
            return _life_in_container(descriptor)
        if not same_kernel(process, here) and (process.host, owner.machine) == (here.host, machine_id()):
            return Life.ENDED  # this machine before it started anew
    life = life_of(process)
    return Life.RUNNING if life is Life.STOPPED else life


def _life_in_container(descriptor: int) -> Life:
    # Process ids of another container mean nothing here, but its locks are in the same kernel.
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return Life.RUNNING
    except OSError:
        return Life.UNKNOWN
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return Life.ENDED


def _is_old(descriptor: int, magic: bytes, clock: Callable[[], float] | None) -> bool:
    if clock is None:
        return False
    # Of another machine, of which the lock says nothing on many mounts. A pack that is indexed too early costs a scan
    # at each opening, and no entry; a week is longer than runs go without an append.
    patience = _STALE_SECONDS if read_heading(descriptor, magic) is None else FOREIGN_SECONDS
    return clock() - os.fstat(descriptor).st_mtime > patience
