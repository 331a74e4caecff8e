"""From what was collected to a plan: which tasks, cells and evaluations logs become. Pure.

An evaluation is a model with the settings of its requests, and says that it is imported, and by which tool it was
asked: no config can name it, and no request that a run sends has the digest of one of its replies. A task is what one
scorer says of one tool's task. How a task was put, such as its solver, belongs to neither, as each task has its own;
where one model was asked in several ways, each is an evaluation.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.flows.config.models import Sweep
from evalcube.flows.plan.evaluations import Evaluation, NamedSampler, NamedTemplate
from evalcube.flows.plan.plan import Plan, PlannedCell, TaskPlan
from evalcube.flows.plan.targets import SampleTargets
from evalcube.flows.share.imports.collect import Asked, Collection, TaskKey
from evalcube.flows.share.imports.samples import canonical
from evalcube.stages.generate import Cell, all_tasks
from evalcube.stages.generate.dataset import DatasetParams
from evalcube.stages.process.grading import IMPORTED

TIER = "imported"
"""The one tier of what was imported."""
_TEMPLATE = [{"role": "user", "content": "{{ prompt }}"}]
_SHORT = {"temperature": "T", "top_p": "top_p", "top_k": "top_k", "max_tokens": "max", "seed": "seed"}
"""Settings that stand where evalcube's own samplers have them, if they are numbers; and how names have them."""


def data_params(key: TaskKey, file: str, sha256: str, rows: int, *, clustered: bool = False) -> DatasetParams:
    """The params of the cells of an imported task.

    Parameters
    ----------
    key
        The task.
    file, sha256, rows
        Path, digest and length of its data file.
    clustered
        Whether it says clusters.
    """
    return DatasetParams(
        file=file,
        format="jsonl",
        kind="text",
        prompt="prompt",
        answer="answer",
        instruction="",
        order="file",
        imported=key.identity,
        id="id",
        cluster="cluster" if clustered else "",
        sha256=sha256,
        rows=rows,
    )


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
    for place, (label, own) in enumerate(zip(labels, params, strict=True)):
        base = int((reach[0, :, place] * reach[1, :, place]).max())
        tasks.append(TaskPlan(label, task, (PlannedCell(Cell(task, own, seed), (TIER,), max(1, base)),)))
    reached = reach[..., None].astype(np.int32)
    targets = SampleTargets(reached[0], reached[1])
    trials, repeats = targets.maxima
    plan = Plan(
        seed,
        tuple(evaluations),
        tuple(tasks),
        trials,
        repeats,
        ((0.0, 0.0),) * len(evaluations),
        tuple({} for _ in evaluations),
    )
    return plan, targets


def task_labels(keys: Sequence[TaskKey]) -> list[str]:
    """A name for each task, no longer than it takes to tell them apart."""
    forms = [
        [key.task.partition("@")[0] for key in keys],
        [key.task for key in keys],
        [f"{key.task} ({key.grading})" for key in keys],
        [key.identity for key in keys],
    ]
    return [
        next(form[place] for form in forms if form is forms[-1] or form.count(form[place]) == 1)
        for place in range(len(keys))
    ]


def _evaluations(collection: Collection) -> list[Evaluation]:
    names = _sampler_names(list(collection.asked), collection.variants)
    return [
        Evaluation.of(
            NamedTemplate(
                name=f"{IMPORTED} {asked.variant + 1}" if asked.variant else IMPORTED, source=_TEMPLATE
            ),
            NamedSampler(name=names[place], params=_sampler(asked, collection.variants.get(place, {}))),
            model=asked.model,
            request_model=asked.model,
        )
        for asked, place in collection.asked.items()
    ]


def _sampler(asked: Asked, setups: Mapping[str, str]) -> dict[str, Any]:
    """The settings as a sampler. Nobody sends it: it is part of the identity."""
    settings = json.loads(asked.settings)
    known = {name: settings.pop(name) for name in _SHORT if _is_number(settings.get(name))}
    origin = {"tool": asked.tool, **({"settings": settings} if settings else {})}
    if asked.variant:
        origin["variant"] = hashlib.sha256(canonical(setups).encode()).hexdigest()[:16]
    return {**known, IMPORTED: origin}


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 2**53


def _sampler_names(rows: Sequence[Asked], variants: Mapping[int, Mapping[str, str]]) -> list[str]:
    """A name for each evaluation's settings, which follows from them alone: in one cube a name has one meaning."""
    names = []
    for place, asked in enumerate(rows):
        params = _sampler(asked, variants.get(place, {}))
        shown = [f"{short}={params[name]}" for name, short in _SHORT.items() if name in params]
        rest = {name: value for name, value in params[IMPORTED].items() if name != "tool"}
        digest = hashlib.sha256(canonical(rest).encode()).hexdigest()[:6]
        names.append(" ".join([asked.tool, *shown, *([f"[{digest}]"] if rest else [])]))
    return names
