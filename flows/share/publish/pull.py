"""Pulls a publication: every object is compared with its digest, and the copy appears whole, to be measured further."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalcube import known_as
from evalcube._together import in_threads
from evalcube.flows.errors import SweepError
from evalcube.flows.events import Announcer, Subscriber
from evalcube.flows.share.publish import record
from evalcube.flows.share.publish.record import ORIGIN
from evalcube.flows.share.publish.replies import put_replies
from evalcube.flows.state.caches import replies_name
from evalcube.flows.state.records import NOTES
from evalcube.flows.state.verify import verify_unseen
from evalcube.storage.cube.address import space_of
from evalcube.storage.cube.bounds import MOST_OBJECT, parse_json, refuse_larger
from evalcube.storage.cube.cube import PUBLISHED, Cube
from evalcube.storage.cube.layout import SIDE
from evalcube.storage.cube.ledger import NAME as LEDGER
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import CubeDamagedError, CubeExistsError, CubeNotFoundError, guarded
from evalcube.storage.urls import Address, MadeCube, directory_of, is_directory, plain_address, redacted

MOST_BYTES = 64 * 2**30
_METADATA = "zarr.json"
_FOLDER = f"{SIDE}/zarr.json"


@known_as("evalcube.results")
@dataclass(frozen=True)
class Pulled(MadeCube):
    """What a pull copied."""

    cube: str
    """Address of the copy."""
    source: str
    digest: str
    """By which the publication is known."""
    publication: record.Publication = field(repr=False)
    trials: int
    """Finished ones of the copy, repeats included."""
    replies: int
    """Replies that were put at hand."""
    cache: str | None
    """Where these are."""

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values."""
        return {
            "cube": self.cube,
            "from": self.source,
            "digest": self.digest,
            "publication": self.publication.summary(),
            "trials": self.trials,
            "replies": self.replies,
            "cache": self.cache,
        }


def pull_cube(
    url: Address,
    directory: str | Path,
    *,
    tag: str = "",
    cache: str | None = None,
    most_bytes: int = MOST_BYTES,
    subscribers: Sequence[Subscriber] = (),
) -> Pulled:
    """Copy a publication, so that results can be added to it.

    The copy appears only when it is complete.

    Parameters
    ----------
    url
        Address of the publication, without its tag: a directory, a bucket with prefix, or a web address.
    directory
        Address of the copy; it must not exist yet.
    tag
        Which of several versions below `url` to copy; default: `url` is the publication itself.
    cache
        Address of a cache to put the published replies into; default: a new one beside the copy.
    most_bytes
        Largest size of a publication, in bytes; a larger one is refused. Default: 64 GiB.
    subscribers
        Functions that are called with each event (see `evalcube.events`); default: none.

    Returns
    -------
    Pulled
        The copy, and where its replies are.

    Raises
    ------
    StorageError
        If there is no publication, an object is not what the record says, or the copy cannot be written.
    SweepError
        If a tag is unknown, or the publication is too large.

    Examples
    --------
    >>> import evalcube as ec
    >>> published = ec.publish("results/sweep.zarr", "shared", tag="v1")
    >>> ec.pull("shared", "mine.zarr", tag="v1").trials
    64
    """
    announcer = Announcer(subscribers)
    url, directory = str(plain_address(url)), str(directory)
    source = record.below(url, record.checked_tag(tag))
    space = space_of(source)
    publication, digest = _read_record(source, space, tag)
    if publication.size > most_bytes:
        raise SweepError(
            f"{redacted(source)} has {publication.size:,} bytes, more than {most_bytes:,}",
            "If you expected as much, give a greater bound with `most_bytes`",
        )
    if Cube.exists(directory):
        raise CubeExistsError("cannot pull: something is already there", directory, "Choose another address.")
    pulling = _Pulling(space, source, directory, publication, digest, announcer)
    return pulling.run(cache)


def _damage(what: str, source: str, remedy: str = "Get it from another place.") -> CubeDamagedError:
    return CubeDamagedError(what, redacted(source), remedy)


def _read_record(source: str, space: Space, tag: str) -> tuple[record.Publication, str]:
    """The record of a publication, and its digest."""
    with guarded(redacted(source), "read the publication"):
        found = space.get(record.KEY, record.MOST_RECORD_BYTES)
    if found is None:
        raise _not_found(source, space)
    publication, digest = record.decode(found.data, redacted(source)), record.digest_of(found.data)
    if tag and publication.tag != tag:
        what = f"it was published as {publication.tag or 'no tag'!r}, not as {tag!r}"
        raise _damage(what, source, "Find out why.")
    return publication, digest


