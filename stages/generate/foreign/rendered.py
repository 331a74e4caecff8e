"""Tasks whose questions another package makes: rendered block by block, kept in the cube, and read from there.

A block is a function of the cell and its number: its rows are made from seeds that are hashes, in a process with a
fixed hash seed. So more trials add blocks and change none, and no digest has to stand in the cell's identity.
"""

from __future__ import annotations

import hashlib
import json
import threading
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from evalcube.stages.generate.base import Cell, Task, TaskParams, Trial
from evalcube.stages.generate.errors import TaskError
from evalcube.stages.generate.stream import Stream

BLOCK = 32
"""Trials that are rendered at a time."""
_HELD_BYTES = 32 << 20
"""Of blocks that a process keeps at hand."""

P = TypeVar("P", bound=TaskParams)
Row = Mapping[str, object]
"""A question: ``prompt``, ``target``, and for its grader an ``entry`` of plain JSON."""
Copies = Callable[[str], Iterator[bytes] | None]
"""Gives what a cube keeps as a block of a name, whatever that is by now; None if it has none."""


class RenderedTask(Task[P]):
    """Ask what another package makes; each trial from a seed of its own.

    A block's digest is said by the block itself, so that it is believed of the cube that is read, and of no other.
    """

    cubes: tuple[Copies, ...] = ()
    """Of the cubes that this one, the task of their plan, reads its blocks from before it renders any."""

    def check_package(self) -> None:
        """See that what grades replies is there.

        Raises
        ------
        TaskError
            It is missing, or is another version.
        """

    @abstractmethod
    def render(self, params: P, seeds: Sequence[int]) -> Sequence[Row]:
        """Make a row for each seed, in another process.

        Raises
        ------
        TaskError
            The package is missing, or makes nothing of these params.
        """

    @abstractmethod
    def trial(self, params: P, row: Row) -> Trial:
        """The trial of a row."""

    def generate(self, params: P, stream: Stream) -> Trial:
        """Make the trial of one seed."""
        return self.trial(params, self.render(params, [stream.below(1 << 32)])[0])

    def generate_at(self, params: P, index: int, key: bytes, stream: Stream) -> Trial:  # noqa: ARG002
        """The trial of a row of its block."""
        number, place = divmod(index, BLOCK)
        return self.trial(params, self._rows(params, key, number)[place])

    def block(self, cell: Cell, number: int) -> bytes:
        """A block as it is to be kept: rendered here, whatever any cube has of it."""
        return _as_kept(self._rendered(self.Params.of(cell.params), cell.key, number))  # type: ignore[arg-type]

    def _rows(self, params: P, key: bytes, number: int) -> Sequence[Row]:
        place = (self.cubes, _name(key, number))
        found = _HELD.get(place)
        if found is None:
            copies = (copy for cube in self.cubes if (copy := cube(place[1])) is not None)
            kept = (rows for copy in copies if (rows := rows_of_block(b"".join(copy))) is not None)
            found = next(kept, None) or self._rendered(params, key, number)
            _HELD.put(place, found)
        return found

    def _rendered(self, params: P, key: bytes, number: int) -> Sequence[Row]:
        place = ((), _name(key, number))
        found = _HELD.get(place)
        if found is None:
            found = self.render(params, [_seed(key, number * BLOCK + i) for i in range(BLOCK)])
            if rows_of_block(_as_kept(found)) is None:
                raise TaskError(
                    f"task '{self.name}' made rows without prompt and target; that is a defect of it"
                )
            _HELD.put(place, found)
        return found


def block_names(cell: Cell, trials: int) -> list[str]:
    """What the blocks with a cell's first trials are kept as: 64 hex digits each."""
    return [_name(cell.key, number) for number in range(-(-trials // BLOCK))]


def rows_of_block(data: bytes) -> Sequence[Row] | None:
    """The rows of a block that anyone may have written; None if it is none, or not what its digest says."""
    head, _, body = data.partition(b"\n")
    try:
        if json.loads(head)["sha256"] != hashlib.sha256(body).hexdigest():
            return None
        rows = [json.loads(line) for line in body.splitlines()]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    sound = len(rows) == BLOCK and all(
        isinstance(row, dict) and isinstance(row.get("prompt"), str) and isinstance(row.get("target"), str)
        for row in rows
    )
    return rows if sound else None


def _as_kept(rows: Sequence[Row]) -> bytes:
    body = "\n".join(json.dumps(row, sort_keys=True) for row in rows).encode()
    return json.dumps({"sha256": hashlib.sha256(body).hexdigest()}).encode() + b"\n" + body


def _name(key: bytes, number: int) -> str:
    return hashlib.sha256(key + f"block {number}".encode()).hexdigest()


def _seed(key: bytes, index: int) -> int:
    """32 bits, which is what numpy's older generators take."""
    return int.from_bytes(hashlib.sha256(key + f"seed {index}".encode()).digest()[:4], "big")


_Place = tuple[tuple[Copies, ...], str]
"""The cubes that were asked for a block, none where it was rendered for sure, and its name."""


class _RecentBlocks:
    """The blocks used last. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks: OrderedDict[_Place, tuple[Sequence[Row], int]] = OrderedDict()
        self._size = 0

    def get(self, place: _Place) -> Sequence[Row] | None:
        with self._lock:
            if place not in self._blocks:
                return None
            self._blocks.move_to_end(place)
            return self._blocks[place][0]

    def put(self, place: _Place, rows: Sequence[Row]) -> None:
        size = sum(len(repr(row)) for row in rows)
        with self._lock:
            self._size += size - self._blocks.pop(place, ((), 0))[1]
            self._blocks[place] = rows, size
            while self._size > _HELD_BYTES and len(self._blocks) > 1:
                self._size -= self._blocks.popitem(last=False)[1][1]


_HELD = _RecentBlocks()
