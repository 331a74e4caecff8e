"""What a config says about judges: which model, with which sampler, how often; and what outputs are to be judged by."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, TypeAdapter, model_validator

from evalcube import known_as
from evalcube.flows.config import values
from evalcube.flows.config.field_types import Given, One, optional
from evalcube.flows.config.findings import reported
from evalcube.flows.config.section import Flag, Json, Name, Number, Section, Whole
from evalcube.stages.process.assertions import DeclarationError, Hooks
from evalcube.stages.process.assertions.hooks import installed_hooks

LONGEST_RUBRIC = 20_000
"""Characters."""
DEFAULT_SAMPLER: Mapping[str, Any] = MappingProxyType({"temperature": 0, "max_tokens": 1024})
NAMED, OWN = ("\0name", "\0params")
"""Names of the two forms of a judge's sampler; no key of a config can be one."""

SamplerParams = dict[Annotated[str, AfterValidator(values.sampler_param)], Json]


@known_as("evalcube.config")
class Sampler(dict[str, Any]):
    """Parameters of requests; the server decides those that are not given.

    Parameters
    ----------
    temperature
        Randomness of the choice of tokens, from 0 (none).
    max_tokens
        Maximum number of tokens of a completion; models that reason need thousands.
    top_p
        Choose among the likeliest tokens that together have this share of the probability, from 0 to 1.
    top_k
        Choose among this many of the likeliest tokens.
    stop
        A text, or several in a list, at which a completion ends.
    reasoning_effort
        How long a model may think, in its provider's terms, such as low or high.
    **others
        Any other parameter that the endpoint accepts.

    Raises
    ------
    ConfigError
        If a parameter contains a secret or is set by evalcube itself, or a value cannot be written as JSON.

    Examples
    --------
    >>> Sampler(temperature=0, max_tokens=4096, min_p=0.05)
    {'temperature': 0, 'max_tokens': 4096, 'min_p': 0.05}
    """

    def __init__(
        self,
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
        top_p: float | None = None,
        top_k: int | None = None,
        stop: str | Sequence[str] | None = None,
        reasoning_effort: str | None = None,
        **others: object,
    ) -> None:
        named = {
            "temperature": temperature,
            "max_tokens": max_tokens,
            "top_p": top_p,
            "top_k": top_k,
            "stop": stop,
            "reasoning_effort": reasoning_effort,
        }
        params = {name: value for name, value in named.items() if value is not None} | others
        with reported("Sampler", Section):
            super().__init__(TypeAdapter(SamplerParams).validate_python(params))


def _rubric(text: str) -> str:
    if not text.strip():
        raise values.refusal("must not be blank", "Say what a good output is")
    if len(text) > LONGEST_RUBRIC:
        raise values.refusal(
            f"must have at most {LONGEST_RUBRIC:,} characters, has {len(text):,}", "Shorten it", told=True
        )
    return values.unicode(text)


Rubric = Annotated[str, AfterValidator(_rubric)]
Assertions = tuple[dict[str, Json], ...]


Weight = Annotated[Number, Field(ge=0, le=1e6)]


class LayerWeights(Section):
    """Weights of the layers in the composite.

    Parameters
    ----------
    fact
        Weight of assertions about the content.
    behavior
        Weight of assertions about the form.
    judge
        Weight of the judges' ratings.
    """

    fact: Weight = 0.0
    behavior: Weight = 0.0
    judge: Weight = 0.0

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not (self.fact or self.behavior or self.judge):
            raise values.refusal("gives no layer any weight", "Write it like {fact: 2, judge: 1}")
        return self


class CompositeConfig(Section):
    """Weights of the layers, and the variant that others are compared with.

    Parameters
    ----------
    weights
        Weights of the layers, such as {fact: 2, judge: 1}; default: equal.
    control
        The variant in use, with which others are compared: a model's name, or model / template / sampler.
    """

    weights: One[LayerWeights | None] = optional()
    control: Name | None = None


def _form(value: object) -> Literal["\0name", "\0params"]:
    return "\0params" if isinstance(value, Mapping) else "\0name"


class JudgeConfig(Section):
    """A model of the config that rates answers by a rubric.

    Parameters
    ----------
    model
        Name of one of the models.
    name
        Unique label in the cube; default: the model's name.
    sampler
        Name of one of the samplers, or request parameters.
    repeats
        Times that each answer is judged.
    length_debias
        Whether the judge is told that length is no sign of quality.
    """

    model: Name
    name: Name = Field(default_factory=lambda data: str(data.get("model", "")))
    sampler: Given[
        str | Mapping[str, Any],
        Annotated[Annotated[Name, Tag(NAMED)] | Annotated[SamplerParams, Tag(OWN)], Discriminator(_form)],
    ] = optional(dict(DEFAULT_SAMPLER))
    repeats: Whole = Field(default=1, ge=1, le=100)
    length_debias: Flag = True


@cache
def known_hooks() -> Hooks:
    """The functions that installed packages have for assertions, looked for once in a process."""
    return installed_hooks()


def offers_tools(sampler: Mapping[str, Any]) -> bool:
    """Whether requests with these parameters offer the model tools.

    Examples
    --------
    >>> offers_tools({"tools": []}), offers_tools({"tools": [{"type": "function"}]})
    (False, True)
    """
    tools = sampler.get("tools")
    return isinstance(tools, (list, tuple)) and bool(tools)


def declared_path(error: DeclarationError) -> tuple[str | int, ...]:
    """Where a declaration is wrong, as steps.

    Examples
    --------
    >>> declared_path(DeclarationError("assertions[1].children[0]", "values[2]", 3, "rule", "remedy"))
    ('assertions', 1, 'children', 0, 'values', 2)
    """
    field_path = f"{error.where}.{error.field}" if error.field else error.where
    return tuple(int(step) if step.isdecimal() else step for step in re.findall(r"[^.\[\]]+", field_path))