def _not_found(source: str, space: Space) -> Exception:
    if space.version(_METADATA) is not None:
        return SweepError(
            f"cube '{redacted(source)}' was not published: nothing says what its objects are",
            "Publish it first with `evalcube publish`",
        )
    return CubeNotFoundError("nothing was published here", redacted(source), "Check the address and the tag.")


@dataclass
class _Pulling:
    _space: Space
    _source: str
    _target: str
    _publication: record.Publication
    _digest: str
    _announcer: Announcer
    _replies: int = 0

    def run(self, cache: str | None) -> Pulled:
        """Make the copy."""
        address = self._cache(cache) if self._publication.replies else None
        with guarded(self._target, "pull the publication"):
            space_of(self._target).assemble(lambda draft: self._fill(draft, address))
        with Ledger(Cube.open(self._target).records) as ledger:
            receipts = list(ledger.newest().values())
        trials = sum(one.finished for one in receipts)
        return Pulled(
            self._target,
            redacted(self._source),
            self._digest,
            self._publication,
            trials,
            self._replies,
            address,
        )

    def _cache(self, named: str | None) -> str | None:
        if named is not None:
            return named
        if not is_directory(self._target):
            return None
        path = directory_of(self._target)
        return str(path.parent / replies_name(path.name))

    def _fill(self, draft: Space, cache: str | None) -> None:
        """Put all objects, verified, into the copy, which is then verified as a cube, too."""
        keys = [key for key in self._publication.objects if not key.startswith(record.REPLIES)]
        # The ledger's objects are few, and have an order. Its folder comes first: records are put into it.
        ledgers = sorted(key for key in keys if key.startswith(f"{SIDE}/ledger"))
        draft.put(_FOLDER, self._object(_FOLDER), durable=False)
        lines = [line for data in in_threads(self._object, ledgers) for line in data.splitlines(True)]
        others = sorted(set(keys) - {*ledgers, _FOLDER})
        copied = in_threads(lambda key: self._put(draft, key, cache), others)
        for _ in self._announcer.count_each(copied, "objects pulled"):
            pass
        log = draft.at(SIDE).log(LEDGER)
        for line in lines:
            log.append(line)
        log.close()
        document = {
            "from": redacted(self._source),
            "digest": self._digest,
            "at": int(time.time()),
            "publication": self._publication.summary(),
        }
        draft.at(SIDE).put(ORIGIN, json.dumps(document, indent=1).encode())
        self._verify(Cube(draft, self._target, writable=True))
        # Before the copy appears: what is damaged in them leaves no copy.
        if cache is not None and self._publication.replies:
            self._replies = put_replies(self._archives(), cache)

    def _verify(self, draft: Cube) -> None:
        verified = verify_unseen(draft, self._announcer)
        if verified.damages or verified.lines:
            first = next(map(str, verified.damages), "lines of its ledger")
            what = f"the publication is damaged, although its digests are right: {first}"
            raise _damage(what, self._source, "It was published like this: ask the publisher.")

    def _put(self, draft: Space, key: str, cache: str | None) -> None:
        data = self._object(key)
        if key == _METADATA:
            data = _change_json(data, _unmark, self._source)
        elif key == f"{SIDE}/{NOTES}" and cache is not None:
            data = _change_json(data, lambda notes: notes.update(cache=cache), self._source)
        if key.startswith(f"{SIDE}/"):
            draft.at(SIDE).put(key.removeprefix(f"{SIDE}/"), data, durable=False)
        else:
            draft.put(key, data, durable=False)

    def _object(self, key: str) -> bytes:
        """An object that is what the record says."""
        said = self._publication.objects.get(key)
        if said is None:
            raise _damage(f"{key} is not in its record", self._source, "Find out who made it.")
        refuse_larger(said.size, MOST_OBJECT, f"{redacted(self._source)}/{key}")
        found = self._space.get(key, said.size + 1)
        if found is None:
            raise _damage(f"{key} is gone", self._source)
        if len(found.data) != said.size or hashlib.sha256(found.data).hexdigest() != said.sha256:
            raise _damage(f"{key} is not what was published", self._source)
        return found.data

    def _archives(self) -> Iterator[tuple[str, bytes]]:
        for number, one in enumerate(self._publication.replies):
            yield one.key, self._object(one.key)
            self._announcer.count("archives of replies", number + 1)


def _change_json(data: bytes, change: Callable[[dict[str, Any]], object], source: str) -> bytes:
    """Change an object of JSON, such as the notes with the name of the cache that has the replies."""
    try:
        document = parse_json(data)
        change(document)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _damage("its metadata or notes are none of a cube", source, "Find out who made it.") from None
    return json.dumps(document, indent=2).encode()


def _unmark(metadata: dict[str, Any]) -> None:
    """Take the mark away that keeps everybody from writing into the cube."""
    metadata["attributes"].pop(PUBLISHED, None)
