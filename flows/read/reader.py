"""Look up single trials of a cube: prompt, reply, answer and grade. Nothing here asks an endpoint."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.flows.errors import SweepError
from evalcube.flows.plan.evaluations import Opinion, opinion_keys, read_opinion, read_stored
from evalcube.flows.plan.filters import matching_points
from evalcube.flows.plan.plan import TaskPlan, is_imported
from evalcube.flows.plan.requests import CriteriaBook, messages_request, trial_messages
from evalcube.flows.state.caches import find_replies
from evalcube.flows.state.engines import unknown_ends
from evalcube.flows.state.records import read_notes
from evalcube.flows.state.store import cube_plan
from evalcube.stages.generate import Cell, Trial
from evalcube.stages.generate.absent import AbsentTask
from evalcube.stages.generate.answers.ways import way_of
from evalcube.stages.generate.dataset import column_of
from evalcube.stages.generate.errors import CodeError
from evalcube.stages.generate.stream import canonical_json
from evalcube.stages.process.reading import Reading
from evalcube.stages.reply.body import UNKNOWN_END, ending_code, name_code, short_text
from evalcube.stages.reply.status import SECOND, Status
from evalcube.storage.cache.cache import Cache
from evalcube.storage.cube.cube import PUBLISHED, Cube
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.cube.regions import Region
from evalcube.storage.cube.schema import SAID
from evalcube.storage.urls import Address, redacted

ANSWERED = "answered"
"""What a reply is called that no reference can be held against."""


@dataclass(frozen=True)
class SecondView:
    """What a second reader makes of a reply."""

    reader: str
    status: str
    """As recorded in the cube."""
    parsed: str | None
    """What its pattern finds, a model's own text; None if that is nothing, or it is no pattern."""


@dataclass(frozen=True)
class TrialView:
    """One trial as a person wants to see it. `response`, `reasoning` and `parsed` are a model's own text."""

    model: str
    task: str
    params: Mapping[str, object]
    trial: int
    repeat: int
    status: str
    """As recorded in the cube."""
    messages: Sequence[Mapping[str, str]]
    """What was sent."""
    response: str | None
    """None if the cache does not hold the reply."""
    reasoning: str
    parsed: str | None
    reference: str
    tokens: int
    latency: float
    first_token: float
    """Seconds until the reply began; NaN where it was not streamed."""
    digest: str
    """Digest of the request, which is the cache's key."""
    layers: Mapping[str, float]
    """Scores from 1 to 5 of the layers that there are."""
    opinions: Sequence[Opinion]
    """Of the judges, as far as the cache holds them."""
    row: int | None
    """Number of the row, from 1, where the question is from a file."""
    row_id: str
    """The row's own name, where the data set names a field with it."""
    prompt_tokens: int | None
    """None where the endpoint does not say, as below."""
    reasoning_tokens: int | None
    cached_tokens: int | None
    provider: str | None
    """What the reply says of the system that gave it."""
    looping: bool
    """Whether the end of the reply repeats itself."""
    ending: str | None
    """The endpoint's word for the reply's end, where nobody knows what it means; None where that is known."""
    fault: str
    """In what way the answer is wrong, where the task tells; else empty."""
    read_as: str | None = None
    """How the answer was read: its place and what that gave; None where nobody noted it."""
    theirs: SecondView | None = None
    """What the task's second reader makes of the reply; None where there is none, or it has not read it."""

    judged: Sequence[Mapping[str, str]] = ()
    """What judges were sent: names of the judges, role and content of each message."""

    def to_dict(self) -> dict[str, Any]:
        """The view as JSON values; what is not a number is None."""
        fields = asdict(self)
        for part in (fields, *fields["opinions"]):
            part.update({name: None for name, value in part.items() if value != value})  # noqa: PLR0124 - NaN
        return fields


@dataclass(frozen=True, slots=True)
class Answered:
    """A reply as it was read. `reading` and `parsed` are a model's own text."""

    reading: Reading
    parsed: str | None
    """The answer in it; None if it has none, did not end by itself, was not to be read, or the code for that lacks."""
    fault: str = ""
    """In what way it is wrong, where it was read and the task tells."""


def read_answer(data: bytes | None, cell: Cell, truth: Trial, *, parse: bool = True) -> Answered | None:
    """What a cached reply says to one of a cell's trials; None if there is no reply.

    The answer is read with the parsers of today, which may see more in a reply than those that graded it.
    """
    reading = read_stored(data, truth)
    if reading is None:
        return None
    parsed, fault = None, ""
    if is_imported(cell):  # no parser of ours has read it
        parsed = None if reading.imported is None else reading.imported.answer
    elif parse and reading.finish == "stop":
        with suppress(CodeError):  # what was recorded stands; `Plan.not_run` says why no more is known
            answer = cell.parse(reading.answer, truth)
            parsed, fault = answer, cell.fault(answer, truth)
    return Answered(reading, parsed, fault)


