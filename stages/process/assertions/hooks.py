"""The user's own checks and scorers, given to a call or installed as entry points of a package."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from evalcube.stages.process.assertions.model import Context, DeclarationError

CHECKS = "evalcube.checks"
"""Entry point group of functions that `custom` assertions name."""
SCORERS = "evalcube.scorers"
"""Entry point group of scorers, each named as the type of assertion that it serves."""

Check = Callable[[Context], bool]
"""Whether a trial passes."""
Scorer = Callable[[Context, str], float]
"""How well an output agrees with a reference, on any scale that the threshold is meant for."""


@dataclass(frozen=True)
class Hooks:
    """The user's functions. Nothing in a sample or an output is ever run: they only name what stands here."""

    checks: Mapping[str, Check] = field(default_factory=dict)
    """By the name that ``fn`` of a `custom` assertion gives."""
    scorers: Mapping[str, Scorer] = field(default_factory=dict)
    """By type of assertion, such as ``semantic_similarity``."""


def installed_hooks() -> Hooks:
    """The hooks that installed packages declare as entry points; each is loaded when it is named.

    A lookup raises `DeclarationError` if the hook cannot be loaded or is not callable, or two have its name.
    """
    return Hooks(Installed(CHECKS), Installed(SCORERS))


class Installed(Mapping[str, Callable[..., Any]]):
    """The functions of an entry point group by name: a broken one is in the way of nobody who does not name it.

    Parameters
    ----------
    group
        Of entry points.
    points
        In it; default: those of installed packages.
    """

    def __init__(self, group: str, points: Iterable[EntryPoint] | None = None) -> None:
        self._points: dict[str, list[EntryPoint]] = {}
        for point in entry_points(group=group) if points is None else points:
            self._points.setdefault(point.name, []).append(point)
        self._loaded: dict[str, Callable[..., Any]] = {}

    def __getitem__(self, name: str) -> Callable[..., Any]:
        if name not in self._loaded:
            self._loaded[name] = _load(self._points[name])
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._points

    def __iter__(self) -> Iterator[str]:
        return iter(self._points)

    def __len__(self) -> int:
        return len(self._points)

    def __reduce__(self) -> tuple[type[Installed], tuple[str, list[EntryPoint]]]:
        # Whoever gets it loads what he needs.
        points = [point for named in self._points.values() for point in named]
        return Installed, (points[0].group if points else "", points)


def _load(points: Sequence[EntryPoint]) -> Callable[..., Any]:
    point = points[0]
    where = f"entry point '{point.name}' of group {point.group}"
    remedy = "repair or uninstall its package"
    # Which of two packages is meant would depend on the order in which they were installed.
    if len(points) > 1:
        raise DeclarationError(where, "", point.value, "the name is taken twice", remedy)
    try:
        function = point.load()
    except Exception as error:
        rule = f"'{point.value}' cannot be loaded ({type(error).__name__}: {error})"
        raise DeclarationError(where, "", point.value, rule, remedy) from error
    if not callable(function):
        raise DeclarationError(where, "", point.value, f"'{point.value}' is not callable", remedy)
    hook: Callable[..., Any] = function
    return hook
