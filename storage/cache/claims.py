"""Claims that keep two runs with one cache from asking the same requests at the same time.

Two runs that need the same answers would both search the cache, find nothing, and ask. So whoever asks leaves a file
with the keys while it does, and whoever finds a key in an older file of another run waits for that answer instead. All
of it is best effort: where files cannot be written or locked, everybody asks.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from storage.cache.owners import heading, is_abandoned, lock, read_heading, this_owner
from storage.files import write_all_at

_MAGIC = b"EVQ1"  # entries begin with another one, as do packs
_SUFFIX = ".claim"
_POLL_SECONDS = 0.2
_KEY_BYTES = 32


class Claim:
    """Keys that are being answered, until it is released."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def release(self) -> None:
        """Let others ask what has not been answered."""
        # In this order, so that a file with this name always has a lock that is held.
        with suppress(OSError):
            self.path.unlink()
        os.close(self._descriptor)


class Claims:
    """The claims of all runs that share a folder; threads may use it at once.

    Parameters
    ----------
    folder
        Where claims are files, named by time and run.
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
        self.met_others = False
        """Whether there was a claim of another run, ever."""

    def make(self, keys: Sequence[str]) -> Claim | None:
        """Claim keys of 64 hex digits; None where that cannot be written."""
        # Names sort by time, with a random part, so that of two claims each run knows the same one for the older.
        path = self._folder / f"{time.time_ns():016x}{secrets.token_hex(4)}{self._ending}"
        data = heading(_MAGIC, this_owner()) + b"".join(map(bytes.fromhex, keys))
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except OSError:
            return None
        claim = Claim(path, descriptor)
        try:
            # Before the content: nobody may read keys in a file whose lock is free.
            lock(descriptor)
            write_all_at(descriptor, data, 0)  # not synced: after a power cut there is nothing to wait for
        except OSError:
            claim.release()
            return None
        return claim

    def others(self, keys: Sequence[str], claim: Claim) -> dict[str, str]:
        """Which of the keys other runs claimed before `claim`, each with the name of such a claim."""
        known: dict[str, frozenset[bytes]] = {}
        names = sorted(self._names())
        self.met_others = self.met_others or bool(names)
        for name in names:
            if name >= claim.path.name:
                # Only older ones are waited for, so that two runs never wait for each other.
                break
            if name in self._given_up:
                continue
            # A claim never changes; but one that was read in the moment of its making may say nothing yet.
            known[name] = self._known.get(name) or self._read(name)
        self._known = known
        raw = {key: bytes.fromhex(key) for key in keys} if any(known.values()) else {}
        return {
            key: name for name, claimed in known.items() for key, value in raw.items() if value in claimed
        }

    def wait(self, names: Sequence[str], patience: float, stop: Callable[[], bool]) -> None:
        """Wait until none of some claims is held any more, `stop` returns True, or `patience` seconds are over.

        A claim that is held longer is ignored from then on.
        """
        over = time.monotonic() + patience
        for name in names:
            # Polled: there is no notice of a lock that is freed, least of all between machines.
            while self._read(name) and not stop():
                if time.monotonic() > over:
                    self._given_up.add(name)
                    break
                time.sleep(_POLL_SECONDS)

    def _names(self) -> list[str]:
        try:
            names = os.listdir(self._folder)  # noqa: PTH208 (a Path for each costs more than the listing)
        except OSError:
            return []
        return [name for name in names if name.endswith(_SUFFIX) and not name.endswith(self._ending)]

    def _read(self, name: str) -> frozenset[bytes]:
        """What a claim claims; nothing if it is over. One whose process is gone is removed."""
        path = self._folder / name
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return frozenset()
        try:
            if is_abandoned(descriptor, _MAGIC):
                # Whoever sees it first removes it; no run starts a clean-up for the sake of claims.
                path.unlink()
                return frozenset()
            known = read_heading(descriptor, _MAGIC)
            if known is None:
                return frozenset()
            data = os.pread(descriptor, os.fstat(descriptor).st_size, known[1])
        except OSError:
            return frozenset()
        finally:
            os.close(descriptor)
        # What is torn at the end is a key that its run asks without having claimed it.
        whole = len(data) // _KEY_BYTES * _KEY_BYTES
        return frozenset(data[at : at + _KEY_BYTES] for at in range(0, whole, _KEY_BYTES))
