"""What served the models of a cube: engines as they named themselves, and fingerprints that came with replies.

Engines lie in a small record beside the cube, by evaluation; fingerprints in the ledger's receipts. Both are what
others said: they are bounded, shown, and decide nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from evalcube.flows.state.records import read_record
from evalcube.stages.infer.endpoint import EngineInfo
from evalcube.stages.reply.body import UNKNOWN_END, short_text
from evalcube.storage.cube.ledger import Receipt
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import StorageError

ENGINES = "engines.json"
"""Key of the record among those of a cube."""
_READ_BYTES = 20_000_000
_MOST_ENGINES = 16
"""Of one evaluation; more are no news."""
_SHOWN = 3

Engines = Mapping[str, Sequence[EngineInfo]]
"""By ``eval_id``, what served the evaluation, in the order in which it was found."""


@dataclass(frozen=True)
class Origin:
    """What answered one evaluation."""

    label: str
    """Of the evaluation, for people."""
    engines: Sequence[EngineInfo] = ()
    fingerprints: Mapping[str, int] = field(default_factory=dict)
    """Trials by fingerprint, the most frequent first."""

    @property
    def mixed(self) -> bool:
        """Whether several systems answered."""
        return len(self.engines) > 1 or len(self.fingerprints) > 1

    @property
    def warning(self) -> str:
        """A sentence for the reader of results; empty where one system answered, as far as is known."""
        if not self.mixed:
            return ""
        if len(self.engines) > 1:
            return (
                f"{self.label}: replies come from different engines ({_join(map(str, self.engines))}), whose answers "
                "may differ; give each a model of its own with a `revision`."
            )
        every = sum(self.fingerprints.values())
        shares = (f"{name} {trials / every:.0%}" for name, trials in self.fingerprints.items())
        return (
            f"{self.label}: several systems answered, by their share of trials: {_join(shares)}. "
            "Their answers may differ."
        )

    def __str__(self) -> str:
        parts = [*map(str, self.engines)]
        if self.fingerprints:
            parts.append(f"replies name {_join(self.fingerprints)}")
        return ", ".join(parts)


def read_engines(records: Space) -> dict[str, tuple[EngineInfo, ...]]:
    """What the record says, as far as it has the right form; empty if there is none."""
    document = read_record(records, ENGINES, _READ_BYTES)
    rows = document.get("evaluations") if isinstance(document, dict) else None
    if not isinstance(rows, dict):
        return {}
    by_label: dict[str, tuple[EngineInfo, ...]] = {}
    for name, infos in rows.items():
        if isinstance(infos, list):
            engines = (_engine(info) for info in infos[:_MOST_ENGINES])
            by_label[str(name)] = tuple(dict.fromkeys(info for info in engines if info is not None))
    return by_label


def _engine(info: object) -> EngineInfo | None:
    if not isinstance(info, dict):
        return None
    engine = EngineInfo(*(short_text(info.get(name)) for name in EngineInfo._fields))
    return engine if engine.engine else None


def write_engines(records: Space, engines: Engines) -> None:
    """Keep what served the evaluations. What cannot be written is nobody's loss."""
    rows = {name: [info._asdict() for info in infos] for name, infos in engines.items() if infos}
    with suppress(OSError, StorageError):
        records.put(ENGINES, json.dumps({"evaluations": rows}, indent=1, sort_keys=True).encode())


def joined_engines(several: Iterable[Engines]) -> dict[str, tuple[EngineInfo, ...]]:
    """What several records say together."""
    by_label: dict[str, dict[EngineInfo, None]] = {}
    for engines in several:
        for name, infos in engines.items():
            by_label.setdefault(name, {}).update(dict.fromkeys(infos))
    return {name: tuple(infos)[:_MOST_ENGINES] for name, infos in by_label.items()}


def origins_of(
    evaluations: Sequence[tuple[str, str]], engines: Engines, receipts: Iterable[Receipt]
) -> list[Origin]:
    """What answered each evaluation of a cube."""
    counts: list[Counter[str]] = [Counter() for _ in evaluations]
    for receipt in receipts:
        if receipt.region.model < len(counts):
            for name, count in receipt.fingerprints.items():
                if not name.startswith(UNKNOWN_END):
                    counts[receipt.region.model][short_text(name)] += count
    return [
        Origin(label, tuple(engines.get(eval_id, ())), dict(systems.most_common()))
        for (label, eval_id), systems in zip(evaluations, counts, strict=True)
    ]


def unknown_ends(receipts: Iterable[Receipt]) -> dict[str, int]:
    """Return the words for ends of replies that nobody knows, and how many trials have each."""
    counts: Counter[str] = Counter()
    for receipt in receipts:
        for name, count in receipt.fingerprints.items():
            if name.startswith(UNKNOWN_END):
                counts[short_text(name.removeprefix(UNKNOWN_END))] += count
    return dict(counts.most_common())


def _join(names: Iterable[str]) -> str:
    every = list(names)
    more = [f"{len(every) - _SHOWN} more"] if len(every) > _SHOWN else []
    return ", ".join([*every[:_SHOWN], *more])
