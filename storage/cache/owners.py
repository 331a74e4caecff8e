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
import time
import zlib
from contextlib import suppress
from dataclasses import asdict, dataclass

from storage.processes import ProcessIdentity, is_gone, machine_id, same_kernel, this_process

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


def is_abandoned(descriptor: int, magic: bytes, *, take: bool = False) -> bool:
    """Whether a file's process is gone; False whenever that is in doubt.

    Parameters
    ----------
    take
        Whether the descriptor, which is open for writing then, keeps the file's lock to itself.
    """
    # The heading first: asking for the lock of a file that lives would, for a moment, keep it from its owner.
    if not _is_gone(descriptor, magic, locks=True):
        return False
    kind = fcntl.LOCK_EX if take else fcntl.LOCK_SH
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False  # it lives, on whatever machine
    except OSError:
        # No locks here: then the heading alone has to be sure.
        return _is_gone(descriptor, magic, locks=False)
    if not take:
        # A shared lock, given back at once: any number of readers may ask, and none is taken for a writer for long.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    return True


def _is_gone(descriptor: int, magic: bytes, *, locks: bool) -> bool:
    """Whether the process in a heading has ended; with `locks`, whether it may have, since its lock is asked next."""
    age = time.time() - os.fstat(descriptor).st_mtime
    known, here = read_heading(descriptor, magic), this_process()
    if known is None:
        # Killed before its heading was written, or writing it now.
        return age > _STALE_SECONDS
    owner = known[0]
    process = owner.process
    if process.boot and same_kernel(process, here):
        # Process ids of another container mean nothing here, but its locks are in the same kernel.
        return is_gone(process) or (locks and process.boot != here.boot)
    if process.boot and here.boot and (process.host, owner.machine) == (here.host, machine_id()):
        return True  # this machine before it started anew
    # Another machine, of which the lock says nothing on many mounts. A pack that is indexed too early costs a scan at
    # each opening, and no entry; a week is longer than runs go without an append.
    return is_gone(process) or age > FOREIGN_SECONDS
