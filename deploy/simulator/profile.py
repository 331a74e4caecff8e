"""The settings of a simulated model, which travel in its model name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

from evalcube.deploy.errors import SimulatorError

PREFIX = "sim/"
REASONING = ("none", "think", "field")


RANGES: Mapping[str, tuple[float, float]] = {
    "ability": (-20.0, 40.0),
    "slope": (0.0, 50.0),
    "tokens": (1.0, 100_000.0),
    "growth": (0.0, 4.0),
    "spread": (0.0, 3.0),
    "latency": (0.0, 600.0),
    "speed": (0.0, 1e9),
    "refusal": (0.0, 1.0),
}


@dataclass(frozen=True)
class Profile:
    """What a simulated model can do and how it behaves.

    `RANGES` has the limits of each number; the defaults here are the defaults everywhere.

    Raises
    ------
    SimulatorError
        A value is no finite number in its range, or `reasoning` is none of `REASONING`.

    Examples
    --------
    >>> name = Profile(ability=3, tokens=64).model_name("small")
    >>> name.split("&")[:2]
    ['sim/small?ability=3.0', 'growth=0.8']
    >>> parse(name) == ("small", Profile(ability=3, tokens=64))
    True
    """

    ability: float = 5.0
    """Log2 of the difficulty at which half of the trials are known."""
    slope: float = 1.2
    """Steepness of the curve, per doubling of the difficulty."""
    tokens: float = 60.0
    """Median completion tokens at difficulty 1."""
    growth: float = 0.8
    """Exponent of the difficulty in the completion tokens."""
    spread: float = 0.35
    """Standard deviation of the logarithm of the completion tokens."""
    latency: float = 0.0
    """Seconds before the first token."""
    speed: float = 0.0
    """Tokens per second; 0 sends the whole reply at once."""
    reasoning: str = "none"
    refusal: float = 0.0
    """Share of the requests that are refused."""

    def __post_init__(self) -> None:
        for name, (low, high) in RANGES.items():
            value = getattr(self, name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not low <= value <= high:  # NaN is in no range
                raise SimulatorError(name, value, f"must be a number from {low:g} to {high:g}")
            # -0.0 becomes 0.0, so that equal profiles have equal names.
            object.__setattr__(self, name, value + 0.0)
        if self.reasoning not in REASONING:
            raise SimulatorError("reasoning", self.reasoning, f"must be one of {', '.join(REASONING)}")

    def model_name(self, name: str) -> str:
        """The profile as the model name of a request: ``sim/<name>?ability=5.0&...``, keys sorted."""
        if not name:
            raise SimulatorError("name", name, "a simulated model needs a name")
        try:
            label = quote(name, safe="")
        except UnicodeEncodeError as error:
            raise SimulatorError("name", name, "must be text that UTF-8 can carry") from error
        settings = "&".join(f"{key}={getattr(self, key)}" for key in sorted(_FIELDS))
        return f"{PREFIX}{label}?{settings}"


_FIELDS = tuple(field.name for field in fields(Profile))


def parse(model_name: str) -> tuple[str, Profile]:
    """Name and profile that a model name carries; settings left out have their defaults."""
    if not model_name.startswith(PREFIX):
        raise SimulatorError("model", model_name, f"a simulated model's name starts with {PREFIX!r}")
    label, _, query = model_name.removeprefix(PREFIX).partition("?")
    if not label:
        raise SimulatorError("model", model_name, "a simulated model needs a name")
    settings: dict[str, Any] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key not in _FIELDS:
            raise SimulatorError(key, value, f"no such setting; there are {', '.join(_FIELDS)}")
        if key in settings:
            raise SimulatorError(key, value, "is set twice")
        try:
            settings[key] = value if key == "reasoning" else float(value)
        except ValueError:
            raise SimulatorError(key, value, "must be a number") from None
    return unquote(label), Profile(**settings)
