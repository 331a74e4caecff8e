"""Assertions as a config declares them: the functions that they may name, and where one is wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from evalcube.stages.process.assertions import DeclarationError, Hooks
from evalcube.stages.process.assertions.hooks import installed_hooks


@cache
def known_hooks() -> Hooks:
    """The functions that installed packages have for assertions, looked for once in a process."""
    return installed_hooks()


def offers_tools(sampler: Mapping[str, Any]) -> bool:
    """Whether requests with these parameters offer the model tools.

    Examples
    --------
    >>> offers_tools({"tools": []}), offers_tools({"tools": [{"type": "function"}]})
    (False, True)
    """
    tools = sampler.get("tools")
    return isinstance(tools, (list, tuple)) and bool(tools)


def declared_path(error: DeclarationError) -> tuple[str | int, ...]:
    """Where a declaration is wrong, as steps.

    Examples
    --------
    >>> declared_path(DeclarationError("assertions[1].children[0]", "values[2]", 3, "rule", "remedy"))
    ('assertions', 1, 'children', 0, 'values', 2)
    """
    place = f"{error.where}.{error.field}" if error.field else error.where
    return tuple(int(step) if step.isdecimal() else step for step in re.findall(r"[^.\[\]]+", place))
