"""The user's own checks and scorers, given to a call or installed as entry points of a package."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
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

    checks: Mapping[str, Check] = field(default_factory=lambda: MappingProxyType({}))
    """By the name that ``fn`` of a `custom` assertion gives."""
    scorers: Mapping[str, Scorer] = field(default_factory=lambda: MappingProxyType({}))
    """By type of assertion, such as ``semantic_similarity``."""

    # The default, a mapping proxy, cannot be pickled, and whoever grades in other processes sends hooks along.
    def __reduce__(self) -> tuple[type[Hooks], tuple[dict[str, Check], dict[str, Scorer]]]:
        return Hooks, (dict(self.checks), dict(self.scorers))


def installed_hooks() -> Hooks:
    """The hooks that installed packages declare as entry points.

    Raises
    ------
    DeclarationError
        One cannot be loaded or is not callable, or two have the same name.
    """
    return Hooks(_loaded(entry_points(group=CHECKS)), _loaded(entry_points(group=SCORERS)))


def _loaded(points: Iterable[EntryPoint]) -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {}
    # Sorted, so that every worker refuses the same pair, whatever order its packages stand in.
    for point in sorted(points, key=lambda point: (point.name, point.value)):
        where = f"entry point '{point.name}' of group {point.group}"
        try:
            function = point.load()
        except Exception as error:
            raise DeclarationError(
                where,
                "",
                point.value,
                f"'{point.value}' cannot be loaded ({type(error).__name__}: {error})",
                "repair or uninstall its package",
            ) from error
        if not callable(function) or point.name in found:
            rule = f"'{point.value}' is not callable" if not callable(function) else "the name is taken twice"
            raise DeclarationError(where, "", point.value, rule, "repair or uninstall its package")
        found[point.name] = function
    return found
