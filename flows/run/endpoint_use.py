"""What a run learned of its endpoints: limits used and found, models that are not there, where to begin next time."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evalcube.flows.config.models import Model
from evalcube.flows.config.near_names import close_name
from evalcube.flows.events import Traffic
from evalcube.flows.state.records import read_record
from evalcube.stages.analyze.formulas.arguments import column
from evalcube.stages.infer.apis import APIS
from evalcube.stages.infer.endpoint import Endpoint
from evalcube.stages.infer.rates import strictest
from evalcube.stages.infer.sharing import Shared
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import StorageError
from evalcube.storage.urls import redacted

if TYPE_CHECKING:
    from evalcube.flows.run.worker.context import Route
    from evalcube.flows.state.store import SweepStore

_REFUSED_PART = 5
"""One in so many trials of a model may end as refused by its endpoint."""


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
    """``requests_per_minute``, where more were refused, or ``connections``, where so many were of use."""
    value: int
    """What to write there."""
    late: float = 0.0
    """Share of the seconds of answers in which they waited for the CPU here."""


def found_limits(endpoints: Mapping[str, Endpoint], traffic: Traffic) -> tuple[FoundLimit, ...]:
    """Limits that the config could name, so that the next run need not find them out."""
    rows = []
    for model, limits in traffic.found.items():
        names = tuple(
            name for name, endpoint in endpoints.items() if endpoint.account == endpoints[model].account
        )
        requests = limits.get("requests")
        if requests is not None:
            rows.append(FoundLimit(names, "requests_per_minute", max(int(requests * 60), 1)))
        elif (window := limits.get("window")) and int(window) != endpoints[model].start:
            held = sum(traffic.models.get(name, {}).get("seconds", 0.0) for name in names)
            late = sum(traffic.late.get(name, 0.0) for name in names) / held if held else 0.0
            rows.append(FoundLimit(names, "connections", int(window), late=min(late, 1.0)))
    return tuple(rows)


def share_limits(endpoints: Mapping[str, Endpoint]) -> Shared:
    """Return the limits that workers share, of the endpoints of all models by label; batches have none."""
    limits, accounts = {}, _group_by_account(endpoints, endpoints)
    for names in accounts:
        quota = strictest(endpoints[name].quota for name in names)
        limits.update(dict.fromkeys(names, (quota, endpoints[names[0]].timeout)))
    return Shared(limits, [names[0] for names in accounts])


def _group_by_account(endpoints: Mapping[str, Endpoint], asked: Collection[str]) -> list[list[str]]:
    """Return the labels of the models that share limits, of those that are asked one by one."""
    accounts: dict[object, list[str]] = {}
    for name, endpoint in endpoints.items():
        if endpoint.batch is None and name in asked:
            accounts.setdefault(endpoint.account, []).append(name)
    return list(accounts.values())


def limit_use(endpoints: Mapping[str, Endpoint], traffic: Traffic) -> tuple[LimitUse, ...]:
    """For each endpoint that was asked, the limit that was used most; batches have none.

    Counted from the endpoint's first request to the end of its last one: one that is done before others, or begun
    after them, is not idle in between. Connections are used while the endpoint works on answers that count: the sum of
    these answers' seconds without those in which they waited for the CPU here, divided by connections × seconds.
    The other limits are used by requests and their tokens; they let one request through at once, and the rest by the
    minute.
    """
    asked = [name for name in traffic.asked if traffic.models.get(name, {}).get("requests")]
    rows = []
    for names in _group_by_account(endpoints, asked):
        begun, ended = zip(*(traffic.asked[name] for name in names), strict=True)
        seconds = max(ended) - min(begun)
        if seconds <= 0.0:
            continue
        quota = strictest(endpoints[name].quota for name in names)
        counts = [traffic.models[name] for name in names]
        requests = sum(each["requests"] for each in counts)
        tokens = sum(sum(traffic.usage.get(name, ())[:2]) for name in names)
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
            rows.append(max(uses, key=lambda use: use.used))
    return tuple(rows)


NOT_FOUND = "http 404"
_MOST_NAMED, _LONGEST = 5, 100
_MOST_ASKED = 4
"""Endpoints that are asked; of more, only the address is said."""


def not_found_lines(models: Iterable[Model], endpoints: Mapping[str, Endpoint]) -> list[str]:
    """A line for each model whose endpoint answered with status 404, with what to write."""
    lines = []
    for index, model in enumerate(models):
        endpoint = endpoints.get(model.name)
        if endpoint is not None:
            lines.append(_line(model, endpoint, ask=index < _MOST_ASKED))
    return lines


def _line(model: Model, endpoint: Endpoint, *, ask: bool) -> str:
    base, path = endpoint.base_url.rstrip("/"), APIS[endpoint.api].path
    shown, name = redacted(base), model.model or model.name
    status, names = _listing(endpoint, f"{base}/models") if ask else (0, [])
    if names and name not in names:
        near = close_name(name, names)
        there = f"Did you mean `model: {near}`?" if near else f"It has: {', '.join(names[:_MOST_NAMED])}"
        return f"{model.name}: {shown} has no model '{name}'. {there}"
    if status in (200, 401, 403):
        problem = f"{shown} is there, and knows no model '{name}', or has no {path}"
        return f"{model.name}: {problem}. Look at `model` and `api`"
    if ask and not base.endswith("/v1") and _listing(endpoint, f"{base}/v1/models")[0] in (200, 401, 403):
        return f"{model.name}: nothing is at {shown}{path}, but an API at {shown}/v1. Write `endpoint: {shown}/v1`"
    ending = "" if base.endswith("/v1") else f", which mostly ends in /v1, as in `endpoint: {shown}/v1`"
    return f"{model.name}: nothing is at {shown}{path}, or no model '{name}'. Look at `endpoint`{ending}"


def _listing(endpoint: Endpoint, url: str) -> tuple[int, list[str]]:
    """Status of a list of models, asked for as the model's requests are, and the names in it; 0 without an answer."""
    from evalcube.stages.infer.wire import get_document  # what reads a summary needs no client

    status, document = get_document(endpoint, url)
    try:
        names = [row["id"] for row in document["data"] if isinstance(row["id"], str)]  # type: ignore[index]
    except (KeyError, TypeError):
        return (0 if 200 <= status < 300 else status), []  # a page, and no list
    return status, [name for name in names if name.isprintable() and len(name) <= _LONGEST]


