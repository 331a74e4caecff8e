"""Copies of data files that cubes keep, found by digest: whoever opens a cube says how they are read."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path

Fetch = Callable[[], Iterator[bytes] | None]
"""Gives a copy's content block by block, whatever that is by now; None if there is no copy."""

_MOST = 10_000
"""Offers that a process remembers."""
_offers: OrderedDict[str, Fetch] = OrderedDict()
_versions: dict[str, str] = {}
"""Absolute path of a file that is gone -> digest of what a cube has of it."""
_lock = threading.Lock()


def offer_copy(sha256: str, fetch: Fetch) -> None:
    """Say, for all of this process, where a copy of a data file may be; it may be damaged."""
    with _lock:
        _offers[sha256] = fetch
        _offers.move_to_end(sha256)
        if len(_offers) > _MOST:
            _offers.popitem(last=False)


def copied_blocks(sha256: str) -> Iterator[bytes] | None:
    """The content of the copy that was offered last, to be compared with the digest; None if there is none."""
    with _lock:
        fetch = _offers.get(sha256)
    return None if fetch is None else fetch()


def offer_version(path: str, sha256: str | None) -> None:
    """Say, for all of this process, which content is meant by a file that is gone; None if nothing is known of it."""
    with _lock:
        _versions.pop(path, None)
        if sha256 is not None:
            _versions[path] = sha256


def kept_version(path: str) -> str | None:
    """The digest that stands in for a file that is gone; None if it is there, or nothing was offered for it."""
    return None if os.path.lexists(path) else _versions.get(str(Path(path).absolute()))
