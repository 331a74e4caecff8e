"""The record that makes a cube a publication: what it is, and size and digest of each of its objects."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evalcube._together import in_threads
from evalcube.flows.errors import SweepError, need_text
from evalcube.flows.events import Announcer
from evalcube.flows.state.records import read_record
from evalcube.storage.clocks import LAST_YEAR
from evalcube.storage.cube.bounds import parse_json
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import CubeDamagedError, StorageError

NAME = "published.json"
"""Its key among a cube's records."""
KEY = f"_evalcube/{NAME}"
README = "README.md"
REPLIES = "_evalcube/replies/"

FORMAT = 2
"""Earlier versions do not know keys of chunks with points, and refuse them as strange."""
MOST_RECORD_BYTES = 256 * 2**20
MOST_OBJECTS = 2_000_000
MOST_OBJECT_BYTES = 2**31
_LONGEST = 200

TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_DIGEST = "^[0-9a-f]{64}$"
_KEY = re.compile(
    r"zarr\.json|README\.md"
    r"|[^/\s\\.][^/\s\\]{0,199}/(?:zarr\.json|c(?:[/.]\d{1,9}){0,8})"
    r"|_evalcube/(?:zarr|sweep|merged)\.json"
    r"|_evalcube/ledger(?:\.jsonl|/\d{8}\.jsonl)"
    r"|_evalcube/questions/[0-9a-f]{64}\.zst"
    r"|_evalcube/replies/\d{4}-\d{4,8}\.tar\.zst"
)
"""Keys of a publication: nothing that leads elsewhere, and nothing that a program would look for."""


class _Record(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class PublishedObject(_Record):
    """One object."""

    sha256: str = Field(pattern=_DIGEST)
    size: int = Field(ge=0, le=MOST_OBJECT_BYTES)


class Position(_Record):
    """What the ledger says."""

    receipts: int = Field(ge=0, le=2**53)
    sha256: str = Field(pattern=_DIGEST)
    """Of the receipts in the order of their regions."""


class Packed(_Record):
    """Replies of one evaluation in one archive."""

    key: str
    model: int = Field(ge=0, le=2**53)
    """Place of the evaluation in the copy."""
    entries: int = Field(ge=0, le=2**53)


class Publication(_Record):
    """What was published."""

    format: int = Field(ge=1)
    name: str = Field(default="", max_length=_LONGEST)
    tag: str = Field(default="", max_length=64)
    time: int = Field(ge=0, lt=LAST_YEAR)
    """Seconds since the epoch."""
    evalcube: str = Field(default="", max_length=_LONGEST)
    """Version that made the copy."""
    by: str = Field(default="", max_length=_LONGEST)
    licence: str = Field(default="", max_length=_LONGEST)
    shapes: dict[str, int]
    trials: int = Field(ge=0, le=2**53)
    """Finished ones, repeats included."""
    planned: int = Field(ge=0, le=2**53)
    ledger: Position
    grown_from: str = Field(default="", max_length=_LONGEST)
    """Digest of the publication that the cube was pulled from before it grew."""
    replies: list[Packed] = Field(default_factory=list, max_length=MOST_OBJECTS)
    objects: dict[str, PublishedObject] = Field(max_length=MOST_OBJECTS)

    @property
    def size(self) -> int:
        """Bytes of all objects."""
        return sum(one.size for one in self.objects.values())

    def encode(self) -> bytes:
        """The record as it is stored."""
        return (json.dumps(self.model_dump(), indent=1, sort_keys=True) + "\n").encode()

    def summary(self) -> dict[str, Any]:
        """All of it but the objects."""
        return self.model_dump(exclude={"objects", "replies"}) | {
            "objects": len(self.objects),
            "bytes": self.size,
        }


def digest_of(data: bytes) -> str:
    """The digest by which a publication is known: that of its record, which has those of all objects."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def hashed(space: Space, keys: Iterable[str], noun: str, announcer: Announcer) -> dict[str, PublishedObject]:
    """Size and digest of objects as they can be read back."""

    def one(key: str) -> tuple[str, PublishedObject]:
        found = space.get(key)
        if found is None:
            raise StorageError(
                f"{key} is gone a moment after it was written", space.address, "Publish again."
            )
        return key, PublishedObject(sha256=hashlib.sha256(found.data).hexdigest(), size=len(found.data))

    return dict(announcer.count_each(in_threads(one, sorted(keys)), noun))


def decode(data: bytes, where: str) -> Publication:
    """The publication that a record describes; anyone may have written it."""
    try:
        document = parse_json(data)
        written = document.get("format") if isinstance(document, dict) else None
        newer = type(written) is int and written > FORMAT
        found = None if newer else Publication.model_validate(document)
    except ValueError as error:
        what = str(error).partition("\n")[0]
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False)[0]
            told = "missing" if first["type"] == "missing" else f"{first['input']!r:.60}: {first['msg']}"
            what = f"`{'.'.join(map(str, first['loc']))}` is {told}"
        raise CubeDamagedError(
            f"{KEY} is no record of a publication: {what[:_LONGEST]}", where, "Get it once more."
        ) from None
    if found is None:
        raise SweepError(
            f"{where} was published in format {written}; this version reads format {FORMAT}",
            "Update evalcube",
        )
    for key in (*found.objects, *(one.key for one in found.replies)):
        if not _KEY.fullmatch(key) or not key.isprintable():
            raise CubeDamagedError(
                f"its record names an object {key[:80]!r}, which no publication has",
                where,
                "Find out who made it.",
            )
    if {one.key for one in found.replies} - set(found.objects):
        raise CubeDamagedError("its record names replies that are not in it", where, "Find out who made it.")
    return found


def checked_tag(tag: str) -> str:
    """A tag that can stand in an address."""
    if need_text("tag", tag) and not TAG.fullmatch(tag):
        raise SweepError(f"`tag`: '{tag}' cannot be one", "Give a word such as v1 or 2026-11")
    return tag


def below(url: str, tag: str) -> str:
    """Return the address of a tag."""
    return f"{url.rstrip('/')}/{tag}" if tag else url


def pulled_digest(notes: Mapping[str, Any] | None) -> str:
    """Digest of the publication that a copy was pulled from; empty if it was not."""
    digest = notes.get("digest") if notes else None
    return digest if isinstance(digest, str) and len(digest) <= _LONGEST else ""


ORIGIN = "pulled.json"
"""Key among a copy's records of what it was pulled from."""

_READ_BYTES = 1_000_000


def read_origin(records: Space) -> dict[str, Any]:
    """What a copy was pulled from; empty if it was not, or nobody knows."""
    document = read_record(records, ORIGIN, _READ_BYTES)
    if not isinstance(document, dict) or not isinstance(document.get("publication", {}), dict):
        return {}
    return document
