"""Writes what was imported: data files, replies in the cache, and a cube with all that a run writes into one.

Regions are made from the cache by the code that heals a cube, so that what is imported is what would be healed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.flows.config.models import Sweep
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.evaluations import Evaluation, NamedSampler, NamedTemplate
from evalcube.flows.plan.plan import Plan, PlannedCell, TaskPlan
from evalcube.flows.plan.requests import trial_request
from evalcube.flows.plan.targets import SampleTargets, Window, window_of
from evalcube.flows.share.imports.collect import REPLIED, Collection, ModelSetting, TaskKey
from evalcube.flows.share.imports.samples import canonical
from evalcube.flows.state.growing import new_cube
from evalcube.flows.state.questions import keep_questions
from evalcube.flows.state.recording import count_model, grader_of, receipt_of
from evalcube.flows.state.records import NOTES
from evalcube.flows.state.rescoring import regrade
from evalcube.flows.state.shared_arrays import repeat_flags
from evalcube.stages.generate import Cell, all_tasks
from evalcube.stages.generate.dataset import DatasetParams
from evalcube.stages.process.grading import IMPORTED
from evalcube.stages.reply.status import Status
from evalcube.storage.cache.cache import Cache
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger, Receipt
from evalcube.storage.cube.regions import Region
from evalcube.storage.cube.schema import DUPLICATE
from evalcube.storage.errors import guarded
from evalcube.storage.files import make_directory, replaced

TIER = "imported"
"""The one tier of what was imported."""
_TEMPLATE = [{"role": "user", "content": "{{ prompt }}"}]
_SHORT = {"temperature": "T", "top_p": "top_p", "top_k": "top_k", "max_tokens": "max", "seed": "seed"}
"""Settings that stand where evalcube's own samplers have them, if they are numbers; and how names have them."""


def data_params(key: TaskKey, file: str, sha256: str, rows: int, *, clustered: bool = False) -> DatasetParams:
    """The params of the cells of an imported task."""
    fields = {"prompt": "prompt", "answer": "answer", "id": "id", "cluster": "cluster" if clustered else ""}
    form = {"format": "jsonl", "kind": "text", "instruction": "", "order": "file"}
    return DatasetParams(**fields, **form, file=file, imported=key.identity, sha256=sha256, rows=rows)


def import_plan(
    collection: Collection, params: Sequence[DatasetParams], table: npt.NDArray[np.int64]
) -> tuple[Plan, SampleTargets]:
    """The plan of what was collected, and how far each cell was measured."""
    task, seed = all_tasks()["dataset"], Sweep.model_fields["seed"].default
    labels = task_labels(list(collection.tasks))
    evaluations = _evaluations(collection)
    shape = (len(evaluations), len(labels))
    reach = np.zeros((2, *shape), dtype=np.int64)
    np.maximum.at(reach[0], (table[:, 0], table[:, 1]), table[:, 2] + 1)
    np.maximum.at(reach[1], (table[:, 0], table[:, 1]), table[:, 3] + 1)
    tasks = []
    for index, (label, own) in enumerate(zip(labels, params, strict=True)):
        base = int((reach[0, :, index] * reach[1, :, index]).max())
        tasks.append(TaskPlan(label, task, (PlannedCell(Cell(task, own, seed), (TIER,), max(1, base)),)))
    reached = reach[..., None].astype(np.int32)
    targets = SampleTargets(reached[0], reached[1])
    trials, repeats = targets.maxima
    prices = ((0.0, 0.0),) * len(evaluations)
    facets: tuple[dict[str, object], ...] = tuple({} for _ in evaluations)
    return Plan(seed, tuple(evaluations), tuple(tasks), trials, repeats, prices, facets), targets


def task_labels(keys: Sequence[TaskKey]) -> list[str]:
    """A name for each task, no longer than it takes to tell them apart."""
    forms = [
        [key.task.partition("@")[0] for key in keys],
        [key.task for key in keys],
        [f"{key.task} ({key.grading})" for key in keys],
        [key.identity for key in keys],
    ]
    return [
        next(form[index] for form in forms if form is forms[-1] or form.count(form[index]) == 1)
        for index in range(len(keys))
    ]


