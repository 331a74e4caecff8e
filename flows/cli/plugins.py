"""Finds out whether an error is a user's own code's: a task, grader, check or scorer that was plugged in."""

from __future__ import annotations

import re
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import TracebackType

_GROUPS = "evalcube."


def installed_plugins() -> list[EntryPoint]:
    """The entry points of all of our groups; nothing is loaded."""
    groups = [group for group in entry_points().groups if group.startswith(_GROUPS)]
    return [point for group in groups for point in entry_points(group=group)]


def blame_plugin(error: BaseException) -> str | None:
    """Say in one line which plug-in or own module raised an error, here or on a worker; None if none of them did."""
    points: dict[str, list[EntryPoint]] = {}
    for point in installed_plugins():
        points.setdefault(_top(point.module), []).append(point)
    installed, message = _installed_paths(), "".join(traceback.format_exception_only(error)).strip()
    frames = list(_frames(error.__traceback__))
    ours = [number for number, (module, *_) in enumerate(frames) if _top(module) == "evalcube"]
    # Whatever a plugin calls wrongly, of evalcube too; who called evalcube is not meant.
    for module, file, line, function in reversed(frames[min(ours, default=0) :]):
        top = _top(module)
        if top != "evalcube" and (top in points or _is_own(file, installed)):
            whose = _plugin(points[top], function) if top in points else f"your module '{module}'"
            return (
                f"{whose} failed in {function} ({file}, line {line}): {message}. Correct it, or leave it out"
            )
    # One that does not take what it is given has no line of its own there.
    called = re.match(r"(?:\w+\.<locals>\.)?(\w+)[\w.]*\(\) (?:takes|got|missing) ", str(error))
    if isinstance(error, TypeError) and called is not None:
        for point in (point for named in points.values() for point in named if point.attr == called[1]):
            return f"{_plugin([point], called[1])} cannot be called: {message}. Correct it, or leave it out"
    return None


def _top(module: str) -> str:
    return module.partition(".")[0]


def _frames(trace: TracebackType | None) -> Iterator[tuple[str, str, int, str]]:
    """Module, file, line and function of each call, the innermost last."""
    for frame, line in traceback.walk_tb(trace):
        code = frame.f_code
        # Made again from what a worker sent, code has its plain name only.
        name = code.co_name if code.co_qualname == "<module>" else code.co_qualname
        yield str(frame.f_globals.get("__name__", "")), code.co_filename, line, name


def _plugin(points: Sequence[EntryPoint], function: str) -> str:
    """The entry point that a function belongs to; the package alone where that of none of several does."""
    own = [point for point in points if point.attr and point.attr == function.partition(".")[0]]
    point = next(iter(own), points[0])
    package = "" if point.dist is None else f" of package {point.dist.name}"
    if not own and len(points) > 1:
        return f"module '{_top(point.module)}'{package}"
    return f"plugin '{point.name}' ({point.group}){package}"


def _installed_paths() -> tuple[Path, ...]:
    """Return where Python and what is installed lie: an error from there was caused by whoever called it."""
    # Those of a user (`pip install --user`) and of .pth files lie below no prefix.
    packages = (path for path in sys.path if path.endswith(("site-packages", "dist-packages")))
    paths = {*sysconfig.get_paths().values(), *packages, sys.prefix, sys.base_prefix}
    return tuple(Path(path).resolve() for path in paths)


def _is_own(file: str, installed: tuple[Path, ...]) -> bool:
    path = Path(file)
    return path.suffix == ".py" and not any(path.resolve().is_relative_to(folder) for folder in installed)
