"""Copies of data files that cubes keep, found by digest: whoever opens a cube says how they are read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping

from evalcube.stages.generate.dataset.hub.address import is_hub, source_of
from evalcube.stages.generate.recent import Recent

Fetch = Callable[[], Iterator[bytes] | None]
"""Gives a copy's content block by block, whatever that is by now; None if there is no copy."""

_offers: Recent[str, Fetch] = Recent(10_000)
_versions: dict[str, Mapping[str, str]] = {}
"""Absolute path of a file that is gone, or address on the hub -> file, format and digest of what a cube has of it."""


def offer_copy(sha256: str, fetch: Fetch) -> None:
    """Say, for all of this process, where a copy of a data file may be; it may be damaged."""
    _offers.put(sha256, fetch)


def copied_blocks(sha256: str) -> Iterator[bytes] | None:
    """The content of the copy that was offered last, to be compared with the digest; None if there is none."""
    fetch = _offers.get(sha256)
    return None if fetch is None else fetch()


def offer_version(source: str, point: Mapping[str, str] | None) -> None:
    """Say, for all of this process, which content is meant by a file that is gone; None if nothing is known of it."""
    if point is None:
        _versions.pop(source, None)
    else:
        _versions[source] = point


def kept_version(path: str) -> str | None:
    """The digest that stands in for a file that is gone; None if it is there, or nothing was offered for it."""
    version = None if is_hub(path) or os.path.lexists(path) else kept_point(path)
    return None if version is None else version["sha256"]


def kept_point(path: str) -> Mapping[str, str] | None:
    """File, format and digest of what was offered for a file or an address; None if there is nothing."""
    return _versions.get(source_of(path))
