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
    """Between which numbers of requests in flight the best is looked for, over all workers.

    Parameters
    ----------
    start
        In flight at first, in a first run; where only `most` is given, half of that at most.
    most
        In flight at most.
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
    """How hard an endpoint may be worked.

    Parameters
    ----------
    connections
        Requests in flight at once, over all workers: a number, or as many as the endpoint has a use for, which is
        found out; auto is {start: 16, most: 256}.
    requests_per_minute
        Requests that may start in a minute, over all workers; default: any.
    tokens_per_minute
        Tokens of prompts and completions in a minute, over all workers; default: any.
    timeout
        Seconds that one request may take.
    retries
        Further tries after a transport error (5xx, 429, cut connection).
    patience
        Seconds for which a request that is refused because of a limit (429) is tried again, whatever `retries`
        is.
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
    """How requests are put together to batches.

    Parameters
    ----------
    requests
        Most requests of one batch.
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
    """Trials per cell by need: rounds of `base` more where the interval is wider than `target`.

    Parameters
    ----------
    base
        Trials per cell to begin with, and to add in each round.
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
