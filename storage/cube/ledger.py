"""The ledger of a cube: one receipt for each writing of a region, and so what is done, also after any kill.

JSON lines, each with its own checksum, appended and made durable one by one by the process that holds the lease. A torn
last line was never acknowledged: readers drop it, the next append cuts it off. A damaged line before it is skipped and
counted: its region counts as unfinished and is written again from the cache.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from evalcube.storage.clocks import LAST_YEAR
from evalcube.storage.cube.regions import Region
from evalcube.storage.cube.space import LogConflictError, Space
from evalcube.storage.errors import StorageError, guarded

NAME = "ledger.jsonl"
"""Key of the ledger among a cube's records."""

FIRST_GRADER = "1"
"""What receipts without a grader are from; it is not written, so that they stay as they are."""

_CAUSES, _WRITING, _AT, _FINGERPRINTS = "counts", "causes", "at", "fp"
"""Keys in a line for a receipt's causes, and for when it was written and who had answered: as ledgers have them."""
MOST_FINGERPRINTS = 4
"""Kept of one region: a line has its limit."""

_NUMBERS = "generation trials repeats planned transport missing shape unrated at".split()
_MOST = 2**53
"""Greater than any number of a receipt."""

MAX_LINE = 1024
"""Greatest length of a line in bytes: a receipt also travels through the scheduler."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was written of a region, as the task that wrote it reports it."""

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
    """`evalcube.storage.cube.cube.region_digest` of the arrays."""
    grader: str = FIRST_GRADER
    """Version of the grader that graded the region's replies; several joined by + where they meet in it."""
    shape: int = 0
    """Which of `evalcube.storage.cube.cube.Cube.shapes` the region had; the first one is not written."""
    unrated: int = 0
    """Finished trials that not all judges were asked about yet; none is not written."""
    at: int = 0
    """When it was written, seconds since the epoch by its writer's clock."""
    fingerprints: Mapping[str, int] = field(default_factory=dict)
    """Finished trials by what the endpoint called the system that answered, where it does, and by ends of replies that
    nobody knows; the most frequent ones."""

    @property
    def finished(self) -> int:
        """Planned trials that have ended."""
        return self.planned - self.transport - self.missing


def newest_of(receipts: Iterable[Receipt]) -> dict[Region, Receipt]:
    """Receipt of the greatest generation of each region; of equal ones the later."""
    newest: dict[Region, Receipt] = {}
    for receipt in receipts:
        previous = newest.get(receipt.region)
        # Equal generations mean two drivers, one of which had lost the lease and did not notice: the later of the
        # two is more likely to have written what is stored.
        if previous is None or receipt.generation >= previous.generation:
            newest[receipt.region] = receipt
    return newest


def graders_of(receipts: Iterable[Receipt]) -> tuple[str, ...]:
    """Versions of the graders that graded some regions, in order: 2 before 20."""
    return tuple(sorted(sorted({name for entry in receipts for name in entry.grader.split("+")}), key=len))


def to_line(receipt: Receipt) -> bytes:
    """One line of the ledger."""
    if bad := {cause: count for cause, count in receipt.causes.items() if type(count) is not int}:
        raise ValueError(f"`causes` must be whole numbers, got {bad}")
    fields = asdict(receipt)
    at, fingerprints = fields.pop("at"), fields.pop("fingerprints")
    for name, unsaid in (("grader", FIRST_GRADER), ("shape", 0), ("unrated", 0)):
        if fields[name] == unsaid:
            del fields[name]
    fields |= {_WRITING: {_AT: at}, _CAUSES: dict(receipt.causes)}
    if fingerprints:
        line = _line(fields | {_WRITING: {_AT: at, _FINGERPRINTS: dict(fingerprints)}})
        # Who answered is worth less than that it is recorded.
        if len(line) <= MAX_LINE:
            return line
    line = _line(fields)
    if len(line) > MAX_LINE:
        raise ValueError(f"a receipt has at most {MAX_LINE} bytes, got {len(line)}")
    return line


