"""The valid parts of a config in which something is wrong, in their own types, for the rules between fields.

A field that is wrong is missing from its section: reading it raises `Hole`, which ends the rule that asked. A list
or mapping with wrong items becomes `Parts`: its valid items are read with `each`, its keys with `keys`, its length
is that of the whole, and any other use raises `Hole`, too, so that no rule takes a part for the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Never, TypeVar, cast, get_args, get_origin, overload

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from evalcube.flows.config.section import Hole, Section, field_types, forms, is_section

Path = tuple[str | int, ...]
Problems = Mapping[str | int, "Problems"]
"""What is wrong below a place: steps down to each problem; empty where the problem is the value itself."""

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")
S = TypeVar("S", bound=Section)

HOLE: Any = object()
"""Stands where an item is wrong as a whole."""


class Parts:
    """The items of a list or mapping of which some are wrong."""

    def __init__(self, items: Iterable[tuple[Any, Any]]) -> None:
        self.all = list(items)

    def __len__(self) -> int:
        return len(self.all)

    def _refuse(self, *_: object) -> Never:
        raise Hole

    __getattr__ = __iter__ = __getitem__ = __eq__ = __hash__ = _refuse


class ListParts(Parts):
    """Those of a list."""


class MappingParts(Parts):
    """Those of a mapping."""


Sequence.register(ListParts)
Mapping.register(MappingParts)


@overload
def each(rows: Mapping[K, V]) -> Iterator[tuple[K, V]]: ...
@overload
def each(rows: Sequence[V] | None) -> Iterator[tuple[int, V]]: ...
@overload
def each(rows: Mapping[K, V], read: Callable[[V], R]) -> Iterator[tuple[K, R]]: ...
@overload
def each(rows: Sequence[V] | None, read: Callable[[V], R]) -> Iterator[tuple[int, R]]: ...
def each(rows: Any, read: Callable[[Any], Any] = lambda row: row) -> Iterator[tuple[Any, Any]]:
    """The valid items of a list or mapping, with their places.

    Parameters
    ----------
    rows
        None stands for no items.
    read
        What is wanted of each item; those that lack it are left out.
    """
    for place, row in _items(rows):
        try:
            value = read(row)
        except Hole:
            continue
        yield place, value


def every(rows: Sequence[V], read: Callable[[V], R]) -> list[R]:
    """What is wanted of all items of a list.

    Raises
    ------
    Hole
        If one of them lacks it.
    """
    return [read(row) for _, row in _items(rows, holes=True)]


def keys(rows: Mapping[str, object]) -> list[str]:
    """The keys of a mapping, those of wrong items, too."""
    return [key for key, _ in rows.all] if isinstance(rows, Parts) else list(rows)


def known(read: Callable[[], R], default: R) -> R:
    """What `read` returns, or the default if that is not valid."""
    try:
        return read()
    except Hole:
        return default


def _items(rows: Any, *, holes: bool = False) -> Iterable[tuple[Any, Any]]:  # noqa: ANN401
    if isinstance(rows, Parts):
        if holes and any(row is HOLE for _, row in rows.all):
            raise Hole
        return [(place, row) for place, row in rows.all if row is not HOLE]
    return rows.items() if isinstance(rows, Mapping) else enumerate(rows or ())


def listed(read: Callable[[], Iterable[R]]) -> list[R]:
    """The items that `read` returns; none if they are not valid."""
    try:
        return list(read())
    except Hole:
        return []


def valid_parts(section: type[S], data: Mapping[str, object], wrong: Iterable[Path]) -> S:
    """Make a section of which only the valid parts are there.

    Parameters
    ----------
    data
        The section as it is written.
    wrong
        Where `section` found something wrong with it.
    """
    problems: dict[Any, Any] = {}
    for path in wrong:
        below = problems
        for step in path:
            below = below.setdefault(step, {})
    return cast("S", _section(section, data, problems))


def _section(section: type[Section], data: Mapping[str, object], problems: Problems) -> Section:
    values: dict[str, Any] = {}
    for name, field in section.model_fields.items():
        if name in data:
            value = _value(field_types(section)[name], data[name], problems.get(name))
        else:
            value = _default(field, values) if name not in problems else HOLE
        values[name] = value
    # model_construct makes up a default for each field that it is not given
    made = section.model_construct({name for name in values if name in data}, **values)
    for name, value in values.items():
        if value is HOLE:
            del vars(made)[name]
    return made


def _default(field: FieldInfo, before: Mapping[str, Any]) -> Any:  # noqa: ANN401
    made_from_others = field.default_factory_takes_validated_data
    if field.is_required() or (made_from_others and any(value is HOLE for value in before.values())):
        return HOLE
    try:
        return field.get_default(call_default_factory=True, validated_data=dict(before))
    except Hole:
        return HOLE


def _value(annotation: Any, data: Any, problems: Problems | None) -> Any:  # noqa: ANN401
    if problems is None:
        try:
            return _adapter(annotation).validate_python(data)
        except ValidationError:  # wrong, too, but a rule about the whole was broken first
            return HOLE
    for form in forms(annotation):
        if isinstance(data, Mapping) and is_section(form):
            return _section(form, data, problems)
        if isinstance(data, Mapping) and get_origin(form) is dict:
            return MappingParts(_parts(get_args(form)[1], data.items(), problems))
        if isinstance(data, (list, tuple)) and get_origin(form) is tuple:
            return ListParts(_parts(get_args(form)[0], enumerate(data), problems))
    return HOLE


def _parts(
    annotation: Any,  # noqa: ANN401
    items: Iterable[tuple[Any, Any]],
    problems: Problems,
) -> Iterator[tuple[Any, Any]]:
    for place, item in items:
        yield place, _value(annotation, item, problems.get(place))


@cache
def _adapter(annotation: Any) -> TypeAdapter[Any]:  # noqa: ANN401
    return TypeAdapter(annotation)
