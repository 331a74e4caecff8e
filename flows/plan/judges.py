"""Models that rate outputs: what they are asked, and what their stored replies say."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pydantic import Field

from evalcube.flows.plan.evaluations import AskedModel, Values
from evalcube.stages.infer.apis import Request
from evalcube.stages.process.judging import read_judge
from evalcube.stages.process.reading import read_reply
from evalcube.stages.process.rubric import judge_messages, judge_prompt_digest
from evalcube.stages.reply.record import Record

if TYPE_CHECKING:
    from evalcube.storage.cache.cache import Cache

_WITHOUT_LENGTH = judge_prompt_digest(length_debias=False)


class Judge(AskedModel):
    """One place on the axis of judges: a model that rates outputs, so many times each."""

    name: str
    """Label of the judge."""
    sampler: Values
    repeats: int = Field(ge=1)
    prompt: str
    """Digest of the prompt that is put to judges."""

    @cached_property
    def identity(self) -> str:
        """What is sent besides the texts; two judges with the same would share every reply."""
        sent = [self.request_model, self.sampler, self.beside_name, self._length_debias]
        return json.dumps(sent, sort_keys=True)

    @property
    def _length_debias(self) -> bool:
        """Whether it is told that length is no sign of quality."""
        return self.prompt != _WITHOUT_LENGTH

    def requests(self, rubric: str, prompt: str, output: str) -> list[Request]:
        """What is sent to have an output rated, a request for each repeat."""
        messages = judge_messages(rubric, prompt, output, length_debias=self._length_debias)
        return [self.request(messages, self.sampler, repeat) for repeat in range(self.repeats)]


def judge_keys(judges: Sequence[Judge], rubric: str, prompt: str, data: bytes | None) -> Iterator[str]:
    """The key of every request about the answer in a cached reply; none without a reply, or for no record of one."""
    if data is None:
        return
    try:
        output = read_reply(Record.decode(data)).answer
    except ValueError:
        return
    for judge in judges:
        for request in judge.requests(rubric, prompt, output):
            yield request.digest


@dataclass(frozen=True)
class Opinion:
    """What one judge wrote about an output. `reason` is a model's own text."""

    judge: str
    repeat: int
    score: float
    """1 to 5; NaN where there is none."""
    reason: str


def opinions(
    judges: Sequence[Judge], rubric: str, prompt: str, output: str, cache: Cache
) -> Iterator[Opinion]:
    """The replies about an output that the cache holds."""
    for judge, repeat, key in opinion_keys(judges, rubric, prompt, output):
        data = cache.get(key)
        if data is not None:
            yield read_opinion(judge, repeat, data)


def opinion_keys(
    judges: Sequence[Judge], rubric: str, prompt: str, output: str
) -> Iterator[tuple[str, int, str]]:
    """Judge, repeat and key of every request about an output."""
    for judge in judges:
        for repeat, request in enumerate(judge.requests(rubric, prompt, output)):
            yield judge.name, repeat, request.digest


def read_opinion(judge: str, repeat: int, data: bytes) -> Opinion:
    """What a judge's cached reply says.

    Raises
    ------
    ValueError
        If `data` is no record of a reply.
    """
    said = read_judge(read_reply(Record.decode(data)).answer)
    return Opinion(judge, repeat, score_in(data), said.reason or said.failure)


def score_in(data: bytes) -> float:
    """The score in a judge's cached reply, 1 to 5; NaN where it was cut, refused, or has none that can be read.

    Raises
    ------
    ValueError
        If `data` is no record of a reply.
    """
    reading = read_reply(Record.decode(data))
    if reading.finish != "stop":
        return math.nan
    score = read_judge(reading.answer).score
    return math.nan if score is None else score
