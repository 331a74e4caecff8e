"""Names that several stages share: the outcome of a trial as a small integer, and the counters of a cell."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """Outcome codes of a trial, as stored in the cube's ``status`` array.

    A *completed* trial is 0, 1, 3 or 4; a *finished* trial is completed or truncated.
    """

    INCORRECT = 0
    CORRECT = 1
    TRUNCATED = 2
    """Cut by the token limit, or the prompt did not fit the model's context."""
    INVALID = 3
    """Completed, but no answer could be parsed; counts as incorrect."""
    REFUSED = 4
    """Completed, but refused or filtered; counts as incorrect."""
    TRANSPORT = 254
    """No reply after the last retry: not a trial, retried by the next run."""
    MISSING = 255
    """Never run: the fill value."""


COMPLETED = (Status.INCORRECT, Status.CORRECT, Status.INVALID, Status.REFUSED)
"""Outcomes of trials that came to an end of their own."""

FINISHED = (*COMPLETED, Status.TRUNCATED)
"""Outcomes of finished trials."""

OUTCOMES = {status.name.lower(): status for status in sorted(FINISHED, key=lambda one: one != Status.CORRECT)}
"""Outcomes of finished trials by name, the right one first, in the order in which pages and tables have them."""

LAST_FINISHED = int(max(FINISHED))
"""The outcomes of finished trials are the codes up to this one; a plain integer, with which bytes compare as bytes."""

SECOND = "status_theirs"
"""Array of the outcomes as tasks' second readers read the same replies, of cubes in which any task has one."""

READER = "second_reader"
"""Coordinate (task) of these cubes: what the reader is called; empty where a task has none."""

READERS = ("ours", "theirs")
"""Who may say what is right, as options name them."""

COUNTERS = tuple(
    "trials completed correct invalid refused truncated guess_sum tokens_sum tokens_sumsq prompt_tokens_sum "
    "compressed_sum latency_sum cost_sum duplicates transport missing".split()
)
"""Labels of the counters of a cell, in the order in which they are stored; see `evalcube.stages.score.counters`."""

COUNTED = {name: int(Status[name.upper()]) for name in COUNTERS if name.upper() in Status.__members__}
"""Counters that are numbers of trials of one outcome, and its code: a plain integer, as bytes compare with as bytes."""

QUESTION_COUNTERS = ("questions", "correct_squares", "correct_answers", "answer_squares")
"""Labels of the counters that follow them in a cube: sums over the questions of a cell, each asked m times and answered
right c times, of 1, c², cm and m². Cubes of earlier versions are without them."""

FEW_TRIALS = 20
"""Replies of a model, or trials of a point, from which on too many without an answer, or alike, are no chance."""

BASE = "base_trials"
"""Coordinate (model, task, params): answers that the first plan gave each point; without it, points weigh alike."""

QUESTION_MOMENTS = "question_moments"
"""Variable of a dataset with these counters apart from those of trials, which need not be counted along with them."""
