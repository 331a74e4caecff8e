"""Checks what every task promises, so that the author of one learns what is wrong before a sweep does."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterator
from typing import Any

from evalcube.stages.generate.base import Cell, Task, TaskParams, Trial
from evalcube.stages.generate.errors import TaskError

HOSTILE = (
    "",
    "Answer:",
    "Answer: ",
    "\0\x1b[2J",
    "(" * 10_000,
    "[{" * 5_000,
    "9" * 10_000,
    "Answer: " + "9" * 5_000,
    "-" * 5_000 + "1e999999",
    "Answer: \u202e\ud800\U0001f600",
    "Answer: x\n" * 2_000,
    "<think>" * 1_000,
)
"""Replies that a model may send, and that no reader may fall over."""


def check_task(
    task: Task[Any],
    params: TaskParams | None = None,
    *,
    trials: int = 20,
    reply: Callable[[Trial], str] | None = None,
) -> None:
    """Check a task against its contract, for the tests of its package.

    Trials must depend only on params, seed and number, in any order and process; right replies must be accepted; no
    reply may raise an exception; guess chance and difficulty must be within their ranges.

    Parameters
    ----------
    task
        An instance of the task.
    params
        Params at which to check it; default: `Task.example`. Call this function for small and for large params, too.
    trials
        Number of trials to make.
    reply
        A function that returns a right reply to a trial; default: a line of thought, then ``Answer: <the reference
        answer>``.

    Returns
    -------
    None
        Where nothing is wrong.

    Raises
    ------
    TaskError
        With everything that is wrong, a line for each; or if not one trial is to be made.
    """
    if trials < 1:
        raise TaskError(f"`trials`: {trials} show nothing of a task. Give a number from 1")
    problems = list(_missing_declarations(task))
    if not problems:
        problems = list(_broken_promises(task, params or task.example(), trials, reply or _plain_reply))
    if problems:
        listed = "".join(f"\n- {problem}" for problem in problems)
        raise TaskError(f"task '{getattr(task, 'name', type(task).__name__)}' breaks its contract:{listed}")


def _missing_declarations(task: Task) -> Iterator[str]:
    for name in ("name", "version", "summary", "guess_rule", "Params"):
        if not getattr(task, name, None):
            yield f"its class does not declare {name}"
    for name, field in getattr(getattr(task, "Params", None), "model_fields", {}).items():
        if not field.description:
            yield f"param {name} has no description: say what it makes harder, and its unit"


def _broken_promises(
    task: Task, params: TaskParams, trials: int, reply: Callable[[Trial], str]
) -> Iterator[str]:
    cell = Cell(task, params, 7)
    count = trials if cell.size is None else min(trials, cell.size)
    samples = [cell.trial(index) for index in range(count)]
    copied: Cell = pickle.loads(pickle.dumps(cell))  # noqa: S301 - made in the same expression
    if [copied.trial(index) for index in reversed(range(count))] != samples[::-1]:
        yield "trials differ when they are made again: draw from the stream alone, and keep no state"
    if count > 1 and len({trial.prompt for trial in samples}) == 1:
        yield f"the first {count} trials ask the same question: draw from the stream"
    if not (math.isfinite(cell.difficulty) and cell.difficulty > 0):
        yield f"the difficulty is {cell.difficulty}: it must be a number above 0"
    for index, trial in enumerate(samples):
        if problem := _wrong(cell, trial, reply(trial)):
            yield f"trial {index}: {problem}"
            break
    for text in HOSTILE:
        if problem := _hostile_flaw(cell, samples[0], text):
            yield problem
            break


def _wrong(cell: Cell, trial: Trial, reply: str) -> str:
    """What is wrong with a trial; empty if nothing is."""
    if not trial.prompt.strip():
        return "the prompt is empty"
    if not 0 <= trial.guess_chance <= 1:
        return f"the guess chance is {trial.guess_chance}: it must be from 0 to 1"
    if trial.options and trial.answer not in trial.options:
        return f"the answer '{trial.answer}' is none of the options"
    if trial.options and trial.guess_chance < 1 / len(trial.options) - 1e-9:
        return f"the guess chance of {len(trial.options)} options is {trial.guess_chance}: less than one of them has"
    if not cell.task.has_reference(cell.params):
        return ""
    parsed = cell.parse(reply, trial)
    if parsed is None:
        return f"no answer is read in the right reply {reply!r}"
    if not cell.grade(parsed, trial):
        return f"the right reply {reply!r} is graded as wrong: it is read as '{parsed}', the answer is '{trial.answer}'"
    return ""


def _hostile_flaw(cell: Cell, trial: Trial, text: str) -> str:
    """How reading and grading a hostile reply goes wrong; empty if it does not."""
    try:
        if cell.task.second_reader(cell.params):
            score: object = cell.task.theirs(text, cell.params, trial)
            if score is not None and not (isinstance(score, int | float) and 0 <= score <= 1):
                return f"theirs returns {score!r:.40}: it must return a number from 0 to 1, or None"
        parsed: object = cell.parse(text, trial)  # a plugin's may be anything
        if not (parsed is None or isinstance(parsed, str)):
            return f"parse returns a {type(parsed).__name__}: it must return a text or None"
        if parsed is not None:
            cell.grade(parsed, trial)
        fault: object = cell.fault(parsed, trial)
        if not isinstance(fault, str):
            return f"fault returns a {type(fault).__name__}: it must return a text"
    except Exception as error:  # noqa: BLE001 - that nothing is raised is the contract
        return f"reading or grading the reply {text[:40]!r} raises {type(error).__name__}: {error}"
    return ""


def _plain_reply(trial: Trial) -> str:
    return f"Let me think.\nAnswer: {trial.answer}"
