"""What a config says about how hard an endpoint may be worked, how precise cells must be, and what may be spent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from evalcube.flows.config import values
from evalcube.flows.config.section import Number, Section, Whole
from evalcube.stages.infer.controller import MOST, START
from evalcube.stages.infer.endpoint import Batching

_AUTO, _NUMBER, _SEARCH = "\0auto", "\0number", "\0search"
"""Names of the three forms of `connections`; no key of a config can be one."""

Connections = Annotated[Whole, Field(ge=1, le=4096)]


class ConnectionSearch(Section):
    """Range of requests in flight, over all workers, in which the best number is measured.

    Parameters
    ----------
    start
        Requests in flight at first; if only `most` is given: 16 or half of it, whichever is less.
    most
        Maximum of requests in flight.
    """

    start: Connections = START
    most: Connections = MOST

    @model_validator(mode="after")
    def _room(self) -> Self:
        if "start" in self.model_fields_set and self.start > self.most:
            raise values.refusal(
                f"must be at most most ({self.most})", "Lower it, or raise most", where=("start",)
            )
        return self

    @property
    def first(self) -> int:
        """In flight at first."""
        return self.start if "start" in self.model_fields_set else min(self.start, max(self.most // 2, 1))


def _form(value: object) -> str:
    if isinstance(value, (Mapping, ConnectionSearch)):
        return _SEARCH
    return _AUTO if value == "auto" else _NUMBER


def _number(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise values.refusal("must be auto, a whole number or a mapping", "Write auto, or {start: 16, most: 256}")


class Limits(Section):
    """Limits of an endpoint.

    Parameters
    ----------
    connections
        Requests in flight, over all workers; auto is {start: 16, most: 256} and measures the best number.
    requests_per_minute
        Requests per minute, over all workers.
    tokens_per_minute
        Tokens of prompts and completions per minute, over all workers.
    timeout
        Seconds that one request may take.
    retries
        Further attempts after a transport error.
    patience
        Seconds for which a request is retried after HTTP 429, whatever `retries` is.
    """

    connections: Annotated[
        Annotated[Connections, BeforeValidator(_number), Tag(_NUMBER)]
        | Annotated[Literal["auto"], Tag(_AUTO)]
        | Annotated[ConnectionSearch, Tag(_SEARCH)],
        Discriminator(_form),
    ] = "auto"
    requests_per_minute: Number | None = Field(default=None, ge=0.1, le=1e7)
    tokens_per_minute: Number | None = Field(default=None, ge=1, le=1e12)
    timeout: Number = Field(default=120.0, gt=0, le=86_400)
    retries: Whole = Field(default=5, ge=0, le=100)
    patience: Number = Field(default=600.0, ge=0, le=86_400)

    @property
    def most(self) -> int:
        """Requests in flight at most."""
        return self._search.most

    @property
    def declared(self) -> int | None:
        """Requests in flight, where they are not looked for."""
        return self.connections if isinstance(self.connections, int) else None

    @property
    def endpoint(self) -> dict[str, Any]:
        """The limits as fields of `evalcube.stages.infer.endpoint.Endpoint`."""
        first = None if self.declared else self._search.first
        return self.model_dump() | {"connections": self.most, "start": first}

    @property
    def _search(self) -> ConnectionSearch:
        if isinstance(self.connections, int):
            return ConnectionSearch(start=self.connections, most=self.connections)
        return ConnectionSearch() if self.connections == "auto" else self.connections


class BatchSetting(Section):
    """Size of batches.

    Parameters
    ----------
    requests
        Requests per batch, at most.
    """

    requests: Whole = Field(default=Batching.requests, ge=1, le=1_000_000)


def _setting(value: object) -> object:
    if value is False:
        return None
    if value is True:
        return BatchSetting()
    if value is None or isinstance(value, (dict, BatchSetting)):
        return value
    raise values.refusal("must be true, false or a mapping", "Or write {requests: 50000}")


Batch = Annotated[BatchSetting | None, BeforeValidator(_setting)]


class Precision(Section):
    """As many trials as each cell needs: `base` more per round until its interval is narrow enough.

    Parameters
    ----------
    base
        Trials per cell in each round.
    target
        Half-width of the interval to reach, such as 0.06 for ±6%.
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


def _level_fields(value: object) -> object:
    if not isinstance(value, str):
        return value
    if value not in LEVELS:
        raise values.refusal(
            f"must be one of {', '.join(LEVELS)} or a mapping", "Or write {base: 32, target: 0.09, max: 192}"
        )
    return LEVELS[value]


PrecisionSetting = Annotated[Precision, BeforeValidator(_level_fields)]


class Spend(Section):
    """What all runs of a sweep may spend together.

    Parameters
    ----------
    tokens
        Tokens of prompts and completions.
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
