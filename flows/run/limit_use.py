"""How much of the limits of its endpoints a run used, and which limits it found out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evalcube.flows.run.events import Traffic
from evalcube.stages.infer.endpoint import Endpoint
from evalcube.stages.infer.rates import strictest


@dataclass(frozen=True)
class LimitUse:
    """The limit of one endpoint that was used most."""

    models: tuple[str, ...]
    """Labels of the models there."""
    limit: str
    """``connections``, ``requests_per_minute`` or ``tokens_per_minute``."""
    value: float
    """What the config allows."""
    used: float
    """Share of it that was used in that time, about from 0 to 1."""
    seconds: float = 0.0
    """From the first request there to the end of the last one."""
    late: float = 0.0
    """Share of the connections whose requests waited for the CPU here, and not for the endpoint."""


@dataclass(frozen=True)
class FoundLimit:
    """A limit of an endpoint that the config does not name, as far as the run found it out."""

    models: tuple[str, ...]
    """Labels of the models there."""
    limit: str
    """``requests_per_minute`` or ``connections``, as in the config."""
    value: int
    """What to write there."""
    refused: bool = True
    """Whether it was found by being refused; else so many in flight were of use, and none was refused."""
    late: float = 0.0
    """Share of the seconds of answers in which they waited for the CPU here."""


def found_limits(endpoints: Mapping[str, Endpoint], traffic: Traffic) -> tuple[FoundLimit, ...]:
    """Limits that the config could name, so that the next run need not find them out.

    Parameters
    ----------
    endpoints
        By label of the model.
    traffic
        Totals of the run.
    """
    found = []
    for model, limits in traffic.found.items():
        names = tuple(
            name for name, endpoint in endpoints.items() if endpoint.account == endpoints[model].account
        )
        requests, connections = limits.get("requests"), limits.get("connections")
        if requests is not None:
            found.append(FoundLimit(names, "requests_per_minute", max(int(requests * 60), 1)))
        elif connections is not None:
            found.append(FoundLimit(names, "connections", max(int(connections), 1)))
        elif window := limits.get("window"):
            held = sum(traffic.models.get(name, {}).get("seconds", 0.0) for name in names)
            late = sum(traffic.late.get(name, 0.0) for name in names) / held if held else 0.0
            found.append(FoundLimit(names, "connections", int(window), refused=False, late=min(late, 1.0)))
    return tuple(found)


def limit_use(endpoints: Mapping[str, Endpoint], traffic: Traffic) -> tuple[LimitUse, ...]:
    """For each endpoint that was asked, the limit that was used most; batches have none.

    Counted from the endpoint's first request to the end of its last one: one that is done before others, or begun
    after them, is not idle in between. Connections are used while the endpoint works on answers that count: the sum of
    these answers' seconds without those in which they waited for the CPU here, divided by connections × seconds.
    The other limits are used by requests and their tokens; they let one request through at once, and the rest by the
    minute.

    Parameters
    ----------
    endpoints
        By label of the model.
    traffic
        Totals of the run.
    """
    accounts: dict[object, list[str]] = {}
    for name, endpoint in endpoints.items():
        if endpoint.batch is None and name in traffic.asked and traffic.models.get(name, {}).get("requests"):
            accounts.setdefault(endpoint.account, []).append(name)
    found = []
    for names in accounts.values():
        begun, ended = zip(*(traffic.asked[name] for name in names), strict=True)
        seconds = max(ended) - min(begun)
        if seconds <= 0.0:
            continue
        quota = strictest(endpoints[name].quota for name in names)
        counts = [traffic.models[name] for name in names]
        requests = sum(each["requests"] for each in counts)
        tokens = sum(sum(traffic.usage.get(name, ())) for name in names)
        held = sum(each["seconds"] for each in counts)
        late = min(sum(traffic.late.get(name, 0.0) for name in names), held)
        minutes = seconds / 60
        # Of each limit: what was used of it, for how long, and what it lets through at once.
        limits = {
            **({} if quota.is_searched else {"connections": (held - late, seconds, 0.0)}),
            "requests_per_minute": (requests, minutes, 1.0),
            "tokens_per_minute": (tokens, minutes, tokens / requests),
        }
        uses = [
            LimitUse(
                tuple(names),
                limit,
                float(value),
                used / (value * time + at_once),
                seconds,
                late / (quota.connections * seconds),
            )
            for limit, (used, time, at_once) in limits.items()
            if (value := getattr(quota, limit)) is not None
        ]
        if uses:
            found.append(max(uses, key=lambda use: use.used))
    return tuple(found)
