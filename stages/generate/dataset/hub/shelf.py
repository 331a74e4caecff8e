"""Rows that were fetched from the hub, in one folder of this user: each file under the digest of its content.

A file is as its owners published it, so that its digest is the same on all machines; what comes in several parts is
written as one JSONL file. Beside it stands a record of where it is from.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path

_LARGEST_RECORD = 1 << 20
_FORMATS = ("parquet", "jsonl", "csv", "tsv")


@dataclass(frozen=True)
class FetchedRows:
    """Where rows are from, as `evalcube data list` shows it."""

    asked: str
    """The address as it was first given."""
    address: str
    """The same with the commit."""
    commit: str
    licence: str
    """As its card says; empty if it says nothing."""
    gated: bool
    sha256: str
    format: str
    rows: int
    size: int
    """Bytes of the file here."""
    files: list[str]
    """Names in the repository."""
    fetched: str
    """Date, UTC."""

    @property
    def is_pinned(self) -> bool:
        """Whether a commit was asked for; else it is the one that was the newest then."""
        return self.asked == self.address


def folder() -> Path:
    """Where fetched rows lie; it may not be there yet."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return Path(cache if cache.startswith("/") else "~/.cache").expanduser() / "evalcube" / "data"


def content(sha256: str) -> Path | None:
    """The file with a digest, which is not compared; None if it is not here."""
    paths = (folder() / f"{sha256}.{form}" for form in _FORMATS)
    return next((path for path in paths if path.is_file()), None)


def find(address: str) -> FetchedRows | None:
    """What was fetched for an address; None if that is not here."""
    record = _read_record(_record(address))
    return record if record is not None and content(record.sha256) is not None else None


def records() -> Iterator[FetchedRows]:
    """All that is here, one for each pinned address and name that it was asked by, in order of the addresses."""
    read = {
        (record.address, record.asked): record
        for path in folder().glob("*.json")
        if (record := _read_record(path)) is not None and content(record.sha256) is not None
    }
    return (read[key] for key in sorted(read))


def keep(record: FetchedRows, file: Path) -> None:
    """Take a file over, and note for what addresses it stands."""
    target = folder() / f"{record.sha256}.{record.format}"
    file.chmod(0o644)
    file.replace(target)
    note(record)


def note(record: FetchedRows) -> None:
    """Write down for what addresses a file stands that is here."""
    for address in {record.asked, record.address}:
        write_json(_record(address), asdict(record))


def write_json(path: Path, document: object) -> None:
    """Write a document beside a path, and put it there when it is whole."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as part:
        json.dump(document, part)
    Path(part.name).replace(path)


def _record(address: str) -> Path:
    return folder() / f"{hashlib.sha256(address.encode()).hexdigest()[:32]}.json"


def _read_record(path: Path) -> FetchedRows | None:
    with suppress(OSError, ValueError, TypeError, KeyError):
        with path.open("rb") as file:
            document = json.loads(file.read(_LARGEST_RECORD))
        return FetchedRows(**{field.name: document[field.name] for field in fields(FetchedRows)})
    return None
