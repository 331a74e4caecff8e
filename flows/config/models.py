"""What a sweep's config may hold: one frozen model per section, each field with its meaning, unit and range.

Rules about one field live here; rules between fields (unique names, references, tasks) are in
`evalcube.flows.config.rules`. Make a config with `evalcube.flows.config.load`: it applies both and reports all
problems.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainValidator

from evalcube.deploy.simulator.profile import RANGES, Profile
from evalcube.flows.config import values
from evalcube.flows.config.cluster import Cluster, ClusterSection
from evalcube.flows.config.field_types import Given, Many, Named, One, Some, optional
from evalcube.flows.config.judges import CompositeConfig, JudgeConfig, SamplerParams
from evalcube.flows.config.limits import Batch, BatchSetting, Limits, Precision, PrecisionSetting, Spend
from evalcube.flows.config.manifold import TaskConfig
from evalcube.flows.config.section import Degree, Density, Flag, Name, Number, Section, StorePath, Whole
from evalcube.flows.config.serving import SERVED, Serve
from evalcube.flows.config.text import yaml_text
from evalcube.flows.config.views import Policy, View, ViewConfig, find_view
from evalcube.stages.generate import Entry
from evalcube.stages.reply.forms import CHAT, ApiName

TemplateSource = Annotated[list[dict[str, str]], PlainValidator(values.template)]
Facet = Annotated[str | int | float | bool, PlainValidator(values.facet)]


class Prices(Section):
    """What tokens cost.

    Parameters
    ----------
    prompt
        USD per million prompt tokens.
    completion
        USD per million completion tokens.
    cached
        USD per million prompt tokens that the endpoint had in its cache; default: as `prompt`.
    batch
        Factor for these prices in batches, such as 0.5; default: 1, which suits prices that are batch prices already.
    """

    prompt: Number = Field(default=0.0, ge=0, le=1_000_000)
    completion: Number = Field(default=0.0, ge=0, le=1_000_000)
    cached: Number | None = Field(default=None, ge=0, le=1_000_000)
    batch: Number | None = Field(default=None, gt=0, le=1)

    def paid(self, *, batch: bool) -> tuple[float, float, float]:
        """USD per million tokens of prompts and completions, and what it adds where one of a prompt was cached."""
        part = self.batch if batch and self.batch is not None else 1.0
        more = 0.0 if self.cached is None else self.cached - self.prompt
        return self.prompt * part, self.completion * part, more * part


MOST_REPEATS = 10**5
"""Answers to a question."""
_DEFAULTS = {field.name: field.default for field in fields(Profile)}


def _setting(name: str) -> Any:  # noqa: ANN401 - as pydantic.Field
    low, high = RANGES[name]
    return Field(default=_DEFAULTS[name], ge=low, le=high)


class SimulatedModel(Section):
    """Options of a simulated model (``endpoint: "sim:"``).

    Parameters
    ----------
    ability
        Log2 of the difficulty at which half of the answers are known.
    slope
        Steepness of the curve, per doubling of the difficulty.
    tokens
        Median completion tokens at difficulty 1.
    latency
        Seconds before the first token.
    speed
        Tokens per second; 0 sends the whole reply at once.
    reasoning
        Where the text before the answer is: in the reply (none), in a <think> block, or in the field
        reasoning_content.
    refusal
        Share of the requests that are refused.
    """

    ability: Number = _setting("ability")
    slope: Number = _setting("slope")
    tokens: Number = _setting("tokens")
    latency: Number = _setting("latency")
    speed: Number = _setting("speed")
    reasoning: Literal["none", "think", "field"] = "none"
    refusal: Number = _setting("refusal")

    def profile(self) -> Profile:
        """Make the simulator's own record of these settings."""
        return Profile(**self.model_dump())


