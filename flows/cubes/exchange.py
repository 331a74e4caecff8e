"""What one trial asked and what came back, as a person reads it: for one trial that is shown, and for tables of all."""

from __future__ import annotations

from dataclasses import dataclass

from evalcube.flows.plan.plan import is_imported
from evalcube.stages.generate import Cell, Trial
from evalcube.stages.generate.errors import CodeError
from evalcube.stages.process.reading import Reading, read_reply
from evalcube.stages.reply.record import Record
from evalcube.stages.reply.status import Status

ANSWERED = "answered"
"""What a reply is called that no reference can be held against."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A reply as it was read. `reading` and `parsed` are a model's own text."""

    reading: Reading
    first_token: float
    """Seconds until the reply began; NaN where it was not streamed."""
    parsed: str | None
    """The answer in it; None if it has none, did not end by itself, was not to be read, or the code for that lacks."""


def read_answer(data: bytes | None, cell: Cell, truth: Trial, *, parse: bool = True) -> Answered | None:
    """What a cached reply says to one of a cell's trials; None if there is no reply.

    The answer is read with the parsers of today, which may see more in a reply than those that graded it.

    Parameters
    ----------
    data
        The entry of the cache, None if there is none.
    cell, truth
        What was asked.
    parse
        Whether the answer is read, which takes as long as all the rest.

    Returns
    -------
    Answered or None
        What was read.
    """
    if data is None:
        return None
    try:
        record = Record.decode(data)
    except ValueError:  # whole, but no record: whatever it is, it is no answer
        return None
    reading = read_reply(record)
    if is_imported(cell):  # no parser of ours has read it
        parsed = None if reading.imported is None else reading.imported.answer
    else:
        try:
            parsed = cell.parse(reading.answer, truth) if parse and reading.finish == "stop" else None
        except CodeError:  # what was recorded stands; `Plan.not_run` says why no more is known
            parsed = None
    return Answered(reading, record.first_token, parsed)


def row_of(truth: Trial) -> tuple[int | None, str]:
    """Number of the row of a data set that a trial asks, from 1, and its name there; (None, "") for made-up ones.

    Parameters
    ----------
    truth
        The trial.

    Returns
    -------
    tuple of (int or None, str)
        The number and the name.
    """
    row = truth.extras.get("row")
    return (row if isinstance(row, int) else None), str(truth.extras.get("id", ""))


def status_name(status: Status, cell: Cell) -> str:
    """Name of an outcome; that an answer is not the reference says nothing where there is none.

    Parameters
    ----------
    status
        The outcome.
    cell
        The cell whose trial had it.

    Returns
    -------
    str
        In small letters.
    """
    if status == Status.INCORRECT and not cell.task.has_reference(cell.params):
        return ANSWERED
    return status.name.lower()