def _evaluations(collection: Collection) -> list[Evaluation]:
    evaluations = []
    for asked, index in collection.asked.items():
        params = _sampler(asked, collection.variants.get(index, {}))
        name = f"{IMPORTED} {asked.variant + 1}" if asked.variant else IMPORTED
        template = NamedTemplate(name=name, source=_TEMPLATE)
        sampler = NamedSampler(name=_sampler_name(asked.tool, params), params=params)
        evaluations.append(Evaluation.of(template, sampler, model=asked.model, request_model=asked.model))
    return evaluations


def _sampler(asked: ModelSetting, setups: Mapping[str, str]) -> dict[str, Any]:
    """The settings as a sampler. Nobody sends it: it is part of the identity."""
    settings = json.loads(asked.settings)
    sampling = {name: settings.pop(name) for name in _SHORT if _is_number(settings.get(name))}
    origin = {"tool": asked.tool, **({"settings": settings} if settings else {})}
    if asked.variant:
        origin["variant"] = hashlib.sha256(canonical(setups).encode()).hexdigest()[:16]
    return {**sampling, IMPORTED: origin}


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 2**53


def _sampler_name(tool: str, params: Mapping[str, Any]) -> str:
    """The name of settings, which follows from them alone: in one cube a name has one meaning."""
    shown = [f"{short}={params[name]}" for name, short in _SHORT.items() if name in params]
    settings = {name: value for name, value in params[IMPORTED].items() if name != "tool"}
    digest = hashlib.sha256(canonical(settings).encode()).hexdigest()[:6]
    return " ".join([tool, *shown, *([f"[{digest}]"] if settings else [])])


_BATCH = 512
"""Replies that are in memory at once."""
_MOST_CAUSES = 4
"""Causes that a receipt names: its line has a limit."""


def write_data(collection: Collection, folder: Path) -> list[DatasetParams]:
    """Write the questions of each task into a file of its own; params of their cells.

    A file's name has its digest, so that no other content is ever replaced.
    """
    data_sets = []
    for index, (key, questions) in enumerate(collection.tasks.items()):
        digest, rows = hashlib.sha256(), 0
        for line in collection.rows(index):
            digest.update(line + b"\n")
            rows += 1
        path = folder / file_name(key, digest.hexdigest())
        if not path.exists():
            with guarded(path, "write the questions"):
                make_directory(folder)
                with replaced(path) as file:
                    file.writelines(line + b"\n" for line in collection.rows(index))
        clustered = bool(questions.clusters)
        data_sets.append(data_params(key, str(path), digest.hexdigest(), rows, clustered=clustered))
    return data_sets


def file_name(key: TaskKey, digest: str) -> str:
    """The name of a task's data file; nothing in it is a path, whatever the log calls the task.

    Examples
    --------
    >>> file_name(TaskKey("inspect_ai", "../etc/x", "match"), "ab" * 32)
    'etc-x-abababab.jsonl'
    """
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", key.task).strip("-")[:60]
    return f"{plain or 'task'}-{digest[:8]}.jsonl"


def store_replies(plan: Plan, collection: Collection, table: npt.NDArray[np.int64], cache: Cache) -> None:
    """Put the replies into the cache."""
    replies = ((digest, collection.record(number)) for number, digest in _digests(plan, table))
    records = ((digest, record) for digest, record in replies if record is not None)
    while batch := list(islice(records, _BATCH)):
        _put(cache, batch)


def _digests(plan: Plan, table: npt.NDArray[np.int64]) -> Iterator[tuple[int, str]]:
    """The numbers of replies in the table, with the digests that they have in the cache, question by question."""
    order = np.lexsort((table[:, 3], table[:, 0], table[:, 2], table[:, 1]))
    last, trial = (-1, -1), None
    for number in order[table[order, 4] == REPLIED].tolist():
        asked, task, row, repeat, _ = table[number].tolist()
        cell = plan.tasks[task].cells[0].cell
        if trial is None or last != (task, row):
            last, trial = (task, row), cell.trial(row)
        yield number, trial_request(plan.evaluations[asked], cell, trial, repeat).digest


