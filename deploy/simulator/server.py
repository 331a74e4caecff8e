"""Answers chat completions as simulated models would: the model, and what it can do, are in the request's `model`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from aiohttp import web

from evalcube.deploy.errors import SimulatorError
from evalcube.deploy.simulator import ability, reply
from evalcube.deploy.simulator.profile import Profile, parse
from evalcube.deploy.simulator.truth import HEADER, decode

_MOST_BYTES = 16 << 20
"""Of a request's body."""
_BACKLOG = 2048
"""Hundreds of clients connect in the same moment; with fewer places some would wait a second for one."""
_parse = lru_cache(maxsize=1024)(parse)


async def listen(port: int) -> tuple[web.AppRunner, str]:
    """Serve on the loopback address; the runner to clean up in the end, and the server's address.

    Parameters
    ----------
    port
        Port to listen on; 0 takes a free one.

    Raises
    ------
    OSError
        The port is taken or not allowed.
    """
    application = web.Application(client_max_size=_MOST_BYTES)
    application.router.add_post("/v1/chat/completions", _chat)
    application.router.add_get("/v1/models", _models)
    application.router.add_get("/health", _health)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=_BACKLOG).start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


async def _health(_: web.Request) -> web.Response:
    return web.json_response({"status": "ok"})


async def _models(_: web.Request) -> web.Response:
    entry = {"id": Profile().model_name("default"), "object": "model", "owned_by": "evalcube"}
    return web.json_response({"object": "list", "data": [entry]})


async def _chat(request: web.Request) -> web.Response:
    body = await request.read()
    try:
        fields = json.loads(body)
        _, profile = _parse(fields["model"])
        messages, limit = _messages(fields), _limit(fields)
    except SimulatorError as error:
        return _error(404, f"no such model: {error}", "model_not_found")
    except (ValueError, RecursionError, TypeError, LookupError) as error:
        return _error(400, f"no chat completion is asked for: {error}"[:300], "invalid_value")
    truth = decode(request.headers.get(HEADER, "").encode())
    digest = ability.request_digest(_identity(fields, body), 0 if truth is None else truth.repeat)
    text = reply.speak(profile, truth, ability.draws(digest), limit)
    seconds = ability.delay(profile, text.tokens)
    if seconds > 0.0:
        await asyncio.sleep(seconds)
    return web.json_response(
        reply.completion(fields["model"], digest, text, reply.prompt_tokens(messages)), dumps=_compact
    )


def _messages(fields: Mapping[str, Any]) -> list[Mapping[str, object]]:
    messages = fields["messages"]
    if not isinstance(messages, list) or not messages or not all(isinstance(one, dict) for one in messages):
        raise ValueError("messages must be a list of objects")
    return messages


def _limit(fields: Mapping[str, Any]) -> int | None:
    """Most tokens of the completion; None leaves it to the model."""
    limit = fields.get("max_completion_tokens", fields.get("max_tokens"))
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise ValueError("max_tokens must be a whole number, 1 or more")
    return limit


def _identity(fields: Mapping[str, object], body: bytes) -> bytes:
    """What the reply follows from: a stream that is asked for is sent whole, and says the same."""
    if "stream" not in fields:
        return body
    rest = {name: value for name, value in fields.items() if name not in ("stream", "stream_options")}
    return json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()


def _error(status: int, message: str, code: str) -> web.Response:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return web.json_response({"error": error}, status=status)


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
