"""One trial as a person wants to see it, with what a second reader makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from evalcube.flows.plan.evaluations import Opinion


@dataclass(frozen=True)
class SecondView:
    """What a second reader makes of a reply."""

    reader: str
    status: str
    """As recorded in the cube."""
    parsed: str | None
    """What its pattern finds, a model's own text; None if that is nothing, or it is no pattern."""


@dataclass(frozen=True)
class TrialView:
    """One trial as a person wants to see it. `response`, `reasoning` and `parsed` are a model's own text."""

    model: str
    task: str
    params: Mapping[str, object]
    trial: int
    repeat: int
    status: str
    """As recorded in the cube."""
    messages: Sequence[Mapping[str, str]]
    """What was sent."""
    response: str | None
    """None if the cache does not hold the reply."""
    reasoning: str
    parsed: str | None
    reference: str
    tokens: int
    latency: float
    first_token: float
    """Seconds until the reply began; NaN where it was not streamed."""
    digest: str
    """Digest of the request, which is the cache's key."""
    layers: Mapping[str, float]
    """Scores from 1 to 5 of the layers that there are."""
    opinions: Sequence[Opinion]
    """Of the judges, as far as the cache holds them."""
    row: int | None
    """Number of the row, from 1, where the question is from a file."""
    row_id: str
    """The row's own name, where the data set names a field with it."""
    prompt_tokens: int | None
    """None where the endpoint does not say, as below."""
    reasoning_tokens: int | None
    cached_tokens: int | None
    provider: str | None
    """What the reply says of the system that gave it."""
    looping: bool
    """Whether the end of the reply repeats itself."""
    ending: str | None
    """The endpoint's word for the reply's end, where nobody knows what it means; None where that is known."""
    fault: str
    """In what way the answer is wrong, where the task tells; else empty."""
    read_as: str | None = None
    """How the answer was read: its place and what that gave; None where nobody noted it."""
    theirs: SecondView | None = None
    """What the task's second reader makes of the reply; None where there is none, or it has not read it."""

    judged: Sequence[Mapping[str, str]] = ()
    """What judges were sent: names of the judges, role and content of each message."""

    def to_dict(self) -> dict[str, Any]:
        """The view as JSON values; what is not a number is None."""
        fields = asdict(self)
        for part in (fields, *fields["opinions"]):
            part.update({name: None for name, value in part.items() if value != value})  # noqa: PLR0124 - NaN
        return fields
