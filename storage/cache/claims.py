"""Claims that keep two runs with one cache from asking the same requests at the same time.

Two runs that need the same answers would both search the cache, find nothing, and ask. So whoever asks leaves a file
with the keys while it does, and whoever finds a key in an older file of another run waits for that answer instead.

Older is what has the lower number: claims are made under a lock, each with a number above those that are there, so that
no clock decides who asks. A claim is over when its file is gone or its process has ended. Of another machine's process
nothing is known; so claims are renewed every few seconds, and whoever waits watches that, by its own monotonic clock.

All of it is best effort: where files cannot be written or locked, everybody asks.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from evalcube.storage.cache.folders import CLAIMS_LOCK
from evalcube.storage.files import locked, share, write_all_at
from evalcube.storage.processes import Life, heading, is_abandoned, lock, owner_life, read_heading, this_owner

_MAGIC = b"EVQ1"  # entries begin with another one, as do packs
_SUFFIX = ".claim"
_NUMBER_DIGITS = 16
_HIGHEST = (1 << 4 * _NUMBER_DIGITS) - 1
_POLL_SECONDS = 0.2
_LOCK_SECONDS = 5.0
_RENEW_SECONDS = 5.0
_EXPIRY_SECONDS = 60.0
"""So long the claim of another machine's process is watched without a renewal until it counts as abandoned."""
_KEY_BYTES = 32


class Claim:
    """Keys that are being answered, until it is released."""

    def __init__(self, path: Path, descriptor: int, renewals: _Renewals) -> None:
        self.path = path
        self._descriptor = descriptor
        self._renewals = renewals
        renewals.add(descriptor)

    def release(self) -> None:
        """Let others ask what has not been answered."""
        # In this order, so that a file with this name always has a lock that is held.
        with suppress(OSError):
            self.path.unlink()
        self._renewals.remove(self._descriptor)
        os.close(self._descriptor)


