"""What a sweep's config may hold: one frozen model per section, each field with its meaning, unit and range.

Rules about one field live here; rules between fields (unique names, references, tasks) are in
`flows.config.checks`. Make a config with `flows.config.load`: it applies both and reports all problems.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    Strict,
    model_validator,
)

from deploy.simulator.profile import RANGES, Profile
from flows.config import rules
from stages.generate import Entry

Whole = Annotated[int, Strict()]
Number = Annotated[float, Strict()]
Flag = Annotated[bool, Strict()]
Name = Annotated[str, AfterValidator(rules.name)]
StorePath = Annotated[str, AfterValidator(rules.path)]
Json = Annotated[Any, AfterValidator(rules.json_value)]
Params = dict[Name, Json]

TemplateSource = Annotated[str | list[dict[str, str]], PlainValidator(rules.template)]
Sampler = dict[Annotated[str, AfterValidator(rules.sampler_param)], Json]
Facet = Annotated[str | int | float | bool, PlainValidator(rules.facet)]


class Section(BaseModel):
    """Base of the config's sections: frozen, no unknown field, no inf or NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Limits(Section):
    """How hard an endpoint may be worked."""

    connections: Whole = Field(4, ge=1, le=4096, description="Requests in flight at once, over all workers.")
    timeout: Number = Field(120.0, gt=0, le=86_400, description="Seconds that one request may take.")
    retries: Whole = Field(
        5, ge=0, le=100, description="Further tries after a transport error (5xx, 429, cut connection)."
    )
    response_bytes: Whole = Field(
        4_000_000, ge=1_000, le=1_000_000_000, description="Bytes of the longest response that is read."
    )


class Prices(Section):
    """What tokens cost; with these, the report shows what a sweep has cost."""

    prompt: Number = Field(0.0, ge=0, le=1_000_000, description="USD per million prompt tokens.")
    completion: Number = Field(0.0, ge=0, le=1_000_000, description="USD per million completion tokens.")


_DEFAULTS = {field.name: field.default for field in fields(Profile)}


def _setting(name: str) -> Any:  # noqa: ANN401 - as pydantic.Field
    limits = RANGES[name]
    return Field(
        _DEFAULTS[name], ge=limits.low, le=limits.high, description=f"{limits.meaning.capitalize()}."
    )


class SimulatedModel(Section):
    """What a simulated model (``endpoint: "sim:"``) can do and how it behaves."""

    ability: Number = _setting("ability")
    slope: Number = _setting("slope")
    tokens: Number = _setting("tokens")
    growth: Number = _setting("growth")
    spread: Number = _setting("spread")
    latency: Number = _setting("latency")
    speed: Number = _setting("speed")
    reasoning: Literal["none", "think", "field"] = Field(
        "none", description="Where the reasoning trace goes: nowhere, a <think> block, the reasoning field."
    )
    refusal: Number = _setting("refusal")

    def profile(self) -> Profile:
        """Make the simulator's own record of these settings."""
        return Profile(**self.model_dump())


class ModelConfig(Section):
    """One model at one endpoint."""

    name: Name = Field(description="Unique label in the cube and in reports, up to 128 characters.")
    endpoint: Annotated[str, AfterValidator(rules.endpoint)] = Field(
        description='Where it is: http(s)://host/v1, local:smollm2, local:/path/model.gguf, "sim:", '
        "or sim:http://127.0.0.1:PORT/v1 for a simulator that `evalcube simulate` serves."
    )
    model: Name = Field(
        default_factory=lambda data: str(data.get("name", "")),
        description='Sent as "model" in each request; default: the name.',
    )
    key_env: Annotated[str, BeforeValidator(rules.key_env)] | None = Field(
        None, description="NAME of the environment variable that holds the API key; never the key itself."
    )
    limits: Limits = Field(Limits(), description="How hard the endpoint may be worked.")
    prices: Prices = Field(Prices(), description="What its tokens cost.")
    facets: dict[Name, Facet] = Field(
        {}, description="Free labels to filter and group by: texts, numbers, true or false."
    )
    simulate: SimulatedModel | None = Field(
        default_factory=lambda data: (
            SimulatedModel() if str(data.get("endpoint")).startswith("sim:") else None
        ),
        description="Abilities of a simulated model; with sim: only.",
    )
    headers: Annotated[dict[str, str], BeforeValidator(rules.headers)] = Field(
        {}, description="Extra plain request headers; nothing secret."
    )


