"""The cached form of a reply: what `infer` stores under a request's digest and `process` reads.

A record is one JSON header line (format, HTTP status, seconds) followed by the body exactly as the endpoint sent
it, so that nothing an endpoint said is lost to a later, better reader. The body of a streamed reply is put together
as the endpoint would have sent it whole. The header leaves out what has its default: a record that needs no newer
field is the same bytes as before the field existed.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass

from evalcube.stages.reply.forms import CHAT, FORMS

_FORMAT = 1
_HEADER_LIMIT = 1024
_PLAIN = re.compile(rb'\{"format":1,"status":(\d{1,4}),"latency":(\d{1,9}\.\d{6})\}\n')
"""The header of most records; others are read as JSON."""


@dataclass(frozen=True, slots=True)
class Record:
    """A reply that counts."""

    status: int
    """HTTP status."""
    latency: float
    """Seconds from sending the request to the last byte of the reply, for the attempt that counted.

    NaN where it came with a batch, which has no time of its own for each request.
    """
    body: bytes
    """The response body, decompressed."""
    first_token: float = math.nan
    """Seconds from sending the request to the first text or reasoning; NaN where the reply was not streamed."""
    api: str = CHAT
    """Which of `evalcube.stages.reply.forms.FORMS` the body has."""

    imported: bool = False
    """Whether another tool got the reply and graded it; the body then has a field ``imported`` with its grade.

    It stands in the header, which no endpoint can write: a reply with such a field in its body has no say in its grade.
    """

    def encode(self) -> bytes:
        """The record as bytes: the header line, then the body.

        Examples
        --------
        >>> Record.decode(Record(200, 0.25, b"{}").encode())
        Record(status=200, latency=0.25, body=b'{}', first_token=nan, api='chat', imported=False)
        """
        first = "" if math.isnan(self.first_token) else f',"first_token":{self.first_token:.6f}'
        kind = "" if self.api == CHAT else f',"api":"{self.api}"'
        other = ',"imported":true' if self.imported else ""
        latency = "NaN" if math.isnan(self.latency) else f"{self.latency:.6f}"
        header = f'{{"format":{_FORMAT},"status":{self.status},"latency":{latency}{first}{kind}{other}}}\n'
        return header.encode() + self.body

    @classmethod
    def decode(cls, data: bytes) -> Record:
        """The record that `encode` wrote.

        Parameters
        ----------
        data
            An entry of the cache, already verified by its checksum.

        Raises
        ------
        ValueError
            If `data` is no record of a known format.
        """
        plain = _PLAIN.match(data)
        if plain is not None:
            return cls(int(plain[1]), float(plain[2]), data[plain.end() :])
        end = data.find(b"\n", 0, _HEADER_LIMIT)
        try:
            fields = json.loads(data[: max(end, 0)])
            if fields["format"] == _FORMAT:
                status, latency, body = int(fields["status"]), float(fields["latency"]), data[end + 1 :]
                api = fields.get("api", CHAT)
                if api in FORMS:
                    first = float(fields.get("first_token", math.nan))
                    return cls(status, latency, body, first, api, fields.get("imported") is True)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            pass
        raise ValueError("not a record of a reply, or one of a newer format")