class Model(Section):
    """One model at one endpoint.

    Parameters
    ----------
    name
        Unique label in the cube and in reports, up to 128 characters.
    serve
        Server that the run starts, instead of endpoint.
    endpoint
        http(s)://host/v1, local:smollm2, local:/path/model.gguf, "sim:", or sim:http://127.0.0.1:PORT/v1 if
        `evalcube simulate` runs there. A list: one model on several servers.
    model
        Sent as "model" in each request; default: the name.
    revision
        Any text that names the version, such as weights, quantisation or engine. Part of the model's identity and of
        cache keys; never sent.
    api
        API of the endpoint; see docs/endpoints.md.
    stream
        Whether replies are streamed, which also measures the time to the first token.
    batch
        Whether requests are sent in batches: true or {requests: 50000}.
    key_env
        NAME of the environment variable that holds the API key; never the key itself.
    key_file
        File that holds the API key, instead of key_env; read on the worker, and again after HTTP 401.
    key_command
        Program and arguments that print the API key, instead of key_env; run on the worker without a shell,
        and again after HTTP 401.
    ca_file
        PEM file of further certificate authorities; read on the worker.
    limits
        Limits of the endpoint.
    prices
        Prices of the model's tokens.
    facets
        Labels to filter and group by.
    simulate
        Options of a simulated model; with sim: only.
    headers
        Extra request headers; nothing secret.
    measured
        False for a model that only judges.
    """

    name: Name
    serve: One[Serve | None] = optional()
    endpoint: Given[
        str | Sequence[str], Annotated[str | tuple[str, ...], BeforeValidator(values.endpoint)]
    ] = optional(
        ...,
        default_factory=lambda data: SERVED if data.get("serve") is not None else values.MISSING,
        validate_default=True,
    )
    model: Name = Field(default_factory=lambda data: str(data.get("name", "")))
    revision: Annotated[str, BeforeValidator(values.revision)] = ""
    api: ApiName = CHAT
    stream: Flag = False
    batch: Given[BatchSetting | Mapping[str, Any] | bool | None, Batch] = optional()
    key_env: Annotated[str, BeforeValidator(values.key_env)] | None = None
    key_file: Annotated[str, BeforeValidator(values.key_file)] | None = None
    key_command: Given[
        Sequence[str] | None, Annotated[tuple[str, ...], BeforeValidator(values.key_command)] | None
    ] = optional()
    ca_file: Annotated[str, Field(min_length=1, max_length=values.LONGEST_PATH)] | None = None
    limits: One[Limits] = optional(Limits())
    prices: One[Prices] = optional(Prices())
    facets: Given[Mapping[str, str | float], dict[Name, Facet]] = optional({})
    simulate: One[SimulatedModel | None] = optional(
        default_factory=lambda data: (
            SimulatedModel() if _addresses(data.get("endpoint"))[0].startswith("sim:") else None
        )
    )
    headers: Annotated[dict[str, str], BeforeValidator(values.headers)] = Field(default={})
    measured: Flag = True

    @property
    def addresses(self) -> tuple[str, ...]:
        """The endpoint, or each of several."""
        return _addresses(self.endpoint)

    @property
    def request_model(self) -> str:
        """The name that is sent; a simulated model's profile is part of it, and so of every cache key."""
        return self.model if self.simulate is None else self.simulate.profile().model_name(self.name)

    @property
    def priced(self) -> bool:
        """Whether somebody declared its prices, be they 0."""
        return "prices" in self.model_fields_set

    @property
    def paid(self) -> tuple[float, float, float]:
        """What its tokens cost as it is asked, see `Prices.paid`."""
        return self.prices.paid(batch=self.batch is not None)


class EvaluationRule(Section):
    """Some models with some templates and samplers.

    Parameters
    ----------
    models
        Names of models; default: all.
    templates
        Names of templates; default: all.
    samplers
        Names of samplers; default: all.
    """

    models: Some[Name] = optional(min_length=1)
    templates: Some[Name] = optional(min_length=1)
    samplers: Some[Name] = optional(min_length=1)