_KEY = "in_flight.json"
_READ_BYTES = 1_000_000


def recall(records: Space, models: Sequence[Model], routes: Mapping[str, Route]) -> dict[str, Route]:
    """The routes, where the search for what endpoints have a use for begins with half of what was found before."""
    limits = _read_limits(records)
    addresses = {model.name: " ".join(model.addresses) for model in models}
    return {name: _with_start(route, limits.get(addresses.get(name, ""))) for name, route in routes.items()}


def _with_start(route: Route, found: int | None) -> Route:
    start = route.endpoint.start
    if found is None or start is None:
        return route
    # Not below what one begins with anyway, where more was found: a short run has only begun to look.
    start = min(max(found // 2, min(start, found)), route.endpoint.connections)
    return replace(route, endpoint=replace(route.endpoint, start=start))


def bounded_refusals(store: SweepStore, routes: Mapping[str, Route]) -> dict[str, Route]:
    """Return the routes with how many trials may still end as refused: a fifth of a model's, over all runs."""
    bounds: defaultdict[str, float] = defaultdict(float)
    refusals = column(store.counters(), "refused").sum(axis=(1, 2))
    for evaluation, trials, refused in zip(
        store.plan.evaluations, store.targets.counts, refusals, strict=True
    ):
        bounds[evaluation.model] += trials / _REFUSED_PART - refused
    return {
        name: replace(route, endpoint=replace(route.endpoint, refusals=max(int(bounds[name]), 0)))
        if name in bounds
        else route
        for name, route in routes.items()
    }


def remember(
    records: Space, models: Sequence[Model], endpoints: Mapping[str, Endpoint], traffic: Traffic
) -> None:
    """Keep what a run found; where it did not come to look, what was known before stays.

    What cannot be kept is no loss.
    """
    limits = {}
    for model in models:
        window = traffic.found.get(model.name, {}).get("window")
        if window and model.name in endpoints and window != endpoints[model.name].start:
            limits[" ".join(model.addresses)] = int(window)
    if limits:
        with suppress(OSError, StorageError):
            records.put(_KEY, json.dumps(_read_limits(records) | limits, indent=1, sort_keys=True).encode())


def _read_limits(records: Space) -> dict[str, int]:
    document = read_record(records, _KEY, _READ_BYTES)
    rows = document.items() if isinstance(document, dict) else ()
    return {name: value for name, value in rows if type(value) is int and value > 0}
