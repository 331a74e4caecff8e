"""The cached form of a reply: what `infer` stores under a request's digest and `process` reads.

A record is one JSON header line (format, HTTP status, seconds) followed by the body exactly as the endpoint sent
it, so that nothing an endpoint said is lost to a later, better reader.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

_FORMAT = 1
_HEADER_LIMIT = 1024


@dataclass(frozen=True, slots=True)
class Record:
    """A reply that counts."""

    status: int
    """HTTP status."""
    latency: float
    """Seconds from sending the request to the last byte of the reply, for the attempt that counted."""
    body: bytes
    """The response body, decompressed."""

    def encode(self) -> bytes:
        """Write the record as bytes.

        Examples
        --------
        >>> Record.decode(Record(200, 0.25, b"{}").encode())
        Record(status=200, latency=0.25, body=b'{}')
        """
        header = f'{{"format":{_FORMAT},"status":{self.status},"latency":{self.latency:.6f}}}\n'
        return header.encode() + self.body

    @classmethod
    def decode(cls, data: bytes) -> Record:
        """Read what `encode` wrote.

        Raises
        ------
        ValueError
            If `data` is no record of a known format.
        """
        end = data.find(b"\n", 0, _HEADER_LIMIT)
        try:
            fields = json.loads(data[: max(end, 0)])
            if fields["format"] == _FORMAT:
                return cls(int(fields["status"]), float(fields["latency"]), data[end + 1 :])
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            pass
        raise ValueError("not a record of a reply, or one of a newer format")
