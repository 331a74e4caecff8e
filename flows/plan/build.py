"""Builds the plan of a config."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalcube.flows.config.manifold import TaskConfig
from evalcube.flows.config.models import Sweep
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.evaluations import AskedModel, Evaluation, Judge, NamedSampler, NamedTemplate
from evalcube.flows.plan.plan import Plan, PlannedCell, TaskPlan
from evalcube.flows.plan.requests import check_criteria, check_tools, check_turns
from evalcube.stages.generate import Cell, Task, all_tasks, expand
from evalcube.stages.generate.dataset.matching import load_grader
from evalcube.stages.generate.reader import OWN
from evalcube.stages.generate.stream import canonical_params
from evalcube.stages.process.judging import judge_prompt_digest


def build_plan(config: Sweep) -> Plan:
    """The plan of a config."""
    evaluations, prices, facets = [], [], []
    for model, template, sampler in config.combinations():
        evaluations.append(
            Evaluation.of(
                NamedTemplate(
                    name=template, source=[dict(message) for message in config.templates[template]]
                ),
                # 0 and 0.0 are one request.
                NamedSampler(name=sampler, params=canonical_params(config.samplers[sampler])),
                **AskedModel.settings(model),
            )
        )
        prices.append(model.paid[:2])
        facets.append(dict(model.facets))
    _refuse_twins(evaluations)
    registry = all_tasks()
    plan = Plan(
        config.seed,
        tuple(evaluations),
        tuple(_plan_task(registry, config, label) for label in config.tasks),
        config.trials,
        config.repeats,
        tuple(prices),
        tuple(facets),
        _judges(config),
    )
    check_tools(plan)
    check_turns(plan)
    return replace(plan, asserted_prices=plan.prices) if check_criteria(plan) else plan


def _judges(config: Sweep) -> tuple[Judge, ...]:
    models = {model.name: model for model in config.models}
    judges, seen = [], dict[str, Judge]()
    for row in config.judges:
        sampler = config.samplers[row.sampler] if isinstance(row.sampler, str) else row.sampler
        judge = Judge(
            name=row.name,
            sampler=canonical_params(sampler),
            repeats=row.repeats,
            prompt=judge_prompt_digest(length_debias=row.length_debias),
            **AskedModel.settings(models[row.model]),
        )
        twin = seen.setdefault(judge.identity, judge)
        if twin is not judge:
            raise SweepError(
                f"judges '{twin.name}' and '{judge.name}' send the same requests, so that they would always agree",
                "Raise `repeats:` of one and remove the other, or give them different models or samplers",
            )
        judges.append(judge)
    return tuple(judges)


def _refuse_twins(evaluations: Sequence[Evaluation]) -> None:
    seen: dict[str, Evaluation] = {}
    for evaluation in evaluations:
        twin = seen.setdefault(evaluation.eval_id, evaluation)
        if twin is not evaluation:
            raise SweepError(
                f"evaluations '{twin.label}' and '{evaluation.label}' send the same requests, so that one would be "
                f"answered from the other's cache. Give the models different `model:` names; or, if two servers answer "
                f"to one name, a `revision:` each; or remove one of them."
            )


def _plan_task(known: Mapping[str, Task], config: Sweep, label: str) -> TaskPlan:
    name, entries = config.manifold(label)
    points = expand(known[name], entries)
    first = config.trials if config.precision is None else config.precision.base
    cells = []
    for point in points:
        cell = Cell(known[name], point.params, config.seed)
        trials = first if cell.size is None else min(first, cell.size)
        cells.append(PlannedCell(cell, point.tiers, max(1, trials * config.repeats)))
    section = config.tasks[label]
    planned = TaskPlan(label, known[name], tuple(cells), section.assertions or (), section.rubric or "")
    planned = replace(planned, reader=reader_of(section, planned.cells))
    check_reader(planned)
    return planned


def reader_of(section: TaskConfig, cells: Sequence[PlannedCell]) -> dict[str, Any]:
    """Description of the second reader that a config gives a task, or that the task has by itself; empty without."""
    if section.reader is not None:
        return section.reader.described()
    names = (planned.cell.task.second_reader(planned.cell.params) for planned in cells)
    return next(({"name": name, OWN: True} for name in names if name), {})


def check_reader(task: TaskPlan) -> None:
    """Refuse a second reader that is not there, or could never say anything; raises SweepError or TaskError."""
    if task.second is None:
        return
    if task.second.grader:
        load_grader(task.second.grader)
    if not any(planned.cell.task.has_reference(planned.cell.params) for planned in task.cells):
        raise SweepError(
            f"tasks.{task.label}.reader: the task has no reference answers to hold what is read against",
            "Remove it, or name the field with the answers",
        )
