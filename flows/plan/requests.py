"""The requests of a plan's trials, made again from nothing but the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalcube.flows.config.templates import Message
from evalcube.flows.plan.blocks import Block
from evalcube.flows.plan.evaluations import Evaluation
from evalcube.flows.plan.plan import Plan, is_imported
from evalcube.stages.generate import Cell, Trial
from evalcube.stages.infer.apis import Request, build_request
from evalcube.stages.process.grading import IMPORTED


@dataclass(frozen=True, slots=True)
class Prepared:
    """One trial, ready to send and to grade."""

    cell: Cell
    trial: Trial
    request: Request
    repeat: int
    task: int
    """Index of the task in the plan."""


def prepare_trials(plan: Plan, block: Block) -> list[Prepared]:
    """Generate the trials of a block and build their requests."""
    evaluation = plan.evaluations[block.window.region.model]
    trials: dict[tuple[int, int, int], Trial] = {}
    prepared = []
    indices = (column.tolist() for column in block.window.coordinates(block.positions))
    for task_index, slot, index, repeat in zip(*indices, strict=True):
        cell = plan.tasks[task_index].cells[slot].cell
        trial = trials.get((task_index, slot, index))
        if trial is None:
            trial = trials[task_index, slot, index] = cell.trial(index)
        request = trial_request(evaluation, cell, trial, repeat)
        prepared.append(Prepared(cell, trial, request, repeat, task_index))
    return prepared


def trial_messages(evaluation: Evaluation, cell: Cell, trial: Trial) -> list[Message]:
    """One trial's question as an evaluation puts it."""
    return evaluation.prompt_template.render(
        prompt=trial.prompt, task=cell.task.name, params=cell.plain_params
    )


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
    params = evaluation.sampler.params
    if is_imported(cell):
        origin = [cell.plain_params[IMPORTED], trial.extras.get("question")]
        params = {**params, IMPORTED: [params.get(IMPORTED), origin]}
    return build_request(
        evaluation.request_model, messages, params, repeat, evaluation.api, evaluation.revision
    )
