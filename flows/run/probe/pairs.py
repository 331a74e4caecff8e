"""The same questions answered twice: by two hosts, or once in a cube and now; paired tests of what changed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from evalcube.flows.config.models import Model
from evalcube.flows.config.suites import load_suite
from evalcube.flows.cube_like import OneCube, need_address
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.evaluations import AskedModel, Evaluation, read_stored, token_limit
from evalcube.flows.plan.grading import grade_reading
from evalcube.flows.plan.plan import Plan, is_imported
from evalcube.flows.plan.requests import Prepared, judges_decide, trial_request
from evalcube.flows.read.reader import Reader
from evalcube.flows.run.probe.asking import Host, ProbeQuestion, host_of
from evalcube.stages.analyze.formulas.compare.paired import mcnemar
from evalcube.stages.analyze.formulas.detect import told_exactly
from evalcube.stages.generate import Cell
from evalcube.stages.generate.absent import AbsentTask
from evalcube.stages.process.reading import Reading
from evalcube.stages.reply.status import Status

LEVEL = 0.005
"""Of each paired test: who looks often should rarely be told of a change that is none."""
FEW = 10
"""Questions that two hosts are asked, beside what they are probed with."""
_SEED = 20
_MOST_SAID = 400

Answer = tuple[bool, Reading | None]
"""Whether it is right, and the reply where there is one."""
Place = tuple[int, int, int]
"""Task, slot and number of a trial."""


class Signs(NamedTuple):
    """Pairs in which a number became another."""

    fewer: int
    more: int
    p: float
    """Of the exact test that as many became less as became more."""

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> Signs:
        """The signs of pairs, of which equal ones say nothing."""
        by = [now - before for before, now in pairs]
        fewer, more = sum(one < 0 for one in by), sum(one > 0 for one in by)
        return cls(fewer, more, float(mcnemar(fewer, more, method="exact")))


@dataclass(frozen=True)
class Paired:
    """What became of questions that were answered twice."""

    before: str
    """Who answered first."""
    now: str
    pairs: int
    right: tuple[int, int]
    """First, and then."""
    outcomes: Signs
    """Of right answers: how many were lost, and gained."""
    tokens: Signs
    """Of the replies, as far as they are counted."""
    other_prompts: int
    """Pairs whose prompts have other tokens, as counted: another tokeniser or template."""
    systems: tuple[str, ...]
    """What the replies say of who answered, first and then."""
    unanswered: int
    """Questions that the first answered and the other did not: what was lost with them is not known."""
    told: float
    """Smallest change of the share right that so many pairs tell in 4 of 5 cases, in points of 100; NaN for none."""

    @property
    def changes(self) -> list[str]:
        """What changed, in words; none where nothing is shown."""
        how = "longer" if self.tokens.more > self.tokens.fewer else "shorter"
        share, length = f"the share right changed (p = {self.outcomes.p:.2g})", f"replies are {how}"
        found = [share] * (self.outcomes.p <= LEVEL)
        found += [f"{length} (p = {self.tokens.p:.2g})"] * (self.tokens.p <= LEVEL)
        other = "equal prompts have other tokens: another tokeniser or template"
        return found + [other] * (2 * self.other_prompts > self.pairs)

    @property
    def unseen(self) -> str:
        """What so few pairs cannot show."""
        points = f"a change of {self.told:.0f} points or more in 4 of 5 cases"
        told = "no change, however large" if math.isnan(self.told) else points
        swap = "A swap to a model of similar strength stays unseen"
        return f"{self.pairs} pairs tell {told}, at the level {LEVEL:g}. {swap}."

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        signs = {"outcomes": self.outcomes._asdict(), "tokens": self.tokens._asdict()}
        return {**vars(self), **signs, "level": LEVEL, "changes": self.changes}


def paired(before: str, now: str, first: Sequence[Answer | None], then: Sequence[Answer | None]) -> Paired:
    """Compare answers to the same questions; those that one side lacks do not count.

    Raises
    ------
    SweepError
        No question was answered twice.
    """
    both = [(one, other) for one, other in zip(first, then, strict=True) if one and other]
    if not both:
        problem = f"{now} answered nothing that {before} did"
        raise SweepError(problem, "Look at it with `evalcube probe MODEL`")
    said = [(one[1], other[1]) for one, other in both if one[1] and other[1]]
    outcomes = Signs.of((one[0], other[0]) for one, other in both)
    sizes = ((one.completion_tokens, other.completion_tokens) for one, other in said)
    names = [sorted({one.fingerprint for one in side} - {""}) for side in zip(*said, strict=True)]
    return Paired(
        before,
        now,
        len(both),
        (sum(one[0] for one, _ in both), sum(other[0] for _, other in both)),
        outcomes,
        Signs.of(pair for pair in sizes if min(pair) >= 0),
        sum(0 <= one.prompt_tokens != other.prompt_tokens >= 0 for one, other in said),
        tuple(", ".join(side)[:_MOST_SAID] for side in names),
        sum(one is not None and other is None for one, other in zip(first, then, strict=True)),
        100 * told_exactly(len(both), (outcomes.fewer + outcomes.more) / len(both), level=LEVEL),
    )


def compare_hosts(first: Host, second: Host) -> Paired:
    """Ask two hosts a few questions of the suite `quick`."""
    plan = build_plan(load_suite("quick", ["sim:"]))
    places = [(task, slot, 0) for task, one in enumerate(plan.tasks) for slot in range(len(one.cells))]
    chosen = [places[i] for i in np.linspace(0, len(places) - 1, FEW).astype(int)]
    answers = [
        _ask(host, _prepared(plan, _fitted(host, plan.evaluations[0]), chosen)) for host in (first, second)
    ]
    return paired(first.model.name, second.model.name, *answers)


def compare_recorded(cube: OneCube, cache: str | Path | None, model: Model, limit: int) -> tuple[Paired, int]:
    """Ask a model some of what a cube has its answers to, past all caches; the number of requests, too.

    Its answers are those of the evaluation that sent its name, or else of the first that is called so. Where the
    cache has them, they are graded as those of today; else the cube says whether they are right.

    Raises
    ------
    SweepError
        There are none that can be asked again.
    """
    reader = Reader(need_address(cube), cache)
    place = _evaluation_of(reader, model)
    evaluation = reader.plan.evaluations[place]
    chosen = _chosen(reader, place, limit)
    replies, recorded = reader.cache(), _prepared(reader.plan, evaluation, [at for at, _ in chosen])
    kept = [None if replies is None else replies.get(item.request.digest) for item in recorded]
    first = [
        _answer(data, item) or (right, None)
        for data, item, (_, right) in zip(kept, recorded, chosen, strict=True)
    ]
    with host_of(model.model_copy(update={"api": evaluation.api}), limit) as host:
        asked = evaluation.model_copy(update={"request_model": model.request_model})
        then = _ask(host, _prepared(reader.plan, asked, [at for at, _ in chosen]))
        return paired(f"{evaluation.label} in the cube", f"{model.name} now", first, then), host.sent


def _evaluation_of(reader: Reader, model: Model) -> int:
    rows = reader.plan.evaluations
    for name, wanted in (("request_model", model.request_model), ("model", model.name)):
        for place, row in enumerate(rows):
            if getattr(row, name) == wanted and not row.is_imported and not row.not_run:
                return place
    sought = f"is called '{model.name}', or was asked as '{model.request_model}'"
    remedy = f"Write NAME=ENDPOINT with a name of it: {', '.join(dict.fromkeys(row.model for row in rows))}"
    raise SweepError(f"`against`: no model of the cube that can be asked {sought}", remedy[:_MOST_SAID])


def _chosen(reader: Reader, place: int, limit: int) -> list[tuple[Place, bool]]:
    """Trials that can be asked again, a sample that is always the same, and whether they were right."""
    plan, cube = reader.plan, reader.cube
    trials = slice(0, min(cube.chunks["trial"], cube.sizes["trial"]))  # of large cubes as many as suffice
    status = cube.read_span(place, trials, slice(0, 1), ("status",))["status"][..., 0]
    finished = np.argwhere((status != Status.MISSING) & (status != Status.TRANSPORT))
    able = [[_can_be_asked(entry.cell) for entry in task.cells] for task in plan.tasks]
    places = [(task, slot, trial) for task, slot, trial in finished.tolist() if able[task][slot]]
    if not places:
        raise SweepError(
            f"`against`: the cube has no answers of '{plan.labels[place]}' that can be asked again and graded",
            "Give a cube with some: `evalcube status CUBE` says what is in it",
        )
    order = np.random.default_rng(_SEED).permutation(len(places))[:limit]
    return [(places[i], bool(status[places[i]] == Status.CORRECT)) for i in order.tolist()]


def _can_be_asked(cell: Cell) -> bool:
    """Whether a cell's questions can be made, and answers to them graded without a judge."""
    if isinstance(cell.task, AbsentTask) or is_imported(cell) or judges_decide(cell):
        return False
    return cell.task.has_reference(cell.params)


