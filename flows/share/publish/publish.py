"""Publishes a cube: an immutable copy, compared with its receipts and without secrets."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from evalcube import __version__, known_as
from evalcube.flows.cube_like import OneCube, need_address
from evalcube.flows.errors import SweepError, need_text
from evalcube.flows.events import Announcer, Subscriber
from evalcube.flows.plan.coordinates import labels
from evalcube.flows.plan.plan import Plan
from evalcube.flows.read.merged.inputs import ledger_digest
from evalcube.flows.read.merged.provenance import sources_of, write_ledger_digest
from evalcube.flows.read.selection import OpenPart, Part, open_part
from evalcube.flows.share.merge import Written, write_joined
from evalcube.flows.share.publish import record
from evalcube.flows.share.publish.card import data_card
from evalcube.flows.share.publish.check_secrets import SecretFinder, named_by
from evalcube.flows.share.publish.contents import shared_notes, whole_cube
from evalcube.flows.share.publish.record import read_origin
from evalcube.flows.share.publish.replies import PackedReplies, pack_replies
from evalcube.flows.state.caches import default_cache_addresses
from evalcube.flows.state.engines import read_engines, write_engines
from evalcube.flows.state.questions import copy_questions, kept_data_sets, offer_questions, texts_of
from evalcube.flows.state.records import NOTES, read_notes
from evalcube.flows.state.store import cube_plan
from evalcube.flows.state.trust import remembered_config
from evalcube.flows.state.verify import verify_cube
from evalcube.storage.cache.cache import ManagedCache, find_cache
from evalcube.storage.cube.address import space_of
from evalcube.storage.cube.cube import PUBLISHED, Cube
from evalcube.storage.cube.holder import apparent_holder
from evalcube.storage.cube.ledger import Ledger, Receipt
from evalcube.storage.errors import CubeDamagedError, CubeExistsError
from evalcube.storage.urls import MadeCube, is_directory, redacted

_LONGEST = 200


@known_as("evalcube.results")
@dataclass(frozen=True)
class Published(MadeCube):
    """What a publication has."""

    cube: str
    """Address of the publication."""
    digest: str
    """By which it is known: that of its record."""
    publication: record.Publication = field(repr=False)
    replies: PackedReplies | None = field(repr=False)
    """None if none were packed."""
    notes: tuple[str, ...] = ()
    """What a user should know, a sentence each."""

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values."""
        packed = self.replies
        return {
            "cube": self.cube,
            "digest": self.digest,
            **self.publication.summary(),
            "replies": None if packed is None else {"entries": packed.entries, "missing": packed.missing},
            "notes": list(self.notes),
        }


def publish_cube(
    cube: OneCube,
    url: str | Path,
    *,
    tag: str = "",
    with_replies: bool = False,
    cache: str | None = None,
    licence: str = "",
    by: str = "",
    allow: Sequence[str] = (),
    subscribers: Sequence[Subscriber] = (),
) -> Published:
    """Make an immutable copy of a cube for others.

    The copy appears only when it is complete.

    Parameters
    ----------
    cube
        The cube to publish; it is only read.
    url
        Where to make the copy: a directory, or s3://, gs:// or az:// with bucket and prefix.
    tag
        Name of this version, such as v1, which is appended to `url`; it must not exist yet. Default: none.
    with_replies
        Whether to pack the models' replies beside the cube.
    cache
        Address of the cache with the replies; default: that of your own run, or one beside the cube.
    licence, by
        The licence of the copy, such as CC-BY-4.0, and who publishes it; default: not stated.
    allow
        Ids of findings, or kinds of findings, to publish although they look secret or private; default: none.
    subscribers
        Functions that are called with each event (see `evalcube.events`); default: none.

    Returns
    -------
    Published
        Address of the copy, and its digest.

    Raises
    ------
    SecretsError
        If something that would be published looks secret or private.
    SweepError
        If the cube is damaged or a run works on it, nothing was measured, or a name or value is unknown.
    StorageError
        If the cube cannot be read, something is at `url` already, or it cannot be written.

    Examples
    --------
    >>> import evalcube as ec
    >>> ec.publish("results/sweep.zarr", "shared", tag="v1", licence="CC-BY-4.0").cube
    'shared/v1'
    """
    announcer = Announcer(subscribers)
    cube, url = str(need_address(cube)), str(need_address(url, "url"))
    record.checked_tag(tag)
    for name, text in (("licence", licence), ("by", by)):
        if _line(need_text(name, text)) != text:
            raise SweepError(f"`{name}`: one line of at most {_LONGEST} characters", "Shorten it")
    target = record.below(url, tag)
    _refuse_taken(url, target, tag)
    return _Publishing(cube, target, tag, licence, by, announcer).run(with_replies, cache, allow)


