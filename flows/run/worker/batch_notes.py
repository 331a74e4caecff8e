"""The notes of a sweep's batches, as the inference engine needs them."""

from __future__ import annotations

from collections.abc import Sequence

from evalcube.flows.plan.plan import Plan
from evalcube.stages.infer.batch.lines import Note
from evalcube.storage.cache.cache import Cache, look_up
from evalcube.storage.cube.batch_notes import BatchNotes
from evalcube.storage.cube.space import Space


class BatchBook(BatchNotes):
    """Notes beside a cube's records, and what the sweep's cache holds.

    Parameters
    ----------
    space
        The cube's records.
    cache
        The sweep's cache.
    """

    def __init__(self, space: Space, cache: Cache) -> None:
        super().__init__(space)
        self._cache = cache

    def records(self, digests: Sequence[str]) -> Sequence[bytes | None]:
        """Cached replies, those that others stored a moment ago among them."""
        return look_up(self._cache, digests)


def requests_in_batches(records: Space, plan: Plan, unfinished: Sequence[bool]) -> int:
    """How many requests of notes are of models, or of judges, with something left to answer."""
    models = {evaluation.model for evaluation, left in zip(plan.evaluations, unfinished, strict=True) if left}
    models |= {judge.model for judge in plan.judges if models}
    notes = BatchNotes(records)
    found = [Note.decode(token, notes.read(token) or b"") for token in notes.tokens()]
    return sum(len(note.digests) for note in found if note is not None and note.model in models)
