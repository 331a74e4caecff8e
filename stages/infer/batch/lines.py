"""Batches, the lines of their answers and the notes about them, as values. Pure.

A note is stored before its batch is created: whatever dies, whoever is asked for one of its digests later finds the
batch by its id or, where that was not written down any more, by its token, its file or its requests. It holds no
address and no key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from evalcube.stages.infer.reply import Reply, RetryClass

WRAPPING_BYTES = 8192
"""What a line may have beside the response's body."""
_ID = re.compile(r"[\w:-][\w./:-]{0,511}", re.ASCII)
_CUSTOM_ID = re.compile(rb'"custom_id"\s*:\s*"([0-9a-f]{64})"')
_ENDED = {"completed": ""} | {status: f"batch {status}" for status in ("failed", "expired", "cancelled")}
_NO_ANSWER = "no answer in batch"


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as the endpoint describes it."""

    id: str
    status: str
    """OpenAI's word for it: ``in_progress``, ``completed``, ``failed``..."""
    input: str = ""
    """Ids of files, or the address of the answers; empty where there is none."""
    output: str = ""
    errors: str = ""
    token: str = ""
    """See `evalcube.stages.infer.batch.lines.Note.token`; empty where the batch is not ours."""
    detail: str = ""
    """What was wrong with the whole of it."""
    size: int = 0
    """Number of its requests, where that is all that is told of them."""
    unsure: bool = False
    """Whether it may be the one that is looked for, and only its answers will tell."""

    @property
    def over(self) -> bool:
        """Whether nothing more comes."""
        return self.status in _ENDED

    @property
    def missing(self) -> Reply:
        """What became of requests of which its files say nothing."""
        return Reply(RetryClass.FAILED, _ENDED.get(self.status) or _NO_ANSWER, self.detail)


def identifier(value: object) -> str:
    """The id `value` if it may stand in an address; empty if not."""
    return value if isinstance(value, str) and _ID.fullmatch(value) and ".." not in value else ""


class Line(NamedTuple):
    """One line of a batch's output or errors."""

    digest: str
    reply: Reply
    status: int = 0
    """HTTP status of the request's response; 0 where there is none."""
    body: bytes = b""
    """The response's body as JSON."""


def long_line(head: bytes, limit: int) -> Line | None:
    """The failure of a request whose line is too long to be kept; None if its beginning does not name one."""
    match = _CUSTOM_ID.search(head)
    if match is None:
        return None
    reply = Reply(RetryClass.FAILED, "too large", f"the response is larger than {limit} bytes")
    return Line(match[1].decode(), reply)


class LineSplitter:
    """Cuts a stream of bytes into lines, and keeps no more of one than its limit.

    Parameters
    ----------
    limit
        Bytes of the longest line that is kept whole.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, part: bytes) -> Iterator[tuple[bytes, bool]]:
        """The lines that end in `part` of the stream, with True; of one that is too long the beginning, with False."""
        start = 0
        while (end := part.find(b"\n", start)) >= 0:
            self._keep(part[start:end])
            yield from self.rest()
            start = end + 1
        self._keep(part[start:])

    def rest(self) -> Iterator[tuple[bytes, bool]]:
        """The line that has no end, as the last of a file may have none; nothing if it is blank."""
        line, whole = b"".join(self._parts), self._size <= self._limit
        self._parts, self._size = [], 0
        if line.strip():
            yield line, whole

    def _keep(self, piece: bytes) -> None:
        if self._size <= self._limit and piece:
            self._parts.append(piece[: self._limit + 1 - self._size])
        self._size += len(piece)
        if self._size > self._limit:
            self._parts = [b"".join(self._parts)[:WRAPPING_BYTES]]


NO_BATCH = "none"
_FORMAT = 1
_TOKEN = re.compile(r"[0-9a-f]{8,64}")


@dataclass(frozen=True, slots=True)
class Note:
    """What is known of one batch of one model."""

    token: str
    """Made up for it; stands in the batch's metadata."""
    model: str
    """Label of the model. Another model's batches are never searched for, as its endpoint would not know them."""
    digests: frozenset[str]
    """Of its requests."""
    file: str = ""
    """Id of the uploaded file; without one, of the newest batch before this one, or `NO_BATCH`."""
    batch: str = ""
    """Id of the batch; empty while it is not known whether there is one."""

    def encode(self) -> bytes:
        """The note as bytes; its token is the name under which they are stored."""
        fields = {"format": _FORMAT, "model": self.model, "file": self.file, "batch": self.batch}
        return json.dumps({**fields, "digests": sorted(self.digests)}, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, token: str, data: bytes) -> Note | None:
        """The note that `encode` wrote; None if `data` is anything else.

        Examples
        --------
        >>> note = Note("0123abcd", "m", frozenset({"a"}), "file-1")
        >>> Note.decode("0123abcd", note.encode()) == note
        True
        """
        try:
            fields = json.loads(data)
            model, digests = fields["model"], frozenset(fields["digests"])
            file, batch = fields["file"], fields["batch"]
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        is_current = fields["format"] == _FORMAT if "format" in fields else False
        if not is_current or not _TOKEN.fullmatch(token) or not isinstance(model, str):
            return None
        if not all(isinstance(digest, str) for digest in digests):
            return None
        return cls(token, model, digests, identifier(file), identifier(batch))


class Batches(Protocol):
    """What a sweep keeps of its batches; called from several threads."""

    def tokens(self) -> Sequence[str]:
        """The tokens of all notes that there are."""

    def read(self, token: str) -> bytes | None:
        """A note; None if it is gone."""

    def write(self, token: str, data: bytes) -> None:
        """Store a note, or another version of it, where it outlives a power cut."""

    def remove(self, token: str) -> None:
        """Forget a note, if it is there."""

    def records(self, digests: Sequence[str]) -> Sequence[bytes | None]:
        """What the store holds under each digest by now, whoever put it there; None where it holds nothing."""


def find_notes(batches: Batches, model: str, digests: frozenset[str], known: frozenset[str]) -> list[Note]:
    """The notes of a model that have any of the digests, in the order of their tokens."""
    notes = []
    for token in sorted(batches.tokens()):
        data = None if token in known else batches.read(token)
        note = None if data is None else Note.decode(token, data)
        if note is not None and note.model == model and not note.digests.isdisjoint(digests):
            notes.append(note)
    return notes


def noted_batches(batches: Batches) -> frozenset[str]:
    """Ids of the batches that notes of any model know."""
    notes = (Note.decode(token, batches.read(token) or b"") for token in batches.tokens())
    return frozenset(note.batch for note in notes if note is not None)
