"""Receipts of written regions in; the newest receipt of every region out, also after any kill.

JSON lines, each with its own checksum, appended and synced one by one by the process that holds the lease.
A torn last line was never acknowledged: readers drop it, the next append cuts it off. A damaged line before
it is skipped and counted: its region counts as unfinished and is written again from the cache.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from storage.cube.regions import Region
from storage.errors import StorageError, guarded
from storage.files import make_directory, sync_path, write_all

MAX_LINE = 1024
"""Greatest length of a line in bytes: a receipt also travels through the scheduler."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a region task hands back."""

    region: Region
    generation: int
    """How often the region was written before; the greatest is the newest."""
    trials: int
    """Cells along trial that the region had when it was written."""
    repeats: int
    """Cells along repeat that the region had when it was written."""
    planned: int
    """Trials of the region that were planned when it was written, repeats included."""
    complete: bool
    """Nothing left to request."""
    transport: int
    """Trials with a transport error, to be retried."""
    missing: int
    """Planned trials that were not run yet."""
    causes: Mapping[str, int]
    """Transport errors by cause, as the run that wrote the region has met them there; the most frequent ones."""
    digest: str
    """`storage.cube.cube.region_digest` of the arrays."""


def to_line(receipt: Receipt) -> bytes:
    """One line of the ledger.

    Raises
    ------
    ValueError
        A number of `causes` is not whole, or the line exceeds `MAX_LINE`.
    """
    if bad := {cause: count for cause, count in receipt.causes.items() if type(count) is not int}:
        raise ValueError(f"`causes` must be whole numbers, got {bad}")
    fields = {**asdict(receipt), "causes": dict(receipt.causes)}
    text = json.dumps(fields, separators=(",", ":"), allow_nan=False)
    line = f'{{"check":"{_check(text)}","receipt":{text}}}\n'.encode()
    if len(line) > MAX_LINE:
        raise ValueError(f"a receipt has at most {MAX_LINE} bytes, got {len(line)}")
    return line


def from_line(line: bytes) -> Receipt | None:
    """Receipt of one line; None unless every byte is as `to_line` made it."""
    try:
        text = line.decode("ascii")
        head, _, tail = text.partition(',"receipt":')
        body = tail.removesuffix("}\n")
        if head != f'{{"check":"{_check(body)}"' or len(tail) != len(body) + 2:
            return None
        fields: dict[str, Any] = json.loads(body)
        causes = fields.pop("counts", None)  # what ledgers of earlier versions call it
        causes = fields.pop("causes") if causes is None else causes
        fields["causes"] = {cause: int(count) for cause, count in causes.items()}
        return Receipt(**{**fields, "region": Region(**fields["region"])})
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _check(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


class Ledger:
    """A ledger file. Reading changes nothing; the file is created by the first append.

    Parameters
    ----------
    path
        The file, usually ``<cube>/_evalcube/ledger.jsonl``.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._descriptor: int | None = None
        self._end = 0
        self._damaged = 0

    @property
    def damaged(self) -> int:
        """Damaged lines that the last reading skipped; a torn last line is none."""
        return self._damaged

    def receipts(self) -> Iterator[Receipt]:
        """All receipts in the order of their appends; holds one line at a time.

        Raises
        ------
        StorageError
            The file is there and cannot be read.
        """
        self._damaged = 0
        with guarded(self.path, "read the ledger"):
            if not self.path.exists():
                return
            with self.path.open("rb") as file:
                for line in file:
                    receipt = from_line(line)
                    if receipt is not None:
                        yield receipt
                    elif line.endswith(b"\n"):
                        self._damaged += 1

    def newest(self) -> dict[Region, Receipt]:
        """Receipt of the greatest generation of each region; of equal ones the later.

        Raises
        ------
        StorageError
            The file is there and cannot be read.
        """
        newest: dict[Region, Receipt] = {}
        for receipt in self.receipts():
            known = newest.get(receipt.region)
            if known is None or receipt.generation >= known.generation:
                newest[receipt.region] = receipt
        return newest

    def append(self, receipt: Receipt) -> None:
        """Add a receipt; it is on disk on return. A failure leaves the ledger as it was.

        Raises
        ------
        StorageError
            The receipt is too long or its `causes` are not whole numbers, another process appends to the same
            file, or the disk fails.
        """
        try:
            line = to_line(receipt)
        except ValueError as error:
            raise StorageError(str(error), self.path, "Correct the receipt.") from error
        with guarded(self.path, "append to the ledger"):
            descriptor = self._opened()
            if os.fstat(descriptor).st_size != self._end:
                raise StorageError(
                    "another process has written to the ledger since it was opened",
                    self.path,
                    "Only the holder of the sweep's lease may append: stop one of the two and run again.",
                )
            try:
                os.lseek(descriptor, self._end, os.SEEK_SET)
                write_all(descriptor, line)
                os.fsync(descriptor)
            except BaseException:
                # Closed too: should the cut fail, the next append starts by looking for a torn line.
                try:
                    os.ftruncate(descriptor, self._end)
                finally:
                    self.close()
                raise
            self._end += len(line)

    def close(self) -> None:
        """Close the file; a later append opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def _opened(self) -> int:
        """Descriptor for appending, any torn last line cut off."""
        if self._descriptor is None:
            make_directory(self.path.parent)
            new = not self.path.exists()
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                if new:
                    sync_path(self.path.parent)
                size = os.fstat(descriptor).st_size
                self._end = _whole(descriptor, size)
                if self._end != size:
                    os.ftruncate(descriptor, self._end)
                    os.fsync(descriptor)
            except BaseException:
                os.close(descriptor)
                raise
            self._descriptor = descriptor
        return self._descriptor


def _whole(descriptor: int, size: int) -> int:
    """Offset after the last line break among the first `size` bytes."""
    end = size
    while end > 0:
        start = max(0, end - MAX_LINE)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
