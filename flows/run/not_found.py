"""Finds out why an endpoint answers requests with "not found": the model, the path, or a forgotten /v1.

It asks for lists of models, which costs nothing, without a key, and decides by the status: a list that asks for a key
is there. What a server says is hostile: bounded, and shown with its signs written out.
"""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from evalcube.flows.config.models import Model
from evalcube.flows.config.near_names import close_name
from evalcube.stages.infer.apis import APIS
from evalcube.stages.infer.endpoint import Endpoint
from evalcube.storage.urls import redacted

CAUSE = "http 404"
_SECONDS = 3.0
_MOST_BYTES = 1_000_000
_MOST_NAMED, _LONGEST = 5, 100
_MOST_ASKED = 4
"""Endpoints that are asked; of more, only the address is said."""


def not_found_lines(models: Iterable[Model], endpoints: Mapping[str, Endpoint]) -> list[str]:
    """A line for each model whose endpoint answered with status 404, with what to write.

    Parameters
    ----------
    models
        Those that this happened to.
    endpoints
        By the model's label.
    """
    lines = []
    for place, model in enumerate(models):
        endpoint = endpoints.get(model.name)
        if endpoint is not None:
            lines.append(_line(model, endpoint, ask=place < _MOST_ASKED))
    return lines


def _line(model: Model, endpoint: Endpoint, *, ask: bool) -> str:
    base, path = endpoint.base_url.rstrip("/"), APIS[endpoint.api].path
    shown, name = redacted(base), model.model or model.name
    status, names = _listing(f"{base}/models") if ask else (0, [])
    if names and name not in names:
        near = close_name(name, names)
        there = f"Did you mean `model: {near}`?" if near else f"It has: {', '.join(names[:_MOST_NAMED])}"
        return f"{model.name}: {shown} has no model '{name}'. {there}"
    if status in (200, 401, 403):
        what = f"{shown} is there, and knows no model '{name}', or has no {path}"
        return f"{model.name}: {what}. Look at `model` and `api`"
    if ask and not base.endswith("/v1") and _listing(f"{base}/v1/models")[0] in (200, 401, 403):
        return f"{model.name}: nothing is at {shown}{path}, but an API at {shown}/v1. Write `endpoint: {shown}/v1`"
    ending = "" if base.endswith("/v1") else f", which mostly ends in /v1, as in `endpoint: {shown}/v1`"
    return f"{model.name}: nothing is at {shown}{path}, or no model '{name}'. Look at `endpoint`{ending}"


def _listing(address: str) -> tuple[int, list[str]]:
    """Status of a list of models, and the names in it; 0 where nothing answers."""
    if urlsplit(address).scheme not in ("http", "https"):
        return 0, []
    try:
        opener = urllib.request.build_opener(_NoRedirects)
        with opener.open(address, timeout=_SECONDS) as reply:
            status, body = int(reply.status), reply.read(_MOST_BYTES)
    except urllib.error.HTTPError as error:
        return error.code, []
    except (OSError, ValueError, ssl.SSLError, http.client.HTTPException):
        return 0, []
    try:
        rows = json.loads(body)["data"]
        names = [row["id"] for row in rows if isinstance(row["id"], str)]
    except (ValueError, KeyError, TypeError, RecursionError):
        return (0, [])  # a page, and no list
    return status, [name for name in names if name.isprintable() and len(name) <= _LONGEST]


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Follow none: elsewhere is another server."""
