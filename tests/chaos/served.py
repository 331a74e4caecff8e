"""A port and a folder in; the simulator, with a tally of all requests in files that outlive it, out."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
from pathlib import Path
from typing import NamedTuple

from tests.simulator.app import Application
from tests.simulator.counts import Counts, Ticket
from tests.simulator.server import serve

_DIGEST = 16
_ARRIVED, _ANSWERED, _ABANDONED = "arrived", "answered", "abandoned"


class TalliedCounts(Counts):
    """Counts that append the digest of each request to a file when it comes, and to another when it goes."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._files = {
            name: os.open(folder / name, flags, 0o644) for name in (_ARRIVED, _ANSWERED, _ABANDONED)
        }

    def arrive(self, digest: bytes, model: str) -> int:
        os.write(self._files[_ARRIVED], digest[:_DIGEST])
        return super().arrive(digest, model)

    def leave(self, ticket: Ticket, *, delivered: bool) -> None:
        os.write(self._files[_ANSWERED if delivered else _ABANDONED], ticket.digest[:_DIGEST])
        super().leave(ticket, delivered=delivered)


class Tally(NamedTuple):
    """What a simulator saw in all its lives."""

    requests: int
    distinct: int
    answered_again: int
    """Replies delivered to a request that had been answered before."""


def requests(folder: Path) -> int:
    """Requests so far; cheap."""
    return _count(folder / _ARRIVED)


def in_flight(folder: Path) -> int:
    """Requests that came and did not go, those that died with a simulator included."""
    return requests(folder) - _count(folder / _ANSWERED) - _count(folder / _ABANDONED)


def read_tally(folder: Path) -> Tally:
    """Sum up."""
    arrived, answered = _digests(folder / _ARRIVED), _digests(folder / _ANSWERED)
    return Tally(len(arrived), len(set(arrived)), len(answered) - len(set(answered)))


def _count(file: Path) -> int:
    try:
        return file.stat().st_size // _DIGEST
    except FileNotFoundError:
        return 0


def _digests(file: Path) -> list[bytes]:
    data = file.read_bytes() if file.exists() else b""
    return [data[at : at + _DIGEST] for at in range(0, len(data), _DIGEST)]


async def _serve(port: int, folder: Path) -> None:
    application = Application()
    application.counts = TalliedCounts(folder)
    server = await serve(application, port)
    gc.freeze()
    await server.serve_forever()


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--tally", type=Path, required=True)
    options = parser.parse_args()
    asyncio.run(_serve(options.port, options.tally))


if __name__ == "__main__":
    main()
