"""What a sweep is when a config is added to what its cube has already, and where the two contradict each other. Pure.

Evaluations are known by their `eval_id`, points by their task's label and their `cell_id`, never by their place. What
the cube has keeps its place, and what is new comes after it.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalcube.flows.plan.evaluations import Evaluation, Judge
from evalcube.flows.plan.plan import Named, Plan, PlannedCell, TaskPlan
from evalcube.flows.plan.spec import in_short
from evalcube.stages.generate.dataset import DatasetParams
from evalcube.stages.generate.dataset.hub.address import is_hub, source_of, with_files
from evalcube.stages.generate.stream import canonical_json


@dataclass(frozen=True)
class Contradiction:
    """Something that has one meaning in the cube and another one in the config."""

    what: str
    remedy: str
    """What to do; in a command to type, CUBE stands for the cube's address."""


@dataclass(frozen=True)
class Recorded:
    """Finished trials of a cube: what has none may still become something else."""

    evaluations: Sequence[int]
    tasks: Sequence[int]


@dataclass(frozen=True)
class Growth:
    """A sweep that has grown by a config."""

    plan: Plan
    """Of all that the cube and the config have; it knows which part the config names."""
    contradictions: tuple[Contradiction, ...]
    """None if the cube can become that."""


def grown(old: Plan, new: Plan, recorded: Recorded) -> Growth:
    """The sweep of a cube with what a config adds."""
    evaluations, places = _evaluations(old, new, recorded)
    tasks = _tasks(old, new, recorded)
    judges = _judges(old, new)
    contradictions = [
        *_seeds(old, new),
        *_meanings(old, new, evaluations, places, recorded),
        *_generators(old, new, recorded),
        *_judge_contradictions(old, new, recorded),
        *_prices(old, new, places, recorded),
    ]
    if not contradictions:
        contradictions += _twins(evaluations)
    prices, facets = _labels(old, new, places, len(evaluations))
    plan = replace(
        new,
        evaluations=tuple(evaluations),
        tasks=tasks,
        prices=prices,
        facets=facets,
        judges=judges,
        asserted_prices=_asserted_prices(old, new, places, prices),
        named=_named_part(new, places, tasks, len(evaluations)),
    )
    return Growth(plan, tuple(contradictions))


def _evaluations(old: Plan, new: Plan, recorded: Recorded) -> tuple[list[Evaluation], list[int]]:
    """All evaluations, and the places of the config's among them."""
    rows = list(old.evaluations)
    indices = {row.eval_id: index for index, row in enumerate(rows)}
    wanted = {row.eval_id for row in new.evaluations}
    # A name that was corrected before anything was recorded: its place is taken by what was meant.
    free = {
        row.label: index
        for index, row in enumerate(rows)
        if row.eval_id not in wanted and not recorded.evaluations[index]
    }
    places = []
    for row in new.evaluations:
        index = indices.get(row.eval_id)
        if index is None:
            index = free.pop(row.label, len(rows))
        rows[index : index + 1] = [row]  # under the name that the config has for it
        places.append(index)
    return rows, places


def _meanings(
    old: Plan, new: Plan, rows: Sequence[Evaluation], places: Sequence[int], recorded: Recorded
) -> Iterator[Contradiction]:
    """Names of models, templates and samplers that would stand for two things in one cube."""
    kinds: tuple[tuple[str, str, Callable[[Evaluation], tuple[str, Any]]], ...] = (
        ("model", "models", lambda row: (row.model, {"model": row.request_model, **row.beside_name})),
        ("template", "templates", lambda row: (row.template.name, row.template.source)),
        ("sampler", "samplers", lambda row: (row.sampler.name, row.sampler.params)),
    )
    own = set(places)
    for kind, section, of in kinds:
        after = dict(of(row) for row in new.evaluations)
        before: dict[str, tuple[Any, int]] = {}
        for index, row in enumerate(rows[: len(old.evaluations)]):
            name, meaning = of(row)
            if index not in own and recorded.evaluations[index] and after.get(name, meaning) != meaning:
                _, trials = before.get(name, (meaning, 0))
                before[name] = meaning, trials + recorded.evaluations[index]
        for name, (was, trials) in before.items():
            here, there = _apart(was, after[name])
            yield Contradiction(
                f"{kind} {name} is {in_short(here)} in the cube, with {trials:,} trials, and {in_short(there)} in the "
                f"config",
                f"Give the {kind} of the config another name under `{section}:`, such as {name}-2, and the cube "
                f"keeps both; or take the old one's results away first: "
                f"evalcube forget CUBE --where {shlex.quote(f'{kind}={name}')}",
            )


