"""The places on the axis of models, each asked through a template with a sampler, and on that of judges."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from evalcube.flows.config.near_names import close_name, suggestion
from evalcube.flows.config.templates import Template, code_of
from evalcube.flows.errors import SweepError, TemplateError, need_name
from evalcube.stages.infer.apis import Request, build_request
from evalcube.stages.named_code import may_run
from evalcube.stages.process.grading import IMPORTED
from evalcube.stages.process.judging import judge_messages, judge_prompt_digest, read_judge
from evalcube.stages.process.reading import Reading, read_reply, with_calls
from evalcube.stages.reply.forms import ApiName, Record

if TYPE_CHECKING:
    from evalcube.flows.config.models import Model
    from evalcube.stages.generate import Trial


def _json(value: dict[str, Any]) -> dict[str, Any]:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError("must be JSON values without NaN and infinities") from error
    return value


_DIGITS = 8  # of a digest, where names do not tell evaluations apart
Values = Annotated[dict[str, Any], AfterValidator(_json)]


class IdentityRecord(BaseModel):
    """A frozen record of JSON values. Anyone may have written the cube that it is read from."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    def spec(self) -> dict[str, Any]:
        """The record as JSON values; what has its default is left out, so that new fields change no old identity."""
        return self.model_dump(exclude_defaults=True)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other values, without what cached properties had of the old ones: pydantic would keep that."""
        copy = super().model_copy(update=update, deep=deep)
        for name in copy.__dict__.keys() - type(self).model_fields.keys():
            del copy.__dict__[name]
        return copy


class NamedTemplate(IdentityRecord):
    """A prompt template by name."""

    name: str
    source: list[dict[str, str]]


class NamedSampler(IdentityRecord):
    """Request parameters by name."""

    name: str
    params: Values


class AskedModel(IdentityRecord):
    """Those settings of a config's model that tell its replies from others': part of the identity, and of cache keys.

    A further one needs a default, by which all models that were asked without it keep their ids and keys.
    """

    model: str
    """Label of the model."""
    request_model: str
    """Name that is sent."""
    api: ApiName = "chat"
    """Which API its endpoint speaks."""
    revision: str = ""
    """What tells the model from others that answer to the same name."""

    @staticmethod
    def settings(model: Model) -> dict[str, Any]:
        """The fields of this class, as a config has them."""
        return {name: getattr(model, name) for name in AskedModel.model_fields} | {"model": model.name}

    @cached_property
    def beside_name(self) -> dict[str, Any]:
        """By name, what tells the model from others of its name, and is not the default."""
        return {
            name: getattr(self, name)
            for name, field in AskedModel.model_fields.items()
            if not field.is_required() and getattr(self, name) != field.default
        }

    def request(
        self, messages: Sequence[Mapping[str, object]], params: Mapping[str, object], repeat: int
    ) -> Request:
        """What is sent to the model, and the key of the reply."""
        return build_request(self.request_model, messages, params, repeat, **self.beside_name)


class Evaluation(AskedModel):
    """One place on the model axis. The plan has the very record that the cube has."""

    eval_id: str
    """Digest of what is sent besides the prompt; equal ids give equal requests."""
    template: NamedTemplate
    sampler: NamedSampler

    @classmethod
    def of(cls, template: NamedTemplate, sampler: NamedSampler, **settings: Any) -> Evaluation:  # noqa: ANN401 - of `AskedModel`
        """The evaluation with its id."""
        nameless = cls(eval_id="", template=template, sampler=sampler, **settings)
        return nameless.model_copy(update={"eval_id": nameless.own_id})

    @property
    def own_id(self) -> str:
        """The id that follows from the other fields."""
        sent: list[Any] = [self.request_model, self.template.source, self.sampler.params]
        # Chat was the only API once, and there were no revisions: evaluations without either keep their ids.
        beside = dict(self.beside_name)
        sent += [beside.pop("api")] if "api" in beside else []
        sent += [beside] if beside else []
        return hashlib.sha256(json.dumps(sent, sort_keys=True).encode()).hexdigest()[:32]

    @cached_property
    def code(self) -> str:
        """The template as `may_run` knows it, if it has more than fields."""
        return code_of(self.template.source)

    @property
    def not_run(self) -> list[str]:
        """That its template is not run, where that is so, and why."""
        return [] if may_run(self.code) else [explain_withheld_template(self.template.name)]

    @cached_property
    def prompt_template(self) -> Template:
        """The compiled template."""
        if self.not_run:
            raise TemplateError(*self.not_run)
        return Template(self.template.source)

    @property
    def is_imported(self) -> bool:
        """Whether another tool asked the model: nobody can be asked for more."""
        return IMPORTED in self.sampler.params

    @property
    def label(self) -> str:
        """A short name for people."""
        return f"{self.model} / {self.template.name} / {self.sampler.name}"


def labels_of(rows: Sequence[Evaluation]) -> tuple[str, ...]:
    """A name for each evaluation, all different, and no longer than it takes to tell them apart."""
    named = [(row.template.name, row.sampler.name, row.revision) for row in rows]
    optional = [list(column) for column in zip(*named, strict=True)]
    parts = [[row.model for row in rows], *(names for names in optional if len(set(names)) > 1)]
    labels = [" / ".join(filter(None, columns)) for columns in zip(*parts, strict=True)]
    often = Counter(labels)
    # Cubes of several teams may mean different templates by one name; then only the digest tells them apart.
    return tuple(
        label if often[label] == 1 else f"{label} / {row.eval_id[:_DIGITS]}"
        for label, row in zip(labels, rows, strict=True)
    )


def explain_withheld_template(name: str) -> str:
    """Why a template that only a cube has is not run."""
    return (
        f"template '{name}' is not run: it is code, more than fields such as {{{{ prompt }}}}, and only the cube has "
        "it, no config of yours. Run the sweep's config to see what was asked and answered"
    )


LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""What samplers call the most tokens of a reply."""


