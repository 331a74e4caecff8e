"""What a config says about where a sweep works: the section `cluster`, by kind; no part of the sweep's identity."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from flows.config import values
from flows.config.section import Name, Section, Whole

_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
_WITH_UNIT = re.compile(r"(\d+(?:\.\d+)?) ?(s|min|m|h|d)")
_CLOCK = re.compile(r"(?:(\d+)-)?(\d+):(\d\d):(\d\d)")
_LONGEST_SECONDS = 366 * 86_400


def seconds(value: object) -> object:
    """The seconds that a time stands for: ``90s``, ``20m``, ``2h``, ``1d``, ``01:30:00`` or ``1-12:00:00``."""
    if isinstance(value, str):
        if (match := _WITH_UNIT.fullmatch(value.strip())) is not None:
            value = float(match[1]) * _UNITS[match[2]]
        elif (match := _CLOCK.fullmatch(value.strip())) is not None:
            days, hours, minutes, rest = (int(part or 0) for part in match.groups())
            value = float(((days * 24 + hours) * 60 + minutes) * 60 + rest)
    # A bare number would be minutes to Slurm and seconds to everybody else.
    if not isinstance(value, float) or not 1 <= value <= _LONGEST_SECONDS:
        raise values.refusal("must be a time from 1s to 366d", "Write it as in 90s, 20m, 2h, 1d or 01:30:00")
    return value


def _line(value: object) -> object:
    if isinstance(value, str) and value.strip() and len(value) <= 4096 and value.isprintable():
        return value
    raise values.refusal("must be one line of text", "Give each line as an item of its own")


Seconds = Annotated[float, BeforeValidator(seconds)]
Line = Annotated[str, BeforeValidator(_line)]


class LocalSection(Section):
    """Worker processes on this machine."""

    kind: Literal["local"] = Field(description="Which kind of cluster this is.")
    workers: Whole | None = Field(
        None, ge=1, le=256, description="Worker processes; default: one per core, at most eight."
    )


class SchedulerSection(Section):
    """A Dask cluster that somebody else runs."""

    kind: Literal["scheduler"] = Field(description="Which kind of cluster this is.")
    address: Annotated[str, BeforeValidator(_line)] = Field(
        description="The scheduler's address, such as tcp://host:8786."
    )
    minimum: Whole = Field(1, ge=1, le=100_000, description="Workers to wait for before the first request.")
    patience: Seconds = Field(
        60.0, description="How long a run waits without any worker before it gives up, such as 20m."
    )


KINDS: Mapping[str, type[Section]] = {
    "scheduler": SchedulerSection,
    "local": LocalSection,
}
CLUSTER_TAGS = tuple(f"\0{kind}" for kind in ("name", *KINDS))
"""Names of the forms of a cluster; no key of a config can be one."""


def _known(value: object) -> object:
    if isinstance(value, str):
        return values.name(value)
    if isinstance(value, Section):
        return value
    if not isinstance(value, Mapping):
        raise values.refusal(
            "must be the name of a cluster or a mapping with its kind",
            "Write {kind: scheduler, address: ...}",
        )
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        what = "is missing" if kind is None else f"must be one of {', '.join(KINDS)}"
        raise values.refusal(what, f"Write kind: {' or '.join(KINDS)}", where=("kind",), told=kind is None)
    return value


def _form(value: Any) -> str:  # noqa: ANN401 - any value
    if isinstance(value, str):
        return "\0name"
    return f"\0{value['kind'] if isinstance(value, Mapping) else value.kind}"


ClusterSection = SchedulerSection | LocalSection
Cluster = Annotated[
    Annotated[
        Annotated[Name, Tag("\0name")]
        | Annotated[SchedulerSection, Tag("\0scheduler")]
        | Annotated[LocalSection, Tag("\0local")],
        Discriminator(_form),
    ],
    BeforeValidator(_known),
]
"""The settings of a cluster, or the name of one of this user's (see `flows.config.sites`)."""
