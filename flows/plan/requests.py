"""The requests of a plan's trials, made again from nothing but the plan."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from evalcube.flows.config.judges import known_hooks, offers_tools
from evalcube.flows.config.templates import Message, with_turns
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.evaluations import LIMITS, Evaluation
from evalcube.flows.plan.plan import Plan, TaskPlan, carries, is_imported
from evalcube.flows.plan.targets import Block, SampleTargets
from evalcube.stages.generate import Cell, Trial
from evalcube.stages.infer.apis import APIS, Request
from evalcube.stages.process.assertions import Assertion, DeclarationError, parse_assertions, unmeasurable
from evalcube.stages.process.grading import IMPORTED
from evalcube.stages.reply.forms import COMPLETIONS


class Prepared(NamedTuple):
    """One trial, ready to send and to grade."""

    cell: Cell
    trial: Trial
    request: Request
    repeat: int
    task: int
    """Index of the task in the plan."""


MadeTrials = dict[tuple[str, int], Trial]
"""Trials by id of the cell and index."""


def prepare_trials(plan: Plan, block: Block, made: MadeTrials | None = None) -> list[Prepared]:
    """Generate the trials of a block, but for those that are made, which are taken; and build their requests."""
    evaluation = plan.evaluations[block.window.region.model]
    trials: MadeTrials = {}
    prepared = []
    indices = (column.tolist() for column in block.window.coordinates(block.positions))
    for task_index, slot, index, repeat in zip(*indices, strict=True):
        cell = plan.tasks[task_index].cells[slot].cell
        trial = trials.get((cell.id, index))
        if trial is None:
            ready = None if made is None else made.pop((cell.id, index), None)
            trial = trials[cell.id, index] = cell.trial(index) if ready is None else ready
        request = trial_request(evaluation, cell, trial, repeat)
        prepared.append(Prepared(cell, trial, request, repeat, task_index))
    return prepared


def trial_messages(evaluation: Evaluation, cell: Cell, trial: Trial) -> list[Message]:
    """One trial's question as an evaluation puts it."""
    template = evaluation.prompt_template
    messages = template.render(prompt=trial.prompt, task=cell.task.name, params=cell.plain_params)
    return with_turns(messages, trial.turns) if trial.turns else messages


def trial_request(evaluation: Evaluation, cell: Cell, trial: Trial, repeat: int) -> Request:
    """The request of one trial of a cell by an evaluation."""
    return messages_request(evaluation, cell, trial, trial_messages(evaluation, cell, trial), repeat)


def messages_request(
    evaluation: Evaluation, cell: Cell, trial: Trial, messages: Sequence[Message], repeat: int
) -> Request:
    """The request with which an evaluation sends the messages of `trial_messages`.

    That of an imported trial was never sent: its digest is the key of a reply that another tool got. It names the
    question, as prompts of other tools' logs need not differ, and can be no digest of a request that a run would send.
    """
    params = with_defaults(evaluation, trial)
    if trial.tools:  # in the place of those that a sampler offers to everyone
        params = {**params, "tools": list(trial.tools)}
    if is_imported(cell):
        origin = [cell.plain_params[IMPORTED], trial.extras.get("question")]
        params = {**params, IMPORTED: [params.get(IMPORTED), origin]}
    return evaluation.request(messages, params, repeat)


def with_defaults(evaluation: Evaluation, trial: Trial) -> Mapping[str, Any]:
    """A sampler's params, with those that the trial's task asks for where the sampler says nothing and the API can."""
    params, asked = evaluation.sampler.params, trial.extras.get("sampler")
    if not isinstance(asked, Mapping):
        return params
    api = APIS[evaluation.api]
    explicit = {api.renamed.get(name, name) for name in params}
    explicit |= set(LIMITS) if explicit.intersection(LIMITS) else set()
    more = {name for name in asked if api.takes(name) and api.renamed.get(name, name) not in explicit}
    return {**{name: value for name, value in asked.items() if name in more}, **params}


_KEPT = 4096
"""Different lists of assertions that are kept parsed."""
_FIELDS = ("assertions", "rubric")
REFERENCE = "{reference}"
"""Stands in a task's rubric for the answer that is known to be right."""


def judges_decide(cell: Cell) -> bool:
    """Whether judges say which of a cell's answers are right."""
    return getattr(cell.params, "match", "") == "judge"


def check_tools(plan: Plan) -> None:
    """Make sure that tools which a task offers with its trials can be sent."""
    deaf = [evaluation for evaluation in plan.evaluations if "tools" in APIS[evaluation.api].unknown]
    for task in plan.tasks if deaf else ():
        if any(entry.cell.trial(0).tools for entry in task.cells):
            raise SweepError(
                f"tasks.{task.label}: its trials offer tools, and api: {deaf[0].api} of model '{deaf[0].model}' knows "
                "none",
                "Write `call: text` in its params, which puts tools into the prompt, or use another api",
            )


def check_turns(plan: Plan) -> None:
    """Make sure that what a task says before its questions can be sent; raises as `check_tools`."""
    narrow = [evaluation for evaluation in plan.evaluations if evaluation.api == COMPLETIONS]
    for task in plan.tasks if narrow else ():
        if any(entry.cell.trial(0).turns for entry in task.cells):
            raise SweepError(
                f"tasks.{task.label}: its questions come after earlier turns, and api: {COMPLETIONS} of model "
                f"'{narrow[0].model}' takes one text",
                "Write `as: text` in its fewshot, or use another api",
            )


