"""What a config says about spending: a bound in tokens, in dollars, or both."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from evalcube.flows.config import values
from evalcube.flows.config.section import Number, Section


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
