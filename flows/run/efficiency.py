"""What a run sent and its endpoints' limits in; how far the limits were used out. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from flows.run.events import Traffic
from stages.infer.endpoint import Endpoint
from stages.infer.rates import strictest


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
    """Share of it that was used, about from 0 to 1."""


def limit_use(endpoints: Mapping[str, Endpoint], traffic: Traffic, seconds: float) -> tuple[LimitUse, ...]:
    """For each endpoint that was asked, the limit that was used most; batches have none.

    Connections are used while they wait for answers that count: the sum of these answers' seconds, divided by
    connections × `seconds`. The other limits are used by the requests and tokens of a minute.

    Parameters
    ----------
    endpoints
        By label of the model.
    traffic
        Totals of the run.
    seconds
        From the first request to the last answer.
    """
    accounts: dict[object, list[str]] = {}
    for name, endpoint in endpoints.items():
        if endpoint.batch is None and traffic.models.get(name, {}).get("requests"):
            accounts.setdefault(endpoint.account, []).append(name)
    if seconds <= 0.0:
        return ()
    found = []
    for names in accounts.values():
        quota = strictest(endpoints[name].quota for name in names)
        counts = [traffic.models[name] for name in names]
        tokens = sum(sum(traffic.usage.get(name, ())) for name in names)
        rates = {
            "connections": (float(quota.connections), sum(each["seconds"] for each in counts) / seconds),
            "requests_per_minute": (
                quota.requests_per_minute,
                sum(each["requests"] for each in counts) * 60 / seconds,
            ),
            "tokens_per_minute": (quota.tokens_per_minute, tokens * 60 / seconds),
        }
        uses = (
            LimitUse(tuple(names), limit, value, rate / value)
            for limit, (value, rate) in rates.items()
            if value is not None
        )
        found.append(max(uses, key=lambda use: use.used))
    return tuple(found)
