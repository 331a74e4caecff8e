"""How many requests in flight runs found their endpoints to have a use for, kept beside a cube for the next run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from evalcube.flows.config.models import Model
from evalcube.flows.plan.records import read_record
from evalcube.flows.run.events import Traffic
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import StorageError

if TYPE_CHECKING:
    from evalcube.flows.run.worker import Route
    from evalcube.stages.infer.endpoint import Endpoint

_KEY = "in_flight.json"
_READ_BYTES = 1_000_000


def recalled(records: Space, models: Sequence[Model], routes: Mapping[str, Route]) -> dict[str, Route]:
    """The routes, where the search for what endpoints have a use for begins with half of what was found before.

    Parameters
    ----------
    records
        Of the cube.
    models
        Of the config.
    routes
        By label of the model.
    """
    known = _read(records)
    addresses = {model.name: " ".join(model.addresses) for model in models}
    return {name: _begun(route, known.get(addresses.get(name, ""))) for name, route in routes.items()}


def _begun(route: Route, found: int | None) -> Route:
    start = route.endpoint.start
    if found is None or start is None:
        return route
    # Not below what one begins with anyway, where more was found: a short run has only begun to look.
    start = min(max(found // 2, min(start, found)), route.endpoint.connections)
    return replace(route, endpoint=replace(route.endpoint, start=start))


def remember(
    records: Space, models: Sequence[Model], endpoints: Mapping[str, Endpoint], traffic: Traffic
) -> None:
    """Keep what a run found; where it did not come to look, what was known before stays.

    What cannot be kept is no loss.

    Parameters
    ----------
    records
        Of the cube.
    models
        Of the config.
    endpoints
        By label of the model, as the run began.
    traffic
        Totals of the run.
    """
    found = {}
    for model in models:
        window = traffic.found.get(model.name, {}).get("window")
        if window and model.name in endpoints and window != endpoints[model.name].start:
            found[" ".join(model.addresses)] = int(window)
    if found:
        with suppress(OSError, StorageError):
            records.put(_KEY, json.dumps(_read(records) | found, indent=1, sort_keys=True).encode())


def _read(records: Space) -> dict[str, int]:
    document = read_record(records, _KEY, _READ_BYTES)
    rows = document.items() if isinstance(document, dict) else ()
    return {name: value for name, value in rows if type(value) is int and value > 0}