Place = tuple[int, int, int, int, int]
"""Indices of a trial's model, task, slot, trial and repeat."""


@dataclass(slots=True)
class FoundTrial:
    """One trial with what was made again and found of it."""

    place: Place
    cell: Cell
    truth: Trial | None
    """None where the code that makes it is not at hand."""
    messages: Sequence[Mapping[str, str]] = ()
    digest: str = ""
    answered: Answered | None = None
    opinions: list[Opinion] | None = None
    """Of the judges; None where there are none, or nobody looked."""

    @property
    def question(self) -> Trial:
        """The question; an empty one where it is not at hand."""
        return Trial("", "") if self.truth is None else self.truth


def row_of(truth: Trial) -> tuple[int | None, str]:
    """Number of the row of a data set that a trial asks, from 1, and its name there; (None, "") for made-up ones."""
    row = truth.extras.get("row")
    return (row if isinstance(row, int) else None), str(truth.extras.get("id", ""))


STATUSES = (*(status.name.lower() for status in Status), ANSWERED)
"""How a trial may end, in words."""
_CODES = np.zeros(256, np.int8)
_CODES[list(Status)] = np.arange(len(Status))


def outcome_codes(status: npt.NDArray[Any], referenced: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """Places in `STATUSES` of stored outcomes, by whether there is a reference to each."""
    return np.where(~referenced & (status == Status.INCORRECT), len(Status), _CODES[status])


def status_name(status: Status, cell: Cell) -> str:
    """Name of an outcome; that an answer is not the reference says nothing where there is none."""
    if status == Status.INCORRECT and not cell.task.has_reference(cell.params):
        return ANSWERED
    return status.name.lower()


SCORES = ("fact", "behavior", "judge")
_STORED = ("status", "tokens", "prompt_tokens", "latency", *SCORES, *SAID, SECOND)
_ROOM = 100_000_000
"""Characters of questions that are kept, about."""
_OVERHEAD = 500
"""What a question takes beside its own text, about."""
_TOOL = 10
"""How many times as much a tool takes that goes along with one, about."""


class Reader:
    """A cube with its plan and, where it can be found, its cache."""

    def __init__(self, cube: Address, cache: str | Path | Sequence[str | Path] | None = None) -> None:
        self.cube = Cube.open(cube)
        self.notes = read_notes(self.cube.records)
        self.plan = cube_plan(self.cube, self.notes)
        self._cache = cache
        self._replies: Cache | None = None
        self.away: list[str] = []
        """A line for each cache at hand that did not answer when replies were last looked for."""
        self._regions: dict[Sequence[str], tuple[Region, dict[str, Any]]] = {}
        self._shared = len(self.plan.evaluations) > 1 or self.plan.repeats > 1
        self._questions: dict[tuple[int, int, int], Trial] = {}
        self._room = _ROOM

    def cache(self) -> Cache | None:
        """The response cache, if it was given, is that of an own run, or lies beside the cube."""
        if self._replies is None:  # a run may just be making one
            self.away.clear()
            self._replies = find_replies(self.cube, self.notes.get("cache"), self._cache, away=self.away)
        return self._replies

    @property
    def without_cache(self) -> str:
        """What to say where no cache was found."""
        if PUBLISHED in self.cube.attrs:
            pull = f"`evalcube pull {redacted(self.cube.url)} COPY.zarr`"
            return f"replies that were published along are read in a copy, which {pull} makes"
        return "no cache is at hand; give this sweep's with `cache`"

    @cached_property
    def _providers(self) -> dict[int, str]:
        receipts = Ledger(self.cube.records).newest().values()
        names = {short_text(name) for receipt in receipts for name in receipt.fingerprints}
        return {name_code(name): name for name in names}

    @cached_property
    def _endings(self) -> dict[int, str]:
        words = unknown_ends(Ledger(self.cube.records).newest().values())
        return {ending_code(word): UNKNOWN_END + word for word in words}

    def ending(self, code: int) -> str | None:
        """The end that a number of the array ``ending`` stands for; None for one that is known."""
        return self._endings.get(code, f"{UNKNOWN_END}#{code}") if code > 0 else None

    def provider(self, code: int) -> str | None:
        """The name that a number of the array ``provider`` stands for; a number in hex if the ledger lacks it."""
        return self._providers.get(code, f"#{code:08x}") if code > 0 else None

    def point(self, task: str, params: str | None) -> tuple[int, int]:
        """Indices of a task and of one of its points."""
        names = list(self.plan.task_names)
        if task not in names:
            raise SweepError(f"`task`: '{task}' is not in this cube", f"Give one of: {', '.join(names)}")
        row = names.index(task)
        cells = self.plan.tasks[row].cells
        points = [cell.cell.plain_params for cell in cells]
        slots = matching_points(points, params)
        if not params:
            slots = [slot for slot in slots if not cells[slot].older]
        if len(slots) != 1:
            count = "no point" if not slots else f"{len(slots)} points"
            listed = "; ".join(f"{i} = {canonical_json(point)}" for i, point in enumerate(points[:12]))
            raise SweepError(f"`params`: {count} of {task} match '{params or ''}'", f"Give one of: {listed}")
        return row, slots[0]

    def row(self, name: str, task: str | None, params: str | None) -> tuple[int, int, int]:
        """Indices of the task, the point and the trial that ask a row of a data set, by its id, else its number."""
        every = np.ndindex(len(self.plan.tasks), self.plan.slots)
        points = [self.point(task, params)] if task else list(every)
        matches = []
        for row, slot in points:
            if slot < len(cells := self.plan.tasks[row].cells) and not cells[slot].older:
                cell = cells[slot].cell
                names = column_of(cell, getattr(cell.params, "id", ""))[: self.plan.trials]
                matches += [(row, slot, trial) for trial, own in enumerate(names) if own == name]
        if len(matches) != 1:
            tasks = ", ".join(dict.fromkeys(self.plan.tasks[row].label for row, *_ in matches))
            raise SweepError(
                f"`row`: {len(matches) or 'no'} trials ask a row '{name}'" + f", of {tasks}" * bool(tasks),
                "Say which with `task` and `params`"
                if tasks
                else "See `evalcube trials CUBE --columns row,row_id`",
            )
        return matches[0]

    def load_trials(
        self,
        places: Iterable[Place],
        *,
        asked: bool = True,
        replies: bool = True,
        parse: bool = True,
        judged: bool = True,
    ) -> list[FoundTrial]:
        """Trials with their questions and replies, many at a time, as a cache may be far away."""
        rows = []
        for address in places:
            model, task, slot, trial, repeat = address
            evaluation, cell = self.plan.evaluations[model], self.plan.tasks[task].cells[slot].cell
            row = FoundTrial(address, cell, self._question(cell, (task, slot, trial)))
            if asked and row.truth is not None and not evaluation.not_run:
                row.messages = trial_messages(evaluation, cell, row.truth)
                row.digest = messages_request(evaluation, cell, row.truth, row.messages, repeat).digest
            rows.append(row)
        cache = self.cache() if replies else None
        some = [row for row in rows if row.digest and cache is not None]
        stored = [] if cache is None else cache.get_many([row.digest for row in some])
        for row, reply in zip(some, stored, strict=True):
            row.answered = read_answer(reply, row.cell, row.question, parse=parse)
            imported = None if row.answered is None else row.answered.reading.imported
            if imported is not None and imported.prompt is not None:
                row.messages = [{"role": "user", "content": imported.prompt}]
        if replies and judged and self.plan.judges:
            self._ask_judges(rows, cache)
        return rows

    def _question(self, cell: Cell, index: tuple[int, int, int]) -> Trial | None:
        """A question, None of a task that is not at hand; what others were asked, too, is kept while there is room."""
        if isinstance(cell.task, AbsentTask):
            return None
        truth = self._questions.get(index)
        if truth is None:
            truth = cell.trial(index[2])
            if self._shared and self._room > 0:
                self._questions[index] = truth
                self._room -= len(truth.prompt) + _OVERHEAD * (1 + _TOOL * len(truth.tools))
        return truth

    @cached_property
    def _book(self) -> CriteriaBook:
        return CriteriaBook(self.plan.tasks)

    def _ask_judges(self, rows: Sequence[FoundTrial], cache: Cache | None) -> None:
        """Set what judges gave: from their replies, or else the bare readings that the cube has."""
        keys: list[tuple[list[Opinion], str, int, str]] = []
        for row in rows:
            row.opinions = opinions = self._readings(row.place) if row.answered is None else []
            if row.answered is not None and (rubric := self._book.of(row.place[1], row.question).rubric):
                asked = opinion_keys(
                    self.plan.judges, rubric, row.question.prompt, row.answered.reading.answer
                )
                keys += [(opinions, *key) for key in asked]
        replies = [] if cache is None or not keys else cache.get_many([key for *_, key in keys])
        for (opinions, judge, repeat, _), data in zip(keys, replies, strict=False):
            if data is not None:
                with suppress(ValueError):  # whole, but no record: whatever it is, it is no opinion
                    opinions.append(read_opinion(judge, repeat, data))

    def _readings(self, address: Place) -> list[Opinion]:
        scores = self._stored_values(address, ("judge_readings",)).get("judge_readings", np.empty((0, 0)))
        return [
            Opinion(self.plan.judges[judge].name, number, float(scores[judge, number]), "")
            for judge, number in np.argwhere(~np.isnan(scores)).tolist()
        ]

    def view(self, model: int, task: int, slot: int, trial: int, repeat: int = 0) -> TrialView:
        """One trial; prompt and reference are made again, the reply comes from the cache."""
        for name, value, size in (("trial", trial, self.plan.trials), ("repeat", repeat, self.plan.repeats)):
            if not 0 <= value < size:
                raise SweepError(
                    f"`{name}`: {value} is outside of the cube", f"Give a number from 0 to {size - 1}"
                )
        evaluation, entry = self.plan.evaluations[model], self.plan.tasks[task]
        stored = self._stored_values((model, task, slot, trial, repeat))
        (row,) = self.load_trials([(model, task, slot, trial, repeat)])
        cell, answered, task_code = row.cell, row.answered, row.cell.task
        reasons = [task_code.reason] if isinstance(task_code, AbsentTask) else evaluation.not_run
        notes = [{"role": "note", "content": reason} for reason in reasons]
        response = None if answered is None else answered.reading.answer or answered.reading.error
        return TrialView(
            self.plan.labels[model],
            entry.label,
            cell.plain_params,
            trial,
            repeat,
            status_name(Status(int(stored["status"])), cell),
            row.messages if row.digest else notes,
            response,
            "" if answered is None else answered.reading.reasoning,
            None if answered is None else answered.parsed,
            row.question.answer,
            int(stored["tokens"]),
            float(stored["latency"]),
            float(stored.get("first_token", math.nan if answered is None else answered.reading.first_token)),
            row.digest,
            {name: float(stored[name]) for name in SCORES if name in stored and not np.isnan(stored[name])},
            row.opinions or [],
            *row_of(row.question),
            _count(stored, "prompt_tokens"),
            _count(stored, "reasoning_tokens"),
            _count(stored, "cached_tokens"),
            self.provider(int(stored.get("provider", 0))),
            bool(stored.get("looping", False)),
            self.ending(int(stored.get("ending", 0))),
            "" if answered is None else answered.fault,
            way_of(int(stored.get("read_as", 0))),
            theirs=_second(entry, stored, response),
            judged=self._sent_to_judges(row),
        )

    def _sent_to_judges(self, row: FoundTrial) -> list[dict[str, str]]:
        """What judges were sent about a reply, message by message, with the names of those who were."""
        names: dict[tuple[str, str], list[str]] = {}
        if row.answered is None or not self.plan.judges:
            return []
        rubric = self._book.of(row.place[1], row.question).rubric
        for judge in self.plan.judges if rubric else ():
            for message in judge.messages(rubric, row.question.prompt, row.answered.reading.answer):
                names.setdefault((message["role"], message["content"]), []).append(judge.name)
        return [{"judge": ", ".join(to), "role": role, "content": text} for (role, text), to in names.items()]

    def _stored_values(self, address: Place, names: Sequence[str] = _STORED) -> dict[str, Any]:
        """What some of the cube's arrays hold of one trial; absent ones are not there."""
        model, task, slot, trial, repeat = address
        chunks = self.cube.chunks
        region = Region(model, trial // chunks["trial"], repeat // chunks["repeat"])
        cached_region, arrays = self._regions.get(names, (None, {}))
        if cached_region != region:  # trials that are looked at one after another are mostly of one region
            arrays = self.cube.read_region(region, [name for name in names if name in self.cube.trial_arrays])
            self._regions[names] = (region, arrays)
        position = (task, slot, trial % chunks["trial"], repeat % chunks["repeat"])
        return {name: values[position] for name, values in arrays.items()}


def _count(stored: Mapping[str, Any], name: str) -> int | None:
    return int(stored[name]) if stored.get(name, -1) >= 0 else None


def _second(task: TaskPlan, stored: Mapping[str, Any], response: str | None) -> SecondView | None:
    status = Status(int(stored.get(SECOND, Status.MISSING)))
    if task.second is None or status == Status.MISSING:
        return None
    return SecondView(task.second.name, status.name.lower(), task.second.extract(response or ""))
