"""The settings of a simulated model, which travel in its model name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote

from evalcube.deploy.errors import SimulatorError

PREFIX = "sim/"
REASONING = ("none", "think", "field")


class Range(NamedTuple):
    """Closed range of a number, with its meaning and unit."""

    low: float
    high: float
    meaning: str


RANGES: Mapping[str, Range] = MappingProxyType(
    {
        "ability": Range(-20.0, 40.0, "log2 of the difficulty at which half of the trials are known"),
        "slope": Range(0.0, 50.0, "steepness of the curve, per doubling of the difficulty"),
        "tokens": Range(1.0, 100_000.0, "median completion tokens at difficulty 1"),
        "growth": Range(0.0, 4.0, "exponent of the difficulty in the completion tokens"),
        "spread": Range(0.0, 3.0, "standard deviation of the logarithm of the completion tokens"),
        "latency": Range(0.0, 600.0, "seconds before the first token"),
        "speed": Range(0.0, 1e9, "tokens per second; 0 sends the whole reply at once"),
        "refusal": Range(0.0, 1.0, "share of the requests that are refused"),
    }
)


@dataclass(frozen=True)
class Profile:
    """What a simulated model can do and how it behaves.

    `RANGES` has the meaning and the limits of each number; the defaults here are the defaults everywhere.

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
    slope: float = 1.2
    tokens: float = 60.0
    growth: float = 0.8
    spread: float = 0.35
    latency: float = 0.0
    speed: float = 0.0
    reasoning: str = "none"
    refusal: float = 0.0

    def __post_init__(self) -> None:
        for name, limits in RANGES.items():
            object.__setattr__(self, name, _number(name, getattr(self, name), limits))
        if self.reasoning not in REASONING:
            raise SimulatorError("reasoning", self.reasoning, f"must be one of {', '.join(REASONING)}")

    def model_name(self, name: str) -> str:
        """The profile as the model name of a request: ``sim/<name>?ability=5.0&...``, keys sorted.

        Raises
        ------
        SimulatorError
            `name` is empty or not text that UTF-8 can carry.
        """
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
    """Name and profile that a model name carries; settings left out have their defaults.

    Raises
    ------
    SimulatorError
        The name does not start with ``sim/``, or a setting is unknown, repeated or out of range.
    """
    if not model_name.startswith(PREFIX):
        raise SimulatorError("model", model_name, f"a simulated model's name starts with {PREFIX!r}")
    label, _, query = model_name.removeprefix(PREFIX).partition("?")
    if not label:
        raise SimulatorError("model", model_name, "a simulated model needs a name")
    settings: dict[str, str | float] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key not in _FIELDS:
            raise SimulatorError(key, value, f"no such setting; there are {', '.join(_FIELDS)}")
        if key in settings:
            raise SimulatorError(key, value, "is set twice")
        try:
            settings[key] = value if key == "reasoning" else float(value)
        except ValueError:
            raise SimulatorError(key, value, "must be a number") from None
    return unquote(label), Profile(**settings)  # type: ignore[arg-type]


def _number(name: str, value: object, limits: Range) -> float:
    rule = f"must be a number from {limits.low:g} to {limits.high:g} ({limits.meaning})"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SimulatorError(name, value, rule)
    if not limits.low <= value <= limits.high:  # false for NaN, too
        raise SimulatorError(name, value, rule)
    return float(value) + 0.0  # -0.0 becomes 0.0, so that equal profiles have equal names
