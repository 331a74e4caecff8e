"""Finds out whether an error is a user's own code's: a task, grader, check or scorer that was plugged in."""

from __future__ import annotations

import site
import sys
import sysconfig
import traceback
from collections.abc import Iterator
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
    points = {point.value.partition(":")[0].partition(".")[0]: point for point in installed_plugins()}
    installed = _installed()
    for module, file, line, function in reversed(list(_frames(error.__traceback__))):
        top = module.partition(".")[0]
        if top == "evalcube":
            return None
        if top in points or _is_own(file, installed):
            what = "".join(traceback.format_exception_only(error)).strip()
            whose = _plugin(points[top]) if top in points else f"your module '{module}'"
            return f"{whose} failed in {function} ({file}, line {line}): {what}. Mend it, or leave it out"
    return None


def _frames(trace: TracebackType | None) -> Iterator[tuple[str, str, int, str]]:
    """Module, file, line and function of each call, the innermost last."""
    while trace is not None:
        code = trace.tb_frame.f_code
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        yield module, code.co_filename, trace.tb_lineno, code.co_name
        trace = trace.tb_next


def _plugin(point: EntryPoint) -> str:
    package = "" if point.dist is None else f" of package {point.dist.name}"
    return f"plugin '{point.name}' ({point.group}){package}"


def _installed() -> tuple[Path, ...]:
    """Where Python and what is installed lie: an error from there was caused by whoever called it."""
    paths = {*sysconfig.get_paths().values(), *site.getsitepackages(), sys.prefix, sys.base_prefix}
    return tuple(Path(path).resolve() for path in paths)


def _is_own(file: str, installed: tuple[Path, ...]) -> bool:
    path = Path(file)
    return path.suffix == ".py" and not any(path.resolve().is_relative_to(place) for place in installed)
