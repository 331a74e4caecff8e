"""Copies of data files that cubes keep, found by digest: whoever opens a cube says how they are read."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator

Fetch = Callable[[], Iterator[bytes] | None]
"""Gives a copy's content block by block, whatever that is by now; None if there is no copy."""

_MOST = 10_000
"""Offers that a process remembers."""
_offers: OrderedDict[str, Fetch] = OrderedDict()
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