def _line(fields: Mapping[str, Any]) -> bytes:
    # ASCII: a line is cut and checked by bytes, and no cause may bring in a line break.
    text = json.dumps(fields, separators=(",", ":"), allow_nan=False)
    return f'{{"check":"{_check(text)}","receipt":{text}}}\n'.encode()


def from_line(line: bytes) -> Receipt | None:
    """Receipt of one line; None unless every byte is as `to_line` makes it of what a run writes."""
    try:
        text = line.decode("ascii")
        head, _, tail = text.partition(',"receipt":')
        body = tail.removesuffix("}\n")
        # Compared as bytes, before anything is parsed: JSON of another order or spacing is not ours.
        if head != f'{{"check":"{_check(body)}"' or len(tail) != len(body) + 2:
            return None
        fields: dict[str, Any] = json.loads(body)
        causes, writing = fields.pop(_CAUSES), fields.pop(_WRITING)
        fields["at"] = int(writing[_AT])
        answered = writing.get(_FINGERPRINTS, {}).items()
        fields["fingerprints"] = {str(name): int(count) for name, count in answered}
        fields["causes"] = {cause: int(count) for cause, count in causes.items()}
        receipt = Receipt(**{**fields, "region": Region(**fields["region"])})
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None
    return receipt if _can_be_written(receipt) else None


def _can_be_written(receipt: Receipt) -> bool:
    """Whether a receipt has values that runs write: anyone may have made the ledger."""
    region, labels = receipt.region, (receipt.complete, receipt.digest, receipt.grader)
    numbers = [region.model, region.trial, region.repeat, *(getattr(receipt, name) for name in _NUMBERS)]
    numbers += [*receipt.causes.values(), *receipt.fingerprints.values()]
    whole = all(type(number) is int and 0 <= number < _MOST for number in numbers) and receipt.finished >= 0
    return whole and receipt.at < LAST_YEAR and tuple(map(type, labels)) == (bool, str, str)


def _check(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def most_fingerprints(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Fingerprints of several receipts added up, as many as one receipt may have."""
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total.most_common(MOST_FINGERPRINTS))


class Ledger:
    """A ledger. Reading changes nothing; the first append makes it.

    Parameters
    ----------
    records
        Where it is, usually `evalcube.storage.cube.cube.Cube.records`.
    """

    def __init__(self, records: Space) -> None:
        self._where = f"{records.address}/{NAME}"
        self._log = records.log(NAME)
        self.damaged = 0
        """Damaged lines that the last reading skipped; a torn last line is none."""

    def receipts(self) -> Iterator[Receipt]:
        """All receipts in the order of their appends; holds one line at a time."""
        self.damaged = 0
        with guarded(self._where, "read the ledger"):
            for line in self._log.lines():
                receipt = from_line(line)
                if receipt is not None:
                    yield receipt
                elif line.endswith(b"\n"):  # else it is torn, and was acknowledged to nobody
                    self.damaged += 1

    def newest(self) -> dict[Region, Receipt]:
        """Receipt of the greatest generation of each region; of equal ones the later."""
        return newest_of(self.receipts())

    def append(self, receipt: Receipt) -> None:
        """Add a receipt; it is durable on return, or where that costs a request, after `flush`."""
        try:
            line = to_line(receipt)
        except ValueError as error:
            raise StorageError(str(error), self._where, "Correct the receipt.") from error
        # After the region is durable and before its trials count: whoever is killed between leaves a region
        # without a receipt, which is written again.
        with self._appending():
            self._log.append(line)

    def flush(self, older_than: float = 0.0) -> None:
        """Make receipts durable that wait for others."""
        with self._appending():
            self._log.flush(older_than)

    def close(self) -> None:
        """Make all receipts durable and close the ledger; a later append opens it again."""
        with self._appending():
            self._log.close()

    @contextmanager
    def _appending(self) -> Iterator[None]:
        try:
            with guarded(self._where, "append to the ledger"):
                yield
        except LogConflictError:
            problem = "another process has written to the ledger since it was opened"
            remedy = "Only the holder of the sweep's lease may append: stop one of the two and run again."
            raise StorageError(problem, self._where, remedy) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