def _put(cache: Cache, batch: Sequence[tuple[str, bytes]]) -> None:
    there = [item for item, fresh in zip(batch, cache.put_many(batch), strict=True) if not fresh]
    for (_, ours), theirs in zip(there, cache.get_many([key for key, _ in there]), strict=True):
        if ours != theirs:
            raise SweepError(
                "the cache has other replies of the same model to the same questions, from another import",
                "Give this import a cache of its own with `cache`, or none, or its model another name with `model`",
            )


def create_cube(
    url: str,
    plan: Plan,
    targets: SampleTargets,
    collection: Collection,
    table: npt.NDArray[np.int64],
    cache: Cache,
    notes: Mapping[str, Any],
) -> Cube:
    """Make the cube of what was imported; others see all of it or nothing."""
    causes = list(collection.causes)

    def fill(cube: Cube) -> None:
        cube.write_planned("trial", targets.trials)
        cube.write_planned("repeat", targets.repeats)
        for row, task in enumerate(plan.tasks):
            unknown = np.full((plan.slots, plan.trials), DUPLICATE.fill, dtype=np.uint8)
            cube.write_duplicates(row, repeat_flags(task, targets.trials[:, row].max(axis=0), unknown))
        receipts: list[Receipt] = []
        for model in range(len(plan.evaluations)):
            receipts += _write_model(
                cube, plan, targets, model, table[table[:, 0] == model, 1:], causes, cache
            )
        recorded = [receipt.region for receipt in receipts]
        counters = {
            model: count_model(cube, model, recorded, targets, plan.prices[model])
            for model in sorted({region.model for region in recorded})
        }
        cube.write_counters(counters)
        with Ledger(cube.records) as ledger:
            for receipt in receipts:
                ledger.append(receipt)
        keep_questions(cube.records, plan)
        cube.records.put(NOTES, json.dumps(notes, indent=1).encode())

    return new_cube(plan, url, fill)


def _write_model(
    cube: Cube,
    plan: Plan,
    targets: SampleTargets,
    model: int,
    table: npt.NDArray[np.int64],
    causes: Sequence[str],
    cache: Cache,
) -> Iterator[Receipt]:
    """Write the regions of one evaluation, made by the code that would heal them."""
    for trial in range(-(-plan.trials // plan.chunks["trial"])):
        for repeat in range(-(-plan.repeats // plan.chunks["repeat"])):
            window = window_of(cube.sizes, Region(model, trial, repeat), cube.chunks)
            ours, failed, counts = _within(table, window, causes)
            if not (ours | failed).any():
                continue
            pretended = receipt_of(window, 0, ours, np.full(window.shape, Status.MISSING), "", {})
            arrays, _ = regrade(plan, window, ours, pretended, cache, (0.0, 0.0), None)
            arrays["status"][failed] = Status.TRANSPORT
            digest = cube.write_region(window.region, arrays)
            grader = grader_of(plan.evaluations[model])
            yield receipt_of(
                window, 0, targets.mask(window), arrays["status"], digest, counts, cube.shape_number, grader
            )


def _within(
    table: npt.NDArray[np.int64], window: Window, causes: Sequence[str]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, int]]:
    """Which trials of a window have replies, which have failed, each in the window's shape, and the causes."""
    places = np.insert(table[:, :3] - (0, window.first_trial, window.first_repeat), 1, 0, axis=1)
    inside = ((places >= 0) & (places < window.shape)).all(axis=1)
    marks = np.zeros((2, *window.shape), dtype=bool)
    numbers = table[inside, 3]
    marks[((numbers != REPLIED).astype(np.intp), *places[inside].T)] = True
    counts = Counter(causes[number] for number in numbers[numbers != REPLIED].tolist())
    return marks[0], marks[1], dict(counts.most_common(_MOST_CAUSES))
