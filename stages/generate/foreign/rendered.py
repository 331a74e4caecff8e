"""Tasks whose questions another package makes: rendered block by block, kept in the cube, and read from there.

A block is a function of the cell and its number: its rows are made from seeds that are hashes, in a process with a
fixed hash seed. So more trials add blocks and change none, and no digest has to stand in the cell's identity.
"""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from evalcube.stages.generate.base import Cell, Task, TaskParams, Trial
from evalcube.stages.generate.errors import TaskError
from evalcube.stages.generate.recent import Recent
from evalcube.stages.generate.stream import Stream

BLOCK = 32
"""Trials that are rendered at a time."""
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
        """See that what grades replies is there."""

    @abstractmethod
    def render(self, params: P, seeds: Sequence[int]) -> Sequence[Row]:
        """Make a row for each seed, in another process."""

    @abstractmethod
    def trial(self, params: P, row: Row) -> Trial:
        """The trial of a row."""

    def generate(self, params: P, stream: Stream) -> Trial:
        """Make the trial of one seed."""
        return self.trial(params, self.render(params, [stream.below(1 << 32)])[0])

    def generate_at(self, params: P, index: int, key: bytes, stream: Stream) -> Trial:  # noqa: ARG002
        """The trial of a row of its block."""
        number, position = divmod(index, BLOCK)
        return self.trial(params, self._rows(params, key, number)[position])

    def block(self, cell: Cell, number: int) -> bytes:
        """A block as it is to be kept: rendered here, whatever any cube has of it."""
        return _as_kept(self._render_block(self.Params.of(cell.params), cell.key, number))  # type: ignore[arg-type]

    def _rows(self, params: P, key: bytes, number: int) -> Sequence[Row]:
        name = _name(key, number)

        def load() -> Sequence[Row]:
            copies = (copy for cube in self.cubes if (copy := cube(name)) is not None)
            blocks = (rows for copy in copies if (rows := rows_of_block(b"".join(copy))) is not None)
            return next(blocks, None) or self._render_block(params, key, number)

        return (
            _HELD.obtain((self.cubes, name), load) if self.cubes else self._render_block(params, key, number)
        )

    def _render_block(self, params: P, key: bytes, number: int) -> Sequence[Row]:
        def make() -> Sequence[Row]:
            rows = self.render(params, [_seed(key, number * BLOCK + i) for i in range(BLOCK)])
            if rows_of_block(_as_kept(rows)) is None:
                raise TaskError(
                    f"task '{self.name}' made rows without prompt and target; that is a defect of it"
                )
            return rows

        return _HELD.obtain(((), _name(key, number)), make)


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


_HELD: Recent[tuple[tuple[Copies, ...], str], Sequence[Row]] = Recent(32 << 20, lambda rows: len(repr(rows)))
"""Blocks at hand, of 32 MiB, by the cubes that were asked for it, none where it was rendered for sure, and its name."""
