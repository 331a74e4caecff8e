"""Named views: parts of a sweep's results, as filters over its coordinates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, PlainValidator

from evalcube.flows.config import values
from evalcube.flows.config.near_names import did_you_mean
from evalcube.flows.config.secrecy import show
from evalcube.flows.config.section import Flag, Name, Section, Whole
from evalcube.flows.errors import SweepError

Scalar = str | int | float | bool
Bounds = tuple[float, float]


@dataclass(frozen=True)
class View:
    """A part of a sweep's results, to be compared or ranked by itself."""

    name: str
    criteria: Mapping[str, Any]
    """Coordinate -> what the config says about it."""
    trials: int | None
    """Use the first so many trials of each cell; None: all."""
    unique_only: bool
    """Use a trial only if its question is new in its cell."""

    def where(self) -> dict[str, Scalar | list[Scalar] | Bounds]:
        """The filters: coordinate -> one value, a list of values, or (lowest, highest), both included.

        Examples
        --------
        >>> View("long", {"task": ["arithmetic"], "param_length": {"min": 16}}, None, False).where()
        {'task': ['arithmetic'], 'param_length': (16, inf)}
        """
        return {name: _filter(value) for name, value in self.criteria.items()}


class ViewConfig(Section):
    """A part of the results under a name of its own.

    Parameters
    ----------
    where
        Coordinate (task, tier, model_name, template, sampler, a facet, param_<name>) -> a value, a list of
        values, or {min: 4, max: 8}.
    trials
        Use the first so many trials of each cell; default: all.
    unique_only
        Use a trial only if its question is new in its cell.
    """

    where: dict[Name, Annotated[Any, PlainValidator(values.criterion)]] = Field(default={})
    trials: Whole | None = Field(default=None, ge=1, le=10**7)
    unique_only: Flag = False

    def view(self, name: str) -> View:
        """Make the record of this view."""
        return View(name, dict(self.where), self.trials, self.unique_only)


def find_view(views: Mapping[str, ViewConfig], name: str) -> View:
    """The view of that name.

    Raises
    ------
    SweepError
        If there is none.
    """
    if name not in views:
        raise SweepError(f"there is no view {show(name)}", did_you_mean(name, list(views), "Views"))
    return views[name].view(name)


def _filter(value: Any) -> Scalar | list[Scalar] | Bounds:  # noqa: ANN401 - as the config has it
    bounds = values.bounds(value)
    if bounds is not None:
        low, high = bounds
        return (-math.inf if low is None else low, math.inf if high is None else high)
    filtered: Scalar | list[Scalar] = list(value) if isinstance(value, (list, tuple)) else value
    return filtered
