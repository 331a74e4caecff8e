"""Entries as strings of a Redis or Valkey server: SET NX.

Key ``evalcube:entry:<64 hex>``, and ``evalcube:damaged:...`` for copies of damaged entries. An acknowledged entry is in
the server's memory; whether it outlives the server is up to the server's `appendonly`.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any

from redis import Redis, exceptions
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

from evalcube.storage.cache.contract import KEY, MOST_BYTES, EntryInfo, batches
from evalcube.storage.cache.remote import Stored
from evalcube.storage.errors import DiskFullError, NotWritableError, StorageError
from evalcube.storage.urls import RedisAddress, redis_address

_ENTRY = "evalcube:entry:"
_ASIDE = "evalcube:damaged:"
_SCAN = 1000
_SECONDS = 30.0
_RETRIES, _PATIENT_RETRIES = 4, 38
"""Attempts after a first one: for a second, and for more than a minute."""
_LONGEST_PAUSE = 2.0
_NO_STRING = "no string"
"""In the place of what a server says of a key that something else than an entry is under."""


class RedisBackend:
    """A database of a server.

    Parameters
    ----------
    url
        ``redis://host:port/db``, or ``rediss://`` for TLS; ``?password_env=NAME`` names the environment variable
        with the password, which is REDIS_PASSWORD by default.
    writable
        True makes sure that the server does not throw entries away when its memory is full.

    Raises
    ------
    UnsupportedUrlError
        The address is malformed or holds credentials.
    StorageError
        The server cannot be reached, refuses the password, or evicts.
    """

    def __init__(self, url: str, *, writable: bool) -> None:
        server = redis_address(url)
        self.address = str(server)
        self._variable = server.password_env
        self._client = _client(server)
        with self._storage_errors("open the cache"):
            self._client.ping()
        # Whoever mistypes is told soon; a server that has answered is waited for while it restarts.
        self._client.set_retry(_retry(_PATIENT_RETRIES))
        if writable:
            self._refuse_eviction()

    def create(self, items: Mapping[str, bytes]) -> list[bool]:
        """SET NX, all in one go."""
        with self._storage_errors("write the cache"):
            pipe = self._client.pipeline(transaction=False)
            for key, content in items.items():
                # One round trip, and no transaction: each entry stands for itself.
                pipe.set(_ENTRY + key, content, nx=True)
            return [reply is not None for reply in pipe.execute()]

    def read(self, keys: Sequence[str]) -> list[Stored | None]:
        """Read entries; sizes first, so that no more is read at once than is meant to be."""
        entries: list[Stored | None] = []
        with self._storage_errors("read the cache"):
            sizes = self._sizes(keys)
            names = [_ENTRY + key for key in keys]
            for batch in batches(zip(names, sizes, strict=True), lambda sized: sized[1]):
                pipe = self._client.pipeline(transaction=False)
                for name, _ in batch:
                    pipe.exists(name)
                    pipe.getrange(name, 0, MOST_BYTES)  # it may have grown since
                replies = _replies(pipe)
                entries += [_stored_entry(*pair) for pair in zip(replies[::2], replies[1::2], strict=True)]
        return entries

    def replace(self, key: str, seen: Stored, content: bytes) -> bool:
        """Replace what was seen, in a transaction."""
        return self._if_still(key, seen, lambda pipe: pipe.set(_ENTRY + key, content))

    def discard(self, key: str, seen: Stored) -> bool:
        """Delete what was seen, in a transaction."""
        return self._if_still(key, seen, lambda pipe: pipe.delete(_ENTRY + key))

    def copy_aside(self, key: str) -> None:
        """Copy an entry, within the server."""
        with self._storage_errors("copy a damaged entry"):
            self._client.copy(_ENTRY + key, f"{_ASIDE}{key}:{secrets.token_hex(4)}")

    def entries(self, *, there_now: bool = False) -> Iterator[EntryInfo]:  # noqa: ARG002 - no times are kept
        """List the entries in no order; one may come twice while others write."""
        for names in self._scan(_ENTRY):
            keys = [key for name in names if KEY.fullmatch(key := name[len(_ENTRY) :])]
            with self._storage_errors("list the cache"):
                sizes = self._sizes(keys)
            for key, size in zip(keys, sizes, strict=True):
                yield EntryInfo(key, size, None)

    def remove(self, keys: Sequence[str]) -> None:
        """Delete keys, and copies of damaged entries under them; the server frees their memory in the background."""
        wanted, copies = set(keys), chain.from_iterable(self._scan(_ASIDE))
        names = [name for name in copies if name.removeprefix(_ASIDE)[:64] in wanted]
        names += [_ENTRY + key for key in keys]
        with self._storage_errors("delete from the cache"):
            for start in range(0, len(names), _SCAN):
                self._client.unlink(*names[start : start + _SCAN])

    def count_aside(self) -> int:
        """Number of copies of damaged entries."""
        return sum(len(names) for names in self._scan(_ASIDE))

    def sweep(self, *, delete: bool) -> int:  # noqa: ARG002 - the interface of backends
        """Nothing: a killed writer leaves nothing behind."""
        return 0

    def close(self) -> None:
        """Close connections."""
        self._client.close()

    def _sizes(self, keys: Sequence[str]) -> list[int]:
        pipe = self._client.pipeline(transaction=False)
        for key in keys:
            pipe.strlen(_ENTRY + key)
        return [reply if isinstance(reply, int) else 0 for reply in _replies(pipe)]

    def _scan(self, prefix: str) -> Iterator[list[str]]:
        names: Iterator[bytes] = self._client.scan_iter(match=f"{prefix}*", count=_SCAN)
        while True:
            with self._storage_errors("list the cache"):
                page = [name.decode("ascii", "replace") for name in islice(names, _SCAN)]
            if not page:
                return
            yield page

    def _if_still(self, key: str, seen: Stored, change: Callable[[Any], object]) -> bool:
        transaction: Any = self._client.pipeline()
        with self._storage_errors("write the cache"), transaction as pipe:
            pipe.watch(_ENTRY + key)
            # Read through another connection, after the watch has begun: what changes later makes it fail.
            if self.read([key])[0] != seen:
                return False
            pipe.multi()
            change(pipe)
            try:
                pipe.execute()
            except exceptions.WatchError:
                return False
        return True

    def _refuse_eviction(self) -> None:
        try:
            with self._storage_errors("open the cache"):
                memory: Any = self._client.info("memory")
        except NotWritableError:  # a user that may not ask
            return
        if memory.get("maxmemory") and str(memory.get("maxmemory_policy")).startswith("allkeys"):
            problem = f"the server evicts entries when its memory is full ({memory['maxmemory_policy']})"
            remedy = (
                "Set its maxmemory-policy to noeviction: then a full server refuses, and nothing is lost."
            )
            raise StorageError(problem, self.address, remedy)

    @contextmanager
    def _storage_errors(self, doing: str) -> Iterator[None]:
        """Turn an error of the client into one of storage."""
        try:
            yield
        except (exceptions.AuthenticationError, exceptions.NoPermissionError):
            text = f"cannot {doing}: the server refuses the password, or its user may not do this"
            remedy = f"Set the environment variable {self._variable} where the cache is used, on workers too."
            raise NotWritableError(text, self.address, remedy) from None
        except exceptions.OutOfMemoryError:
            text = f"cannot {doing}: the server's memory is full"
            remedy = "Raise its maxmemory or remove entries; what was acknowledged is safe, run again."
            raise DiskFullError(text, self.address, remedy) from None
        except (exceptions.RedisError, OSError, UnicodeError) as error:
            text = f"cannot {doing}: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
            remedy = "Check that the server runs and the address is right, then run again."
            raise StorageError(text, self.address, remedy) from None


def _retry(retries: int) -> Retry:
    return Retry(ExponentialBackoff(cap=_LONGEST_PAUSE, base=0.05), retries)


def _client(server: RedisAddress) -> Redis:
    return Redis(
        host=server.host,
        port=server.port,
        db=server.database,
        username=os.environ.get("REDIS_USERNAME") or None,
        password=os.environ.get(server.password_env) or None,
        ssl=server.tls,
        socket_timeout=_SECONDS,
        socket_connect_timeout=_SECONDS / 3,
        retry=_retry(_RETRIES),
        retry_on_error=[exceptions.ConnectionError, exceptions.TimeoutError],
    )


def _replies(pipe: Any) -> list[Any]:  # noqa: ANN401 - a pipeline of the client
    """What a server answers, also where something else than an entry is under a key."""
    replies = pipe.execute(raise_on_error=False)
    for number, reply in enumerate(replies):
        if isinstance(reply, Exception):
            if not str(reply).startswith("WRONGTYPE"):
                raise reply
            replies[number] = _NO_STRING
    return list(replies)


def _stored_entry(there: int, content: bytes | str) -> Stored | None:
    if isinstance(content, str):
        return Stored(None, content)
    return Stored(content if len(content) <= MOST_BYTES else None, hash(content)) if there else None
