"""Lines in numbered objects, each of which must be absent: whoever finds his next number taken is not alone.

Numbers are contiguous, so that a reader needs no list: he asks for the next ones, many at once, until one is not there.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from evalcube.storage.clocks import elapsed
from evalcube.storage.cube.space import Found, LogConflictError, Space, When
from evalcube.storage.errors import CubeDamagedError

LINES_OF_OBJECT = 64
"""As many lines make an object at most."""
MOST_OBJECTS = 200_000
"""Some servers have something under every name."""
WAITING_SECONDS = 2.0
"""As long waits a line at most, if others come; a put costs as much as a dozen gets."""
_THREADS = 32


class BucketLog:
    """Objects ``ledger/00000000.jsonl`` and so on of a log ``ledger.jsonl``; see `evalcube.storage.cube.space.Log`.

    A log continues where it was read to, or where it ends when its first line is put. Whoever takes a lease over puts
    an empty object: then nobody who read the log before that can append any more, though he were to wake up after he
    has asked for his lease.
    """

    def __init__(self, space: Space, key: str) -> None:
        self._space = space
        self._folder, _, self._ending = key.partition(".")
        self._next: int | None = None
        self._waiting: list[bytes] = []
        self._since = 0.0

    def lines(self) -> Iterator[bytes]:
        """All lines, those that wait included; at most some dozens of objects are in memory."""
        self.flush()
        number = 0
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="evalcube-log") as pool:
            # A short log costs two requests, a long one is soon asked for in full breadth.
            for wave in itertools.chain((1, 4, 16), itertools.repeat(_THREADS)):
                if number > MOST_OBJECTS:
                    what = f"its ledger has more than {MOST_OBJECTS:,} objects"
                    raise CubeDamagedError(
                        what, self._space.address, "Find out who answers under this address."
                    )
                for found in pool.map(self._object, range(number, number + wave)):
                    if found is None:
                        if self._next is None:
                            self._next = number
                        return
                    number += 1
                    yield from found.data.splitlines(keepends=True)

    def append(self, line: bytes) -> None:
        """Add a line, which waits for others for a moment; it is durable after `flush`.

        Raises
        ------
        LogConflictError
            Another process has appended, or taken the lease over.
        """
        if not self._waiting:
            self._since = elapsed()
        self._waiting.append(line)
        self.flush(older_than=0.0 if len(self._waiting) >= LINES_OF_OBJECT else WAITING_SECONDS)

    def flush(self, older_than: float = 0.0) -> None:
        """Put the lines that wait, if the first one has done so for as many seconds."""
        if not self._waiting or elapsed() - self._since < older_than:
            return
        if self._next is None:
            self._next = self._end()
        if self._space.put(self._key(self._next), b"".join(self._waiting), when=When.ABSENT) is None:
            # Not tried again: the regions were written by somebody who no longer had the right to.
            self._waiting.clear()
            raise LogConflictError
        self._next += 1
        self._waiting.clear()

    def claim(self) -> None:
        """Keep everybody who has read the log so far from appending to it."""
        number = self._end()
        # Somebody else may append until the moment in which this succeeds; what he appended counts.
        while self._space.put(self._key(number), b"", when=When.ABSENT) is None:
            number += 1

    def close(self) -> None:
        """Put what waits; the next append looks for the end again."""
        self.flush()
        self._next = None

    def _end(self) -> int:
        """Number of objects, found by doubling and halving."""
        high = 1
        while self._is_there(high - 1):
            high *= 2
        low = high // 2  # as many are there for sure, and the object at high - 1 is not
        while low < high - 1:
            middle = (low + high - 1) // 2
            low, high = (middle + 1, high) if self._is_there(middle) else (low, middle + 1)
        return low

    def _object(self, number: int) -> Found | None:
        return self._space.get(self._key(number))

    def _is_there(self, number: int) -> bool:
        return self._space.version(self._key(number)) is not None

    def _key(self, number: int) -> str:
        return f"{self._folder}/{number:08}.{self._ending}"
