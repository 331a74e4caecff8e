"""A cube whose metadata come last, so that others see all of it or nothing.

All of it is made on this machine first. Then the place of the metadata is taken, by an object that names who makes the
cube, and the metadata replace that very object at the end. So of several creators one wins, and one that was stopped,
and wakes up after another took over what it had begun, finds another's object in the place of its own.
"""

from __future__ import annotations

import json
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from evalcube._together import in_threads
from evalcube.storage.clocks import elapsed_seconds
from evalcube.storage.cube.bucket.conditions import put_always, put_if
from evalcube.storage.cube.bucket.records import BucketLog
from evalcube.storage.cube.directory import Directory
from evalcube.storage.cube.directory.creation import sweep_creations, temporary_beside
from evalcube.storage.cube.holder import HELD_HERE, Hold, Holder, Watch, holder_of
from evalcube.storage.cube.space import METADATA, LeaseState, Log, Space, Version, When
from evalcube.storage.errors import CubeExistsError, StorageError
from evalcube.storage.processes import machine_id, this_process

if TYPE_CHECKING:
    from evalcube.storage.cube.bucket.objects import Bucket

_CLAIM = b'{"evalcube_creating":'
_RENEW_SECONDS = 10.0
_STALE_SECONDS = 60.0
_POLL_SECONDS = 1.0


def is_claim(data: bytes) -> bool:
    """Whether an object holds the place of the metadata of a cube that is being made."""
    return data.startswith(_CLAIM)


class _Claim:
    """The place of a cube's metadata, taken by this process."""

    def __init__(self, space: Bucket) -> None:
        self._space = space
        self.holder = _this_holder()
        self._version: Version | None = None
        self._renewed = elapsed_seconds()

    def take(self) -> None:
        """Take the place, over from a creator that ended or has not been heard of for a minute."""
        watch = Watch(_STALE_SECONDS)
        while self._version is None:
            asked = time.monotonic()
            present = self._space.read_object(METADATA)
            if present is None or not is_claim(present.data):
                _refuse_taken(self._space)
                # Several creators may come here at once; the condition lets one of them win.
                self._version = self._put(When.ABSENT)
                continue
            record = LeaseState(present.data.removeprefix(_CLAIM).removesuffix(b"}"), 0.0)
            hold = watch.hold(record, asked)
            if hold is Hold.SURE:
                process = holder_of(record).process
                raise _taken_error(self._space, f"a cube that process {process.pid} on {process.host} makes")
            if hold is Hold.WATCHED:
                time.sleep(_POLL_SECONDS)
                continue
            # Over the very claim that was watched: a creator that woke up has renewed it, and this put is refused.
            self._version = self._put(present.version)
            if self._version is not None:
                self._space.delete_all(but=METADATA)

    def renew(self) -> None:
        """Say that the cube is still being made, if that was not said for some seconds."""
        if self._version is not None and elapsed_seconds() - self._renewed >= _RENEW_SECONDS:
            self._version, self._renewed = self._put(self._version), elapsed_seconds()
        if self._version is None:
            raise _taken_error(self._space, "another process's cube")

    def commit(self, metadata: bytes) -> None:
        """Put the metadata into the place."""
        version, self._version = self._version, None
        if version is None or not put_if(self._space.store, self._space.cube, METADATA, metadata, version):
            raise _taken_error(self._space, "another process's cube")

    def give_up(self) -> None:
        """Leave nothing behind, unless another one has taken over."""
        if self._version is not None and self._space.version(METADATA) == self._version:
            self._space.delete_all(but=METADATA)
            self._space.delete(METADATA)

    def _put(self, when: When | Version) -> Version | None:
        return put_if(self._space.store, self._space.cube, METADATA, _claim(self.holder), when)


def _this_holder() -> Holder:
    return Holder(secrets.token_hex(16), this_process(), time.time(), _STALE_SECONDS, machine_id())


def _claim(holder: Holder) -> bytes:
    return _CLAIM + json.dumps({**asdict(holder), "at": time.time()}).encode() + b"}"


@dataclass(frozen=True, slots=True)
class _Draft(Directory):
    """What is to be put into a bucket, in a folder of this machine; its logs are as buckets have them."""

    def log(self, key: str) -> Log:
        """Numbered objects."""
        return BucketLog(self, key)


def create_objects(space: Bucket, fill: Callable[[Space], object]) -> None:
    """Put all that `fill` puts into a space that it gets, the metadata last."""
    _refuse_taken(space)
    with _folder() as folder:
        draft = _Draft(folder, draft=True)
        fill(draft)
        claim = _Claim(space)
        # Before it is there: this process must not take it for one that nobody goes on with.
        HELD_HERE.add(claim.holder.token)
        try:
            claim.take()
            _put_all(space, draft, claim)
        except BaseException:
            with suppress(StorageError):
                claim.give_up()
            raise
        finally:
            HELD_HERE.discard(claim.holder.token)


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder of this machine, for this user alone; what a killed process left of such ones goes first."""
    base = Path(tempfile.gettempdir()) / "evalcube-draft"
    sweep_creations(base)
    folder = temporary_beside(base)
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _put_all(space: Bucket, draft: Directory, claim: _Claim) -> None:
    keys = [key for key in draft.list() if key != METADATA]
    for _ in in_threads(partial(_put_new, space, draft), keys):
        claim.renew()  # a slow upload must not pass for one whose process is gone
    metadata = draft.get(METADATA)
    claim.commit(b"" if metadata is None else metadata.data)
    if metadata is None:  # no cube: nothing stays in the place of its metadata
        space.delete(METADATA)


def _put_new(space: Bucket, draft: Directory, key: str) -> None:
    stored = draft.get(key)
    # Nothing was here when the place was taken: a creator that was taken over from has woken up.
    if stored is not None and put_if(space.store, space.cube, key, stored.data, When.ABSENT) is None:
        raise _taken_error(space, "another process's cube")


def remove_objects(space: Bucket) -> bool:
    """Remove a cube: first it is none any more, then its objects go; a kill leaves what the next creation removes."""
    if space.read_object(METADATA) is None:
        return False
    put_always(space.store, space.cube, METADATA, _claim(_this_holder()))
    space.delete_all(but=METADATA)
    space.delete(METADATA)
    return True


def _refuse_taken(space: Bucket) -> None:
    if space.is_there():
        raise _taken_error(space, "something else" if space.get(METADATA) is None else "a cube")


def _taken_error(space: Bucket, occupant: str) -> CubeExistsError:
    problem = f"cannot create the cube: {occupant} is already there"
    return CubeExistsError(problem, space.address, "Open it, move it away, or choose another address.")
