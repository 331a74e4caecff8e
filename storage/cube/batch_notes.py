"""Notes of the batches that providers work on, kept with a cube's records until their replies have come.

A batch may take a day, and its run may be killed meanwhile: the note is what any later run collects it by. Each note is
an object ``batches/<token>.json`` with one writer; readers see the old or the new one, also after a power cut.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from evalcube.storage.cube.space import Space
from evalcube.storage.errors import guarded

_FOLDER = "batches"
_NAME = re.compile(r"([0-9a-f]{8,64})\.json")


class BatchNotes:
    """The notes of one cube.

    Parameters
    ----------
    records
        Where they are, usually `evalcube.storage.cube.cube.Cube.records`.
    """

    def __init__(self, records: Space) -> None:
        self._records = records
        self._where = f"{records.address}/{_FOLDER}"

    def tokens(self) -> Sequence[str]:
        """Names of all notes."""
        prefix = f"{_FOLDER}/"
        with guarded(self._where, "read the notes of batches"):
            names = [_NAME.fullmatch(key.removeprefix(prefix)) for key in self._records.list(prefix)]
        return [name[1] for name in names if name is not None]

    def read(self, token: str) -> bytes | None:
        """A note; None if there is none."""
        with guarded(self._where, "read the notes of batches"):
            note = self._records.get(_key(token))
        return None if note is None else note.data

    def write(self, token: str, data: bytes) -> None:
        """Store a note, or another version of it; it is durable when the call returns."""
        with guarded(self._where, "note a batch"):
            self._records.put(_key(token), data)

    def remove(self, token: str) -> None:
        """Forget a note, if it is there."""
        with guarded(self._where, "forget a batch"):
            self._records.delete(_key(token))


def _key(token: str) -> str:
    return f"{_FOLDER}/{token}.json"
