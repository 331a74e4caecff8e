"""What a config says about judges: which model, with which sampler, how often; and what outputs are to be judged by."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from evalcube.flows.config import values
from evalcube.flows.config.section import Flag, Json, Name, Section, Whole

LONGEST_RUBRIC = 20_000
"""Characters."""
DEFAULT_SAMPLER: Mapping[str, Any] = MappingProxyType({"temperature": 0, "max_tokens": 1024})
NAMED, OWN = SAMPLER_TAGS = ("\0name", "\0params")
"""Names of the two forms of a judge's sampler; no key of a config can be one."""

Sampler = dict[Annotated[str, AfterValidator(values.sampler_param)], Json]


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


def _form(value: object) -> Literal["\0name", "\0params"]:
    return "\0params" if isinstance(value, Mapping) else "\0name"


class JudgeConfig(Section):
    """One judge: a model of the config that grades outputs against a rubric."""

    model: Name = Field(
        description="Name of one of the models; one that only judges has `measured: false` there."
    )
    name: Name = Field(
        default_factory=lambda data: str(data.get("model", "")),
        description="Unique label in the cube; default: the model's name.",
    )
    sampler: Annotated[
        Annotated[Name, Tag(NAMED)] | Annotated[Sampler, Tag(OWN)],
        Discriminator(_form),
    ] = Field(
        dict(DEFAULT_SAMPLER),
        description="Name of one of the samplers, or request parameters; default: {temperature: 0, max_tokens: 1024}.",
    )
    repeats: Whole = Field(1, ge=1, le=100, description="Times that each output is judged.")
    length_debias: Flag = Field(
        True,
        description="Whether the judge is told that length is no sign of quality; false to measure what that does.",
    )
