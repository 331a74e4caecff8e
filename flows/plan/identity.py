"""The base of the records that make a sweep's identity, as a cube has them in its attributes."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict


def _json(value: dict[str, Any]) -> dict[str, Any]:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError("must be JSON values without NaN and infinities") from error
    return value


Values = Annotated[dict[str, Any], AfterValidator(_json)]


class IdentityRecord(BaseModel):
    """A frozen record of JSON values. Anyone may have written the cube that it is read from."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    def spec(self) -> dict[str, Any]:
        """The record as JSON values; what has its default is left out, so that new fields change no old identity."""
        return self.model_dump(exclude_defaults=True)
