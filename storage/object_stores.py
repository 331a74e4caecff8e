"""Connections to object stores through obstore: where credentials come from, what is retried, and what errors mean.

Credentials and endpoints come from the environment variables that the stores' own tools use. They are in no address,
and what a store says in an error is shown without queries, which may hold a signature.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from obstore import exceptions
from obstore.store import ObjectStore, from_url

from evalcube.storage.errors import NotWritableError, StorageError
from evalcube.storage.urls import STORE_VARIABLES, store_at

if TYPE_CHECKING:
    from obstore import GetResult

RETRIES: Any = {"max_retries": 8, "retry_timeout": timedelta(seconds=60)}
"""What obstore repeats by itself: requests that the store refuses for the moment, and those that may be repeated."""
_PATIENT: Any = {
    "max_retries": 40,
    "retry_timeout": timedelta(seconds=120),
    "backoff": {"init_backoff": timedelta(seconds=0.1), "max_backoff": timedelta(seconds=5), "base": 4},
}
"""The same for a store that has answered before: it is waited for while it restarts. Whoever mistypes is told soon.

A pause is by chance between the first one and `base` times the one before: with 2 they would not grow."""

_PART_BYTES = 2**20
_VARIABLES = (*STORE_VARIABLES, "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_NO_PLACE = ("NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist")


def connect(address: str) -> ObjectStore:
    """The store of an address; made once in a process, and again if its environment says something else."""
    environment = tuple(sorted(item for item in os.environ.items() if item[0].startswith(_VARIABLES)))
    # By process as well: a fork must not go on with its parent's sockets.
    return _cached_connection(address, address in _ANSWERED, environment, os.getpid())


_ANSWERED: set[str] = set()


def mark_reachable(address: str) -> None:
    """Take note that the store of an address is there; from now on it is waited for where it is not."""
    _ANSWERED.add(address)


@lru_cache(maxsize=64)
def _cached_connection(
    address: str, patient: bool, _environment: tuple[tuple[str, str], ...], _process: int
) -> ObjectStore:
    return from_url(address, retry_config=_PATIENT if patient else RETRIES)


@contextmanager
def store_errors(address: str, doing: str) -> Iterator[None]:
    """Turn an error of a store into one of storage, without what it says of addresses and headers."""
    try:
        yield
    except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError):
        text = f"cannot {doing}: the store refuses the credentials, or they do not allow this"
        remedy = f"Set {store_at(address).credentials} where it is used, on workers too."
        raise NotWritableError(text, address, remedy) from None
    except FileNotFoundError:
        text = f"cannot {doing}: there is no such bucket or container"
        raise StorageError(text, address, "Create it, or check the spelling of its name.") from None
    except (exceptions.BaseError, OSError, ValueError) as error:
        remedy = f"Check the network and {store_at(address).credentials}, then run again."
        # Without the cause: its text may have signed addresses in it.
        raise StorageError(f"cannot {doing}: {_plain(error)}", address, remedy) from None


def first_bytes(answer: GetResult, most: int | None) -> bytes:
    """Content of an object, or its first `most` bytes: no more than these come into memory, whatever the object has."""
    if most is None:
        most = answer.meta["size"]
    # In parts: a length that is only claimed takes no memory.
    data = bytearray()
    for part in answer.stream(min_chunk_size=_PART_BYTES):
        data += part
        if len(data) >= most:
            break
    return bytes(data[:most])


def has_no_place(error: Exception) -> bool:
    """Whether an object was not found because its bucket or container is not there."""
    text = str(error)
    return any(words in text for words in _NO_PLACE)


def _plain(error: Exception) -> str:
    """First line of a store's message, without queries, which may hold a signature."""
    line = str(error).strip().partition("\n")[0]
    return re.sub(r"\?\S*", "?***", line)[:300].strip().rstrip(".") or type(error).__name__