def _twins(rows: Sequence[Evaluation]) -> Iterator[Contradiction]:
    """Names that two evaluations would have."""
    labels = [row.label for row in rows]
    for label in dict.fromkeys(label for label in labels if labels.count(label) > 1):
        yield Contradiction(
            f"evaluation {label} is another one in the cube", "Give one of the config's another name"
        )


def _seeds(old: Plan, new: Plan) -> Iterator[Contradiction]:
    if old.seed != new.seed:
        yield Contradiction(
            f"seed is {old.seed} in the cube and {new.seed} in the config",
            "Give this sweep a cube of its own with `cube`, or under `cube:` in its config, as all questions differ",
        )


def _tasks(old: Plan, new: Plan, recorded: Recorded) -> tuple[TaskPlan, ...]:
    tasks = list(old.tasks)
    for task in new.tasks:
        index = _place(old, task.label)
        weighed = replace(task, cells=_with_weights(old, task, new.repeats))
        if index is None:
            tasks.append(weighed)
        elif not any(True for _ in _task_differences(old.tasks[index], task)):
            reader = task.reader or old.tasks[index].reader
            tasks[index] = replace(task, cells=_cells(old.tasks[index], weighed), reader=reader)
        elif not recorded.tasks[index]:
            tasks[index] = weighed
    return tuple(tasks)


def _with_weights(old: Plan, task: TaskPlan, repeats: int) -> tuple[PlannedCell, ...]:
    """The points of a task with the weight that the cube's first plan gave its points, as far as they have trials."""
    first = int(old.base.max())
    return tuple(
        replace(planned, base=first if planned.cell.size is None else min(first, planned.cell.size * repeats))
        for planned in task.cells
    )


def _place(plan: Plan, label: str) -> int | None:
    return plan.task_names.index(label) if label in plan.task_names else None


def _cells(old: TaskPlan, new: TaskPlan) -> tuple[PlannedCell, ...]:
    """The points of both, those of the cube first: with their weights, and in the tiers of both.

    Points of the cube that ask what a data file of the config had in it before are marked.
    """
    edited = {_asked_of(planned, name=name) for planned in new.cells for name in (False, True)} - {None}
    by_id = {planned.cell.id: planned for planned in new.cells}
    before = {planned.cell.id for planned in old.cells}
    both = [
        # The config's, as its data file may lie somewhere else by now.
        replace(
            planned, cell=mine.cell, tiers=tuple(dict.fromkeys((*planned.tiers, *mine.tiers))), older=False
        )
        if (mine := by_id.get(planned.cell.id)) is not None
        else replace(planned, older=planned.older or _asked_of(planned) in edited)
        for planned in old.cells
    ]
    return (*both, *(planned for planned in new.cells if planned.cell.id not in before))


def _asked_of(planned: PlannedCell, *, name: bool = False) -> str | None:
    """What stays of a data set's point when its file is edited: the path, and how it is read; None of other points.

    With `name`, as a cube that was published has it, which names files without their folders.
    """
    params = planned.cell.params
    if not isinstance(params, DatasetParams) or params.imported:
        return None

    def source(named: Mapping[str, Any]) -> str:
        file = str(named["file"])
        bare = (name or file == Path(file).name) and not is_hub(file)
        return Path(file).name if bare else source_of(file)

    stays = with_files(params.model_copy(update={"rows": 0, "draws": "place"}).canonical(), source)
    stays["sha256"] = ""
    if params.fewshot:
        stays["fewshot"]["from"]["sha256"] = ""
    return canonical_json(stays)


def _task_differences(old: TaskPlan, new: TaskPlan) -> Iterator[str]:
    """Why a task of the cube cannot be measured on, in words."""
    makers = [f"{task.task.name} version {task.task.version}" for task in (old, new)]
    if makers[0] != makers[1]:
        yield f"generator of task {new.label} is {makers[0]} in the cube and {makers[1]} in the config"
        return
    for field in ("assertions", "rubric", "reader"):
        was, now = getattr(old, field), getattr(new, field)
        if field == "reader" and not now:
            continue  # that of the cube stays
        if (list(was), list(now)) != ([], []) and was != now and list(was) != list(now):
            yield f"{field} of task {new.label} {_describe_change(was, now)}"


def _describe_change(was: object, now: object) -> str:
    if was and now:
        return "have changed" if isinstance(now, list | tuple) else "has changed"
    where = "cube" if was else "config"
    return f"{'are' if isinstance(was or now, list | tuple) else 'is'} in the {where} only"


def _generators(old: Plan, new: Plan, recorded: Recorded) -> Iterator[Contradiction]:
    for task in new.tasks:
        index = _place(old, task.label)
        if index is None or not recorded.tasks[index]:
            continue
        for difference in _task_differences(old.tasks[index], task):
            yield Contradiction(
                difference,
                f"Give the task of the config another label, such as {task.label}-2 with "
                f"`task: {task.task.name}`: what both ask alike comes from the cache",
            )