class Sweep(Section):
    """A whole sweep: models x templates x samplers on tasks.

    Parameters
    ----------
    name
        Free text; default: the file's name, or `sweep`.
    seed
        All questions follow from it.
    precision
        Instead of trials: low, medium, high or {base: 32, target: 0.09, max: 192}.
    trials
        Different questions per cell; default: 32, or the precision's base.
    repeats
        Times that each question is asked.
    cube
        Path or URL of the results; default: results/NAME.zarr.
    cache
        Path or URL of the response cache.
    spend
        Amount at which the sweep stops: {tokens: 2000000}, {usd: 20} or both.
    cluster
        Where the sweep runs; default: this machine.
    models
        Models to measure.
    templates
        Name -> list of messages, each with `role` and `content`; contents may use Jinja.
    samplers
        Name -> request parameters, such as temperature and max_tokens.
    evaluations
        Which combinations to run; default: all.
    degree
        How far the windows of all grids are moved up, unless an entry has its own degree.
    density
        Values of each grid axis: normal (all), lowdef (first, middle, last), corner (ends).
    tasks
        Name of a task (or any label, with task: NAME below it) -> its points.
    judges
        Models that rate answers by the tasks' rubrics.
    composite
        Weights of the layers, and the variant that others are compared with.
    policy
        When a treatment may replace the control, for `evalcube gate`.
    views
        Name -> a part of the results.
    """

    name: Name = "sweep"
    seed: Whole = Field(default=42, ge=0, le=2**63 - 1)
    precision: Given[
        Precision | Mapping[str, Any] | Literal["low", "medium", "high"] | None, PrecisionSetting | None
    ] = optional()
    trials: Whole = Field(default_factory=lambda data: _base(data.get("precision")), ge=1, le=10**7)
    repeats: Whole = Field(default=1, ge=1, le=MOST_REPEATS)
    cube: StorePath = Field(
        default_factory=lambda data: f"results/{_slug(str(data.get('name', 'sweep')))}.zarr"
    )
    cache: StorePath = "results/cache"
    spend: One[Spend | None] = optional()
    cluster: Given[ClusterSection | Mapping[str, Any] | str | None, Cluster | None] = optional()
    models: Many[Model] = Field(min_length=1)
    templates: Given[Mapping[str, Sequence[Mapping[str, str]]], dict[Name, TemplateSource]] = optional(
        {"plain": [{"role": "user", "content": "{{ prompt }}"}]}, min_length=1
    )
    samplers: Given[Mapping[str, Mapping[str, Any]], dict[Name, SamplerParams]] = optional(
        {"default": {}}, min_length=1
    )
    evaluations: Some[EvaluationRule] = optional(min_length=1)
    degree: Degree = 0
    density: Density = "normal"
    tasks: Named[Name, TaskConfig] = optional(..., min_length=1)
    judges: Many[JudgeConfig] = optional(())
    composite: One[CompositeConfig | None] = optional()
    policy: One[Policy | None] = optional()
    views: Named[Name, ViewConfig] = optional({})

    @classmethod
    def written(cls, given: dict[str, Any]) -> Sweep:
        """The sweep that has these fields, by all rules that hold in a file."""
        from evalcube.flows.config import raw_config, rules  # slow to load

        return rules.check_config(cls, raw_config.plain(given), "config", None)

    @classmethod
    def from_yaml(cls, path: str | Path) -> Sweep:
        """Read a config file.

        Parameters
        ----------
        path
            A YAML file.

        Returns
        -------
        Sweep
            As if it had been made here, with the file's name if the file gives it none.

        Raises
        ------
        ConfigError
            If the file cannot be read, or with all problems of its content.
        """
        from evalcube.flows.config import raw_config, rules

        return rules.check_config(cls, *raw_config.named(*raw_config.text_of(path)))

    def to_yaml(self, path: str | Path | None = None) -> str:
        """Write it as a config file, which plans the same sweep: the same cells, prompts and cache keys.

        Parameters
        ----------
        path
            File to write; None for none.

        Returns
        -------
        str
            What the file says: what was given, and the name.
        """
        text = yaml_text({"name": self.name, **self.model_dump(mode="json", exclude_unset=True)})
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def add(self, *models: Model) -> Sweep:
        """Make a sweep with further models; this one stays as it is.

        Parameters
        ----------
        *models
            Models beside those that it has. A run of the new sweep asks them only: the others' answers are there.

        Returns
        -------
        Sweep
            A sweep on the same cube.

        Raises
        ------
        ConfigError
            If a name is taken, or something else is wrong with them.
        """
        return Sweep(**{**self.model_dump(exclude_unset=True), "models": [*self.models, *models]})

    def manifold(self, label: str) -> tuple[str, list[Entry]]:
        """Name of the task behind a label of `tasks`, and its entries with the sweep's degree and density."""
        task = self.tasks[label]
        return task.task or label, task.entries(degree=self.degree, density=self.density)

    def view(self, name: str) -> View:
        """The view of that name; raises SweepError if there is none."""
        return find_view(self.views, name)

    def combinations(self) -> list[tuple[Model, str, str]]:
        """List the evaluations (model, template, sampler), each once, in order of first mention."""
        by_name = {model.name: model for model in self.models}
        # A model that is none is reported by a rule, beside those that ask for this list.
        return [
            (by_name[model], template, sampler)
            for model, template, sampler in dict.fromkeys(self._triples())
            if model in by_name
        ]

    def _triples(self) -> Iterator[tuple[str, str, str]]:
        for rule in self.evaluations or (EvaluationRule(),):
            for model in rule.models or [model.name for model in self.models if model.measured]:
                for template in rule.templates or self.templates:
                    for sampler in rule.samplers or self.samplers:
                        yield model, template, sampler


def _addresses(endpoint: object) -> tuple[str, ...]:
    return endpoint if isinstance(endpoint, tuple) and endpoint else (str(endpoint),)


def _base(precision: Precision | None) -> int:
    return 32 if precision is None else precision.base


def _slug(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "sweep"
