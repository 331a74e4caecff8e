"""The one hook by which requests tell a simulated model the truth; real endpoints get nothing of it."""

from __future__ import annotations

from collections.abc import Mapping

from evalcube.deploy.simulator.truth import judge_headers, judged_quality, trial_headers
from evalcube.flows.plan.grading import LayerGrader, Prices
from evalcube.flows.plan.requests import Prepared
from evalcube.stages.process.assertions import layered_scores
from evalcube.stages.process.grading import Outcome
from evalcube.stages.process.reading import Reading
from evalcube.stages.reply.status import Status


def truth_of_trial(item: Prepared) -> Mapping[str, str]:
    """Headers that let a simulated model answer a trial."""
    trial = item.trial
    # a simulated model that does not know picks any option: it has no strategies
    guess = 1 / len(trial.options) if trial.options else trial.guess_chance
    return trial_headers(trial.answer, trial.options, item.cell.difficulty, guess, item.repeat)


def truth_of_output(
    layers: LayerGrader, item: Prepared, reading: Reading, outcome: Outcome, prices: Prices, repeat: int
) -> Mapping[str, str]:
    """Headers that let a simulated judge rate an output.

    Parameters
    ----------
    repeat
        Of the judge, from 0.
    """
    scores = layered_scores(layers.graded_assertions(item, reading, prices))
    right = outcome.status == Status.CORRECT if item.trial.answer else None
    return judge_headers(judged_quality(right, (scores.fact, scores.behavior)), repeat)
