"""Writes several cubes as one: region by region in bounded memory, beside its place until it is whole."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evalcube import known_as
from evalcube.flows.cube_like import OneCube, need_address, need_addresses
from evalcube.flows.errors import SweepError, no_bare_text
from evalcube.flows.events import Announcer, Subscriber
from evalcube.flows.plan.spec import description
from evalcube.flows.read.merged.dataset import Conflict, ModelMerge, Tally
from evalcube.flows.read.merged.inputs import Input, ledger_digest
from evalcube.flows.read.merged.joined import Joined
from evalcube.flows.read.merged.layers import Array
from evalcube.flows.read.merged.provenance import sources_attribute, write_ledger_digest
from evalcube.flows.read.merged.union import read_renames
from evalcube.flows.state.caches import remember_merged
from evalcube.flows.state.engines import joined_engines, read_engines, write_engines
from evalcube.flows.state.questions import copy_questions
from evalcube.flows.state.records import MERGED, NOTES
from evalcube.flows.state.shared_arrays import refuse_unrecorded
from evalcube.stages.process.grading import IMPORTED
from evalcube.stages.reply.status import COUNTERS, QUESTION_COUNTERS
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger, Receipt
from evalcube.storage.cube.schema import LAYERS
from evalcube.storage.errors import CubeExistsError
from evalcube.storage.urls import MadeCube

PREFERENCES = ("fail", "newer", "first")
_KEPT = ("name", "cache", IMPORTED)
"""Notes that are as true of the whole as of each of its parts."""


class ConflictError(SweepError):
    """Cubes that contradict each other, where nobody said which of them is right."""

    def __init__(self, message: str, remedy: str, conflicts: Sequence[Conflict]) -> None:
        super().__init__(message, remedy)
        self.conflicts = tuple(conflicts)

    def __reduce__(self) -> tuple[object, ...]:
        return ConflictError, (self.message, self.remedy, self.conflicts)


@known_as("evalcube.results")
@dataclass(frozen=True)
class Merged(MadeCube):
    """What a merge joined."""

    cube: str
    """Address of the merged cube."""
    cubes: tuple[str, ...]
    """Of what it was made."""
    sizes: Mapping[str, int]
    trials: int
    """Finished ones, repeats included."""
    planned: int
    """Those that the merged cube is to have."""
    regions: int
    prefer: str
    conflicts: tuple[Conflict, ...] = ()
    notes: tuple[str, ...] = ()
    """What a user should know, a sentence each."""

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values."""
        return asdict(self)


def merge_cubes(
    output: str | Path,
    cubes: Sequence[OneCube],
    *,
    prefer: str = "fail",
    rename: Sequence[str] = (),
    subscribers: Sequence[Subscriber] = (),
) -> Merged:
    """Merge cubes into a new one, by the identity of evaluations, points, trials and repeats.

    The inputs are only read. Holds some regions in memory at a time.

    Parameters
    ----------
    output
        Address of the new cube; it must not exist yet.
    cubes
        The cubes to merge.
    prefer
        If cubes have different outcomes of one trial: "fail" writes no cube, "first" keeps that of the cube named
        first, "newer" the one written later.
    rename
        New names for models or tasks of one cube, each ``CUBE:LABEL=NEW``; default: none.
    subscribers
        Functions that are called with each event (see `evalcube.events`); default: none.

    Returns
    -------
    Merged
        What was merged, and which contradictions there were.

    Raises
    ------
    ConflictError
        If cubes contradict each other, and `prefer` does not say which is right.
    SweepError
        If their descriptions do not fit together, or something is at `output`.
    StorageError
        If a cube cannot be read, or is damaged, or `output` cannot be written.

    Examples
    --------
    >>> import evalcube as ec
    >>> ec.merge("both.zarr", ["results/sweep.zarr", "results/theirs.zarr"]).sizes["model"]
    3
    """
    announcer = Announcer(subscribers)
    if prefer not in PREFERENCES:
        raise SweepError(f"`prefer`: there is no '{prefer}'", f"Give one of: {', '.join(PREFERENCES)}")
    no_bare_text(cubes=cubes if isinstance(cubes, str) else ())  # what made a cube is no text
    output, addresses = str(need_address(output, "output")), list(map(str, need_addresses(cubes, "cubes")))
    if Cube.exists(output):
        raise CubeExistsError(
            "cannot merge into it: something is already there", output, "Choose another address."
        )
    renames = read_renames(rename, addresses)
    inputs = [Input(url, renames) for url in addresses]
    for source in inputs:
        refuse_unrecorded(source.cube, source.receipts)
    done = _Writer(Joined(inputs), prefer).into(output, announcer)
    remember_merged(output, addresses, newer=prefer == "newer")
    return done


@dataclass(frozen=True, eq=False)
class Written:
    """What a new cube was made of."""

    receipts: list[Receipt]
    tally: Tally
    """What contradicted."""