def _fitted(host: Host, planned: Evaluation) -> Evaluation:
    """How a host is asked what an evaluation asks, with parameters that it takes."""
    params = {**planned.sampler.params, "max_tokens": max(host.room, token_limit(planned.sampler.params))}
    sampler = planned.sampler.model_copy(update={"params": host.fitted(params)})
    return Evaluation.of(planned.template, sampler, **AskedModel.settings(host.model))


def _prepared(plan: Plan, evaluation: Evaluation, places: Sequence[Place]) -> list[Prepared]:
    found = []
    for task, slot, number in places:
        cell = plan.tasks[task].cells[slot].cell
        trial = cell.trial(number)
        found.append(Prepared(cell, trial, trial_request(evaluation, cell, trial, 0), 0, task))
    return found


def _ask(host: Host, items: Sequence[Prepared]) -> list[Answer | None]:
    """The answers of today; None where there is none."""
    headers: list[Any] = [None] * len(items)
    if host.simulated:
        from evalcube.flows.run.worker.tasks import truth_of_trial  # which loads Dask

        headers = list(map(truth_of_trial, items))
    asked = (
        ProbeQuestion(body=item.request.body, headers=one) for item, one in zip(items, headers, strict=True)
    )
    return [_answer(heard.data, item) for heard, item in zip(host.ask(*asked), items, strict=True)]


def _answer(data: bytes | None, item: Prepared) -> Answer | None:
    reading = read_stored(data, item.trial)
    if reading is None:
        return None
    return grade_reading(reading, item.cell, item.trial).status == Status.CORRECT, reading
