"""What a config says about batches: whether a model's requests are put together, and how many."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from evalcube.flows.config import values
from evalcube.flows.config.section import Section, Whole
from evalcube.stages.infer.endpoint import Batching


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
