"""What a config says about precision: how many trials a cell begins with, aims at and stops at."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from evalcube.flows.config import values
from evalcube.flows.config.section import Number, Section, Whole


class Precision(Section):
    """Trials per cell by need: rounds of `base` more where the interval is wider than `target`.

    Parameters
    ----------
    base
        Trials per cell to begin with, and to add in each round.
    target
        Half-width of the interval to reach, such as 0.06 for ±6 %.
    max
        Trials per cell at which rounds end.
    """

    base: Whole = Field(ge=1, le=10**7)
    target: Number = Field(gt=0, lt=0.5)
    max: Whole = Field(ge=1, le=10**7)

    @model_validator(mode="after")
    def _room(self) -> Self:
        if self.max < self.base:
            raise values.refusal(f"must be at least base ({self.base})", "Raise it", where=("max",))
        return self


LEVELS = {
    "low": Precision(base=32, target=0.09, max=192),
    "medium": Precision(base=64, target=0.06, max=512),
    "high": Precision(base=128, target=0.04, max=1280),
}


def _named(value: object) -> object:
    if not isinstance(value, str):
        return value
    if value not in LEVELS:
        raise values.refusal(
            f"must be one of {', '.join(LEVELS)} or a mapping", "Or write {base: 32, target: 0.09, max: 192}"
        )
    return LEVELS[value]


PrecisionSetting = Annotated[Precision, BeforeValidator(_named)]


class Spend(Section):
    """What a sweep may spend, all its runs together; there it stops in good order.

    Parameters
    ----------
    tokens
        Tokens of prompts and completions that endpoints answer.
    usd
        Dollars, at the models' prices.
    """

    tokens: Number | None = Field(default=None, ge=1, le=1e15)
    usd: Number | None = Field(default=None, gt=0, le=1e9)

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.tokens is None and self.usd is None:
            raise values.refusal("must bound tokens or usd", "Write {tokens: 2000000} or {usd: 20}")
        return self
