"""The identity of a process, and whether that process is gone.

A process id alone is reused. Here an identity is (host, kernel boot and process id namespace, process id, start time),
so that containers that share a host name and an NFS directory are not taken for one machine.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
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
    known = _state_and_start(pid)
    return ProcessIdentity(host=socket.gethostname(), boot=_boot(), pid=pid, start=known[1] if known else 0)


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

    Parameters
    ----------
    process
        The process.
    machine
        What `machine_id` was there.
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
    known = _state_and_start(process.pid)
    if known and process.start:
        if known[0] in "ZX" or known[1] != process.start:
            return Life.ENDED
        return Life.STOPPED if known[0] in "Tt" else Life.RUNNING
    # /proc may be absent, or hide the processes of others: then an id that is in use may have come again.
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return Life.ENDED
    except OSError:  # another user's
        pass
    return Life.UNKNOWN


def is_gone(process: ProcessIdentity) -> bool:
    """Whether a process of this machine has ended; False whenever that cannot be known from here."""
    return life_of(process) is Life.ENDED
