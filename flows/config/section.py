"""What the config's sections are made of: their base, and the types of their fields."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict

from evalcube import known_as
from evalcube.flows.config import values
from evalcube.flows.config.findings import reported
from evalcube.flows.errors import SweepError

Whole = Annotated[int, Strict()]
Number = Annotated[float, Strict()]
Flag = Annotated[bool, Strict()]
Name = Annotated[str, AfterValidator(values.name)]
StorePath = Annotated[str, AfterValidator(values.path)]
Json = Annotated[Any, AfterValidator(values.json_value)]
Params = dict[Name, Json]
Degree = Annotated[int, Strict(), Field(ge=0, le=1000)]
Density = Literal["normal", "lowdef", "corner"]


if TYPE_CHECKING:
    _Base = BaseModel
else:

    class _Written(type(BaseModel)):
        """Calls a section's class with what stands in a script, whose mistakes read as those of a file."""

        def __call__(cls, /, *others: object, **given: object) -> object:
            if others:
                raise SweepError(
                    f"`{cls.__name__}` takes fields by name only",
                    f"Write {cls.__name__}({next(iter(cls.model_fields))}=...)",
                )
            with reported(cls.__name__, cls):
                return cls.written(given)

    class _Base(BaseModel, metaclass=_Written):
        pass


class Section(_Base):
    """Base of the config's sections: frozen, no unknown field, no inf or NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    @classmethod
    def __pydantic_init_subclass__(cls, **_: object) -> None:
        # One text for editors, pages and remedies.
        for name, text in re.findall(
            r"(?m)^(\w+)\n((?: {4}.*(?:\n|\Z))+)", inspect.cleandoc(cls.__doc__ or "")
        ):
            if name in cls.model_fields:
                cls.model_fields[name].description = " ".join(text.split())
        if not cls.__name__.startswith("_"):
            known_as("evalcube.config")(cls)

    @classmethod
    def written(cls, given: dict[str, Any]) -> Self:
        """The section that has these fields."""
        return cls.model_validate(given)
