"""What the config's sections are made of: their base, the types of their fields, and where those lead."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, ValidationError

from evalcube import known_as
from evalcube.flows.config import values
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


@contextmanager
def as_written(name: str, root: type[Section] | None = None) -> Iterator[None]:
    """A context in which what a script gives wrongly is refused in the words in which a file would be.

    Parameters
    ----------
    name
        What the script calls.
    root
        The section that it makes, if it is one.
    """
    try:
        yield
    except ValidationError:
        from evalcube.flows.config.findings import reported  # which knows all sections

        with reported(name, root=root):
            raise


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
            with as_written(cls.__name__, cls):
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


def forms(annotation: Any) -> Iterator[Any]:  # noqa: ANN401 - any type
    """The types that a value may have, without unions and what `Annotated` adds."""
    if get_origin(annotation) is Annotated:
        yield from forms(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType):
        for form in get_args(annotation):
            yield from forms(form)
    else:
        yield annotation


def is_section(form: Any) -> bool:  # noqa: ANN401
    """Tell whether a type is a section."""
    return isinstance(form, type) and issubclass(form, Section)


@cache
def field_types(section: type[Section]) -> dict[str, Any]:
    """The full type of each field, with its rules."""
    return {name: field.rebuild_annotation() for name, field in section.model_fields.items()}


def sections_below(annotation: Any, path: str) -> Iterator[tuple[type[Section], str]]:  # noqa: ANN401
    """The sections that a value at `path` may be or hold, and how the place of each is written."""
    for form in forms(annotation):
        if is_section(form):
            yield form, path
        elif get_origin(form) is dict:
            yield from sections_below(get_args(form)[1], f"{path}.NAME")
        elif get_origin(form) in (tuple, list):
            yield from sections_below(get_args(form)[0], f"{path}[]")


def section_at(root: type[Section], path: tuple[str | int, ...]) -> type[Section] | None:
    """Find the section that may stand at `path` below `root`; None where there is none."""
    found: list[Any] = [root]
    for step in path:
        found = [form for kind in found for form in _below(kind, step)]
    return next((form for form in found if is_section(form)), None)


def _below(form: Any, step: str | int) -> Iterator[Any]:  # noqa: ANN401
    """The forms of what stands at `step` in a value of that form."""
    if is_section(form) and isinstance(step, str) and step in form.model_fields:
        yield from forms(field_types(form)[step])
    elif get_origin(form) is dict:
        yield from forms(get_args(form)[1])
    elif get_origin(form) is tuple:
        yield from forms(get_args(form)[0])