class _Renewals:
    """Renews files that this process has open, in a thread that lives as long as there are any."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._descriptors: set[int] = set()
        self._thread: threading.Thread | None = None
        self._never = threading.Event()

    def add(self, descriptor: int) -> None:
        with self._mutex:
            self._descriptors.add(descriptor)
            if self._thread is None:
                self._thread = threading.Thread(target=self._renew, name="evalcube-claims", daemon=True)
                self._thread.start()

    def remove(self, descriptor: int) -> None:
        # Under the lock: a number that is closed may be another file's at once.
        with self._mutex:
            self._descriptors.discard(descriptor)

    def _renew(self) -> None:
        while not self._never.wait(_RENEW_SECONDS):
            with self._mutex:
                if not self._descriptors:
                    self._thread = None
                    return
                for descriptor in self._descriptors:
                    # To the file system's own time: by that one the age of files is counted.
                    with suppress(OSError):
                        os.utime(descriptor)


class Claims:
    """The claims of all runs that share a folder; threads may use it at once.

    Parameters
    ----------
    folder
        Where claims are files, named by number and run.
    run
        Name of this run. Its own processes do not wait for each other: a run asks nothing twice by itself.
    """

    def __init__(self, folder: Path, run: str) -> None:
        self._folder = folder
        self._ending = f"-{''.join(c for c in run if c.isalnum())}{_SUFFIX}"
        """Of the names of this run's own claims."""
        self._known: Mapping[str, frozenset[bytes]] = {}
        self._given_up: set[str] = set()
        """Claims that were waited for in vain."""
        self._renewals = _Renewals()

    def make(self, keys: Sequence[str]) -> Claim | None:
        """Claim keys of 64 hex digits; None where that cannot be written."""
        data = heading(_MAGIC, this_owner()) + b"".join(map(bytes.fromhex, keys))
        with self._alone():
            # A random part for claims that are made without the lock: each run knows the same one for the older.
            name = f"{self._next_number():0{_NUMBER_DIGITS}x}{secrets.token_hex(4)}{self._ending}"
            path = self._folder / name
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            except OSError:
                return None
            claim = Claim(path, descriptor, self._renewals)
            try:
                share(path, descriptor)
                # Before the content: nobody may read keys in a file whose lock is free.
                lock(descriptor)
                # Not synced: after a power cut there is nothing to wait for.
                write_all_at(descriptor, data, 0)
            except OSError:
                claim.release()
                return None
        return claim

    def others(self, keys: Sequence[str], claim: Claim) -> dict[str, str]:
        """Which of the keys other runs claimed before `claim`, each with the name of such a claim."""
        known: dict[str, frozenset[bytes]] = {}
        for name in sorted(name for name in self._list() if not name.endswith(self._ending)):
            if name >= claim.path.name:
                # Only older ones are waited for, so that two runs never wait for each other.
                break
            if name in self._given_up:
                continue
            # A claim never changes; but one that was read in the moment of its making may say nothing yet.
            known[name] = self._known.get(name) or self._read(name)
        self._known = known
        raw = {key: bytes.fromhex(key) for key in keys} if any(known.values()) else {}
        pairs = [(name, key) for name, claimed in known.items() for key in raw if raw[key] in claimed]
        return {key: name for name, key in pairs}

    def wait(self, names: Sequence[str], patience: float, stop: Callable[[], bool]) -> None:
        """Wait until none of some claims is held any more, or `stop` returns True.

        A claim that shows no sign of life for `patience` seconds, though its process is there, is ignored from then on.
        """
        waiting, seen = list(names), dict[str, tuple[int, float]]()
        # Polled: there is no notice of a lock that is freed, least of all between machines.
        while waiting and not stop():
            # All of them each time, so that those that are abandoned are found to be so at the same time.
            waiting = [name for name in waiting if self._is_held(name, seen, patience)]
            if waiting:
                time.sleep(_POLL_SECONDS)

    def _is_held(self, name: str, seen: dict[str, tuple[int, float]], patience: float) -> bool:
        """Whether a claim holds; `seen` has when each was renewed last, and since when it is known as it is."""
        with suppress(OSError), self._opened(name) as descriptor:
            if descriptor is None or read_heading(descriptor, _MAGIC) is None:
                return False
            now, modified = time.monotonic(), os.fstat(descriptor).st_mtime_ns
            if name not in seen or modified != seen[name][0]:
                seen[name] = modified, time.monotonic()
            idle = now - seen[name][1]
            if owner_life(descriptor, _MAGIC) is Life.UNKNOWN and idle >= _EXPIRY_SECONDS:
                (self._folder / name).unlink()
                return False
            if idle >= patience:
                self._given_up.add(name)
            return idle < patience
        return False

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Be the only one that makes a claim, where there are locks."""
        with ExitStack() as stack:
            with suppress(OSError):
                stack.enter_context(locked(self._folder / CLAIMS_LOCK, _LOCK_SECONDS))
            yield

    def _next_number(self) -> int:
        """A number above those of all claims that are there, so that this one is younger than each of them."""
        highest = 0
        for name in self._list():
            with suppress(ValueError):
                highest = max(highest, int(name[:_NUMBER_DIGITS], 16))
        return min(highest + 1, _HIGHEST)

    def _list(self) -> list[str]:
        try:
            names = os.listdir(self._folder)  # noqa: PTH208 (a Path for each costs more than the listing)
        except OSError:
            return []
        return [name for name in names if name.endswith(_SUFFIX)]

    @contextmanager
    def _opened(self, name: str) -> Iterator[int | None]:
        """A descriptor of a claim that may be held; None if it is over. One whose process is gone is removed."""
        path = self._folder / name
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        except OSError:
            yield None
            return
        try:
            gone = is_abandoned(descriptor, _MAGIC)
            if gone:
                # Whoever sees it first removes it; no run starts a clean-up for the sake of claims.
                with suppress(OSError):
                    path.unlink()
            yield None if gone else descriptor
        finally:
            os.close(descriptor)

    def _read(self, name: str) -> frozenset[bytes]:
        """What a claim claims; nothing if it is over."""
        data = b""
        with suppress(OSError), self._opened(name) as descriptor:
            known = None if descriptor is None else read_heading(descriptor, _MAGIC)
            if descriptor is not None and known is not None:
                data = os.pread(descriptor, os.fstat(descriptor).st_size, known[1])
        # What is torn at the end is a key that its run asks without having claimed it.
        whole = len(data) // _KEY_BYTES * _KEY_BYTES
        return frozenset(data[at : at + _KEY_BYTES] for at in range(0, whole, _KEY_BYTES))