def write_joined(
    joined: Joined,
    url: str,
    attrs: Mapping[str, Any],
    more: Callable[[Cube, Written], None],
    announcer: Announcer,
    *,
    newer: bool = False,
) -> Cube:
    """Make a cube of what others hold; everybody else sees all of it or nothing."""
    return Cube.create(
        url,
        sizes=joined.plan.sizes,
        chunks=joined.plan.chunks,
        coordinates=[*joined.labels(), *joined.row_ids()],
        counters=(*COUNTERS, *QUESTION_COUNTERS),
        attrs={"title": "evalcube sweep", **attrs, **description(joined.plan.spec())},
        layers=[name for name in joined.variables if name in LAYERS],
        fill=lambda draft: more(draft, _write_arrays(joined, draft, announcer, newer=newer)),
    )


def _write_arrays(joined: Joined, cube: Cube, announcer: Announcer, *, newer: bool) -> Written:
    cube.write_planned("trial", joined.targets.trials)
    cube.write_planned("repeat", joined.targets.repeats)
    for task in range(len(joined.plan.tasks)):
        cube.write_duplicates(task, joined.flags[task])
    tally = Tally(joined.plan.slots)
    receipts: list[Receipt] = []
    numbers = itertools.count(1)

    def write(model: int) -> tuple[ModelMerge, list[Receipt], Array | None]:
        """Write the regions of one model: nobody else writes into its chunks."""
        merge, written = ModelMerge(joined, model, newer=newer), []
        for region in merge.regions():
            digest = cube.write_region(region.window.region, region.arrays)
            written.append(region.receipt(joined.targets.mask(region.window), digest))
            announcer.count("regions written", next(numbers))
        return merge, written, merge.counters()

    models = range(len(joined.plan.evaluations))
    with ThreadPoolExecutor(max(1, min(8, len(os.sched_getaffinity(0))))) as pool:
        # As many at a time as share a chunk of the counters.
        for begin in range(0, len(models), cube.chunks_of_counters):
            some = models[begin : begin + cube.chunks_of_counters]
            counters = {}
            for model, (merge, written, counted) in zip(some, pool.map(write, some), strict=True):
                receipts += written
                tally.update(merge.tally)
                if counted is not None:
                    counters[model] = counted
            if counters:
                cube.write_counters(counters)
    with Ledger(cube.records) as ledger:
        for receipt in receipts:
            ledger.append(receipt)
    return Written(receipts, tally)


class _Writer:
    def __init__(self, joined: Joined, prefer: str) -> None:
        self._joined, self._prefer = joined, prefer

    def into(self, output: str, announcer: Announcer) -> Merged:
        """Write the merged cube."""
        done: list[Merged] = []
        write_joined(
            self._joined,
            output,
            {MERGED: sources_attribute(self._joined.inputs)},
            lambda draft, written: done.append(self._complete(draft, written)),
            announcer,
            newer=self._prefer == "newer",
        )
        return done[0]

    def _complete(self, cube: Cube, written: Written) -> Merged:
        """Refuse what contradicts, and write what belongs to the cube beside its arrays."""
        conflicts = self._settle_conflicts(written.tally)
        write_ledger_digest(cube, ledger_digest(written.receipts))
        self._write_notes(cube)
        return Merged(
            cube.url,
            tuple(source.url for source in self._joined.inputs),
            cube.sizes,
            sum(receipt.finished for receipt in written.receipts),
            sum(self._joined.targets.counts),
            len(written.receipts),
            self._prefer,
            tuple(conflicts),
            tuple(self._joined.notes),
        )

    def _settle_conflicts(self, tally: Tally) -> list[Conflict]:
        """The contradictions; refused unless it is said which of two outcomes stays."""
        conflicts = tally.conflicts(
            [source.url for source in self._joined.inputs],
            self._joined.plan.labels,
            self._joined.plan.task_names,
            [[planned.cell.plain_params for planned in task.cells] for task in self._joined.plan.tasks],
            # Above 0, two answers to one request differ by nature, and so they do by endpoints' own default.
            [row.sampler.params.get("temperature") != 0 for row in self._joined.plan.evaluations],
        )
        remedy = (
            "Say in a merge which stay: `evalcube merge --prefer first` (those of the cube named first) or "
            "`evalcube merge --prefer newer`; `evalcube diff` shows more"
        )
        if self._prefer == "fail" and conflicts:
            raise ConflictError(
                f"{tally.trials:,} trials have other outcomes in two cubes", remedy, conflicts
            )
        if self._prefer == "newer" and tally.unclear:
            raise ConflictError(
                f"of {tally.unclear:,} trials with other outcomes in two cubes nothing says which is newer: their "
                "regions were written in the same second, or by a version that did not note the time",
                "Name the cube first that is right, in `evalcube merge --prefer first`",
                conflicts,
            )
        return conflicts

    def _write_notes(self, cube: Cube) -> None:
        """What helps readers: data files, and what the notes of all inputs have in common."""
        first, *later = (source.notes for source in self._joined.inputs)
        common = {name: first[name] for name in _KEPT if name in first}
        same = {
            name: value for name, value in common.items() if all(each.get(name) == value for each in later)
        }
        cube.records.put(
            NOTES, json.dumps({**same, "files": dict(self._joined.plan.files)}, indent=1).encode()
        )
        for source in self._joined.inputs:
            copy_questions(source.cube.records, cube.records, self._joined.plan)
        engines = joined_engines(read_engines(source.cube.records) for source in self._joined.inputs)
        if engines:
            write_engines(cube.records, engines)
