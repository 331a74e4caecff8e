"""Grades replies: what a stored reply and its trial make of a row in the cube's arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from evalcube.flows.config.judges import known_hooks
from evalcube.flows.plan.evaluations import Judge, score_in
from evalcube.flows.plan.plan import Plan, TaskPlan, is_imported
from evalcube.flows.plan.requests import CriteriaBook, Prepared, judges_decide
from evalcube.stages.generate import Cell, Trial
from evalcube.stages.generate.answers.ways import collect_codes
from evalcube.stages.generate.reader import SecondReader
from evalcube.stages.infer.apis import Request
from evalcube.stages.process.assertions import Context, ToolCall, evaluate, layered_scores
from evalcube.stages.process.assertions.evaluate import Graded
from evalcube.stages.process.grading import Outcome, grade_trial, imported_outcome, second_status
from evalcube.stages.process.judging import combine_judges
from evalcube.stages.process.reading import Reading
from evalcube.stages.reply.status import Status
from evalcube.storage.cube.schema import LAYERS, VARIABLES, Variable

BoolArray = npt.NDArray[np.bool_]
Arrays = dict[str, npt.NDArray[np.generic]]
Prices = tuple[float, float]
"""USD per million tokens of prompts and of completions."""


def grade_reading(reading: Reading, cell: Cell, trial: Trial, second: SecondReader | None = None) -> Outcome:
    """The outcome of one of a cell's trials, without layer scores; of imported replies with the other tool's."""
    if is_imported(cell):
        return imported_outcome(reading, trial.guess_chance, trial.cluster)
    with collect_codes() as codes:
        outcome = grade_trial(
            reading,
            trial.guess_chance,
            lambda text: cell.parse(text, trial),
            lambda answer: cell.grade(answer, trial),
            trial.cluster,
        )
    outcome = outcome._replace(read_as=codes[0] if codes else 0)
    if second is None:
        return outcome
    return outcome._replace(status_theirs=second_status(reading, outcome.status, second.of(cell, trial)))


class LayerGrader:
    """Scores outputs by what their tasks declare: assertions, and rubrics for judges. Threads may share it."""

    def __init__(self, plan: Plan) -> None:
        self._judges = plan.judges
        self._book = CriteriaBook(plan.tasks)

    def is_judged(self, item: Prepared) -> bool:
        """Whether judges rate a trial's output."""
        return bool(self._judges and self._book.of(item.task, item.trial).rubric)

    def judge_requests(self, item: Prepared, answer: str) -> list[list[Request]]:
        """What judges are asked about an answer: by judge and repeat; nothing without a rubric."""
        rubric = self._book.of(item.task, item.trial).rubric
        if not rubric:
            return []
        return [judge.requests(rubric, item.trial.prompt, answer) for judge in self._judges]

    def graded_assertions(self, item: Prepared, reading: Reading, prices: Prices) -> tuple[Graded, ...]:
        """Which of a trial's assertions hold; none without assertions."""
        assertions = self._book.of(item.task, item.trial).assertions
        if not assertions:
            return ()
        cost, prompt = _cost(reading, prices), item.trial.prompt
        calls = tuple(ToolCall.from_arguments(tool, args) for tool, args in reading.tool_calls)
        context = Context(
            reading.answer, prompt=prompt, latency=reading.latency, cost=cost, turns=1, tool_calls=calls
        )
        return evaluate(assertions, context, hooks=known_hooks())

    def with_layers(
        self,
        item: Prepared,
        reading: Reading,
        outcome: Outcome,
        prices: Prices,
        judged: Iterable[Sequence[bytes | None]],
    ) -> Outcome | None:
        """An outcome with its layer scores; None if a judge's reply is missing.

        Every finished trial is scored on the text that it gave, a cut or refused one too: no output gains by ending
        early.
        """
        readings = []
        for replies in judged:
            try:
                readings.append(tuple(score_in(reply) for reply in replies if reply is not None))
            except ValueError:  # whole, but no record
                return None
            if len(readings[-1]) < len(replies):
                return None
        judged_by = combine_judges(readings)
        scores = layered_scores(self.graded_assertions(item, reading, prices), judged_by)
        if judges_decide(item.cell):
            outcome = _decide_outcome(outcome, judged_by)
        return outcome._replace(
            # What is imported has no assertions, and the score of the tool that graded it.
            fact=outcome.fact if scores.fact is None else scores.fact,
            behavior=_or_nan(scores.behavior),
            judge=_or_nan(scores.judge),
            judge_readings=tuple(readings),
        )


_PASSES = 3
"""Judges call an answer right whose mean score is higher."""


def _decide_outcome(outcome: Outcome, score: float | None) -> Outcome:
    """The outcome of an answer that is right or wrong by what judges say; nothing that can be read is invalid."""
    if outcome.status not in (Status.CORRECT, Status.INCORRECT):
        return outcome
    if score is None:
        return outcome._replace(status=Status.INVALID)
    return outcome._replace(status=Status.CORRECT if score > _PASSES else Status.INCORRECT)


def judged_points(tasks: Sequence[TaskPlan], slots: int) -> BoolArray:
    """At which points judges rate outputs, shape (task, params)."""
    judged = np.zeros((len(tasks), slots), dtype=bool)
    for row, task in enumerate(tasks):
        judged[row, : len(task.cells)] = task.judged_points
    return judged


def due_readings(tasks: Sequence[TaskPlan], judges: Sequence[Judge], finished: BoolArray) -> BoolArray:
    """Which judge readings finished trials (..., task, params, trial, repeat) should have: by judge and its repeat."""
    repeats = np.array([[judge.repeats] for judge in judges]).reshape(-1, 1)
    asked = finished & judged_points(tasks, finished.shape[-3])[..., np.newaxis, np.newaxis]
    return np.asarray(asked[..., np.newaxis, np.newaxis] & (np.arange(repeats.max(initial=0)) < repeats))


def trial_variables(plan: Plan) -> dict[str, tuple[Variable, tuple[int, ...]]]:
    """The arrays of a plan's regions, with the sizes of the dims that they have beyond a trial's."""
    layers = {name: (LAYERS[name], more) for name, more in plan.more_arrays.items()}
    return {**layers, **{name: (variable, ()) for name, variable in VARIABLES.items()}}


def columns(plan: Plan, outcomes: Sequence[Outcome]) -> Arrays:
    """Outcomes as arrays by variable, shape (trial,), of judges' readings (trial, judge, repeat)."""
    arrays: Arrays = {}
    for name, (variable, more) in trial_variables(plan).items():
        values = [getattr(row, name) for row in outcomes]
        if not more:
            arrays[name] = np.array(values, dtype=variable.dtype)
            continue
        arrays[name] = column = np.full((len(values), *more), variable.fill, dtype=variable.dtype)
        for row, readings in enumerate(values):
            for judge, scores in enumerate(readings):
                column[row, judge, : len(scores)] = scores
    return arrays


def _cost(reading: Reading, prices: Prices) -> float | None:
    """USD; None if the endpoint does not say the tokens."""
    if reading.prompt_tokens < 0 or reading.completion_tokens < 0:
        return None
    return (reading.prompt_tokens * prices[0] + reading.completion_tokens * prices[1]) / 1e6


def _or_nan(score: float | None) -> float:
    return float("nan") if score is None else score
