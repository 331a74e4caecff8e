"""Parses a stream of server-sent events, in whatever pieces it arrives. Pure.

The format is that of the HTML standard, section 9.2 (https://html.spec.whatwg.org/multipage/server-sent-events.html).
The ids of events are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_LINE_END = re.compile(rb"\r\n|\r|\n")
_MARK = b"\xef\xbb\xbf"
ERROR = b"error"
_IDLE_LINES, _IDLE_PER_DATA = 100_000, 8
"""Lines without data that a stream may have, and how many more for each that has some: who sends nothing else for hours
has sent fewer."""
_LINE_COST = 64
"""Bytes that a line of data takes beside what it says."""


class TooLargeError(Exception):
    """One event is larger than allowed, or too many lines say nothing."""


class Events:
    """Splits a stream into events. How it was cut into pieces on its way makes no difference.

    Parameters
    ----------
    limit
        Most bytes of one event.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._line = bytearray()
        """What came of the line that is not over yet."""
        self._data: list[bytes] = []
        self.name = b""
        """Of the event that is not over yet, or of that which `feed` has just yielded."""
        self._size = 0
        """Bytes of the event that is not over yet."""
        self._idle = _IDLE_LINES
        """Lines without data that may yet come."""
        self._after_return = False
        self._first = True

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Take the next `piece` of the stream; yields the data of each event that it completes, see `name`."""
        if not piece:
            return
        # A carriage return ends a line at once, and a line feed right after it is part of that end.
        start = 1 if self._after_return and piece[0] == 10 else 0
        self._after_return = piece[-1] == 13
        for end in _LINE_END.finditer(piece, start):
            self._keep(piece[start : end.start()])
            start = end.end()
            yield from self._end_line()
        self._keep(piece[start:])

    def finish(self) -> Iterator[bytes]:
        """Take the stream's end; yields the last event if only the empty line after it is missing."""
        if self._line:
            yield from self._end_line()
        yield from self._end_event()

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._limit:
            raise TooLargeError
        self._line += part

    def _end_line(self) -> Iterator[bytes]:
        line = bytes(self._line)
        self._line.clear()
        if self._first:
            line = line.removeprefix(_MARK)
            self._first = False
        self._idle -= 1
        if self._idle < 0:
            raise TooLargeError
        if not line:
            yield from self._end_event()
            return
        name, _, value = line.partition(b":")
        if name == b"data":
            self._idle += _IDLE_PER_DATA
            self._data.append(value.removeprefix(b" "))
            self._size += _LINE_COST
        else:
            self._size -= len(line)
            if name == b"event":
                self.name = value.strip()

    def _end_event(self) -> Iterator[bytes]:
        data, self._data, self._size = self._data, [], 0
        if data or self.name == ERROR:  # an error need not say anything
            yield b"\n".join(data)
        self.name = b""