def token_limit(sampler: Mapping[str, Any]) -> int:
    """Most tokens of a reply; 0 if the sampler sets none. It may be anybody's: no more than an array can hold."""
    limits = (sampler.get(name) for name in LIMITS)
    limit = max((limit for limit in limits if isinstance(limit, int)), default=0)
    return min(max(limit, 0), 2**53)


def dotted(label: str) -> str:
    """An evaluation's label as boards write it, with dots between its parts where cubes have strokes.

    Examples
    --------
    >>> dotted("quick / plain / warm"), dotted("quick · warm")
    ('quick · plain · warm', 'quick · warm')
    """
    return label.replace(" / ", " · ")


def evaluation_place(
    name: str | int,
    labels: Sequence[str],
    models: Sequence[str],
    full: Sequence[str],
    parameter: str = "models",
) -> int:
    """Index of an evaluation by its label, its model's name if there is one only, or its number."""
    name = need_name(parameter, name)
    matches = [
        index
        for index, (label, model, whole) in enumerate(zip(labels, models, full, strict=True))
        if name == model or dotted(name) in (dotted(label), dotted(whole))
    ]
    if not matches and name.isascii() and name.isdecimal() and int(name) < len(labels):
        matches = [int(name)]
    if len(matches) == 1:
        return matches[0]
    choices = [f"{index} = {dotted(label)}" for index, label in enumerate(labels)]
    problem = "several evaluations are" if matches else "no evaluation is"
    near = None if matches else close_name(name, [*labels, *models])
    remedy = suggestion(near, choices, "Give one of")
    raise SweepError(f"`{parameter}`: {problem} called '{name}' in this cube", remedy)


_WITHOUT_LENGTH = judge_prompt_digest(length_debias=False)


class Judge(AskedModel):
    """One place on the axis of judges: a model that rates outputs, so many times each."""

    name: str
    """Label of the judge."""
    sampler: Values
    repeats: int = Field(ge=1, le=100)
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

    def messages(self, rubric: str, prompt: str, output: str) -> list[dict[str, str]]:
        """What it reads to rate an output."""
        return judge_messages(rubric, prompt, output, length_debias=self._length_debias)

    def requests(self, rubric: str, prompt: str, output: str) -> list[Request]:
        """What is sent to have an output rated, a request for each repeat."""
        messages = self.messages(rubric, prompt, output)
        return [self.request(messages, self.sampler, repeat) for repeat in range(self.repeats)]


def read_stored(data: bytes | None, trial: Trial) -> Reading | None:
    """Return what a stored reply to a trial says, its tool calls included; None if there is none.

    Anything that is stored whole and is no record of a reply is no answer, either.
    """
    if data is None:
        return None
    try:
        reading = read_reply(Record.decode(data))
    except ValueError:
        return None
    return with_calls(reading) if trial.tools else reading


def judge_keys(judges: Sequence[Judge], rubric: str, trial: Trial, data: bytes | None) -> Iterator[str]:
    """The key of every request about the answer in a cached reply; none without a reply, or for no record of one."""
    reading = read_stored(data, trial)
    if reading is None:
        return
    for judge in judges:
        for request in judge.requests(rubric, trial.prompt, reading.answer):
            yield request.digest


@dataclass(frozen=True)
class Opinion:
    """What one judge wrote about an output. `reason` is a model's own text."""

    judge: str
    repeat: int
    score: float
    """1 to 5; NaN where there is none."""
    reason: str


def opinion_keys(
    judges: Sequence[Judge], rubric: str, prompt: str, output: str
) -> Iterator[tuple[str, int, str]]:
    """Judge, repeat and key of every request about an output."""
    for judge in judges:
        for repeat, request in enumerate(judge.requests(rubric, prompt, output)):
            yield judge.name, repeat, request.digest


def read_opinion(judge: str, repeat: int, data: bytes) -> Opinion:
    """What a judge's cached reply says."""
    opinion = read_judge(read_reply(Record.decode(data)).answer)
    return Opinion(judge, repeat, score_in(data), opinion.reason or opinion.failure)


def score_in(data: bytes) -> float:
    """The score in a judge's cached reply, 1 to 5; NaN where it was cut, refused, or has none that can be read."""
    reading = read_reply(Record.decode(data))
    if reading.finish != "stop":
        return math.nan
    score = read_judge(reading.answer).score
    return math.nan if score is None else score
