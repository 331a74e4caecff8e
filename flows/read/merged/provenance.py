"""Where the trials of a merged cube come from: who measured what, and when, as far as the cubes say.

Anyone may have written a cube that is merged, and with it the names in it: of each entry so much is kept, and of all
entries so many, that no cube makes the next one larger than it has to be.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evalcube import __version__
from evalcube.flows.plan.evaluations import labels_of
from evalcube.flows.read.merged.inputs import Input
from evalcube.flows.read.merged.union import given_name
from evalcube.flows.state.records import MERGED
from evalcube.storage.cube.bounds import parse_json
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import graders_of

RECORD = "merged.json"
"""Key of the record that says what the ledger was when the cube was merged: more may have been measured since."""

MOST_SOURCES = 200
_MOST_NAMES = 50
_MOST_POINTS = 500
_LONGEST = 120
_READ_BYTES = 10_000
_Text = Field(max_length=_LONGEST)


class SourceCube(BaseModel):
    """One cube whose trials came in."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    name: str = _Text
    """Last part of its address, without its ending."""
    ledger: str = Field(pattern="^[0-9a-f]{64}$")
    """SHA-256 of what its ledger vouched for: equal for equal results."""
    spec: str = Field(pattern="^[0-9a-f]{64}$")
    """SHA-256 of its description."""
    models: list[str] = Field(max_length=_MOST_NAMES)
    """Of what it measured; cut after so many."""
    tasks: list[str] = Field(max_length=_MOST_NAMES)
    evaluations: list[str] = Field(default=[], max_length=_MOST_NAMES)
    """Ids of what it measured."""
    points: list[str] = Field(default=[], max_length=_MOST_POINTS)
    """Ids of the points at which it did; none where they are more than so many."""
    trials: int = Field(ge=0, le=2**53)
    """Finished ones, repeats included."""
    graders: list[str] = Field(max_length=_MOST_NAMES)
    first: int | None = Field(default=None, ge=0, le=2**53)
    """When its first region was written, seconds since the epoch."""
    last: int | None = Field(default=None, ge=0, le=2**53)
    spent_tokens: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    spent_usd: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    evalcube: str = Field(default="", max_length=_LONGEST)
    """Version that read it."""


def sources_attribute(inputs: Sequence[Input]) -> dict[str, Any]:
    """The attribute of a merged cube: all sources by name, each once."""
    sources: dict[str, SourceCube] = {}
    for cube in inputs:
        earlier, ledger = sources_of(cube.cube)
        own = [] if earlier and ledger == cube.ledger_digest else [_source(cube)]
        for source in (*earlier, *own):
            # The same results under two names are one source; the smaller name, in whatever order they come.
            same = sources.setdefault(source.ledger, source)
            sources[source.ledger] = min(same, source, key=lambda each: each.name)
    ordered = sorted(sources.values(), key=lambda source: (source.name, source.ledger))
    return {
        "sources": [source.model_dump(exclude_defaults=True) for source in ordered[:MOST_SOURCES]],
        **({"more": len(ordered) - MOST_SOURCES} if len(ordered) > MOST_SOURCES else {}),
    }


def sources_of(cube: Cube) -> tuple[list[SourceCube], str]:
    """The sources of a merged cube, and the digest of its ledger when it was merged; none and nothing of another one.

    What no merge has written is passed over.
    """
    attribute = cube.attrs.get(MERGED)
    if not isinstance(attribute, Mapping):
        return [], ""
    entries = attribute.get("sources")
    sources = []
    for entry in entries[:MOST_SOURCES] if isinstance(entries, list) else ():
        try:
            sources.append(SourceCube.model_validate(entry))
        except ValidationError:
            continue
    return sources, _merged_ledger(cube)


def write_ledger_digest(cube: Cube, digest: str) -> None:
    """Note what a merged cube's ledger says."""
    cube.records.put(RECORD, json.dumps({"ledger": digest}).encode())


def _merged_ledger(cube: Cube) -> str:
    record = cube.records.get(RECORD, _READ_BYTES)
    try:
        document = parse_json(record.data) if record else None
    except ValueError:
        return ""
    ledger = document.get("ledger") if isinstance(document, dict) else None
    return ledger if isinstance(ledger, str) else ""


def _source(cube: Input) -> SourceCube:
    receipts = cube.receipts.values()
    first, last = cube.times or (None, None)
    tokens, usd = cube.spent
    points = [point.cell_id for task in cube.described.tasks for point in task.points]
    return SourceCube(
        name=_cut(given_name(cube.url)),
        evaluations=_names(row.eval_id for row in cube.described.evaluations),
        points=points if len(points) <= _MOST_POINTS else [],
        ledger=cube.ledger_digest,
        spec=cube.spec_digest,
        models=_names(labels_of(cube.described.evaluations)),
        tasks=_names(task.label for task in cube.described.tasks),
        trials=sum(receipt.finished for receipt in receipts),
        graders=_names(graders_of(receipts)),
        first=first,
        last=last,
        spent_tokens=max(0.0, tokens),
        spent_usd=max(0.0, usd),
        evalcube=__version__,
    )


def _names(texts: Iterable[str]) -> list[str]:
    return [_cut(text) for _, text in zip(range(_MOST_NAMES), texts, strict=False)]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