@dataclass(frozen=True)
class Criteria:
    """What one output must be."""

    assertions: tuple[Assertion, ...] = ()
    rubric: str = ""
    """Empty if no judge is asked."""


class CriteriaBook:
    """The criteria of any trial of a plan; each list of assertions is parsed once. Threads may share it."""

    def __init__(self, tasks: Sequence[TaskPlan]) -> None:
        self._tasks = tasks
        self._parsed: dict[str, tuple[Assertion, ...]] = {}

    def of(self, task: int, trial: Trial) -> Criteria:
        """The criteria of a trial: the assertions of its task and its own; its own rubric before its task's."""
        entry = self._tasks[task]
        own, rubric = trial.extras.get("assertions"), trial.extras.get("rubric")
        assertions = self._parse(entry.assertions) + self._parse(own or ())
        return Criteria(assertions, str(rubric) if rubric else entry.rubric.replace(REFERENCE, trial.answer))

    def _parse(self, declared: Any) -> tuple[Assertion, ...]:  # noqa: ANN401 - as a data set has it
        if not declared:
            return ()
        key = json.dumps(declared, sort_keys=True, default=str)
        criteria = self._parsed.get(key)
        if criteria is None:
            criteria = parse_assertions(declared, hooks=known_hooks())
            if len(self._parsed) >= _KEPT:
                self._parsed.clear()
            self._parsed[key] = criteria
        return criteria


def check_criteria(plan: Plan) -> bool:
    """Check everything that the plan's tasks and their rows declare."""
    costs, judged = False, False
    tools = all(offers_tools(evaluation.sampler.params) for evaluation in plan.evaluations)
    for index, task in enumerate(plan.tasks):
        if not task.judged and any(judges_decide(entry.cell) for entry in task.cells):
            raise SweepError(
                f"tasks.{task.label}: `match: judge`, and nothing says what a judge goes by",
                'Give the task a `rubric`, such as "Gives the right answer, {reference}, and no other one"',
            )
        if not task.graded:
            continue
        if task.judged and not plan.judges:
            raise SweepError(
                f"tasks.{task.label}: its outputs have a rubric, and nobody judges by it",
                "Add judges: [{model: NAME}] to the config, or remove the rubric",
            )
        judged |= task.judged
        with_costs = [_costs(criteria.assertions) for criteria in _all(plan, index, tools=tools)]
        costs |= any(with_costs)
    if plan.judges and not judged:
        raise SweepError(
            "judges: no task has a rubric to judge by",
            "Give a task `rubric: TEXT`, or a data set `rubric: FIELD`; or remove judges",
        )
    return costs


def _all(plan: Plan, index: int, *, tools: bool) -> Iterator[Criteria]:
    """All different criteria of a task, about; those of rows one by one."""
    book, task = CriteriaBook(plan.tasks), plan.tasks[index]
    for entry in task.cells:
        cell = entry.cell
        count = (
            (1 if cell.size is None else cell.size) if any(carries(cell, field) for field in _FIELDS) else 0
        )
        for number in range(count):
            trial = cell.trial(number)
            try:
                criteria = book.of(index, trial)
            except DeclarationError as error:
                raise _declaration_error(task.label, cell, trial, error) from None
            for kind, why, remedy in unmeasurable(criteria.assertions, tools=tools):
                raise SweepError(
                    f"{_place(task.label, cell, trial)}: {kind} cannot be measured: {why}", remedy
                )
            yield criteria
    if task.assertions:
        criteria = book.of(index, Trial("", ""))
        for kind, why, remedy in unmeasurable(criteria.assertions, tools=tools):
            raise SweepError(f"tasks.{task.label}: {kind} cannot be measured: {why}", remedy)
        yield criteria


def _place(label: str, cell: Cell, trial: Trial) -> str:
    file, row = getattr(cell.params, "file", ""), trial.extras.get("row")
    return f"tasks.{label}: {file}, row {row}" if row is not None else f"tasks.{label}"


def _declaration_error(label: str, cell: Cell, trial: Trial, error: DeclarationError) -> SweepError:
    position = _place(label, cell, trial)
    field = error.where + (f".{error.field}" if error.field else "")
    return SweepError(f"{position}: {field}: {error.rule}", error.remedy[:1].upper() + error.remedy[1:])


def _costs(assertions: Sequence[Assertion]) -> bool:
    return any(assertion.type == "cost_max" or _costs(assertion.children) for assertion in assertions)


class PlannedRequest(NamedTuple):
    """One request of a plan, and what judges are asked about its reply."""

    digest: str
    cell: Cell
    trial: Trial
    rubric: str
    """Empty where no judge is asked."""


def planned_requests(plan: Plan, targets: SampleTargets, models: Sequence[int]) -> Iterator[PlannedRequest]:
    """Yield the requests of some evaluations as far as the targets go, cell by cell; each trial is made once."""
    book = CriteriaBook(plan.tasks)
    for row, task in enumerate(plan.tasks):
        for slot, planned in enumerate(task.cells):
            trials = targets.trials[:, row, slot].tolist()
            for index in range(max((trials[model] for model in models), default=0)):
                trial = planned.cell.trial(index)
                rubric = book.of(row, trial).rubric if plan.judges else ""
                for model in (model for model in models if index < trials[model]):
                    for repeat in range(int(targets.repeats[model, row, slot])):
                        request = trial_request(plan.evaluations[model], planned.cell, trial, repeat)
                        yield PlannedRequest(request.digest, planned.cell, trial, rubric)
