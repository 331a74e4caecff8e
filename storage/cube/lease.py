"""The path of a lease file in; the right to be the only driver of a cube, for as long as it is renewed, out.

The file's content names its holder and never changes; its modification time, set from the holder's clock, is
the last renewal. The holder keeps its file open and renews through the descriptor, so that a holder which was
stopped and wakes up late touches its own, replaced file and never its successor's.

Acquiring, taking over and releasing happen under an advisory lock on ``<path>.lock``: of several processes
that find the same lease expired, the first to get the lock replaces the file, and the others, which read it
again under the lock, find a fresh lease. The kernel frees the lock of a process that dies, so that nothing is
left to expire. Clocks of machines that share a cube may differ by less than a third of the time to live.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import threading
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from storage.errors import LeaseHeldError, LeaseLostError, StorageError, guarded
from storage.files import locked, make_directory, sync_path, write_synced
from storage.processes import ProcessIdentity, is_gone, this_process

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


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


def read_holder(path: str | Path) -> tuple[Holder, float] | None:
    """Holder of the lease at `path` and when it expires (seconds since the epoch); None if there is none.

    Raises
    ------
    StorageError
        The file cannot be read.
    """
    with guarded(path, "read the lease"):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            renewed = os.fstat(descriptor).st_mtime
            data = file.read(65536)
    try:
        fields = json.loads(data)
        process = ProcessIdentity(**fields["process"])
        holder = Holder(str(fields["token"]), process, float(fields["since"]), float(fields["ttl"]))
    except (ValueError, TypeError, KeyError):
        # Not ours, or damaged: it holds for as long as a default lease without renewal.
        holder = Holder("", ProcessIdentity("unknown", "", 0, 0), renewed, 60.0)
    return holder, renewed + holder.ttl


def check_holder(path: str | Path, token: str) -> None:
    """Make sure, in any process, that the holder of the lease at `path` is still the one with this token.

    Raises
    ------
    LeaseLostError
        The lease was released, or another process took over.
    StorageError
        The file cannot be read.
    """
    found = read_holder(path)
    if found is None or found[0].token != token:
        raise _lost("the lease of the run that this belongs to is over", path)


class Lease:
    """A lease that this process holds; make one with `Lease.acquire`, best in a ``with`` statement."""

    def __init__(self, path: Path, holder: Holder, descriptor: int) -> None:
        self.path = path
        self.holder = holder
        self.lost = threading.Event()
        """Set once another process has taken over; then nothing more may be written."""
        self._descriptor = descriptor
        self._renewed = holder.since
        self._mutex = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renewing, name="evalcube-lease", daemon=True)
        self._thread.start()

    @classmethod
    def acquire(cls, path: str | Path, *, ttl: float = 60.0) -> Self:
        """Take the lease, or take it over from a holder that ended or has not renewed it in time.

        Parameters
        ----------
        path
            The lease file, usually ``<cube>/_evalcube/lease.json``.
        ttl
            Seconds that it lasts without renewal; renewed each third of that.

        Raises
        ------
        LeaseHeldError
            Another process, or another part of this one, holds it.
        StorageError
            The file cannot be written, or the file system has no locks.
        """
        path = Path(path).absolute()
        if not ttl > 0:
            raise StorageError(f"`ttl` must be positive, got {ttl}", path, "Give seconds, such as 60.")
        with guarded(path, "take the lease"):
            make_directory(path.parent)
            with locked(_lock(path)):
                found = read_holder(path)
                if found is not None and not is_gone(found[0].process) and time.time() < found[1]:
                    raise _held(path, *found)
                holder = Holder(secrets.token_hex(16), this_process(), time.time(), ttl)
                return cls(path, holder, _place(path, holder, fresh=found is None))

    @property
    def expires(self) -> float:
        """When it ends unless it is renewed, seconds since the epoch."""
        return self._renewed + self.holder.ttl

    def check(self) -> None:
        """Make sure that the lease is still held; cheap, to be called before each commit.

        Raises
        ------
        LeaseLostError
            Another process took over.
        """
        with self._mutex:
            if not self.lost.is_set() and not self._stop.is_set():
                with guarded(self.path, "check the lease"):
                    self._renew(touch=False)
            if self.lost.is_set() or self._stop.is_set():
                raise _lost(
                    "this process no longer holds the lease: it was released, or another process took over"
                    f" because it was not renewed for {self.holder.ttl:g} s",
                    self.path,
                )

    def release(self) -> None:
        """Give the lease back; a lease that went to another process is left alone. May be repeated."""
        self._stop.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        with self._mutex:
            if self._descriptor < 0:
                return
            try:
                with guarded(self.path, "release the lease"), locked(_lock(self.path)):
                    if self._is_mine():
                        self.path.unlink()
                        sync_path(self.path.parent)
            finally:
                os.close(self._descriptor)
                self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _renewing(self) -> None:
        while not self._stop.wait(self.holder.ttl / 3):
            with self._mutex:
                try:
                    self._renew(touch=True)
                except OSError:
                    # A disk or a mount may come back; if it does not, the next renewal or `check` sees an
                    # expired lease and asks under the lock who has it.
                    continue
            if self.lost.is_set():
                return

    def _renew(self, *, touch: bool) -> None:
        """Renew, or only look whether that is still possible; sets `lost` where it is not."""
        if time.time() < self.expires:
            mine = self._is_mine()
            if mine and touch:
                self._touch()
        else:
            # Late: another process may be taking over at this moment.
            with locked(_lock(self.path)):
                mine = self._is_mine()
                if mine:
                    self._touch()
        if not mine:
            self.lost.set()

    def _touch(self) -> None:
        now = time.time()
        os.utime(self._descriptor, (now, now))
        self._renewed = now

    def _is_mine(self) -> bool:
        try:
            return os.path.samestat(self.path.stat(), os.fstat(self._descriptor))
        except FileNotFoundError:
            return False
        except OSError as error:
            # What NFS says of a file that another machine replaced.
            if error.errno == errno.ESTALE:
                return False
            raise


def _lock(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def _place(path: Path, holder: Holder, *, fresh: bool) -> int:
    """Put the holder's file at `path`; its open descriptor."""
    temporary = path.with_name(f".{path.name}.{holder.token}.partial")
    write_synced(temporary, json.dumps(asdict(holder), indent=1).encode())
    try:
        descriptor = os.open(temporary, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.utime(descriptor, (holder.since, holder.since))
            if not fresh or not _linked(temporary, path):
                temporary.replace(path)
            sync_path(path.parent)
        except BaseException:
            os.close(descriptor)
            raise
    finally:
        temporary.unlink(missing_ok=True)
    return descriptor


def _linked(temporary: Path, path: Path) -> bool:
    """Put-if-absent, a second guard where a mount only pretends to lock; False without hard links."""
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        found = read_holder(path)
        if found is None:
            raise
        raise _held(path, *found) from None
    except OSError as error:
        if error.errno in _NO_LINKS:
            return False
        raise
    return True


def _held(path: Path, holder: Holder, expires: float) -> LeaseHeldError:
    process = holder.process
    return LeaseHeldError(
        f"process {process.pid} on {process.host} works on it since {_utc(holder.since)};"
        f" its lease expires at {_utc(expires)} unless it is renewed",
        path,
        "Wait for it to finish, or stop it and run again: on the same machine a dead process's lease is taken"
        " over at once, on another one after it expires.",
    )


def _lost(rule: str, path: str | Path) -> LeaseLostError:
    return LeaseLostError(
        rule, path, "Let the other one finish, then run again: nothing that was recorded is lost."
    )


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
