"""What can be asked: a name, the function that answers, and which of its answers a bundle holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalcube.flows.explore.query import Query

if TYPE_CHECKING:
    from evalcube.flows.explore.explored import Explored

Json = dict[str, Any]
"""An object of JSON values; numbers may be numpy's, and NaN becomes null."""


def nothing(_: Explored) -> Iterable[Query]:
    """No query at all."""
    return ()


def once(_: Explored) -> Iterable[Query]:
    """The one query that says nothing."""
    return (Query(),)


def each_model(explored: Explored) -> Iterable[Query]:
    """A query for each model."""
    return (Query.make(model=label) for label in explored.labels())


@dataclass(frozen=True)
class Endpoint:
    """One thing that a page can ask for, at ``/api/NAME``."""

    name: str
    answer: Callable[[Explored, Query], Json]
    """Reads cubes and changes nothing; raises `EvalcubeError` for what is asked wrongly."""
    bundled: Callable[[Explored], Iterable[Query]] = nothing
    """The queries whose answers a bundle holds."""
    kept: bool = True
    """Whether an answer stays right until something new is recorded in a cube."""
