"""What a cube says of its own past: where its trials come from, and when its regions were written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from evalcube.flows.merge.provenance import Source, sources_of
from evalcube.flows.plan.spec import parse_spec
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger, Receipt, graders_of, newest_of
from evalcube.storage.urls import Address

_PAUSE = 3600
"""Seconds without a receipt after which what follows is taken for another run."""


@dataclass(frozen=True)
class Writing:
    """A stretch of time in which regions were written, mostly one run."""

    first: int
    """Seconds since the epoch."""
    last: int
    regions: int
    """Receipts, those of regions that were written again later included."""
    replaced: int
    """Of these, how many were written again later."""
    models: tuple[str, ...]
    trials: int
    """Finished trials of the regions as they were written then."""
    transport: int
    graders: tuple[str, ...]


@dataclass(frozen=True)
class History:
    """A cube's past."""

    cube: str
    sources: tuple[Source, ...]
    """What was merged into it; none of a cube that was only measured."""
    writings: tuple[Writing, ...]
    """In the order of time."""
    damaged_lines: int
    """Lines of the ledger that cannot be read."""

    def to_dict(self) -> dict[str, Any]:
        """The history as JSON values."""
        return {
            "cube": self.cube,
            "sources": [source.model_dump() for source in self.sources],
            "writings": [asdict(one) for one in self.writings],
            "damaged_lines": self.damaged_lines,
        }


def cube_history(url: Address) -> History:
    """The past of a cube, from its ledger and its provenance.

    Parameters
    ----------
    url
        The cube's address.

    Returns
    -------
    History
        Sources and times.

    Raises
    ------
    StorageError
        If there is no cube.
    SweepError
        If it is not a sweep's, or its description is damaged.
    """
    cube = Cube.open(url)
    spec = parse_spec(cube.attrs.get("spec"), cube.sizes)
    labels = [row.label for row in spec.evaluations]
    with Ledger(cube.records) as ledger:
        receipts = list(ledger.receipts())
        newest = set(map(id, newest_of(receipts).values()))
        damaged = ledger.damaged
    writings = [_writing(some, newest, labels) for some in _stretches(receipts)]
    return History(str(url), tuple(sources_of(cube)[0]), tuple(writings), damaged)


def _stretches(receipts: Iterable[Receipt]) -> Iterator[list[Receipt]]:
    """Receipts that were written one soon after the other."""
    ordered = sorted(receipts, key=lambda one: one.at)
    some: list[Receipt] = []
    for receipt in ordered:
        if some and receipt.at - some[-1].at > _PAUSE:
            yield some
            some = []
        some.append(receipt)
    if some:
        yield some


def _writing(receipts: list[Receipt], newest: set[int], labels: list[str]) -> Writing:
    models = sorted({one.region.model for one in receipts})
    return Writing(
        receipts[0].at,
        receipts[-1].at,
        len(receipts),
        sum(id(one) not in newest for one in receipts),
        tuple(labels[model] for model in models if model < len(labels)),
        sum(one.finished for one in receipts),
        sum(one.transport for one in receipts),
        graders_of(receipts),
    )
