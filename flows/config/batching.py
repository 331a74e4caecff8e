"""What a config says about batches: whether a model's requests are put together, and how."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from evalcube.flows.config import values
from evalcube.flows.config.section import Number, Section, Whole
from evalcube.stages.infer.endpoint import Batching

_DEFAULTS = Batching()


def _window(value: object) -> object:
    if isinstance(value, str) and len(value) <= 16 and value.isascii() and value.isalnum():
        return value
    raise values.refusal("must be a time such as 24h", "Leave it out: 24h is what endpoints take")


class BatchSetting(Section):
    """How requests are put together to batches."""

    requests: Whole = Field(_DEFAULTS.requests, ge=1, le=1_000_000, description="Most requests of one batch.")
    megabytes: Number = Field(
        _DEFAULTS.megabytes,
        gt=0,
        le=10_000,
        description="Size of a batch's file from which on it is sent.",
    )
    poll: Number = Field(
        _DEFAULTS.poll, ge=0.05, le=86_400, description="Seconds between two looks at a batch."
    )
    window: Annotated[str, BeforeValidator(_window)] = Field(
        _DEFAULTS.window, description="Time that the endpoint may take, as it names it."
    )
    patience: Number = Field(
        _DEFAULTS.patience,
        ge=0.05,
        le=3600,
        description="Seconds without a further request after which those that wait are sent.",
    )


def _setting(value: object) -> object:
    if value is False:
        return None
    if value is True:
        return BatchSetting()
    if value is None or isinstance(value, (dict, BatchSetting)):
        return value
    raise values.refusal("must be true, false or a mapping", "Or write {requests: 50000, poll: 30}")


Batch = Annotated[BatchSetting | None, BeforeValidator(_setting)]
