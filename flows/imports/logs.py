"""Imports logs of other tools: reads them all, and writes what they say as a cube."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.flows.errors import SweepError
from evalcube.flows.imports.bounded import items, mapping
from evalcube.flows.imports.collect import REPLIED, Collection
from evalcube.flows.imports.plan import import_plan
from evalcube.flows.imports.samples import Scale, Wanted
from evalcube.flows.imports.sources import READERS, Source, find_sources
from evalcube.flows.imports.write import Answers, Writer, store_replies, write_data
from evalcube.flows.plan.plan import Plan, is_imported
from evalcube.flows.plan.questions import keep_questions
from evalcube.flows.plan.records import read_notes
from evalcube.flows.plan.store import OtherSweepError, SweepStore, cube_plan, sweep_cube
from evalcube.flows.plan.trust import remember_run
from evalcube.stages.process.grading import IMPORTED
from evalcube.storage.cache.cache import ManagedCache, open_cache
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.lease import Lease
from evalcube.storage.urls import OBJECT_SCHEMES, absolute, directory_of, scheme_of

DEFAULT_CACHE = "results/cache"
_SHOWN = 6


@dataclass(frozen=True)
class ImportSummary:
    """What was imported."""

    cube: str
    cache: str
    logs: int
    """Logs that were read."""
    models: tuple[str, ...]
    tasks: tuple[str, ...]
    samples: int
    """Samples that the logs have."""
    replies: int
    """Different answers among them."""
    failed: int
    """Samples without an answer or a score."""
    repeated: int
    """Samples that said again what another one said."""
    new_replies: int
    """Replies that the cache did not have."""
    new_regions: int
    """Regions of the cube that were written: 0 if it had all of it."""
    notes: tuple[str, ...]
    """What a reader of the cube should know."""

    def to_dict(self) -> dict[str, Any]:
        """The summary as JSON values."""
        fields = {
            name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()
        }
        return {"schema": "evalcube.import", "schema_version": 1, **fields}


def import_logs(
    logs: Sequence[str | Path],
    into: str | Path,
    *,
    cache: str | Path | None = None,
    data: str | Path | None = None,
    wanted: Wanted | None = None,
    scale: Scale | None = None,
) -> ImportSummary:
    """Read what other tools have measured into a cube.

    Nothing is written unless all logs are found right. What is there already stays: the same logs again add nothing.

    Parameters
    ----------
    logs
        Files, and directories in which all logs are meant.
    into
        The cube's address; it is made, or has what was imported from some of these logs.
    cache
        Where the replies go; default: ``results/cache``.
    data
        Directory for the questions; default: beside the cube, with its name and the ending ``.data``.
    wanted
        What the logs do not say themselves.
    scale
        How scores become right and wrong.

    Returns
    -------
    ImportSummary
        What was read, and what was new.

    Raises
    ------
    SweepError
        If a log is wrong, contradicts another one, no answer has a score, or the cube has other tasks or models.
    StorageError
        If the cube or the cache cannot be written.
    """
    wanted, scale, address = wanted or Wanted(), scale or Scale(), str(cache or DEFAULT_CACHE)
    folder = _data_folder(str(into), data)
    sources = find_sources(logs, wanted)
    with Collection(scale) as collection:
        _know(collection, into)
        for source in sources:
            _read(source, collection, wanted)
        if not collection.asked:
            raise SweepError("the logs have no samples", "Give logs that have some")
        _note_setups(collection, wanted)
        table = collection.table()
        failed = int((table[:, 4] != REPLIED).sum())
        if failed == len(table):
            causes = ", ".join(collection.causes)
            raise SweepError(
                f"the logs have {failed:,} samples and no answer with a score ({causes}): there is nothing to import",
                "Give logs with scored answers; of files of no known tool, `map` says which field has the score",
            )
        _refuse_new_questions(collection, into)
        plan, targets = import_plan(collection, write_data(collection, folder), table)
        targets.refuse_too_many()
        store = open_cache(address)
        try:
            counts = _write(plan, str(into), store, collection, table, _notes(plan, address, sources))
        finally:
            store.close()
        return ImportSummary(
            str(into),
            address,
            len(sources),
            plan.labels,
            plan.task_names,
            collection.samples,
            len(table) - failed,
            failed,
            collection.repeated,
            *counts,
            tuple(wanted.notes),
        )


def _read(source: Source, collection: Collection, wanted: Wanted) -> None:
    before = collection.samples
    for sample in READERS[source.format](source.path, wanted):
        collection.add(sample)
    if collection.samples == before:
        wanted.note(f"{source.path.name}: it has no samples")


def _write(
    plan: Plan,
    into: str,
    cache: ManagedCache,
    collection: Collection,
    table: npt.NDArray[np.int64],
    notes: Mapping[str, Any],
) -> tuple[int, int]:
    """Write cache and cube; how many replies and regions were new."""
    try:
        if Cube.exists(into):  # else it is made when its replies are there
            sweep_cube(plan, into)
        new_replies = store_replies(plan, collection, table, cache)
        opened, _ = sweep_cube(plan, into)
        with Lease.acquire(opened.records):
            opened, whole = sweep_cube(plan, into)
            answers = Answers.of(collection, table, plan, whole)
            store = SweepStore(opened, whole, answers.targets(whole))
            keep_questions(opened.records, whole)
            regions = Writer(store, answers, cache).write()
            store.note(_merged(read_notes(opened.records), notes))
            remember_run(opened, {"cache": notes["cache"]})
    except OtherSweepError as error:
        raise SweepError(
            error.message,
            "Import all logs at once into a new cube, or these into one of their own, and then: evalcube merge",
        ) from None
    return new_replies, regions


def _merged(before: Mapping[str, Any], notes: Mapping[str, Any]) -> dict[str, Any]:
    """The notes of a cube with those of another import."""
    logs = {
        log["sha256"]: log for log in items(before.get(IMPORTED)) if isinstance(log, dict) and "sha256" in log
    }
    logs |= {log["sha256"]: log for log in notes[IMPORTED]}
    files = {**mapping(before.get("files")), **notes["files"]}
    return {**before, **notes, IMPORTED: list(logs.values()), "files": files}


def _know(collection: Collection, into: str | Path) -> None:
    """Let questions that the cube has keep their rows."""
    if not Cube.exists(into):
        return
    cube = Cube.open(into)
    plan = cube_plan(cube, read_notes(cube.records))
    for task in plan.tasks:
        cells = [planned.cell for planned in task.cells if is_imported(planned.cell)]
        identities = {str(cell.plain_params[IMPORTED]) for cell in cells}
        collection.labels[task.label] = identities.pop() if len(identities) == 1 else ""
        for cell in cells:
            collection.know(str(cell.plain_params[IMPORTED]), _rows(str(cell.plain_params["file"])))


def _refuse_new_questions(collection: Collection, into: str | Path) -> None:
    """Refuse questions that a task of the cube lacks: with more of them it is another cell, which pairs with none."""
    for key, questions in collection.tasks.items():
        more = len(questions.rows) - questions.kept
        if questions.kept and more:
            raise SweepError(
                f"the logs have {more} questions of task {key.task} that cube '{into}' lacks",
                "Import all logs at once into a new cube",
            )


def _rows(path: str) -> Iterator[dict[str, Any]]:
    from evalcube.flows.imports.bounded import lines, parse

    for number, line in lines(Path(path)):
        yield mapping(parse(line, f"{path}, line {number}"))


def _note_setups(collection: Collection, wanted: Wanted) -> None:
    """Say where models were asked the same questions in different ways."""
    for key, questions in collection.tasks.items():
        if len(questions.setups) > 1:
            names = [name or json.dumps(setup)[:60] for setup, name in questions.setups.items()]
            shown = "; ".join(dict.fromkeys(names[:_SHOWN]))
            wanted.note(f"task {key.task}: asked in {len(questions.setups)} different ways ({shown})")


def _data_folder(into: str, data: str | Path | None) -> Path:
    if data is not None:
        return Path(data)
    if scheme_of(into) in OBJECT_SCHEMES:
        raise SweepError(
            f"`data` is missing: the questions of cube '{into}' need a directory",
            "Give one, as its sweep would",
        )
    place = directory_of(into)
    return place.with_name(f"{place.name.removesuffix('.zarr')}.data")


def _notes(plan: Plan, cache: str, sources: Sequence[Source]) -> dict[str, Any]:
    """What whoever opens the cube should know: where its questions and replies are, and of which logs it was made."""
    logs = [
        {"name": source.path.name, "format": source.format, "sha256": source.digest} for source in sources
    ]
    files = {digest: str(Path(path).absolute()) for digest, path in plan.files.items()}
    return {"cache": absolute(cache), "name": "import", IMPORTED: logs, "files": files}
