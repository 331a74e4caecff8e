"""The small records that runs leave beside a cube: notes, what was spent, how far a run is."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from evalcube.storage.cube.bounds import parse_json
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import StorageError, guarded

NOTES, SPENT, LIVE, DRIVER = "sweep.json", "spent.json", "live.json", "driver.json"
"""Their keys among the cube's records, beside those of ledger and lease."""

PACKAGES = "packages"
"""Key of the notes: by task, the package that it is from, with its version; shown only."""

MERGED = "merged"
"""Attribute of a cube that was made of several: its provenance."""

_READ_BYTES = 1_000_000
_LONGEST_PAUSE, _LARGEST = 1e6, 1e15
_NOTES_BYTES = 20_000_000
"""Twice what a config file may have."""


@dataclass(frozen=True)
class Spent:
    """What requests have cost; answers of the cache cost nothing."""

    tokens: float = 0.0
    """Of prompts and completions."""
    usd: float = 0.0


def read_notes(records: Space) -> dict[str, Any]:
    """What the last run noted beside the cube; empty if nothing can be read."""
    notes = read_record(records, NOTES, _NOTES_BYTES)
    return notes if isinstance(notes, dict) else {}


def priced_models(notes: Mapping[str, object]) -> set[str] | None:
    """Names of the models with prices in the config that a cube has; None if it has none.

    A price of 0 stands in a cube also where a config declares none.
    """
    config = notes.get("config")
    models = config.get("models") if isinstance(config, Mapping) else None
    if not isinstance(models, list):
        return None
    return {str(model.get("name")) for model in models if isinstance(model, Mapping) and "prices" in model}


def cached_prices(notes: Mapping[str, object]) -> dict[str, float]:
    """What it adds to the price of a prompt's token if it was cached, below 0, by name of models that declare it.

    In USD per million, by the config that a cube has; as their models are asked, in batches or not.
    """
    config = notes.get("config")
    models = config.get("models") if isinstance(config, Mapping) else None
    by_label = {}
    for model in models if isinstance(models, list) else ():
        prices = model.get("prices") if isinstance(model, Mapping) else None
        if isinstance(prices, Mapping) and "cached" in prices:
            from evalcube.flows.config.models import Prices  # with all that configs are made of

            with suppress(ValueError):
                paid = Prices.model_validate(dict(prices)).paid(batch=bool(model.get("batch")))
                by_label[str(model.get("name"))] = paid[2]
    return by_label


def read_spent(records: Space) -> Spent | None:
    """The sum that earlier runs kept; None if there is none that can be read."""
    document = read_record(records, SPENT, _READ_BYTES)
    try:
        spent = Spent(float(document["tokens"]), float(document["usd"]))
    except (ValueError, KeyError, TypeError):
        return None
    return spent if math.isfinite(spent.tokens) and math.isfinite(spent.usd) else None


def read_live(records: Space) -> dict[str, Any] | None:
    """What the last run said of itself; None if nothing can be read."""
    document = read_record(records, LIVE, _READ_BYTES)
    numbers = ("time", "seconds", "trials", "done", "sent", "in_flight", "cached", "transport", "rate")
    if not isinstance(document, dict) or not isinstance(document.get("retries"), dict):
        return None
    if not all(_is_number(document.get(name)) for name in numbers):
        return None
    if document.get("eta") is not None and not _is_number(document["eta"]):
        return None
    waiting = document.get("waiting")
    if not isinstance(waiting, dict) or not all(map(_is_pause, waiting.values())):
        return None
    return document


def read_driver(records: Space) -> dict[str, Any] | None:
    """Where the driver of a submitted sweep is or was, and its last lines; None if none can be read."""
    document = read_record(records, DRIVER, _READ_BYTES)
    if not isinstance(document, dict) or not isinstance(lines := document.get("lines"), list):
        return None
    named = all(isinstance(document.get(name), str) for name in ("name", "scheduler", "worker"))
    return document if named and all(isinstance(line, str) for line in lines) else None


def _is_number(value: object) -> bool:
    """Whether it is one that can be shown: a foreign record may hold 1e999."""
    return type(value) in (int, float) and abs(value) < _LARGEST  # type: ignore[arg-type]


def _is_pause(pause: object) -> bool:
    """Whether it has the form of an entry of `evalcube.flows.events.Traffic.waiting`."""
    if not isinstance(pause, dict) or not isinstance(pause.get("reason"), str):
        return False
    seconds = pause.get("seconds")
    return isinstance(seconds, (int, float)) and 0 <= seconds < _LONGEST_PAUSE


def read_record(records: Space, key: str, most: int | None = None) -> Any:  # noqa: ANN401 - any JSON, in any form
    """A record's content; None if there is none that can be read."""
    try:
        record = records.get(key, most)
        return None if record is None else parse_json(record.data)
    except (OSError, StorageError, ValueError):
        return None


STOP = "stop.json"
"""Its key among a cube's records."""
_MOST_BYTES, _LONGEST_NAME = 10_000, 200


def ask_to_stop(records: Space, token: str, by: str) -> None:
    """Leave the wish for the run that holds a cube's lease."""
    with guarded(f"{records.address}/{STOP}", "ask the run to stop"):
        records.put(STOP, json.dumps({"run": _digest(token), "by": by}).encode())


def who_stops(records: Space, token: str) -> str:
    """Who wants the run with that lease to stop; empty if nobody does."""
    record = read_record(records, STOP, _MOST_BYTES)
    if not isinstance(record, dict) or record.get("run") != _digest(token):
        return ""
    by = record.get("by")
    # What is shown to people, and written into logs, does nothing to a terminal.
    shown = "".join(c for c in by if c.isprintable()) if isinstance(by, str) else ""
    return shown[:_LONGEST_NAME] or "somebody"


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()[:24]
