"""Types of fields: those that take more forms than they are read in, and the sections that a field may hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, Field

if TYPE_CHECKING:
    _In_contra = TypeVar("_In_contra", contravariant=True)
    _Out_co = TypeVar("_Out_co", covariant=True)
    _Item = TypeVar("_Item")
    _Key = TypeVar("_Key")

    class Given(Generic[_In_contra, _Out_co]):
        """A field that takes more forms than it is read in: a list that becomes a tuple, a word for a section."""

        def __get__(self, section: object, kind: object) -> _Out_co: ...
        def __set__(self, section: object, value: _In_contra) -> None: ...

    _Written = Mapping[str, Any]  # of a section, what stands in a file
    One = Given[_Item | _Written, _Item]
    Many = Given[Sequence[_Item | _Written], tuple[_Item, ...]]
    Some = Given[Sequence[_Item | _Written] | None, tuple[_Item, ...] | None]
    Named = Given[Mapping[_Key, _Item | _Written], dict[_Key, _Item]]
else:

    class _Form:
        """Stands for a type in brackets, which makes pydantic's one of what it is for type checkers."""

        def __init__(self, read: Callable[[Any], Any]) -> None:
            self.read = read

        def __getitem__(self, kinds: object) -> object:
            return self.read(kinds)

    Given = _Form(lambda kinds: kinds[1])
    One = _Form(lambda kind: kind)
    Many = _Form(lambda item: tuple[item, ...])
    Some = _Form(lambda item: tuple[item, ...] | None)
    Named = _Form(lambda kinds: dict[kinds])


def optional(default: Any = None, **rules: Any) -> Any:  # noqa: ANN401 - as pydantic's own
    """What pydantic's `Field` is, of a field that may be left out."""
    return Field(**rules) if "default_factory" in rules else Field(default=default, **rules)


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
    return isinstance(form, type) and issubclass(form, BaseModel)


@cache
def field_types(section: type[BaseModel]) -> dict[str, Any]:
    """The full type of each field, with its rules."""
    return {name: field.rebuild_annotation() for name, field in section.model_fields.items()}


def sections_below(annotation: Any, path: str) -> Iterator[tuple[type[BaseModel], str]]:  # noqa: ANN401
    """The sections that a value at `path` may be or hold, and how the place of each is written."""
    for form in forms(annotation):
        if is_section(form):
            yield form, path
        elif get_origin(form) is dict:
            yield from sections_below(get_args(form)[1], f"{path}.NAME")
        elif get_origin(form) in (tuple, list):
            yield from sections_below(get_args(form)[0], f"{path}[]")


def section_at(root: type[BaseModel], path: tuple[str | int, ...]) -> type[BaseModel] | None:
    """Find the section that may stand at `path` below `root`; None where there is none."""
    sections: list[Any] = [root]
    for step in path:
        sections = [form for kind in sections for form in _below(kind, step)]
    return next((form for form in sections if is_section(form)), None)


def _below(form: Any, step: str | int) -> Iterator[Any]:  # noqa: ANN401
    """The forms of what stands at `step` in a value of that form."""
    if is_section(form) and isinstance(step, str) and step in form.model_fields:
        yield from forms(field_types(form)[step])
    elif get_origin(form) is dict:
        yield from forms(get_args(form)[1])
    elif get_origin(form) is tuple:
        yield from forms(get_args(form)[0])
