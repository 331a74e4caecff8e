"""Finds out whether an error is a user's own code's: a task, grader, check or scorer that was plugged in."""

from __future__ import annotations

import site
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from types import TracebackType

from evalcube.flows.config.plugins import installed_plugins


def plugin_fault(error: BaseException) -> str | None:
    """What went wrong in whose code, on one line; None if no code of the user's raised it.

    Parameters
    ----------
    error
        As it was raised, here or on a worker.
    """
    points: dict[str, list[EntryPoint]] = {}
    for point in installed_plugins():
        points.setdefault(point.module.partition(".")[0], []).append(point)
    installed = _installed()
    for module, file, line, function in reversed(list(_frames(error.__traceback__))):
        top = module.partition(".")[0]
        if top == "evalcube":
            return None
        if top in points or _is_own(file, installed):
            what = "".join(traceback.format_exception_only(error)).strip()
            whose = _plugin(points[top], function) if top in points else f"your module '{module}'"
            return f"{whose} failed in {function} ({file}, line {line}): {what}. Mend it, or leave it out"
    return None


def _frames(trace: TracebackType | None) -> Iterator[tuple[str, str, int, str]]:
    """Module, file, line and function of each call, the innermost last."""
    while trace is not None:
        code = trace.tb_frame.f_code
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        yield module, code.co_filename, trace.tb_lineno, code.co_qualname
        trace = trace.tb_next


def _plugin(points: Sequence[EntryPoint], function: str) -> str:
    """The entry point that a function belongs to; the package alone where that of none of several does."""
    own = [point for point in points if point.attr and point.attr == function.partition(".")[0]]
    point = next(iter(own), points[0])
    package = "" if point.dist is None else f" of package {point.dist.name}"
    if not own and len(points) > 1:
        return f"module '{point.module.partition('.')[0]}'{package}"
    return f"plugin '{point.name}' ({point.group}){package}"


def _installed() -> tuple[Path, ...]:
    """Where Python and what is installed lie: an error from there was caused by whoever called it."""
    paths = {*sysconfig.get_paths().values(), *site.getsitepackages(), sys.prefix, sys.base_prefix}
    return tuple(Path(path).resolve() for path in paths)


def _is_own(file: str, installed: tuple[Path, ...]) -> bool:
    path = Path(file)
    return path.suffix == ".py" and not any(path.resolve().is_relative_to(place) for place in installed)
