"""Types of fields that take more forms than they are read in: what a script may give, and what it becomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import Field

if TYPE_CHECKING:
    _In_contra = TypeVar("_In_contra", contravariant=True)
    _Out_co = TypeVar("_Out_co", covariant=True)
    _Item = TypeVar("_Item")

    class Given(Generic[_In_contra, _Out_co]):
        """A field that takes more forms than it is read in: a list that becomes a tuple, a word for a section."""

        def __get__(self, section: object, kind: object) -> _Out_co: ...
        def __set__(self, section: object, value: _In_contra) -> None: ...

    Many = Given[Sequence[_Item], tuple[_Item, ...]]
    Some = Given[Sequence[_Item] | None, tuple[_Item, ...] | None]
else:

    class _Form:
        """Stands for a type in brackets, which makes pydantic's one of what it is for type checkers."""

        def __init__(self, read: Callable[[Any], Any]) -> None:
            self.read = read

        def __getitem__(self, kinds: object) -> object:
            return self.read(kinds)

    Given = _Form(lambda kinds: kinds[1])
    Many = _Form(lambda item: tuple[item, ...])
    Some = _Form(lambda item: tuple[item, ...] | None)


def optional(default: Any = None, **rules: Any) -> Any:  # noqa: ANN401 - as pydantic's own
    """What pydantic's `Field` is, of a field that may be left out."""
    return Field(**rules) if "default_factory" in rules else Field(default=default, **rules)
