"""The note by which a batch is found again, also by another process after the one that made it has died. Pure.

A note is stored before its batch is created: whatever dies, whoever is asked for one of its digests later finds the
batch by its id or, where that was not written down any more, by its token. It holds no address and no key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from evalcube.stages.infer.batch.lines import identifier

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
    """Id of the uploaded file."""
    batch: str = ""
    """Id of the batch; empty while it is not known whether there is one."""

    def encode(self) -> bytes:
        """The note as bytes; its token is the name under which they are stored."""
        fields = {"format": _FORMAT, "model": self.model, "file": self.file, "batch": self.batch}
        return json.dumps({**fields, "digests": sorted(self.digests)}, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, token: str, data: bytes) -> Note | None:
        """The note that `encode` wrote; None if `data` is anything else.

        Parameters
        ----------
        token
            Name under which it was stored.
        data
            Bytes of any origin: a note may be damaged, or of a newer version.

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
        known = fields["format"] == _FORMAT if "format" in fields else False
        if not known or not _TOKEN.fullmatch(token) or not isinstance(model, str):
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
    """The notes of a model that have any of the digests, in the order of their tokens.

    Parameters
    ----------
    batches
        What the sweep keeps of its batches.
    model
        Label of the model.
    digests
        Of the requests to be answered.
    known
        Tokens of notes that need not be read.
    """
    found = []
    for token in sorted(batches.tokens()):
        data = None if token in known else batches.read(token)
        note = None if data is None else Note.decode(token, data)
        if note is not None and note.model == model and not note.digests.isdisjoint(digests):
            found.append(note)
    return found