def _line(noted: object) -> str:
    """The beginning of a line of text, as long as one may be; empty if it is none: anyone may have noted it."""
    return noted[:_LONGEST] if isinstance(noted, str) and noted.isprintable() else ""


class _Publishing:
    def __init__(
        self, source: str, target: str, tag: str, licence: str, by: str, announcer: Announcer
    ) -> None:
        self._announcer = announcer
        verified = verify_cube(source, subscribers=[announcer])
        if verified.damages or verified.lines:
            first = next(map(str, verified.damages), f"{verified.lines} lines of the ledger")
            raise SweepError(
                f"cube '{source}' is damaged in {len(verified.damages) + verified.lines} places: {first}",
                f"Heal it with `evalcube cube verify --heal {source}`, or run its sweep again",
            )
        self._joined = whole_cube(source)
        self._cube = self._joined.inputs[0].cube
        self._position = _position_of(self._joined.inputs[0].receipts.values())
        self._noted = read_notes(self._cube.records)
        self._shared = shared_notes(self._noted)
        self._origin = read_origin(self._cube.records)
        self._engines = read_engines(self._cube.records)
        self._target, self._tag = target, tag
        self._licence = licence or _line(self._origin.get("publication", {}).get("licence"))
        self._by, self._time = by, int(time.time())
        if not self._position.receipts:
            raise SweepError(f"cube '{source}' holds no trial", "Run its sweep first")

    def run(self, with_replies: bool, cache: str | None, allow: Sequence[str]) -> Published:
        """Make the copy."""
        own = remembered_config(self._cube)
        named = {"cache": cache} if cache else None
        variables, hosts = named_by(self._noted.get("config"), own, named)
        finder = SecretFinder(variables, hosts, allow)
        self._look(finder)
        finder.refuse()  # before the long part begins
        made: list[tuple[record.Publication, PackedReplies | None]] = []
        caches = self._caches(cache) if with_replies else []

        def more(draft: Cube, written: Written) -> None:
            receipts = written.receipts
            draft.records.put(NOTES, json.dumps(self._shared, indent=1).encode())
            copy_questions(self._cube.records, draft.records, self._joined.plan)
            if self._engines:
                write_engines(draft.records, self._engines)
            packed = None
            if with_replies:
                packed = self._pack(draft, caches, finder)
                finder.refuse()
            # A merged cube knows by its ledger whether more was measured since: the copy's is another one.
            if sources_of(self._cube)[1] == self._position.sha256:
                write_ledger_digest(draft, _position_of(receipts).sha256)
            publication = self._record(draft, receipts, packed)
            sources = [
                f"{one.name}: {', '.join(one.models)}, {one.trials:,} trials"
                for one in sources_of(self._cube)[0]
            ]
            address = _public_address(self._target, self._tag)
            card = data_card(publication, self._joined.plan, self._open_all(), address, sources)
            draft.space.put(record.README, card.encode())
            # Since it was verified, nobody may have written into the source.
            if apparent_holder(self._cube.records) is not None or _position(self._cube) != self._position:
                raise SweepError(
                    f"a run has written into cube '{self._cube.url}' meanwhile",
                    "Publish it once that has ended",
                )
            objects = record.hashed(
                draft.space, set(draft.space.list()) - {record.KEY}, "objects hashed", self._announcer
            )
            made.append((publication.model_copy(update={"objects": objects}), packed))
            draft.records.put(record.NAME, made[0][0].encode())

        attrs = {
            **self._cube.attrs,
            PUBLISHED: {"tag": self._tag, "time": self._time, "by": self._by, "licence": self._licence},
        }
        with ExitStack() as stack:
            for one in caches:
                stack.callback(one.close)
            write_joined(self._joined, self._target, attrs, more, self._announcer)
        publication, packed = made[0]
        self._read_back(publication)
        digest = record.digest_of(publication.encode())
        return Published(self._target, digest, publication, packed, self._remarks(packed))

    def _look(self, finder: SecretFinder) -> None:
        """Look through all that the copy will say in words."""
        attrs = {name: value for name, value in self._cube.attrs.items() if name not in ("spec", PUBLISHED)}
        finder.search_json("attributes", attrs)
        finder.search_json("spec", self._joined.plan.spec())
        finder.search_json("notes", self._shared)
        finder.search_json("engines", {name: list(map(str, row)) for name, row in self._engines.items()})
        for file, text in texts_of(self._cube.records, self._joined.plan):
            finder.search(f"questions of {file}", text)
        finder.search("licence", self._licence)
        finder.search(
            "by", self._by, passing=["e-mail"]
        )  # who gives his address there wants to be written to
        for coordinate in labels(self._joined.plan):
            if coordinate.values.dtype.kind in "OUT":
                for text in dict.fromkeys(coordinate.values.ravel().tolist()):
                    finder.search(f"label `{coordinate.name}`", str(text))
        with Ledger(self._cube.records) as ledger:
            for cause in {cause for receipt in ledger.newest().values() for cause in receipt.causes}:
                finder.search("causes in the ledger", cause)
            for name in {name for receipt in ledger.newest().values() for name in receipt.fingerprints}:
                finder.search("fingerprints in the ledger", name)

    def _caches(self, named: str | None) -> list[ManagedCache]:
        """Where replies are: the cache that is named or at hand, and those that came with the cube."""
        known = default_cache_addresses(self._cube, self._noted.get("cache"))
        # A named one comes first and not instead: replies that came along may be in no other one.
        addresses = dict.fromkeys([*([named] if named else []), *known])
        caches = [one for one in map(find_cache, addresses) if one is not None]
        if not caches:
            raise SweepError(
                f"the replies of cube '{self._cube.url}' are not found",
                "Give the address of its cache with `cache`",
            )
        return caches

    def _pack(self, draft: Cube, caches: Sequence[ManagedCache], finder: SecretFinder) -> PackedReplies:
        def look(key: str, value: bytes) -> None:
            finder.search(f"reply {key[:12]}", value.decode("utf-8", "replace"))

        plan = self._joined.plan
        # With the data files where they are on this machine: the copy's own plan names them without folders.
        files = cube_plan(self._cube, self._noted).files
        placed = Plan.from_spec(self._joined.union.spec, plan.trials, plan.repeats, files)
        offer_questions(self._cube.records, placed)
        return pack_replies(draft.space, placed, self._joined.targets, caches, look, self._announcer)

    def _open_all(self) -> OpenPart:
        return open_part(self._cube, Part(), notes=self._noted, trials=False)

    def _record(
        self, draft: Cube, receipts: Sequence[Receipt], packed: PackedReplies | None
    ) -> record.Publication:
        """What is published, without its objects, of which the card is one."""
        return record.Publication(
            format=record.FORMAT,
            name=_line(self._noted.get("name")),
            tag=self._tag,
            time=self._time,
            evalcube=__version__,
            by=self._by,
            licence=self._licence,
            shapes=draft.sizes,
            trials=sum(one.finished for one in receipts),
            planned=sum(self._joined.targets.counts),
            ledger=_position_of(receipts),
            grown_from=record.pulled_digest(self._origin),
            replies=packed.archives if packed else [],
            objects={},
        )

    def _read_back(self, publication: record.Publication) -> None:
        """Make sure that others can pull what was put."""
        there = record.hashed(
            space_of(self._target), publication.objects, "objects read back", self._announcer
        )
        wrong = sorted(key for key, stored in publication.objects.items() if there[key] != stored)
        if wrong:
            raise CubeDamagedError(
                f"{wrong[0]} is not what was put there a moment ago, and {len(wrong) - 1} more objects are not",
                redacted(self._target),
                "Remove it, look after the store, and publish again",
            )

    def _remarks(self, packed: PackedReplies | None) -> tuple[str, ...]:
        found = []
        if packed is not None and packed.missing:
            found.append(
                f"{packed.missing:,} requests of the cube are answered by no cache; their replies are missing."
            )
        files = ", ".join(
            sorted({params.file for params in kept_data_sets(self._cube.records, self._joined.plan)})
        )
        if files:
            found.append(f"It contains the questions, with all rows and fields of {files}.")
        if "config" not in self._shared:
            found.append("Who wants to measure more of it needs a config of his own.")
        if not self._licence:
            found.append(
                "Without a licence (evalcube publish --licence), others do not know what they may do with it."
            )
        return tuple(found)


def _public_address(address: str, tag: str) -> str:
    """An address for others; where a directory lies on this machine says nothing to them."""
    if not is_directory(address):
        return address
    return "/".join(PurePath(address).parts[-(2 if tag else 1) :])


def _refuse_taken(url: str, target: str, tag: str) -> None:
    if Cube.exists(target):
        what = f"tag {tag} is there already, and stays as it is" if tag else "something is already there"
        raise CubeExistsError(f"cannot publish: {what}", target, "Choose another tag or address.")
    if tag and space_of(url).version("zarr.json") is not None:
        raise CubeExistsError(
            "cannot publish a tag inside of a cube", url, "Choose another address for tags."
        )


def _position(cube: Cube) -> record.Position:
    with Ledger(cube.records) as ledger:
        return _position_of(ledger.newest().values())


def _position_of(receipts: Collection[Receipt]) -> record.Position:
    return record.Position(receipts=len(receipts), sha256=ledger_digest(receipts))
