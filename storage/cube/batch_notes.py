"""Small named texts in, whole and on disk; the same texts out, in this run or any later one. In a directory.

``<token>.json`` each. A text has one writer; readers see the old or the new one, also after a power cut.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from storage.errors import guarded
from storage.files import make_directory, replace_synced, sync_path

FOLDER = "batches"
"""Name of the folder beside a cube's records."""
_NAME = re.compile(r"([0-9a-f]{8,64})\.json")


class BatchNotes:
    """Notes in a directory, which is made with the first of them.

    Parameters
    ----------
    path
        The directory.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def tokens(self) -> Sequence[str]:
        """Names of all notes.

        Raises
        ------
        StorageError
            The directory cannot be read.
        """
        with guarded(self._path, "read the notes of batches"):
            if not self._path.is_dir():
                return ()
            names = [_NAME.fullmatch(entry.name) for entry in self._path.iterdir()]
        return [name[1] for name in names if name is not None]

    def read(self, token: str) -> bytes | None:
        """A note; None if there is none.

        Raises
        ------
        StorageError
            It cannot be read.
        """
        with guarded(self._path, "read the notes of batches"):
            try:
                return self._file(token).read_bytes()
            except FileNotFoundError:
                return None

    def write(self, token: str, data: bytes) -> None:
        """Store a note, or another version of it; it is durable when the call returns.

        Raises
        ------
        StorageError
            The disk fails or is full.
        """
        with guarded(self._path, "note a batch"):
            make_directory(self._path)
            replace_synced(self._file(token), data)

    def remove(self, token: str) -> None:
        """Forget a note, if it is there.

        Raises
        ------
        StorageError
            It cannot be removed.
        """
        with guarded(self._path, "forget a batch"):
            try:
                self._file(token).unlink()
            except FileNotFoundError:
                return
            sync_path(self._path)

    def _file(self, token: str) -> Path:
        return self._path / f"{token}.json"
