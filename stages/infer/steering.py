"""What a person ordered of requests that go on: to wait, to leave a model out, to keep to other limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evalcube.stages.infer.rates import Quota


@dataclass(frozen=True)
class Steering:
    """All orders so far, taken together; each worker is given it whole, so that one that joins late knows it too."""

    paused: bool = False
    """Whether nothing is sent for now; what is in flight ends as usual."""
    dropped: frozenset[str] = frozenset()
    """Labels of models that are asked nothing more."""
    quotas: Mapping[str, Quota] = field(default_factory=dict)
    """By label of the model, limits in place of those of its endpoint."""
    retries: int = 0
    """How often it was ordered to try once more what was given up."""


UNSTEERED = Steering()