class EvaluationRule(Section):
    """Some models with some templates and samplers; each left out means all."""

    models: tuple[Name, ...] | None = Field(None, min_length=1, description="Names of models; default: all.")
    templates: tuple[Name, ...] | None = Field(
        None, min_length=1, description="Names of templates; default: all."
    )
    samplers: tuple[Name, ...] | None = Field(
        None, min_length=1, description="Names of samplers; default: all."
    )


class ManifoldEntry(Section):
    """Points of a task: either every combination of a grid, or a list."""

    grid: dict[Name, Annotated[list[Any], BeforeValidator(rules.axis)]] | None = Field(
        None,
        min_length=1,
        description="Param -> its values (a single value is a list of one); all combinations.",
    )
    points: tuple[Params, ...] | None = Field(None, min_length=1, description="Explicit points.")
    tiers: tuple[Name, ...] = Field(
        ("default",), min_length=1, description="Tiers that the points belong to, such as easy, medium, hard."
    )

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.grid is None) == (self.points is None):
            raise rules.refusal("must have either grid or points", "Give one of the two", told=True)
        return self

    def entry(self) -> Entry:
        """Make the task layer's record of this entry."""
        grid = None if self.grid is None else dict(self.grid)
        points = None if self.points is None else [dict(point) for point in self.points]
        return Entry(grid=grid, points=points, tiers=self.tiers)


class TaskConfig(Section):
    """Where in a task's parameter space to measure."""

    manifold: tuple[ManifoldEntry, ...] = Field(min_length=1, description="Entries, each a grid or points.")

    def entries(self) -> list[Entry]:
        """Make the task layer's records, to be given to `stages.generate.manifold.expand`."""
        return [entry.entry() for entry in self.manifold]


class SweepConfig(Section):
    """A whole sweep: models x templates x samplers on tasks."""

    name: Name = Field("sweep", description="Free text; default: the file's name.")
    seed: Whole = Field(42, ge=0, le=2**63 - 1, description="All trials follow from it.")
    trials: Whole = Field(32, ge=1, le=10**7, description="Different questions per cell.")
    repeats: Whole = Field(1, ge=1, le=10**5, description="Times that each question is asked.")
    cube: StorePath = Field(
        default_factory=lambda data: f"results/{_slug(str(data.get('name', 'sweep')))}.zarr",
        description="Path or URL of the results; relative to the current directory.",
    )
    cache: StorePath = Field("results/cache", description="Path or URL of the response cache.")
    models: tuple[ModelConfig, ...] = Field(min_length=1, description="What is measured.")
    templates: dict[Name, TemplateSource] = Field(
        {"plain": [{"role": "user", "content": "{{ prompt }}"}]},
        min_length=1,
        description="Name -> list of messages with Jinja contents, or one Jinja text of a JSON list.",
    )
    samplers: dict[Name, Sampler] = Field(
        min_length=1, description="Name -> request parameters, such as temperature and max_tokens."
    )
    evaluations: tuple[EvaluationRule, ...] | None = Field(
        None, min_length=1, description="Which combinations to run; default: every model, template, sampler."
    )
    tasks: dict[Name, TaskConfig] = Field(min_length=1, description="Task name -> where to measure.")

    def combinations(self) -> list[tuple[ModelConfig, str, str]]:
        """List the evaluations (model, template, sampler), each once, in order of first mention."""
        by_name = {model.name: model for model in self.models}
        return [
            (by_name[model], template, sampler) for model, template, sampler in dict.fromkeys(self._triples())
        ]

    def _triples(self) -> Iterator[tuple[str, str, str]]:
        for rule in self.evaluations or (EvaluationRule(),):
            for model in rule.models or [model.name for model in self.models]:
                for template in rule.templates or self.templates:
                    for sampler in rule.samplers or self.samplers:
                        yield model, template, sampler


def _slug(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "sweep"
