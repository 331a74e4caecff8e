"""What the config's sections are made of: their base, and the types of their fields."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict

from flows.config import rules

Whole = Annotated[int, Strict()]
Number = Annotated[float, Strict()]
Flag = Annotated[bool, Strict()]
Name = Annotated[str, AfterValidator(rules.name)]
StorePath = Annotated[str, AfterValidator(rules.path)]
Json = Annotated[Any, AfterValidator(rules.json_value)]
Params = dict[Name, Json]
Degree = Annotated[int, Strict(), Field(ge=0, le=1000)]
Density = Literal["normal", "lowdef", "corner"]


class Section(BaseModel):
    """Base of the config's sections: frozen, no unknown field, no inf or NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
