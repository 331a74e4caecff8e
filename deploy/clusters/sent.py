"""Sends pieces of our code to nodes that have none: as the text of their module, which the node runs."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from distributed import SchedulerPlugin

from evalcube.deploy.clusters import registrar

_MAKE = "exec(source, place := {'__name__': 'evalcube_carrier'}) or eval(wanted, place)(*arguments)"
_TAKE = "exec(source, place := {'__name__': 'evalcube_carrier'}) or eval(wanted, place)"
"""Unpickled by nodes without our code, and by any version of Python: so it is made of built-in functions alone."""


@cache
def _source(module: str) -> str:
    return inspect.getsource(sys.modules[module])


class Made:
    """Something that a node makes anew from the text of the module that has its class."""

    def __init__(self, kind: type, *arguments: object) -> None:
        self._kind, self._arguments = kind, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        source, wanted = _source(self._kind.__module__), self._kind.__name__
        return eval, (_MAKE, {"source": source, "wanted": wanted, "arguments": self._arguments})


class SentFunction:
    """A function that a node makes anew from the text of its module, and runs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._module, self._name = function.__module__, function.__name__

    def __call__(self, *args: object) -> Any:  # noqa: ANN401 - Dask wants something that can be called
        """Only nodes call it."""
        raise NotImplementedError

    def __reduce__(self) -> tuple[Any, ...]:
        return eval, (_TAKE, {"source": _source(self._module), "wanted": self._name})


class SentRegistrar(Made, SchedulerPlugin):
    """What becomes a `Registrar` on the scheduler."""

    def __init__(self, name: str, *arguments: object) -> None:
        super().__init__(registrar.Registrar, name, *arguments)
        self.name = f"{name}-registrar"