def _judges(old: Plan, new: Plan) -> tuple[Judge, ...]:
    judges = list(old.judges)
    names = {judge.identity: index for index, judge in enumerate(judges)}
    for judge in new.judges:
        index = names.get(judge.identity)
        if index is None:
            judges.append(judge)
        else:
            judges[index] = judge.model_copy(update={"repeats": max(judge.repeats, judges[index].repeats)})
    return tuple(judges)


def _judge_contradictions(old: Plan, new: Plan, recorded: Recorded) -> Iterator[Contradiction]:
    judged = sum(n for n, task in zip(recorded.tasks, old.tasks, strict=True) if task.judged)
    if not new.judges or not judged:
        return
    own = {judge.identity for judge in new.judges}
    after = {judge.name: judge for judge in new.judges}
    for judge in old.judges:
        if judge.identity in own:
            continue
        match = after.get(judge.name)
        if match is not None:
            was, now = judge.spec(), match.spec()
            fields = ", ".join(name for name in {**was, **now} if was.get(name) != now.get(name))
            yield Contradiction(
                f"judge {judge.name} has another {fields} in the cube",
                f"Give the judge of the config another name, such as {judge.name}-2, beside the old one",
            )
        else:
            yield Contradiction(
                f"judge {judge.name} is in the cube only, where it rated the answers of {judged:,} trials: without it "
                f"others would decide about new ones",
                "Keep it under `judges:`, or give this sweep a cube of its own with `cube`",
            )


def _labels(
    old: Plan, new: Plan, places: Sequence[int], count: int
) -> tuple[tuple[tuple[float, float], ...], tuple[Any, ...]]:
    """Prices and facets: the config's, and the cube's of what the config does not name."""
    added = count - len(old.evaluations)
    prices = [*(old.prices or ((0.0, 0.0),) * len(old.evaluations)), *((0.0, 0.0),) * added]
    facets = [*(old.facets or ({},) * len(old.evaluations)), *({},) * added]
    for index, price, facet in zip(places, new.prices, new.facets, strict=True):
        prices[index], facets[index] = price, facet
    return tuple(prices), tuple(facets)


def _prices(old: Plan, new: Plan, places: Sequence[int], recorded: Recorded) -> Iterator[Contradiction]:
    before = dict(enumerate(old.asserted_prices))
    for index, price in zip(places, new.prices, strict=True):
        if index in before and before[index] != price and recorded.evaluations[index]:
            yield Contradiction(
                "prices have changed, and an assertion (cost_max) depends on them",
                "Put the old prices back, or give this sweep a cube of its own with `cube`",
            )
            return


def _asserted_prices(
    old: Plan, new: Plan, places: Sequence[int], prices: Sequence[tuple[float, float]]
) -> tuple[tuple[float, float], ...]:
    if not old.asserted_prices and not new.asserted_prices:
        return ()
    own = set(places)
    remaining = {index: price for index, price in enumerate(old.asserted_prices) if index not in own}
    return tuple(remaining.get(index, price) for index, price in enumerate(prices))


def _named_part(new: Plan, places: Sequence[int], tasks: Sequence[TaskPlan], count: int) -> Named:
    """Which part the config names."""
    wanted = {task.label: {planned.cell.id for planned in task.cells} for task in new.tasks}
    own = set(places)
    return Named(
        tuple(index in own for index in range(count)),
        tuple(
            tuple(planned.cell.id in wanted.get(task.label, ()) for planned in task.cells) for task in tasks
        ),
        tuple(_kept_tiers(new, tasks)),
    )


def _kept_tiers(new: Plan, tasks: Sequence[TaskPlan]) -> Iterator[tuple[str, str, int]]:
    """Where the cube has points in one of the config's tiers that the config has out of it."""
    tiers = {tier for task in new.tasks for planned in task.cells for tier in planned.tiers}
    for task in tasks:
        own = {
            planned.cell.id: planned.tiers
            for mine in new.tasks
            if mine.label == task.label
            for planned in mine.cells
        }
        counts = Counter(
            tier
            for planned in task.cells
            for tier in planned.tiers
            if planned.cell.id in own and tier in tiers and tier not in own[planned.cell.id]
        )
        yield from ((task.label, tier, count) for tier, count in counts.items())


def _apart(was: Any, now: Any) -> tuple[Any, Any]:  # noqa: ANN401 - any JSON values
    """Two values without the entries that both have alike, where they are mappings."""
    if not isinstance(was, dict) or not isinstance(now, dict):
        return was, now
    equal = {name for name in was if name in now and was[name] == now[name]}
    return tuple({name: fields[name] for name in fields if name not in equal} for fields in (was, now))  # type: ignore[return-value]
